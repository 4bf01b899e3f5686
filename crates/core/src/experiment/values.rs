//! The valid values of each key of an experiment: its type, and its range or its choices. The reference shows them, and
//! experiments are checked against them.

use super::keys::{KeyInfo, Table, one_of};
use std::fmt;
use toml::Value;

/// The valid values of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A number within a range.
    Number(Range),
    /// `true` or `false`.
    Flag,
    /// The name of a data set.
    Set,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any text.
    Text,
    /// A list of texts.
    Texts,
    /// A codec: `none`, `top-k`, `dither`, or one of these with its levels.
    Codec,
    /// Layers of a network.
    Layers,
    /// Something else: its type, and the valid values.
    Other(&'static str, &'static str),
}

/// A range of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Any number.
    Any,
    /// Above this.
    Above(f64),
    /// From the first to the second.
    Within(f64, f64),
    /// At least this.
    AtLeast(f64),
    /// Above 0 and at most 1.
    Share,
    /// At least 0 and less than 1.
    Rest,
}

impl Values {
    /// Their type, in a word or two.
    pub fn kind(&self) -> &'static str {
        match self {
            Values::Whole(..) => "whole number",
            Values::Number(_) => "number",
            Values::Flag => "true or false",
            Values::Set | Values::OneOf(_) | Values::Text => "text",
            Values::Codec => "codec",
            Values::Texts => "list of texts",
            Values::Layers => "list of layers",
            Values::Other(kind, _) => kind,
        }
    }
}

impl fmt::Display for Values {
    /// The range, or the choices; nothing where everything of the type is good.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Values::Whole(0, u64::MAX) => Ok(()),
            Values::Whole(least, u64::MAX) => write!(f, "at least {least}"),
            Values::Whole(least, most) => write!(f, "{least} to {most}"),
            Values::Number(range) => write!(f, "{range}"),
            Values::OneOf(words) => f.write_str(&words.join(" | ")),
            Values::Codec => f.write_str("none | top-k | dither, or with levels, like dither:16"),
            Values::Other(_, text) => f.write_str(text),
            Values::Set | Values::Flag | Values::Text | Values::Texts | Values::Layers => Ok(()),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Any => Ok(()),
            Range::Above(x) => write!(f, "above {x}"),
            Range::Within(least, most) => write!(f, "{least} to {most}"),
            Range::AtLeast(x) => write!(f, "at least {x}"),
            Range::Share => f.write_str("above 0, at most 1"),
            Range::Rest => f.write_str("at least 0, less than 1"),
        }
    }
}

/// Any whole number.
pub(super) const ANY: Values = Values::Whole(0, u64::MAX);
pub(super) const POSITIVE: Values = Values::Whole(1, u64::MAX);
pub(crate) const ABOVE_0: Values = Values::Number(Range::Above(0.0));
pub(crate) const SHARE: Values = Values::Number(Range::Share);
pub(super) const REST: Values = Values::Number(Range::Rest);
pub(super) const RATE: Values = Values::Number(Range::Within(1.0, 1e15));
pub(super) const UP_TO_A_MILLION: Values = Values::Number(Range::Within(0.0, 1e6));

/// A value that a key cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}{}{right}", if self.is_word() { ": " } else { " must be " })]
pub struct Refused {
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What would be valid.
    pub right: String,
}

impl Refused {
    fn is_word(&self) -> bool {
        self.value.starts_with('"')
    }
}

/// Refuses the first value that its key cannot have. Names of data sets are checked if there are any.
pub(super) fn check_values(settings: &impl Table, sets: Option<&[&str]>) -> Result<(), Refused> {
    let refused = |(key, value): (KeyInfo, Option<Value>)| {
        let (value, right) = key.values.refuse(&value?, sets)?;
        let key = key.path;
        Some(Refused { key, value, right })
    };
    settings
        .entries()
        .into_iter()
        .find_map(refused)
        .map_or(Ok(()), Err)
}

impl Values {
    /// A value that is none of these, as it is shown, and what would be right.
    fn refuse(&self, value: &Value, sets: Option<&[&str]>) -> Option<(String, String)> {
        let right = || self.to_string().replace(", ", " and ");
        match (self, value) {
            (Values::Whole(least, most), Value::Integer(n)) => {
                let within = u64::try_from(*n).is_ok_and(|n| (*least..=*most).contains(&n));
                (!within).then(|| (n.to_string(), right()))
            }
            // Too large for TOML's whole numbers.
            (Values::Whole(_, most), Value::String(n)) => {
                let within = n.parse::<u64>().is_ok_and(|n| n <= *most);
                (!within).then(|| (n.clone(), right()))
            }
            (Values::Number(range), Value::Float(x)) => {
                let digits = |x: f64| match x.abs() < 1e15 {
                    true => x.to_string(),
                    false => format!("{x:e}"),
                };
                (!range.contains(*x)).then(|| (digits(*x), right()))
            }
            (Values::OneOf(words), Value::String(word)) => unlisted(word, words),
            (Values::Set, Value::String(word)) => unlisted(word, sets?),
            _ => None,
        }
    }
}

fn unlisted(word: &str, words: &[&str]) -> Option<(String, String)> {
    (!words.contains(&word)).then(|| (format!("{word:?}"), one_of(word, words)))
}

impl Range {
    /// Whether a number is in it; what is not finite never is.
    fn contains(self, x: f64) -> bool {
        x.is_finite()
            && match self {
                Range::Any => true,
                Range::Above(least) => x > least,
                Range::Within(least, most) => (least..=most).contains(&x),
                Range::AtLeast(least) => x >= least,
                Range::Share => x > 0.0 && x <= 1.0,
                Range::Rest => (0.0..1.0).contains(&x),
            }
    }
}

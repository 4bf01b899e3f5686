//! Every key of an experiment, described once: path, type, default, valid values, meaning. The settings themselves, the
//! checks of single values, the suggestions in errors, and the reference are made from these rows.

use super::{Experiment, Values};
use std::sync::LazyLock;

/// A key, its valid values and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct KeyInfo {
    /// Dotted, as in `--set`.
    pub path: &'static str,
    /// Its valid values.
    pub values: Values,
    /// One line.
    pub meaning: &'static str,
}

/// Every key there is, in the order of a resolved experiment.
pub static KEYS: LazyLock<Vec<KeyInfo>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    Experiment::keys(&mut keys);
    keys
});

/// Settings that know their keys.
pub(super) trait Table {
    /// Adds the keys, in order.
    fn keys(all: &mut Vec<KeyInfo>);

    /// Adds what they are set to, in the same order; nothing for one that is not set.
    fn values(&self, all: &mut Vec<Option<toml::Value>>);

    /// The keys with what they are set to.
    fn entries(&self) -> Vec<(KeyInfo, Option<toml::Value>)> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        Self::keys(&mut keys);
        self.values(&mut values);
        keys.into_iter().zip(values).collect()
    }
}

/// A value as TOML has it; nothing if there is none.
pub(super) fn written(value: &impl serde::Serialize) -> Option<toml::Value> {
    let large = |_| match serde_json::to_value(value) {
        // A whole number that is too large for TOML.
        Ok(serde_json::Value::Number(number)) => Some(toml::Value::String(number.to_string())),
        _ => None,
    };
    toml::Value::try_from(value).map_or_else(large, Some)
}

/// Declares a table of settings: for each key a row with its field, type, default, values and meaning, and below them
/// the tables inside it. A field's own attributes come before it.
macro_rules! settings {
    (
        $(#[$about:meta])*
        $name:ident, $prefix:literal {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $default:expr, $values:expr, $meaning:literal;)*
            $([$(#[$inner_attribute:meta])* $inner:ident: $inner_type:ty])*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(#[doc = $meaning] $(#[$attribute])* pub $field: $type,)*
            $($(#[$inner_attribute])* pub $inner: $inner_type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $($field: $default,)*
                    $($inner: Default::default(),)*
                }
            }
        }

        impl $crate::experiment::keys::Table for $name {
            fn keys(all: &mut Vec<$crate::experiment::KeyInfo>) {
                all.extend([$($crate::experiment::KeyInfo {
                    path: concat!($prefix, stringify!($field)),
                    values: $values,
                    meaning: $meaning,
                },)*]);
                $(<$inner_type as $crate::experiment::keys::Table>::keys(all);)*
            }

            fn values(&self, all: &mut Vec<Option<toml::Value>>) {
                all.extend([$($crate::experiment::keys::written(&self.$field),)*]);
                $($crate::experiment::keys::Table::values(&self.$inner, all);)*
            }
        }
    };
}
pub(super) use settings;

/// The candidate nearest to a mistyped word, if one is near enough to suggest.
///
/// ```
/// use selvedge_core::experiment::nearest;
/// assert_eq!(nearest("lstmm", ["lstm", "gru"]), Some("lstm"));
/// assert_eq!(nearest("bananas", ["lstm", "gru"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word more than twice as long is near to none, and may be any file's longest line.
    let letters = word.chars().count();
    let similar = candidates
        .into_iter()
        .filter(|c| letters <= 2 * c.chars().count().max(1));
    let scored = similar.map(|c| (strsim::osa_distance(word, c), c));
    let (distance, best) = scored.min_by_key(|(d, _)| *d)?;
    (2 * distance <= letters.max(2)).then_some(best)
}

/// What would be right instead of `word`: "expected one of …", and the nearest where there is one.
pub fn one_of(word: &str, known: &[&str]) -> String {
    let list: Vec<String> = known.iter().map(|name| format!("\"{name}\"")).collect();
    let hint = nearest(&word.to_lowercase(), known.iter().copied());
    let hint = hint.map_or(String::new(), |name| format!(" (did you mean \"{name}\"?)"));
    format!("expected one of {}{hint}", list.join(", "))
}

//! What each key of an experiment may be set to: its type, and its range or its choices.
//!
//! This is what the reference says. Checks are where values are used; a test of the binary compares the two.

use super::KeyInfo;
use std::fmt;

/// What a key may be set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A number within a range.
    Number(Range),
    /// `true` or `false`.
    Flag,
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
    /// Something else: its type, and what of it is good.
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
            Values::OneOf(_) | Values::Text => "text",
            Values::Codec => "codec",
            Values::Texts => "list of texts",
            Values::Layers => "list of layers",
            Values::Other(kind, _) => kind,
        }
    }

    /// The words there are, where only some are good.
    pub fn choices(&self) -> &'static [&'static str] {
        match self {
            Values::OneOf(words) => words,
            _ => &[],
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
            Values::Flag | Values::Text | Values::Texts | Values::Layers => Ok(()),
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

impl KeyInfo {
    /// What it may be set to.
    pub fn values(&self) -> Values {
        let found = VALUES.iter().find(|(path, _)| *path == self.path);
        found.map_or(Values::Text, |(_, values)| *values)
    }
}

const ANY: Values = Values::Whole(0, u64::MAX);
const POSITIVE: Values = Values::Whole(1, u64::MAX);
const ABOVE_0: Values = Values::Number(Range::Above(0.0));
const SHARE: Values = Values::Number(Range::Share);
const REST: Values = Values::Number(Range::Rest);
const RATE: Values = Values::Number(Range::Within(1.0, 1e15));

/// Of every key.
const VALUES: &[(&str, Values)] = &[
    ("seed", ANY),
    (
        "data.set",
        Values::OneOf(&[
            "synthetic",
            "esr",
            "medmnist",
            "mimic3",
            "physionet2012",
            "table",
            "shards",
            "synthetic-esr",
            "synthetic-mednist",
            "synthetic-mimic3",
            "synthetic-organamnist",
            "synthetic-physionet2012",
        ]),
    ),
    ("data.path", Values::Text),
    ("data.vertical", Values::Text),
    (
        "data.split",
        Values::OneOf(&[
            "paper",
            "pairs",
            "ramp",
            "dirichlet",
            "iid",
            "column",
            "recording",
        ]),
    ),
    ("data.groups", POSITIVE),
    ("data.beta", Values::Number(Range::Within(0.001, 1e6))),
    (
        "data.sizes",
        Values::Other("list of numbers", "above 0, one for each group"),
    ),
    ("data.devices", POSITIVE),
    ("data.samples_per_device", POSITIVE),
    (
        "data.features",
        Values::Other(
            "list or number",
            "two counts, two shapes, or one even total",
        ),
    ),
    ("data.classes", Values::Whole(2, 10_000)),
    ("data.noise", Values::Number(Range::Within(0.0, 1e6))),
    ("data.test", REST),
    ("data.validation", REST),
    ("data.table.files", Values::Texts),
    ("data.table.id", Values::Text),
    ("data.table.label", Values::Text),
    ("data.table.labels", Values::Texts),
    ("data.table.group", Values::Text),
    ("data.table.patient", Values::Text),
    ("data.table.part", Values::Text),
    ("data.table.hospital", Values::Texts),
    ("data.table.device", Values::Texts),
    (
        "data.table.categorical",
        Values::Other(
            "list or table",
            "columns, or columns with lists of their categories",
        ),
    ),
    ("data.table.blank", Values::Texts),
    (
        "data.table.missing",
        Values::OneOf(&["mean", "zero", "carry", "refuse"]),
    ),
    ("data.table.masks", Values::Flag),
    ("data.table.clip", Values::Flag),
    (
        "data.table.one_sided",
        Values::OneOf(&["leave-out", "keep", "refuse"]),
    ),
    ("data.table.time", Values::Text),
    ("data.table.variable", Values::Text),
    ("data.table.value", Values::Text),
    ("data.table.steps", POSITIVE),
    ("data.table.step", ABOVE_0),
    ("data.table.start", Values::Number(Range::Any)),
    (
        "train.algorithm",
        Values::OneOf(&[
            "hsgd",
            "jfl",
            "tdcd",
            "c-hsgd",
            "c-tdcd",
            "centralised",
            "fedavg",
            "hospital-only",
            "device-only",
        ]),
    ),
    ("train.iterations", POSITIVE),
    ("train.global_interval", POSITIVE),
    ("train.local_interval", POSITIVE),
    ("train.learning_rate", ABOVE_0),
    ("train.halve_every", ANY),
    ("train.adaptive", Values::OneOf(&["off", "bound", "gain"])),
    ("train.participation", SHARE),
    ("train.selection", Values::OneOf(&["uniform"])),
    ("train.weight_decay", Values::Number(Range::AtLeast(0.0))),
    (
        "train.class_weights",
        Values::Other(
            "text or list",
            "none | balanced | a list with one factor per class",
        ),
    ),
    ("train.broadcast", Values::OneOf(&["selected", "all"])),
    ("train.evaluate_every", POSITIVE),
    ("train.loss_samples", ANY),
    ("train.raw_bytes", ANY),
    ("model.hospital", Values::Layers),
    ("model.device", Values::Layers),
    ("model.combined", Values::Layers),
    ("compression.codec", Values::Codec),
    ("compression.levels", Values::Whole(2, 65_536)),
    ("compression.theta0", Values::Codec),
    ("compression.zeta1", Values::Codec),
    ("compression.zeta2", Values::Codec),
    ("compression.device_upload", Values::Codec),
    ("compression.device_download", Values::Codec),
    ("compression.global_upload", Values::Codec),
    ("compression.global_download", Values::Codec),
    ("compression.error_feedback", Values::Flag),
    ("time.mobile_up", RATE),
    ("time.mobile_down", RATE),
    ("time.fixed_up", RATE),
    ("time.fixed_down", RATE),
    ("time.compute", Values::OneOf(&["set", "measured"])),
    (
        "time.compute_seconds",
        Values::Number(Range::Within(0.0, 1e6)),
    ),
    (
        "time.compute_scale",
        Values::Number(Range::Within(0.0, 1e6)),
    ),
    ("time.shared_uplink", Values::Flag),
    ("time.sequential_exchange", Values::Flag),
    ("stop.loss", ABOVE_0),
    ("stop.auc", SHARE),
    ("stop.precision", SHARE),
    ("stop.recall", SHARE),
    ("stop.f1", SHARE),
    ("stop.accuracy", SHARE),
    ("stop.bytes", ABOVE_0),
    ("stop.seconds", ABOVE_0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Algorithm, KEYS};

    #[test]
    fn every_key_has_its_values_and_nothing_else_has() {
        let keys: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
        let listed: Vec<&str> = VALUES.iter().map(|(path, _)| *path).collect();
        assert_eq!(keys, listed, "keys.rs and values.rs list the same keys");
    }

    #[test]
    fn algorithms_are_all_there_are() {
        let key = KEYS.iter().find(|key| key.path == "train.algorithm");
        let names: Vec<&str> = Algorithm::ALL.into_iter().map(Algorithm::name).collect();
        assert_eq!(key.unwrap().values().choices(), names);
    }
}

//! Every parser of outside bytes, for `tools/fuzz`; not for programs.
//!
//! A target is a function over bytes that must come back, whatever they are: it must not panic, hang or take memory
//! that the bytes do not fill. What should always hold afterwards it asserts. To add one, write the function, put a few
//! small valid inputs into `tests/fuzz/<target>/`, the words of the format into `tokens.json`, and a line into `OTHERS`
//! or, for a data set, into its row.

mod askers;
mod enrolments;
mod experiments;
mod files;
mod frames;
mod roles;
pub(crate) mod seeds;
pub(crate) mod sets;

use crate::files::collection::Text;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::LazyLock;

/// A parser.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What `tools/fuzz` calls it.
    pub name: &'static str,
    /// Parses.
    pub run: fn(&[u8]),
    /// Inputs from which all others are made, besides those in `tests/fuzz/<name>/`.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// The list of [`tokens`] that the format has.
    pub tokens: &'static str,
    /// The longest input that is tried.
    pub longest: usize,
    /// Bytes of memory that may be held at a time, besides 64 for each byte of the input.
    pub memory: usize,
}

impl Target {
    /// A target for inputs of up to 4 KiB that may take 64 MiB.
    pub const fn new(name: &'static str, run: fn(&[u8]), tokens: &'static str) -> Self {
        Target {
            name,
            run,
            seeds: Vec::new,
            tokens,
            longest: 4 << 10,
            memory: 64 << 20,
        }
    }

    /// The same that also begins with inputs that are made.
    pub const fn with_seeds(mut self, seeds: fn() -> Vec<Vec<u8>>) -> Self {
        self.seeds = seeds;
        self
    }

    /// The same for inputs of up to `longest` bytes.
    pub const fn up_to(mut self, longest: usize) -> Self {
        self.longest = longest;
        self
    }

    /// The same with `memory` bytes to take.
    pub const fn with_memory(mut self, memory: usize) -> Self {
        self.memory = memory;
        self
    }
}

/// All targets.
pub static TARGETS: LazyLock<Vec<Target>> = LazyLock::new(|| {
    let of_sets = crate::ALL.iter().flat_map(|set| set.fuzz);
    OTHERS.iter().chain(of_sets).copied().collect()
});

/// Those that are not a data set's own.
const OTHERS: &[Target] = &[
    Target::new("npy_header", files::npy_header, "npy"),
    Target::new("zip", files::zip, "zip"),
    Target::new("tar", files::tar, "tar").up_to(8 << 10),
    Target::new("tar_gz", files::tar_gz, "tar"),
    Target::new("lines", files::lines, "csv"),
    // A page may unpack to 256 MiB, of which a decoder has a copy.
    Target::new("parquet", files::parquet, "parquet")
        .with_seeds(seeds::parquets)
        .up_to(16 << 10)
        .with_memory(800 << 20),
    Target::new("shard", sets::shard, "zip")
        .with_seeds(seeds::shards)
        .up_to(8 << 10)
        .with_memory(256 << 20),
    Target::new("deal", sets::deal_as_set, "deals"),
    Target::new("statistics", sets::statistics, "json"),
    Target::new("experiment", experiments::experiment, "toml")
        .with_seeds(seeds::experiments)
        .up_to(16 << 10),
    Target::new("overrides", experiments::overrides, "toml"),
    Target::new("experiment_json", experiments::experiment_json, "json")
        .with_seeds(seeds::experiments_json),
    Target::new("frame", frames::frame, "frames").with_seeds(seeds::frames),
    // Scores of 256 classes take 34 MB.
    Target::new("message", roles::message, "messages").with_seeds(roles::messages),
    Target::new("record", roles::record, "messages")
        .with_seeds(roles::records)
        .up_to(8 << 10),
    Target::new("talk", roles::talk, "messages")
        .with_seeds(roles::talks)
        .up_to(8 << 10),
    Target::new("answers", askers::answers, "messages")
        .with_seeds(askers::answered)
        .up_to(8 << 10),
    Target::new("enrolment", enrolments::enrolment, "json")
        .with_seeds(enrolments::enrolments)
        .up_to(8 << 10),
];

/// Words of the formats, which chance would take too long to find. In `tokens.json` a character stands for the byte of
/// its number.
static TOKENS: LazyLock<BTreeMap<String, Vec<Vec<u8>>>> = LazyLock::new(|| {
    let lists = serde_json::from_str(include_str!("tokens.json"));
    let lists: BTreeMap<String, Vec<String>> = lists.expect("lists of words");
    let bytes = |word: &String| word.chars().map(|c| c as u8).collect();
    let list = |(name, words): (String, Vec<String>)| (name, words.iter().map(bytes).collect());
    lists.into_iter().map(list).collect()
});

/// A list of words.
pub fn tokens(list: &str) -> &'static [Vec<u8>] {
    &TOKENS[list]
}

/// What errors call the input.
fn place() -> &'static Path {
    Path::new("input")
}

/// A result or nothing; an error must be able to say what is wrong.
fn told<T, E: Display>(result: Result<T, E>) -> Option<T> {
    result
        .map_err(|error| assert!(!error.to_string().is_empty()))
        .ok()
}

fn text(name: &str, bytes: &[u8]) -> Option<Text> {
    Some(Text {
        place: place().to_owned(),
        name: name.into(),
        text: String::from_utf8(bytes.to_vec()).ok()?,
    })
}

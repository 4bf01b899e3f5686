//! Every parser of outside bytes, for `tools/fuzz`; not for programs.
//!
//! A target is a function over bytes that must come back, whatever they are: it must not panic, hang or take memory
//! that the bytes do not fill. What should always hold afterwards it asserts. To add one, write the function, another
//! with a few small valid inputs in `seeds`, the words of the format in `tokens`, and a line in `OTHERS` or, for a data set, in its row.

mod askers;
mod enrolments;
mod experiments;
mod files;
mod frames;
mod roles;
pub(crate) mod seeds;
pub(crate) mod sets;
pub(crate) mod tokens;

use crate::files::collection::Text;
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
    /// Small inputs from which all others are made.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of the format, which chance would take too long to find.
    pub tokens: &'static [&'static [u8]],
    /// The longest input that is tried.
    pub longest: usize,
    /// Bytes of memory that may be held at a time, besides 64 for each byte of the input.
    pub memory: usize,
}

impl Target {
    /// A target for inputs of up to 4 KiB that may take 64 MiB.
    pub const fn new(
        name: &'static str,
        run: fn(&[u8]),
        seeds: fn() -> Vec<Vec<u8>>,
        tokens: &'static [&'static [u8]],
    ) -> Self {
        Target {
            name,
            run,
            seeds,
            tokens,
            longest: 4 << 10,
            memory: 64 << 20,
        }
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
    let of_sets = crate::sets::ALL.iter().flat_map(|set| set.fuzz);
    OTHERS.iter().chain(of_sets).copied().collect()
});

/// Those that are not a data set's own.
const OTHERS: &[Target] = &[
    Target::new(
        "npy_header",
        files::npy_header,
        seeds::npy_headers,
        tokens::NPY,
    ),
    Target::new("zip", files::zip, seeds::zips, tokens::ZIP),
    Target::new("tar", files::tar, seeds::tars, tokens::TAR).up_to(8 << 10),
    Target::new("tar_gz", files::tar_gz, seeds::tars_gz, tokens::TAR),
    Target::new("lines", files::lines, seeds::lines, tokens::CSV),
    // A page may unpack to 256 MiB, and is given no more.
    Target::new("parquet", files::parquet, seeds::parquets, tokens::PARQUET)
        .up_to(16 << 10)
        .with_memory(600 << 20),
    Target::new("shard", sets::shard, seeds::shards, tokens::ZIP)
        .up_to(8 << 10)
        .with_memory(256 << 20),
    Target::new("deal", sets::deal_as_set, seeds::deals, tokens::DEALS),
    Target::new(
        "statistics",
        sets::statistics,
        seeds::statistics,
        tokens::JSON,
    ),
    Target::new(
        "experiment",
        experiments::experiment,
        seeds::experiments,
        tokens::TOML,
    )
    .up_to(16 << 10),
    Target::new(
        "overrides",
        experiments::overrides,
        seeds::overrides,
        tokens::TOML,
    ),
    Target::new(
        "experiment_json",
        experiments::experiment_json,
        seeds::experiments_json,
        tokens::JSON,
    ),
    Target::new("frame", frames::frame, seeds::frames, tokens::FRAMES),
    // Scores of 256 classes take 34 MB.
    Target::new("message", roles::message, roles::messages, tokens::MESSAGES),
    Target::new("record", roles::record, roles::records, tokens::MESSAGES).up_to(8 << 10),
    Target::new("talk", roles::talk, roles::talks, tokens::MESSAGES).up_to(8 << 10),
    Target::new(
        "answers",
        askers::answers,
        askers::answered,
        tokens::MESSAGES,
    )
    .up_to(8 << 10),
    Target::new(
        "enrolment",
        enrolments::enrolment,
        enrolments::enrolments,
        tokens::JSON,
    )
    .up_to(8 << 10),
];

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

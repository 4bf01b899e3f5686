//! Files that a command is told to write: never one that it reads, one of a run, or one that somebody else wrote.
//!
//! Paths are compared by what they lead to (device and inode), so that links, `./` and other spellings make no
//! difference. What a command reads cannot always be known in advance, so an existing file is only replaced if it begins
//! like an earlier one of the same kind.

use crate::error::{Context, Result, bail};
use crate::files::{CHECKPOINT, COMPARISON, EVALUATION, OF_A_RUN, SEEDS, is_run, partial};
use selvedge_core::experiment::Experiment;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// What is written, and so what may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A page of HTML.
    Page,
    /// A chart, as SVG.
    Chart,
    /// Predictions, as CSV.
    Predictions,
    /// Rows as training sees them, as `.npz`.
    Export,
    /// A model's inputs, as `.npz`.
    Arrays,
    /// Means and standard deviations, as JSON.
    Statistics,
    /// A page of the reference, in Markdown.
    Reference,
    /// The text or the data of a reproduction.
    Reproduction,
    /// An experiment, which never replaces anything.
    Experiment,
}

/// The file that every folder of shards has.
const SHARDS: &str = "shards.json";

/// Bytes in which files are recognised.
const BEGINNING: u64 = 512;

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Page => "a page",
            Kind::Chart => "a chart",
            Kind::Predictions => "predictions",
            Kind::Export => "an export of data",
            Kind::Arrays => "a model's inputs",
            Kind::Statistics => "statistics",
            Kind::Reference => "a page of the reference",
            Kind::Reproduction => "a reproduction",
            Kind::Experiment => "an experiment",
        }
    }

    /// Whether a file that begins like this is one that an earlier command wrote. An empty one holds nothing.
    fn begins(self, text: &[u8]) -> bool {
        let starts = |with: &str| text.starts_with(with.as_bytes());
        let has = |part: &str| {
            text.windows(part.len())
                .any(|bytes| bytes == part.as_bytes())
        };
        // The name of the first file of an archive is behind 30 bytes.
        let holds = |file: &str| {
            starts("PK\x03\x04")
                && text
                    .get(30..)
                    .is_some_and(|name| name.starts_with(file.as_bytes()))
        };
        text.is_empty()
            || match self {
                Kind::Page => starts("<!doctype html>"),
                Kind::Chart => starts("<svg "),
                Kind::Predictions => starts("id,prediction,"),
                Kind::Export => holds("g0_x1.npy"),
                Kind::Arrays => holds("hospital.npy"),
                Kind::Statistics => starts("{\n  \"classes\": ["),
                Kind::Reference => starts("# ") && has("`selvedge reference`"),
                Kind::Reproduction => starts("## ") || starts("[\n  {\n    \"part\": \""),
                Kind::Experiment => false,
            }
    }
}

/// A file that an option names to be written.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// The option, as it is typed.
    pub option: &'a str,
    /// Its value.
    pub path: &'a Path,
    /// What is written there.
    pub kind: Kind,
}

impl Output<'_> {
    /// Refuses to overwrite something. Call this before anything is written; `inputs` are files and folders that the
    /// command reads.
    ///
    /// # Errors
    /// If the file is one of those or in one of them, belongs to a run, or is there and of another kind.
    pub fn check(&self, inputs: &[PathBuf]) -> Result<()> {
        let named = format!("{} {}", self.option, self.path.display());
        // What is written first lies beside it for a moment.
        for place in [self.path, &partial(self.path)] {
            if inputs.iter().any(|input| is_in(place, input)) {
                bail!(
                    "{named}: the same command reads this file and would overwrite it; expected another file"
                );
            }
        }
        if let Some(run) = run_of(self.path) {
            bail!(
                "{named}: this file belongs to the run in {}; expected another name or folder",
                run.display()
            );
        }
        if !self.path.is_file() {
            return Ok(());
        }
        let shards =
            fs::canonicalize(self.path).is_ok_and(|whole| whole.with_file_name(SHARDS).is_file());
        if shards {
            bail!("{named}: this file belongs to a folder of shards; expected another folder");
        }
        let mut beginning = Vec::new();
        let read =
            File::open(self.path).and_then(|f| f.take(BEGINNING).read_to_end(&mut beginning));
        read.with_context(|| format!("{named}: cannot read the file that is there"))?;
        match self.kind.begins(&beginning) {
            true => Ok(()),
            false => bail!(
                "{named}: this file exists and is not {} that selvedge has written: expected a new file, or an earlier one to replace",
                self.kind.name()
            ),
        }
    }
}

/// Whether two paths name the same file, which need not be there yet.
pub fn is_same_place(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => is_same(&a, &b),
        (Err(_), Err(_)) => a.file_name() == b.file_name() && is_same_folder(a, b),
        _ => false,
    }
}

fn is_same_folder(a: &Path, b: &Path) -> bool {
    let folder = |path: &Path| fs::metadata(folder_of(path)).ok();
    matches!((folder(a), folder(b)), (Some(a), Some(b)) if is_same(&a, &b))
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Whether an existing file is `input` or lies somewhere in it.
fn is_in(path: &Path, input: &Path) -> bool {
    let (Ok(there), Ok(input)) = (fs::metadata(path), fs::metadata(input)) else {
        return false;
    };
    if is_same(&there, &input) {
        return true;
    }
    let whole = fs::canonicalize(path).unwrap_or_default();
    let is_input = |folder: &Path| fs::metadata(folder).is_ok_and(|f| is_same(&f, &input));
    input.is_dir() && whole.ancestors().skip(1).any(is_input)
}

/// The run directory whose file this is or would be.
fn run_of(path: &Path) -> Option<PathBuf> {
    // A link is judged by what it leads to, and a new file by its folder.
    let folder = |path: &Path| fs::canonicalize(folder_of(path)).ok();
    let whole = fs::canonicalize(path).ok().or_else(|| {
        let name = path.file_name()?;
        Some(folder(path)?.join(name))
    })?;
    let names = [EVALUATION, SEEDS, COMPARISON];
    let is_ours = |name: &str| OF_A_RUN.contains(&name) || names.contains(&name);
    let parts: Vec<Component<'_>> = whole.components().collect();
    whole
        .ancestors()
        .skip(1)
        .enumerate()
        .find_map(|(depth, run)| {
            let Component::Normal(name) = parts[parts.len() - 1 - depth] else {
                return None;
            };
            let name = name.to_str()?;
            let belongs = (depth == 0 && is_ours(name)) || name == CHECKPOINT;
            (belongs && is_run(run)).then(|| run.to_owned())
        })
}

/// The files and folders that an experiment's data may be read from.
pub fn of_data(experiment: &Experiment, data_dir: Option<&Path>) -> Vec<PathBuf> {
    let data = &experiment.data;
    let paths = std::iter::once(&data.path).chain(&data.table.files);
    let paths = paths.filter(|path| !path.is_empty());
    let both = |path: &String| {
        [
            Some(PathBuf::from(path)),
            data_dir.map(|dir| dir.join(path)),
        ]
    };
    paths.flat_map(both).flatten().collect()
}

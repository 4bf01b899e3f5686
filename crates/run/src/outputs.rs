//! Files that a command writes for users: never one that it reads, one of a run, or one that somebody else wrote or has
//! changed. Every command that writes goes through here, before it begins and again when it writes.
//!
//! Paths are compared by what they lead to (device and inode), so that links, `./` and other spellings make no
//! difference. What a command reads cannot always be known in advance, so an existing file is only replaced if it is as an
//! earlier command wrote it, which its seal shows.

mod kind;

pub use kind::Kind;

use crate::error::{Context, Result, bail};
use crate::files::{CHECKPOINT, COMPARISON, EVALUATION, OF_A_RUN, SEEDS, begin, is_run};
use selvedge_core::experiment::Experiment;
use selvedge_data::unfinished::Unfinished;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The file that every folder of shards has.
const SHARDS: &str = "shards.json";

/// A file that is to be written.
#[derive(Clone, Copy)]
pub struct Output<'a> {
    /// The option that names it, as it is typed; empty if none does.
    pub option: &'a str,
    /// Where it is.
    pub path: &'a Path,
    /// What is written there.
    pub kind: Kind<'a>,
}

impl Output<'_> {
    /// Refuses to overwrite something. Call this before anything is done; `inputs` are files and folders that the
    /// command reads.
    ///
    /// # Errors
    /// If the file is one of those or in one of them, belongs to a run, or is there and not an earlier one as it was
    /// written.
    pub fn check(&self, inputs: &[PathBuf]) -> Result<()> {
        let named = format!("{} {}", self.option, self.path.display());
        let named = named.trim_start();
        if inputs.iter().any(|input| lies_in(self.path, input)) {
            bail!(
                "{named}: the same command reads this file and would overwrite it; expected another file"
            );
        }
        if let Some(owner) = owner(self.path) {
            bail!("{named}: this file belongs to {owner}; expected another name or folder");
        }
        let Ok(there) = fs::metadata(self.path) else {
            if self.path.is_symlink() {
                bail!("{named}: it is a link that leads nowhere; expected a new name");
            }
            return Ok(());
        };
        if !there.is_file() {
            bail!(
                "{named}: cannot write there: it is a device, a pipe or a folder; expected a new file, or one to replace"
            );
        }
        let shards =
            fs::canonicalize(self.path).is_ok_and(|whole| whole.with_file_name(SHARDS).is_file());
        if shards {
            bail!("{named}: this file belongs to a folder of shards; expected another folder");
        }
        // An empty file holds nothing.
        let is_ours = match there.len() {
            0 => Ok(true),
            _ => File::open(self.path).and_then(|mut file| self.kind.has_written(&mut file)),
        };
        match is_ours.with_context(|| format!("{named}: cannot read the file that is there"))? {
            true => Ok(()),
            false => bail!(
                "{named}: this file exists and is not {} as selvedge has written it: choose another name, or remove the file if nobody needs it",
                self.kind.name()
            ),
        }
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// As [`check`](Self::check), and if it cannot be written.
    pub fn write(&self, contents: impl AsRef<[u8]>) -> Result<()> {
        self.write_with(|file| file.write_all(contents.as_ref()))
    }

    /// The same, for contents that are written piece by piece.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
        self.put(self.begin(write)?)
    }

    fn begin(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<Unfinished> {
        self.check(&[])?;
        let begun = begin(self.path, |file| {
            write(file)?;
            self.kind.seal(file)
        });
        begun.with_context(|| self.cannot())
    }

    fn put(&self, whole: Unfinished) -> Result<()> {
        // It may have taken long to write.
        self.check(&[])?;
        whole.put().with_context(|| self.cannot())
    }

    fn cannot(&self) -> String {
        format!("cannot write {}", self.path.display())
    }
}

/// Writes files of which none is moved to its place before all are whole.
///
/// # Errors
/// As [`Output::write`].
pub fn write_together(files: &[(Output<'_>, &[u8])]) -> Result<()> {
    let mut whole = Vec::new();
    for (output, contents) in files {
        whole.push((output, output.begin(|file| file.write_all(contents))?));
    }
    whole
        .into_iter()
        .try_for_each(|(output, file)| output.put(file))
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
pub fn lies_in(path: &Path, input: &Path) -> bool {
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

/// Whose file this is or would be, if it is one of a run or a list of runs.
fn owner(path: &Path) -> Option<String> {
    // A link is judged by what it leads to, and a new file by its folder.
    let folder = |path: &Path| fs::canonicalize(folder_of(path)).ok();
    let whole = fs::canonicalize(path).ok().or_else(|| {
        let name = path.file_name()?;
        Some(folder(path)?.join(name))
    })?;
    let is_list = |name: &str| [SEEDS, COMPARISON].contains(&name);
    let is_ours = |name: &str| OF_A_RUN.contains(&name) || name == EVALUATION;
    if whole.file_name()?.to_str().is_some_and(is_list) {
        return Some("a list of runs".into());
    }
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
            (belongs && is_run(run)).then(|| format!("the run in {}", run.display()))
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

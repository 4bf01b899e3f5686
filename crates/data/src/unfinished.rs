//! Files and folders that appear at their place whole, or not at all.
//!
//! Each is written beside its place under a name that nobody has, so that nothing that is there is in its way, and then
//! moved. What is given up is removed, also on Ctrl-C; only a process that is killed leaves something, which is called
//! `.selvedge-0123456789abcdef.partial`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const BEFORE: &str = ".selvedge-";
const BEHIND: &str = ".partial";

/// Those of this process.
static ALL: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or folder that is being written. It is removed unless it is [put](Self::put) at its place.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    place: PathBuf,
}

impl Unfinished {
    /// A new file.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn file(place: &Path) -> io::Result<(Self, File)> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        Self::new(place, |path| options.open(path))
    }

    /// A new folder with these permissions, as far as the user's mask has them, and the folders above its place.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn folder(place: &Path, mode: u32) -> io::Result<Self> {
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        let new = Self::new(place, |path| DirBuilder::new().mode(mode).create(path));
        Ok(new?.0)
    }

    fn new<T>(place: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Self, T)> {
        // A link stays a link: what it leads to is replaced.
        let place = fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
        if place.is_symlink() {
            let problem = "it is a link that leads nowhere: expected a new name, or remove it";
            return Err(io::Error::other(problem));
        }
        // Whoever ends the process waits until it is known that this one is there.
        let mut all = all();
        loop {
            let path = place.with_file_name(new_name());
            match make(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    let made = made?;
                    all.insert(path.clone());
                    return Ok((Unfinished { path, place }, made));
                }
            }
        }
    }

    /// Where it is until it is whole.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves it to its place: a file replaces a file, a folder an empty folder.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn put(self) -> io::Result<()> {
        let mut all = all();
        fs::rename(&self.path, &self.place)?;
        all.remove(&self.path);
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let is_given_up = all().remove(&self.path);
        if is_given_up {
            remove(&self.path);
        }
    }
}

fn remove(path: &Path) {
    // Nothing is lost with it, and on a full disk its room is needed.
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
}

/// Removes all that this process has not finished. Call it only to end the process: nothing is finished any more.
pub fn remove_all() {
    let all = all();
    all.iter().for_each(|path| remove(path));
    // From now on nobody makes or moves another one.
    std::mem::forget(all);
}

/// A new empty folder beside a place, for what is to be moved out of the way. It stays.
pub(crate) fn aside(place: &Path) -> io::Result<PathBuf> {
    let folder = Unfinished::folder(place, 0o700)?;
    let path = folder.path.clone();
    all().remove(&path);
    Ok(path)
}

/// A name that nobody can know before.
fn new_name() -> String {
    let number = RandomState::new().hash_one(std::process::id());
    format!("{BEFORE}{number:016x}{BEHIND}")
}

/// Whether something unfinished is called so.
pub fn is_name(name: &OsStr) -> bool {
    let middle = name.to_str().and_then(|name| name.strip_prefix(BEFORE));
    let digits = middle.and_then(|name| name.strip_suffix(BEHIND));
    digits.is_some_and(|d| d.len() == 16 && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Removes the files that killed processes have left in a folder. Only for who knows that no other process is writing
/// there.
pub fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_name(&entry.file_name()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn place(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn what_is_put_is_whole_and_what_is_given_up_leaves_nothing() {
        let folder = place("unfinished");
        for contents in ["one", "two"] {
            let (unfinished, mut file) = Unfinished::file(&folder.join("file")).unwrap();
            assert!(is_name(unfinished.path().file_name().unwrap()));
            file.write_all(contents.as_bytes()).unwrap();
            unfinished.put().unwrap();
            assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), contents);
        }
        let deeper = Unfinished::folder(&folder.join("a/b"), 0o700).unwrap();
        deeper.put().unwrap();
        assert_eq!(names(&folder.join("a")), ["b"]);
        fs::remove_dir_all(folder.join("a")).unwrap();
        let given_up = Unfinished::folder(&folder.join("folder"), 0o700).unwrap();
        fs::write(given_up.path().join("inside"), "half of it").unwrap();
        drop(given_up);
        assert_eq!(names(&folder), ["file"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_link_that_leads_nowhere_is_kept() {
        let folder = place("unfinished-link");
        let link = folder.join("link");
        std::os::unix::fs::symlink(folder.join("nothing"), &link).unwrap();
        let refused = Unfinished::file(&link).unwrap_err().to_string();
        assert!(refused.contains("leads nowhere"), "{refused}");
        assert_eq!(names(&folder), ["link"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_its_own_names_are_known() {
        for (name, is_one) in [
            (".selvedge-0123456789abcdef.partial", true),
            (".selvedge-0123456789abcde.partial", false),
            (".selvedge-0123456789abcdeg.partial", false),
            ("table.csv.partial", false),
        ] {
            assert_eq!(is_name(OsStr::new(name)), is_one, "{name}");
        }
        assert!(is_name(OsStr::new(&new_name())) && new_name() != new_name());
    }
}

//! Which files some process has locked. Asking whether a lock is free would mean to hold it for a moment, in which a
//! training that begins would be refused; the system's list can be read without that.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;

/// A disk, as the system numbers it: major and minor.
type Disk = (u32, u32);

/// The system's list.
pub(super) struct Locks {
    /// Files by their disk and their number there: on another disk the same number is another file.
    files: HashSet<(Disk, u64)>,
    /// What is mounted.
    mounted: HashSet<Disk>,
}

impl Locks {
    pub(super) fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/locks"), &read("/proc/self/mountinfo"))
    }

    fn parse(locks: &str, mounts: &str) -> Self {
        Locks {
            files: locks.lines().filter_map(locked).collect(),
            mounted: mounts.lines().filter_map(mounted).collect(),
        }
    }

    /// Whether some process has locked that file.
    pub(super) fn has(&self, file: &Metadata) -> bool {
        let disk = (libc::major(file.dev()), libc::minor(file.dev()));
        match self.mounted.contains(&disk) {
            true => self.files.contains(&(disk, file.ino())),
            // Btrfs, say, gives each part of a disk another number in what it tells of files, which no list has.
            false => self.files.iter().any(|(_, number)| *number == file.ino()),
        }
    }
}

/// ```text
/// 1: FLOCK  ADVISORY  WRITE 4242 fd:01:1050932 0 EOF
/// 1: -> FLOCK  ADVISORY  WRITE 4243 fd:01:1050932 0 EOF    who waits for it
/// ```
fn locked(line: &str) -> Option<(Disk, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let file = words.get(5).filter(|_| words[1] == "FLOCK")?;
    let mut numbers = file.split(':');
    let mut hexadecimal = || u32::from_str_radix(numbers.next()?, 16).ok();
    let disk = (hexadecimal()?, hexadecimal()?);
    Some((disk, numbers.next()?.parse().ok()?))
}

/// ```text
/// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
/// ```
fn mounted(line: &str) -> Option<Disk> {
    let (major, minor) = line.split_whitespace().nth(2)?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::tests::Folder;

    #[test]
    fn a_file_of_the_same_number_on_another_disk_is_another_file() {
        let folder = Folder::new("locks");
        let file = fs::metadata(folder.write("lock", "")).unwrap();
        let (major, minor) = (libc::major(file.dev()), libc::minor(file.dev()));
        let line = |major: u32, minor: u32, number: u64| {
            format!("1: FLOCK  ADVISORY  WRITE 42 {major:02x}:{minor:02x}:{number} 0 EOF\n")
        };
        let mounts = format!("36 35 {major}:{minor} / / rw - ext4 /dev/root rw\n");
        let has = |locks: &str, mounts: &str| Locks::parse(locks, mounts).has(&file);
        let own = line(major, minor, file.ino());
        assert!(has(&own, &mounts));
        let others = [
            line(major, minor, file.ino() + 1),
            line(major, minor + 1, file.ino()),
            line(major + 1, minor, file.ino()),
            own.replace("FLOCK", "-> FLOCK"),
            own.replace("FLOCK", "POSIX"),
            "1: FLOCK\n\n2: FLOCK ADVISORY WRITE 42 zz:0: 0 EOF\n".into(),
        ];
        for other in &others {
            assert!(!has(other, &mounts), "{other}");
        }
        assert!(has(&(others.concat() + &own), &mounts));
        // A disk that is not in the list of mounts: its number says nothing.
        assert!(has(&others[1], "") && !has(&others[0], ""));
    }

    #[test]
    fn the_system_tells_of_a_lock_as_long_as_it_is_held() {
        let folder = Folder::new("locks-real");
        let path = folder.write("lock", "");
        let (file, metadata) = (fs::File::open(&path).unwrap(), fs::metadata(&path).unwrap());
        assert!(!Locks::read().has(&metadata));
        file.lock().unwrap();
        assert!(Locks::read().has(&metadata));
        drop(file);
        assert!(!Locks::read().has(&metadata));
    }
}

//! A small file system, to be filled up.

use super::text;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system of our own.
pub struct Disk(PathBuf);

impl Disk {
    /// Needs root and a kernel that lets it mount.
    pub fn mount(path: &Path, kilobytes: u32) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let size = format!("size={kilobytes}k");
        let args = ["-t", "tmpfs", "-o", &size, "tmpfs", text(path)];
        let mounted = Command::new("mount").args(args).output();
        mounted
            .is_ok_and(|m| m.status.success())
            .then(|| Disk(path.to_owned()))
    }

    pub fn enlarge(&self) {
        let args = ["-o", "remount,size=64m", text(&self.0)];
        assert!(Command::new("mount").args(args).status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Left behind only if something still uses it.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

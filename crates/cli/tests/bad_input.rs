//! Wrong settings, wrong files, wrong run directories, full disks: each is refused with exit code 2 and a message that
//! has the value and the remedy, without a panic, and with every file left as it was.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "bad_input/data_files.rs"]
mod data_files;
#[path = "bad_input/disk.rs"]
mod disk;
#[path = "bad_input/huge.rs"]
mod huge;
#[path = "bad_input/pipes.rs"]
mod pipes;
#[path = "bad_input/run_directories.rs"]
mod run_directories;
#[path = "bad_input/settings.rs"]
mod settings;

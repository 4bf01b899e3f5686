//! A Python with packages. `tools/python/setup` makes one; without one, such tests are skipped.

use super::ROOT;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A Python that can import these modules, or a word that the test is skipped. All tests of a binary ask for the same.
pub fn python(test: &str, modules: &str, packages: &str) -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let path = std::env::var_os("SELVEDGE_PYTHON").map_or_else(
            || Path::new(ROOT).join("target/python/bin/python"),
            PathBuf::from,
        );
        let imports = Command::new(&path)
            .args(["-c", &format!("import {modules}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        imports.is_ok_and(|status| status.success()).then_some(path)
    });
    if found.is_none() {
        eprintln!(
            "skipped: {test} needs {packages}: run tools/python/setup, or set SELVEDGE_PYTHON"
        );
    }
    found.as_deref()
}

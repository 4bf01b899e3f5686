//! Pages in a real browser. `tools/browser` finds one; without one, such tests are skipped.

use super::ROOT;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A browser, or a word that the test is skipped.
pub fn browser(test: &str) -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let runs = |program: &Path| {
            let mut command = Command::new(program);
            command
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let named = std::env::var_os("SELVEDGE_BROWSER").map(PathBuf::from);
        let known = ["chromium", "chromium-browser", "google-chrome"].map(PathBuf::from);
        let mut all = named.into_iter().chain(known);
        all.find(|path| runs(path))
            .filter(|_| runs(Path::new("python3")))
    });
    if found.is_none() {
        eprintln!(
            "skipped: {test} needs Python 3 and Chromium: run tools/browser, or set SELVEDGE_BROWSER"
        );
    }
    found.as_deref()
}

/// A script of `tools/python`, which needs nothing but the standard library.
pub fn script(name: &str) -> Command {
    let mut command = Command::new("python3");
    command
        .arg("-B")
        .arg(Path::new(ROOT).join("tools/python").join(name))
        .stdin(Stdio::null());
    command
}

/// Where pictures stay: `target/screenshots`.
pub fn pictures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("../screenshots")
        .join(name)
}

//! The page in a real browser. `tools/browser` finds it; without one, these tests are skipped.

use crate::common::process::finish;
use crate::common::run::Run;
use crate::common::{copy, text};
use crate::{comparison, small};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A browser, or a word that the test is skipped.
fn browser(test: &str) -> Option<&'static Path> {
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

/// Looks at a page in a browser; its pictures stay in `target/screenshots`.
#[track_caller]
fn check_in(browser: &Path, page: &Path, pictures: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("../screenshots")
        .join(pictures);
    // The scripts need nothing but the standard library.
    let mut command = Command::new("python3");
    command
        .arg("-B")
        .arg(Path::new(ROOT).join("tools/python/check_report.py"))
        .args([browser, page, &folder])
        .stdin(Stdio::null());
    let checked = finish(&mut command).ended(0);
    assert!(
        checked.stdout.contains("390-dark.png"),
        "{}",
        checked.stdout
    );
}

#[test]
fn a_comparison_works_in_a_browser() {
    let Some(browser) = browser("a_comparison_works_in_a_browser") else {
        return;
    };
    let place = small("report-browser");
    comparison(&place, ["slow", "fast"]);
    place.succeeds(&["report", "cmp"]);
    check_in(browser, &place.join("cmp/report.html"), "comparison");
}

#[test]
fn names_that_are_scripts_stay_names() {
    let Some(browser) = browser("names_that_are_scripts_stay_names") else {
        return;
    };
    let place = small("report-names");
    let script =
        "</script><script>window.pwned = 1</script><img src=x onerror=\"window.pwned = 1\">";
    comparison(
        &place,
        [
            script,
            "a very long name that goes on without an end, and-another-word-that-cannot-be-broken-anywhere",
        ],
    );
    for seed in ["42", "43", "44"] {
        Run::at(&place, &format!("cmp/slow/seed-{seed}")).edit_manifest(|manifest| {
            manifest["name"] = format!("<b>\"bold\" & 'sharp'{script}").into();
            manifest["data"]["classes"] =
                serde_json::json!([script, "<svg onload=window.pwned=1>"]);
            manifest["data"]["groups"] = serde_json::json!([script, "'", "\"", "&lt;"]);
        });
    }
    // The folder's name is one too.
    let folder = place.join("<img src=x onerror=window.pwned=1>");
    copy(&place.join("cmp"), &folder);
    place.succeeds(&["report", text(&folder), "--svg", "figures"]);
    check_in(browser, &folder.join("report.html"), "names");
    let chart = fs::read_to_string(place.join("figures/loss-bytes.svg")).unwrap();
    assert!(!chart.contains("<script") && !chart.contains("<img"));
}

//! The page in a real browser. `tools/browser` finds it; without one, these tests are skipped.

use crate::common::browser::{browser, pictures, script};
use crate::common::process::finish;
use crate::common::run::Run;
use crate::common::{copy, says, text};
use crate::{comparison, small};
use std::fs;
use std::path::Path;

/// Looks at a page in a browser; its pictures stay in `target/screenshots`.
#[track_caller]
fn check_in(browser: &Path, page: &Path, name: &str) {
    let mut command = script("check_report.py");
    command.args([browser, page, &pictures(name)]);
    let checked = finish(&mut command).ended(0);
    says(&checked.stdout, &["390-dark.png"]);
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

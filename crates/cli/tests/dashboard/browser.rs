//! The page in a real browser, beside a real training.

use super::{Served, place, small};
use crate::common::browser::{browser, pictures, script};
use crate::common::process::{Live, finish};
use crate::common::run::Run;
use crate::common::{Place, copy, selvedge, text};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn check(browser: &Path, served: &Served, name: &str, checks: &[&str]) -> Command {
    let mut command = script("check_dashboard.py");
    command
        .arg(browser)
        .arg(served.url())
        .arg(pictures(&format!("dashboard-{name}")))
        .args(checks);
    command
}

/// A check that says when something is to be done.
struct Talking {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    told: String,
}

impl Talking {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Talking {
            child,
            lines,
            told: String::new(),
        }
    }

    #[track_caller]
    fn wait_for(&mut self, word: &str) {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            if line == word {
                return;
            }
            let _ = writeln!(self.told, "{line}");
        }
        panic!("it ended before {word}:\n{}", self.told);
    }

    #[track_caller]
    fn succeeds(mut self) {
        for line in self.lines.by_ref() {
            let _ = writeln!(self.told, "{}", line.unwrap());
        }
        assert!(self.child.wait().unwrap().success(), "{}", self.told);
        println!("{}", self.told);
    }
}

#[test]
fn a_live_run_appears_and_moves_beside_a_finished_one() {
    let Some(browser) = browser("a_live_run_appears_and_moves_beside_a_finished_one") else {
        return;
    };
    let place = place("dashboard-live", &[("finished", &[])]);
    // About twenty evaluations a second, for much longer than anybody looks.
    let endless = small()
        .replace(
            "iterations = 200",
            "iterations = 40000000\nevaluate_every = 800",
        )
        .replace("0.2\nparticipation", "0.01\nparticipation");
    place.write("endless.toml", endless);
    let served = Served::start(&place, &[]);
    let mut talking = Talking::start(&mut check(
        browser,
        &served,
        "live",
        &["follow:live:finished"],
    ));
    talking.wait_for("BEGIN");
    let mut command = selvedge(place.path());
    let mut live = Live::start(command.args([
        "train",
        "endless.toml",
        "--out",
        "runs/live",
        "--threads",
        "1",
    ]));
    talking.wait_for("END");
    live.signal("INT");
    live.finish().ended(130);
    talking.succeeds();
}

#[test]
fn every_view_works_in_every_size_and_colour_by_mouse_finger_and_keys() {
    let Some(browser) =
        browser("every_view_works_in_every_size_and_colour_by_mouse_finger_and_keys")
    else {
        return;
    };
    let script = "<img src=x onerror=\"window.pwned=1\">";
    let steered = ["--trace", "--set", "train.adaptive=gain"];
    let place = place(
        "dashboard-views",
        &[("steered", &steered), ("fixed", &[]), ("interrupted", &[])],
    );
    for (run, change) in [
        ("steered", script),
        ("fixed", "</script><script>window.pwned=1</script>"),
    ] {
        Run::at(&place, &format!("runs/{run}")).edit_manifest(|manifest| {
            manifest["name"] = change.into();
            manifest["data"]["groups"] = serde_json::json!([
                change,
                "Klinik am Rande der Stadt mit langem Namen",
                "'\"&lt;"
            ]);
        });
    }
    copy(
        &place.join("runs/fixed"),
        &place.join(format!("runs/{script}")),
    );
    copy(
        &place.join("runs/fixed"),
        &place.join(format!("runs/{}", "a-name-that-goes-on-and-on-".repeat(5))),
    );
    place.write("runs/damaged/manifest.json", "{");
    let served = Served::start(&place, &[]);
    let checks = ["look:steered:fixed", "use:steered:fixed", "by_keys:steered"];
    finish(&mut check(browser, &served, "views", &checks)).ended(0);
}

#[test]
fn who_takes_part_is_said_as_the_algorithm_has_it() {
    let Some(browser) = browser("who_takes_part_is_said_as_the_algorithm_has_it") else {
        return;
    };
    let jfl = ["--set", "train.algorithm=jfl"];
    let alone = ["--set", "train.algorithm=hospital-only"];
    let place = place("dashboard-algorithms", &[("jfl", &jfl), ("alone", &alone)]);
    let served = Served::start(&place, &[]);
    finish(&mut check(browser, &served, "who", &["who:jfl:alone"])).ended(0);
}

/// A run with so many lines of metrics, made of those of a real one.
fn lengthen(run: &Run, lines: u64) {
    let metrics = run.metrics();
    let mut text = String::new();
    for i in 0..lines {
        let mut line = metrics[(i % metrics.len() as u64) as usize].clone();
        line["t"] = (20 * i).into();
        line["bytes_exact"] = (1000.0 * i as f64).into();
        line["seconds"] = (0.5 * i as f64).into();
        let _ = writeln!(text, "{line}");
    }
    fs::write(run.file("metrics.jsonl"), text).unwrap();
    run.edit_manifest(|manifest| {
        manifest["experiment"]["train"]["iterations"] = (20 * lines).into();
        manifest["timing"]["iterations"] = (20 * (lines - 1)).into();
    });
}

#[test]
fn two_hundred_runs_and_a_huge_file_do_not_stall_the_page() {
    let Some(browser) = browser("two_hundred_runs_and_a_huge_file_do_not_stall_the_page") else {
        return;
    };
    let place = place("dashboard-many", &[("run-0", &["--trace"])]);
    for n in 1..200 {
        copy(
            &place.join("runs/run-0"),
            &place.join(format!("runs/run-{n}")),
        );
    }
    lengthen(&Run::at(&place, "runs/run-7"), 100_000);
    let served = Served::start(&place, &[text(&place.join("runs"))]);
    let checked = finish(&mut check(browser, &served, "many", &["many:200:run-7"])).ended(0);
    println!("{}", checked.stdout);
}

#[test]
fn runs_that_are_removed_and_servers_that_end_are_told_and_the_page_goes_on() {
    let Some(browser) =
        browser("runs_that_are_removed_and_servers_that_end_are_told_and_the_page_goes_on")
    else {
        return;
    };
    let place: Place = place("dashboard-gone", &[("short-lived", &[]), ("lasting", &[])]);
    let mut served = Served::start(&place, &[]);
    let address = served.address.to_string();
    let mut talking = Talking::start(&mut check(
        browser,
        &served,
        "gone",
        &["gone:short-lived:lasting"],
    ));
    talking.wait_for("REMOVE");
    fs::remove_dir_all(place.join("runs/short-lived")).unwrap();
    talking.wait_for("END");
    served.signal("KILL");
    served.child.wait().unwrap();
    talking.wait_for("AGAIN");
    let _again = Served::start(&place, &["--listen", &address]);
    talking.succeeds();
}

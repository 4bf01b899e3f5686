//! What may share the folder of a comparison, and what may not.

use crate::common::process::{Live, finish};
use crate::common::run::Run;
use crate::common::{Place, says, selvedge, words};
use crate::{SHORT, SOON, finished, runs, same_comparison, stamped};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

fn compare<'a>(algorithms: &'a str, seeds: &'a str, out: &'a str) -> Vec<&'a str> {
    let args = [
        "compare",
        "--algorithms",
        algorithms,
        "--seeds",
        seeds,
        "--out",
        out,
    ];
    [&args[..], &SHORT, &["--target", "auc=0.8"]].concat()
}

#[test]
fn seeds_and_algorithms_can_be_added() {
    let place = Place::new("cmp-added");
    place.succeeds(&compare("hsgd,jfl,tdcd", "3", "whole"));
    place.succeeds(&compare("jfl", "1", "cmp"));
    let mut stamps = stamped(&finished(&place.join("cmp")));
    for (algorithms, seeds, count) in [("jfl", "2", 2), ("hsgd", "1", 4), ("hsgd,jfl,tdcd", "3", 9)]
    {
        place.succeeds(&compare(algorithms, seeds, "cmp"));
        let there = finished(&place.join("cmp"));
        assert_eq!(there.len(), count);
        let now = stamped(&there);
        for (path, before) in &stamps {
            assert!(
                now.get(path) == Some(before),
                "{} was touched",
                path.display()
            );
        }
        stamps = now;
    }
    same_comparison(&place, "whole", "cmp");
    // Asked for less, all that is there is shown.
    let ran = place.succeeds(&compare("tdcd", "1", "cmp"));
    says(&ran.stdout, &["3 variants, 3 seeds"]);
    let lines = |name: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(place.join(name).join("table.csv")).unwrap();
        text.lines().map(String::from).collect()
    };
    assert_eq!(lines("whole"), lines("cmp"));
}

#[test]
fn rates_of_variants_that_come_later_are_beside_the_earlier_ones() {
    let place = Place::new("cmp-rates");
    let rates = ["--learning-rates", "0.1,0.3"];
    let with_rates = |algorithms| [&compare(algorithms, "1", "cmp")[..], &rates].concat();
    place.succeeds(&with_rates("hsgd,jfl"));
    let ran = place.succeeds(&[&with_rates("tdcd")[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let tried = json["rates"]["variants"].as_array().unwrap();
    let labels: BTreeSet<&str> = tried.iter().map(|t| t["label"].as_str().unwrap()).collect();
    assert_eq!(labels, BTreeSet::from(["hsgd", "jfl", "tdcd"]));
    for t in tried {
        let chosen = t["chosen"].as_f64().unwrap();
        let label = t["label"].as_str().unwrap();
        let run = Run::at(&place, &format!("cmp/{label}/seed-42"));
        assert_eq!(
            run.manifest()["experiment"]["train"]["learning_rate"],
            chosen
        );
    }
    // Whoever chooses from other rates, or from none, is no fair match.
    let other = ["--learning-rates", "0.2,0.3"];
    place.refuses(
        &[&compare("fedavg", "1", "cmp")[..], &other].concat(),
        &["--learning-rates 0.1,0.3"],
    );
    for algorithm in ["hsgd", "fedavg"] {
        place.refuses(
            &compare(algorithm, "1", "cmp"),
            &["cmp", "begun with --learning-rates"],
        );
    }
    place.succeeds(&compare("hsgd", "1", "plain"));
    place.refuses(
        &[&compare("hsgd", "1", "plain")[..], &rates].concat(),
        &["plain", "begun without --learning-rates"],
    );
}

#[test]
fn another_experiment_or_anything_else_keeps_its_folder() {
    let place = Place::new("cmp-taken");
    place.succeeds(&compare("hsgd", "1", "cmp"));
    let rates = ["--learning-rates", "0.1,0.2"];
    for more in [&[][..], &rates] {
        let other = ["--set", "train.participation=0.2"];
        place.refuses(
            &[&compare("hsgd,jfl", "2", "cmp")[..], &other, more].concat(),
            &[
                "cmp",
                "train.participation is 0.1 there and 0.2 here",
                "--out",
            ],
        );
    }
    place.write("notes/of-mine.txt", "no comparison");
    place.write("file", "no folder");
    place.succeeds(&[&["train", "--out", "run"][..], &SHORT].concat());
    for more in [&[][..], &rates] {
        for name in ["notes", "run"] {
            let args = [&compare("hsgd", "1", name)[..], more].concat();
            place.refuses(&args, &[name, "is not a comparison", "--out"]);
        }
        place.refuses(
            &[&compare("hsgd", "1", "file")[..], more].concat(),
            &["file"],
        );
    }
    fs::create_dir(place.join("empty")).unwrap();
    place.succeeds(&compare("hsgd", "1", "empty"));
    // A run of something else, where one of its own should be.
    place.succeeds(&compare("jfl", "1", "cmp"));
    fs::rename(
        place.join("cmp/jfl/seed-42"),
        place.join("cmp/hsgd/seed-43"),
    )
    .unwrap();
    let stamps = stamped(&runs(&place.join("cmp")));
    let ran = place.selvedge(&compare("hsgd", "2", "cmp"));
    ran.refused(&["cmp/hsgd/seed-43", "another experiment"]);
    assert_eq!(stamps, stamped(&runs(&place.join("cmp"))));
}

/// The first one takes long enough for its progress to be seen.
#[test]
fn a_second_process_is_refused_and_lines_of_progress_are_few() {
    let place = Place::new("cmp-two");
    let args = words("compare --algorithms hsgd,jfl,tdcd --seeds 2 --out cmp");
    let args = [&args[..], &["--set", "train.iterations=400000"]].concat();
    let started = Instant::now();
    let mut first = Live::start(selvedge(place.path()).args(&args));
    let run = Run::at(&place, "cmp/hsgd/seed-42");
    first.wait_until("begun", SOON, || run.evaluations_so_far() > 0);
    for _ in 0..3 {
        let second = finish(selvedge(place.path()).args(&args));
        second.refused(&["another process is working in cmp"]);
    }
    assert!(
        !first.ends_within(Duration::from_secs(6)),
        "too short for this test"
    );
    // What is there so far can be looked at.
    place.succeeds(&["report", "cmp", "--out", "page.html"]);
    first.signal("INT");
    let ran = first.finish().ended(130);
    assert_eq!(ran.stdout, "");
    let lines: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|l| l.contains(" of 6 runs"))
        .collect();
    let most = started.elapsed().as_secs() as usize / 5 + 1;
    assert!((1..=most).contains(&lines.len()), "{}", ran.stderr);
    assert!(
        lines[0].starts_with("synthetic: 0 of 6 runs  (") && lines[0].contains("about"),
        "{}",
        ran.stderr
    );
    let others = ran.stderr.lines().filter(|l| !l.contains(" of 6 runs"));
    for line in others {
        assert!(
            line.starts_with("Ctrl-C") || line.contains("resume with"),
            "{line}"
        );
    }
    for run in runs(&place.join("cmp")) {
        assert_eq!(Run(run).manifest()["ending"]["kind"], "interrupted");
    }
}

#[test]
fn what_is_quick_says_nothing_but_its_result() {
    let place = Place::new("cmp-quiet");
    let ran = place.succeeds(&compare("hsgd,jfl", "1", "cmp"));
    assert_eq!(ran.stderr, "");
    let json = place.succeeds(&[&compare("hsgd,jfl", "1", "cmp")[..], &["--json"]].concat());
    assert_eq!(json.stderr, "");
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(value["folder"], "cmp");
}

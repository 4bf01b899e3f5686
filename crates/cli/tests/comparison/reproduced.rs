//! `selvedge reproduce`: what it writes, twice the same, and after it was killed.

use crate::common::process::Live;
use crate::common::{Place, real_data, selvedge, text, words};
use crate::{SOON, finished, runs, stamped, xml};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// ESR's twin in small, which needs no files.
const TWIN: &str = "--set data.set=synthetic-esr --set data.groups=2 --set data.devices=60 \
    --set train.participation=0.1 --set train.iterations=40";

const TINY: &str = "--data esr --seeds 2 --intervals 2";

/// The text without Table IV, which measures real time, and without the counts of claims, which its own are among.
fn without_time(text: &str) -> String {
    let sections = text.split("\n## ");
    let sections: Vec<&str> = sections.filter(|s| !s.starts_with("Table IV")).collect();
    let text = sections.join("\n## ");
    let measured = |l: &&str| l.contains(" claims: ") || l.starts_with("| Table IV");
    let lines: Vec<&str> = text.lines().filter(|l| !measured(l)).collect();
    lines.join("\n")
}

/// What a reproduction leaves: its text, its sections and its charts, by name, without what measures real time.
fn left(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|e| e.path().is_file())
    {
        let name = entry.file_name().into_string().unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        let text = match name.as_str() {
            "reproduction.md" => without_time(&text),
            "reproduction.json" => {
                let mut sections: Vec<Value> = serde_json::from_str(&text).unwrap();
                sections.retain(|s| s["part"] != "table4");
                serde_json::to_string(&sections).unwrap()
            }
            svg => {
                assert!(svg.ends_with(".svg"), "{svg} is left over");
                assert_eq!(xml::complaint(&text), None, "{svg}");
                // Figures 7 to 9 are of HSGD alone.
                let of_intervals = ["fig7", "fig8", "fig9"].contains(&&svg[..4]);
                let expected = if of_intervals { "Q" } else { "c-tdcd" };
                assert!(text.contains("<svg") && text.contains(expected), "{svg}");
                text
            }
        };
        files.push((name, text));
    }
    files.sort();
    files
}

#[track_caller]
fn same_files(expected: &[(String, String)], found: &[(String, String)]) {
    assert_eq!(expected.len(), found.len());
    for ((name, a), (other, b)) in expected.iter().zip(found) {
        assert_eq!((name, a), (other, b));
    }
}

#[test]
fn every_table_and_figure_is_written_and_twice_the_same() {
    let place = Place::new("reproduced");
    let all = format!("reproduce all {TINY} {TWIN} --out rep");
    let all = words(&all);
    let ran = place.succeeds(&all);
    let text = fs::read_to_string(place.join("rep/reproduction.md")).unwrap();
    assert_eq!(
        ran.stdout,
        format!("{text}\nFiles   rep\n"),
        "what is printed is what is written"
    );
    for title in [
        "At a glance",
        "By how much",
        "Learning rates ·",
        "Learning rates with two layers",
        "Bytes of an iteration",
        "Table II ·",
        "Table III",
        "Table IV",
        "Figure 4",
        "Figure 5",
        "Figure 6",
        "Figure 7",
        "Figure 8",
        "Figure 9",
        "Table II with the printed settings",
        "Table II with a combined model of two layers",
    ] {
        assert!(text.contains(&format!("## {title}")), "{title}: {text}");
    }
    let names: Vec<String> = left(&place.join("rep"))
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let expected = [
        "fig4-esr-2.svg",
        "fig5-esr-2.svg",
        "fig6-0.1-esr-2.svg",
        "fig6-10-esr-2.svg",
        "fig7-esr.svg",
        "fig7-q1-esr.svg",
        "fig7-q10-esr.svg",
        "fig7-q5-esr.svg",
        "fig8-esr.svg",
        "fig9-esr.svg",
        "fig9-p10-q5-esr.svg",
        "fig9-p20-q10-esr.svg",
        "fig9-p20-q5-esr.svg",
        "reproduction.json",
        "reproduction.md",
    ];
    assert_eq!(names, expected);
    for name in &names {
        let is_linked = text.contains(&format!("({name})"));
        assert_eq!(is_linked, name.ends_with(".svg"), "{name}");
    }
    claims_are_counted(&place, &text);
    let (first, done) = (left(&place.join("rep")), finished(&place.join("rep/esr-2")));
    let stamps = stamped(&done);
    place.succeeds(&all);
    same_files(&first, &left(&place.join("rep")));
    assert_eq!(
        (done.len(), &stamps),
        (14, &stamped(&done)),
        "what was run serves again"
    );

    let json = place.succeeds(&[&all[..], &["--json"]].concat()).stdout;
    let sections: Vec<Value> = serde_json::from_str(&json).unwrap();
    // Twelve parts, and two tables of learning rates.
    assert_eq!(sections.len(), 14);
    // Other settings are another reproduction.
    let other = [&all[..], &["--set", "train.iterations=20"]].concat();
    place.refuses(
        &other,
        &["rep/esr-2", "train.iterations is 40 there and 20 here"],
    );
}

/// With two seeds nothing but a paired test can show a difference: both on one side is a coin's chance.
fn claims_are_counted(place: &Place, text: &str) {
    let json = fs::read_to_string(place.join("rep/reproduction.json")).unwrap();
    let sections: Vec<Value> = serde_json::from_str(&json).unwrap();
    let claims: Vec<&Value> = sections
        .iter()
        .flat_map(|s| s["claims"].as_array().unwrap())
        .collect();
    let count = |verdict: &str| claims.iter().filter(|c| c["verdict"] == verdict).count();
    let line = format!(
        "{} claims: {} hold, {} are reversed, {} show no difference, in {} neither reaches the target.",
        claims.len(),
        count("holds"),
        count("reversed"),
        count("open"),
        count("unreached")
    );
    assert!(text.contains(&line), "{line}");
    let tested = claims
        .iter()
        .filter(|c| c["found"].as_str().unwrap().contains("seeds, p "));
    for claim in tested.filter(|c| ["holds", "reversed"].contains(&c["verdict"].as_str().unwrap()))
    {
        let found = claim["found"].as_str().unwrap();
        if claim["text"].as_str().unwrap().starts_with("computation") {
            continue; // of real time, measured five times
        }
        let p = found.rsplit("p ").next().unwrap().trim_start_matches("< ");
        assert!(p.parse::<f64>().unwrap() < 0.05, "{claim}");
    }
}

/// Kills a reproduction while it tries rates and while it trains, goes on, and compares with the one in `whole`.
fn killed_twice(place: &Place, args: &[&str], whole: &str) {
    let end = place.join("killed/reproduction.md");
    let folder = place.join("killed/esr-2");
    for attempt in 0.. {
        for tuning in [true, false] {
            let mut live = Live::start(selvedge(place.path()).args(args).args(["--out", "killed"]));
            live.wait_until("at work", SOON, || match tuning {
                true => runs(&folder.join("tuning")).len() > 1,
                false => runs(&folder).len() > 1,
            });
            live.signal("KILL");
            live.finish();
        }
        if !end.exists() {
            break;
        }
        // On a busy machine the signal may come too late.
        assert!(attempt < 5, "always killed too late");
        fs::remove_dir_all(place.join("killed")).unwrap();
    }
    place.succeeds(&[args, &["--out", "killed"]].concat());
    let [expected, found] = [whole, "killed"].map(|name| left(&place.join(name)));
    same_files(&expected, &found);
}

#[test]
fn a_killed_reproduction_goes_on() {
    let place = Place::new("reproduced-killed");
    let args = format!("reproduce fig6 {TINY} {TWIN} --set train.iterations=120");
    let args = words(&args);
    place.succeeds(&[&args[..], &["--out", "whole"]].concat());
    killed_twice(&place, &args, "whole");
}

#[test]
fn the_real_set_is_reproduced_the_same_after_kills() {
    let Some(data) = real_data("the_real_set_is_reproduced_the_same_after_kills") else {
        return;
    };
    let place = Place::new("reproduced-esr");
    let short = format!("{TINY} --set train.iterations=60 --set train.evaluate_every=30");
    let short = [&words(&short)[..], &["--data-dir", text(&data)]].concat();
    let args = [&["reproduce", "fig5"][..], &short].concat();
    place.succeeds(&[&args[..], &["--out", "whole"]].concat());
    killed_twice(&place, &args, "whole");
    // What was run for one figure serves the tables.
    let done = finished(&place.join("whole/esr-2"));
    let stamps = stamped(&done);
    place.succeeds(&[&["reproduce", "table2", "--out", "whole"][..], &short].concat());
    assert_eq!((done.len(), &stamps), (14, &stamped(&done)));
}

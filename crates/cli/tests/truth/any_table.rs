//! Tables, splits and label skews that are drawn: whatever they are, no command prints a figure that is not defined, no
//! interval rests on one patient, and predictions are those of the evaluation.

use crate::common::{Place, Random, words};
use crate::figures::{follows_from_confusion, nothing_undefined, seen};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

const TABLES: usize = 24;

const SPLITS: [&str; 4] = ["column", "iid", "dirichlet", "part"];

struct Table {
    csv: String,
    experiment: String,
    classes: usize,
    /// Of each row: its id, its patient, its label, and its part, if the table names one.
    rows: Vec<(String, usize, usize, Option<&'static str>)>,
}

fn below(random: &mut Random, n: usize) -> usize {
    (random.next() * n as f64) as usize
}

/// A few or many rows of a few or many patients and sites, with a class that is as rare as it happens.
fn any(random: &mut Random) -> Table {
    let classes = 2 + below(random, 2);
    let rows = 8 + below(random, 120);
    let patients = 1 + below(random, rows);
    let sites = 1 + below(random, 4);
    let rarity = 1.0 + 6.0 * random.next();
    let split = SPLITS[below(random, SPLITS.len())];
    let shares = [random.next() * 0.3, random.next() * 0.3];
    // Of the parts that the table names, too.
    let part_of = |random: &mut Random| match random.next() {
        x if x < shares[0] => "validation",
        x if x < shares[0] + shares[1] => "test",
        _ => "train",
    };
    let is_named = split == "part";
    let parts: Vec<&str> = (0..patients).map(|_| part_of(random)).collect();
    let mut csv = "id,patient,site,use,lab,pulse,label\n".to_owned();
    let mut all = Vec::new();
    for n in 0..rows {
        let patient = below(random, patients);
        let [lab, pulse] = [random.next(), random.next()];
        let score = libm::pow((lab + pulse) / 2.0, rarity);
        let label = ((score * classes as f64) as usize).min(classes - 1);
        let part = parts[patient];
        let site = patient % sites;
        writeln!(
            csv,
            "r{n},q{patient},s{site},{part},{lab:.4},{pulse:.4},class{label}"
        )
        .unwrap();
        all.push((format!("r{n}"), patient, label, is_named.then_some(part)));
    }
    // A site of which no row is for training is no group.
    let trains = |row: &&(String, usize, usize, Option<&str>)| !is_named || row.3 == Some("train");
    let found: BTreeSet<usize> = all.iter().filter(trains).map(|row| row.1 % sites).collect();
    let (scheme, part) = match split {
        "part" => ("column", "part = \"use\"\n"),
        scheme => (scheme, ""),
    };
    let groups = if scheme == "column" {
        found.len()
    } else {
        1 + below(random, 3)
    };
    let group = if scheme == "column" {
        "group = \"site\"\n"
    } else {
        ""
    };
    let names: Vec<String> = (0..classes)
        .map(|class| format!("\"class{class}\""))
        .collect();
    // A part that the column names in no row would be drawn.
    let drawn = if is_named { [0.0; 2] } else { shares };
    let experiment = format!(
        "[data]\nset = \"table\"\npath = \"t.csv\"\nsplit = \"{scheme}\"\ngroups = {groups}\nvalidation = {:.3}\ntest = {:.3}\n\
         [data.table]\nid = \"id\"\npatient = \"patient\"\nlabel = \"label\"\nlabels = [{}]\n{group}{part}\
         hospital = [\"lab\"]\ndevice = [\"pulse\"]\n[train]\niterations = 40\nevaluate_every = 20\nlearning_rate = 0.3\n\
         participation = 0.5\n",
        drawn[0],
        drawn[1],
        names.join(", ")
    );
    Table {
        csv,
        experiment,
        classes,
        rows: all,
    }
}

fn json(place: &Place, call: &str) -> Value {
    serde_json::from_str(&place.succeeds(&words(call)).stdout).unwrap()
}

#[test]
fn no_table_makes_a_figure_that_is_not_defined() {
    let mut random = Random(77);
    let mut trained = 0;
    for number in 0..TABLES {
        let table = any(&mut random);
        let place = Place::new("any-table");
        place.write("t.csv", &table.csv);
        place.write("t.toml", &table.experiment);
        let what = format!("table {number}: {}", table.experiment);
        let ran = place.selvedge(&words("train t.toml --out run"));
        if ran.code() == Some(2) {
            // For what the table is, and nothing stays behind.
            assert!(ran.stderr.contains("error: "), "{what}: {}", ran.stderr);
            assert!(!place.join("run").exists(), "{what}");
            continue;
        }
        let ran = ran.succeeded();
        nothing_undefined(&(ran.stdout + &ran.stderr), &what);
        trained += 1;
        check(&place, &table, &what);
    }
    assert!(2 * trained > TABLES, "{trained} of {TABLES}");
}

fn check(place: &Place, table: &Table, what: &str) {
    for call in [
        "evaluate run --html run/e.html",
        "predict run --input t.csv --all",
        "report run",
        "export run",
        "compare t.toml --algorithms hsgd,fedavg --seeds 2 --out cmp --set train.iterations=20",
    ] {
        let ran = place.succeeds(&words(call));
        nothing_undefined(&(ran.stdout + &ran.stderr), &format!("{call}, {what}"));
    }
    for page in ["run/e.html", "run/report.html", "cmp/report.html"] {
        let text = fs::read_to_string(place.join(page)).unwrap();
        nothing_undefined(&seen(&text), &format!("{page}, {what}"));
    }
    let own = json(place, "evaluate run --json");
    let positive = own["positive"]["class"]
        .as_str()
        .map(|name| name.trim_start_matches("class").parse().unwrap());
    let parts: Vec<&str> = ["train", "validation", "test"]
        .into_iter()
        .filter(|part| own[part].is_object())
        .collect();
    for part in &parts {
        follows_from_confusion(
            &own[part],
            table.classes,
            positive,
            &format!("{part}, {what}"),
        );
        no_interval_of_one(&own[part], &format!("{part}, {what}"));
    }
    predictions_are_the_evaluations(place, table, (&own, &parts), what);
}

/// A part with one row is of one patient; a class with one row, too.
#[track_caller]
fn no_interval_of_one(part: &Value, what: &str) {
    let confusion: Vec<Vec<u64>> = serde_json::from_value(part["confusion"].clone()).unwrap();
    let rows: Vec<u64> = confusion.iter().map(|row| row.iter().sum()).collect();
    let has = |name: &str| part["intervals"][name].is_array();
    if rows.iter().sum::<u64>() == 1 {
        assert!(!has("loss") && !has("accuracy"), "{what}");
    }
    if rows.iter().any(|n| *n < 2) {
        assert!(!has("recall") && !has("precision"), "{what}");
    }
}

/// All rows as new ones: the confusions of all parts together, or of each where the table names them.
fn predictions_are_the_evaluations(
    place: &Place,
    table: &Table,
    (own, parts): (&Value, &[&str]),
    what: &str,
) {
    let said = json(place, "predict run --input t.csv --all --json");
    let class = |sample: &Value| {
        let name = sample["prediction"].as_str().unwrap();
        name.trim_start_matches("class").parse::<usize>().unwrap()
    };
    let samples = said["samples"].as_array().unwrap();
    let by_id: BTreeMap<&str, usize> = samples
        .iter()
        .map(|sample| (sample["id"].as_str().unwrap(), class(sample)))
        .collect();
    let counted = |is_there: &dyn Fn(Option<&str>) -> bool| {
        let mut confusion = vec![vec![0_u64; table.classes]; table.classes];
        for (id, _, label, part) in &table.rows {
            if is_there(*part) {
                confusion[*label][by_id[id.as_str()]] += 1;
            }
        }
        confusion
    };
    let confusion = |part: &str| -> Vec<Vec<u64>> {
        serde_json::from_value(own[part]["confusion"].clone()).unwrap()
    };
    let mut sum = vec![vec![0_u64; table.classes]; table.classes];
    for part in parts {
        for (sum, row) in sum.iter_mut().zip(confusion(part)) {
            sum.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
        }
        if table.rows[0].3.is_some() {
            assert_eq!(
                counted(&|of| of == Some(*part)),
                confusion(part),
                "{part}, {what}"
            );
        }
    }
    let all = counted(&|_| true);
    if table.experiment.contains("\"iid\"") {
        // Some rows are in no group, so that all groups are equally large.
        let no_more = |(sum, all): (&Vec<u64>, &Vec<u64>)| sum.iter().zip(all).all(|(a, b)| a <= b);
        assert!(sum.iter().zip(&all).all(no_more), "{sum:?} {all:?}, {what}");
    } else {
        assert_eq!(all, sum, "{what}");
    }
}

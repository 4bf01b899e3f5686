//! What the reference says that a key may be set to is what the program takes and refuses.

use crate::common::Place;
use serde_json::Value;
use std::collections::BTreeSet;

/// Five patients, for keys that only a table asks for.
const TABLE: &str = "id,site,x,z,y\na,n,1,2,0\nb,n,2,1,1\nc,s,3,5,0\nd,s,4,4,1\ne,n,5,3,1\n";
const EXPERIMENT: &str = "[data]\nset = \"table\"\npath = \"t.csv\"\nsplit = \"iid\"\ngroups = 1\n[data.table]\nid = \"id\"\n\
    label = \"y\"\nhospital = [\"x\"]\ndevice = [\"z\"]\n";
/// The same as a series in time.
const SERIES: &str = "time = \"site\"\n";

/// Values on either side of what is said.
fn tried(kind: &str, values: &str) -> (Vec<String>, Vec<String>) {
    let numbers: Vec<f64> = values
        .split([' ', ','])
        .filter_map(|w| w.parse().ok())
        .collect();
    let list = |numbers: &[f64]| {
        numbers
            .iter()
            .map(|n| format!("{n:?}").trim_end_matches(".0").to_owned())
            .collect()
    };
    let (good, bad): (Vec<f64>, Vec<f64>) = match (kind, values) {
        ("whole number", "") => (vec![0.0, 7.0], vec![-1.0, 1.5]),
        (_, "above 0, at most 1") => (vec![1.0, 0.5], vec![0.0, 1.5]),
        (_, "at least 0, less than 1") => (vec![0.0], vec![1.0, -0.5]),
        (_, v) if v.contains(" to ") => (numbers.clone(), vec![numbers[0] - 1.0, 2.0 * numbers[1]]),
        (_, v) if v.starts_with("at least ") => (numbers.clone(), vec![numbers[0] - 1.0]),
        (_, v) if v.starts_with("above ") => (vec![numbers[0] + 0.5], numbers.clone()),
        _ => (Vec::new(), Vec::new()),
    };
    (list(&good), list(&bad))
}

/// The words in quotes behind "expected".
fn expected(message: &str) -> BTreeSet<String> {
    let list = message.split("expected").nth(1).unwrap_or_default();
    let quote = if list.contains('`') { '`' } else { '"' };
    list.split(quote)
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn ranges_and_choices_are_those_of_the_program() {
    let place = Place::new("values");
    place.write("t.csv", TABLE);
    place.write("plain.toml", EXPERIMENT);
    place.write("series.toml", format!("{EXPERIMENT}{SERIES}"));
    let keys = place.succeeds(&["experiments", "--keys", "--json"]).stdout;
    let keys: Value = serde_json::from_str(&keys).unwrap();
    let (mut refused, mut taken) = (0, 0);
    for key in keys.as_array().unwrap() {
        let word = |field: &str| key[field].as_str().unwrap();
        let (path, kind, values) = (word("key"), word("type"), word("values"));
        let file = match path {
            "data.table.steps" | "data.table.step" => "series.toml",
            "data.split" | "data.beta" => "plain.toml",
            path if path.starts_with("data.table.") => "plain.toml",
            _ => "synthetic",
        };
        let inspect = |value: &str| {
            let option = format!("{path}={value}");
            let mut args = vec!["data", "inspect", file, "--set", &option];
            if path == "data.beta" {
                args.extend(["--set", "data.split=dirichlet"]);
            }
            place.selvedge(&args)
        };
        if kind == "text" && !values.is_empty() {
            let said = inspect("nonsense")
                .refused(&[path.rsplit('.').next().unwrap()])
                .stderr;
            let choices: BTreeSet<String> = values.split(" | ").map(str::to_owned).collect();
            assert_eq!(expected(&said), choices, "{path}: {said}");
            refused += 1;
        }
        let (good, bad) = tried(kind, values);
        for value in bad {
            let name = path.rsplit('.').next().unwrap();
            inspect(&value).refused(&[name]);
            refused += 1;
        }
        // One interval divides another, and data must be there.
        let apart = path.starts_with("data.")
            || path == "train.iterations"
            || path == "train.global_interval";
        for value in good.iter().filter(|_| !apart) {
            inspect(value).succeeded();
            taken += 1;
        }
    }
    assert!(
        refused > 60 && taken > 30,
        "{refused} refused, {taken} taken"
    );
}

//! Patients whom a trained model is asked about: read from one party's own table, and scaled as those who took part.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use selvedge_data::SETS;
use selvedge_data::enrol::{self, Asked};
use selvedge_data::{DataError, PseudonymKey, Scale, SideStatistics, Statistics};
use std::path::PathBuf;

const EXPERIMENT: &str = r#"
[data]
set = "table"
groups = 1
[data.table]
id = "id"
label = "ill"
labels = ["no", "yes"]
hospital = ["age", "sex"]
device = ["hr"]
categorical = { sex = ["f", "m"] }
"#;

fn side(names: &[&str], scaled: &[(f64, f64)]) -> SideStatistics {
    let scale = |(mean, deviation): &(f64, f64)| Scale {
        mean: *mean,
        deviation: *deviation,
        ..Scale::IDENTITY
    };
    SideStatistics {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        shape: vec![names.len()],
        scales: scaled.iter().map(scale).collect(),
        missing: vec![0.0; names.len()],
    }
}

/// What was found when parties enrolled.
fn statistics() -> Statistics {
    let as_it_is = (0.0, 1.0);
    Statistics {
        set: "table".into(),
        rows: 20,
        outcome: Default::default(),
        classes: vec!["no".into(), "yes".into()],
        hospital: side(
            &["age", "sex = f", "sex = m"],
            &[(50.0, 10.0), as_it_is, as_it_is],
        ),
        device: side(&["hr"], &[(70.0, 8.0)]),
    }
}

fn key() -> PseudonymKey {
    PseudonymKey::new([5; 32])
}

/// Reads a table of a hospital, or of a gateway.
fn read(name: &str, hospital: bool, text: &str) -> Result<Asked, DataError> {
    let file = format!("selvedge-asked-{name}-{}.csv", std::process::id());
    let file: PathBuf = std::env::temp_dir().join(file);
    std::fs::write(&file, text).unwrap();
    let experiment = SETS.parse(EXPERIMENT, &[]).unwrap();
    let terms = enrol::terms(&experiment.data, experiment.seed).unwrap();
    let read = match hospital {
        true => Asked::of_hospital,
        false => Asked::of_gateway,
    };
    let asked = read(&terms, vec![file.clone()], &key(), &statistics());
    std::fs::remove_file(&file).unwrap();
    asked
}

#[test]
fn labels_may_be_known_or_not_and_numbers_are_scaled_as_they_were() {
    let with = "id,age,sex,ill\nb,60,m,yes\na,45,f,\nc,,x,no\n";
    let without = "id,age,sex\nb,60,m\na,45,f\nc,,x\n";
    let asked = [with, without].map(|text| read("labels", true, text).unwrap());
    for asked in &asked {
        assert_eq!(asked.ids, ["a", "b", "c"]);
        // Who is of no known category has none, and what was not measured is the mean.
        let rows = [[-0.5, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0; 3]];
        assert_eq!(asked.x, rows.concat());
        let pseudonym = |id: &String| key().pseudonym(id);
        let called: Vec<String> = asked.ids.iter().map(pseudonym).collect();
        let numbers: Vec<String> = asked
            .pseudonyms
            .iter()
            .map(|p| format!("{p:032x}"))
            .collect();
        assert_eq!(numbers, called);
        assert_eq!(format!("{:032x}", asked.key), key().name());
        assert!(asked.notes[0].contains("categories not seen in training"));
    }
    let gateway = read("device", false, "id,hr\nz,78\ny,70\ny,71\n").unwrap();
    assert_eq!(
        (&gateway.ids[..], &gateway.x[..]),
        (&["z".to_owned()][..], &[1.0][..])
    );
    assert!(gateway.notes[0].starts_with("1 id occurs twice in a file"));
}

#[test]
fn tables_with_other_columns_are_refused() {
    for (hospital, text, part) in [
        (true, "id,age\na,50\n", "no column \"sex\""),
        (true, "age,sex\n50,f\n", "no column \"id\""),
        (true, "id,age,sex\n", "no rows of data"),
        (false, "id,pulse\na,50\n", "no column \"hr\""),
        (false, "id,hr\na,fast\n", "fast"),
    ] {
        let error = read("refused", hospital, text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

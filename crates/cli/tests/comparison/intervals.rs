//! `selvedge reproduce` of Figures 7 to 9: runs of many P, Q and η that serve all three, and numbers that are theirs.

use crate::common::run::Run;
use crate::common::{Place, words};
use crate::{finished, stamped};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// ESR's twin in small, which needs no files and reaches some of the targets in few iterations.
const TWIN: &str = "--data esr --seeds 2 --out rep --set data.set=synthetic-esr \
    --set data.groups=2 --set data.devices=60 --set train.participation=0.1 \
    --set train.iterations=300 --set train.learning_rate=0.5";

/// The sections that a reproduction of one figure writes.
fn sections(place: &Place, figure: &str) -> Vec<Value> {
    place.succeeds(&words(&format!("reproduce {figure} {TWIN}")));
    let json = fs::read_to_string(place.join("rep/reproduction.json")).unwrap();
    serde_json::from_str(&json).unwrap()
}

/// The mean iteration at which seeds of a setting reach an AUC, as a cell of a table.
fn iterations_until(folder: &Path, setting: &str, auc: f64) -> String {
    let found = ["seed-42", "seed-43"].map(|seed| {
        let lines = Run(folder.join(setting).join(seed)).metrics();
        let meets = |line: &&Value| line["auc"].as_f64().is_some_and(|found| found >= auc);
        lines
            .iter()
            .find(meets)
            .map(|line| line["t"].as_u64().unwrap())
    });
    let there: Vec<u64> = found.into_iter().flatten().collect();
    let mean = there.iter().sum::<u64>() as f64 / there.len() as f64;
    match there.len() {
        0 => "–".into(),
        2 => format!("{:.0}", mean.round()),
        n => format!("{:.0} ({n} of 2)", mean.round()),
    }
}

fn claims(section: &Value) -> Vec<&str> {
    let claims = section["claims"].as_array().unwrap().iter();
    claims.map(|c| c["text"].as_str().unwrap()).collect()
}

#[test]
fn three_figures_share_their_runs() {
    let place = Place::new("intervals");
    let folder = place.join("rep/esr-intervals");

    let [fig9] = &sections(&place, "fig9")[..] else {
        panic!("one section");
    };
    assert_eq!(fig9["part"], "fig9");
    assert_eq!(fig9["rows"].as_array().unwrap().len(), 1 + 9);
    assert_eq!(claims(fig9).len(), 4);
    assert!(claims(fig9)[1].ends_with("P = 20, Q = 5: η = 0.125 < η = 0.5"));
    let first = finished(&folder);
    assert_eq!(first.len(), 9 * 2);
    let stamps = stamped(&first);

    let [fig7] = &sections(&place, "fig7")[..] else {
        panic!("one section");
    };
    assert_eq!(finished(&folder).len(), (9 + 12 - 3) * 2);
    let rows = fig7["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1 + 12);
    let mut equal = 0;
    for row in &rows[1..] {
        let cells: Vec<&str> = row
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c.as_str().unwrap())
            .collect();
        let name = cells[0].trim_end_matches(" (P = Q)");
        equal += usize::from(name != cells[0]);
        let (q, p) = name.split_once(", ").unwrap();
        let setting = format!("{p} {q}").replace(" = ", "=").replace(' ', "_");
        assert_eq!(cells[3], iterations_until(&folder, &setting, 0.8), "{name}");
    }
    assert_eq!((equal, claims(fig7).len()), (3, 9));
    let reached = rows[1..].iter().filter(|row| row[3] != "–").count();
    assert!(reached > 0, "a test without numbers: {rows:?}");

    let [fig8] = &sections(&place, "fig8")[..] else {
        panic!("one section");
    };
    assert_eq!(finished(&folder).len(), 35 * 2, "each once");
    assert_eq!(
        stamps,
        stamped(&first),
        "what was run for one figure serves the others"
    );
    assert_eq!(fig8["rows"].as_array().unwrap().len(), 2 * (1 + 20));
    let notes: Vec<&str> = fig8["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_str().unwrap())
        .collect();
    let of_strategy = |note: &&str| note.contains("by the corrected root");
    assert!(notes.iter().any(of_strategy), "{notes:?}");
    let shape = claims(fig8);
    assert!(shape.iter().any(|c| c.contains("first fall")), "{shape:?}");
    assert!(shape.iter().any(|c| c.contains("then rise")), "{shape:?}");
    let text = fs::read_to_string(place.join("rep/reproduction.md")).unwrap();
    assert!(notes.iter().all(|note| text.contains(note)), "{text}");
    let chart = fs::read_to_string(place.join("rep/fig8-esr.svg")).unwrap();
    assert!(chart.contains("strategy 2, corrected"), "{chart}");
    assert!(
        fs::read_to_string(folder.join("report.html"))
            .unwrap()
            .contains("P=20 Q=5 eta=0.125")
    );
}

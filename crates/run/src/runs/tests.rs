//! Runs made by hand: what is read, grouped and named.

use super::*;
use crate::tests::Folder;
use selvedge_data::SETS;

impl Folder {
    /// A run with these changes to an experiment, evaluated at t = 0, 10, 20, …
    fn run(&self, name: &str, set: &[&str], losses: &[f64]) -> PathBuf {
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        let experiment = SETS.parse("", &set).unwrap();
        let manifest = serde_json::json!({
            "selvedge": "0", "name": "by hand", "experiment": experiment,
            "cpu": { "instructions": "plain", "available": ["plain"] },
            "data": { "fingerprint": "f", "classes": ["a", "b"], "training_samples": 4,
                "validation_samples": 0, "test_samples": 2 },
            "sizes": { "n0": 1, "n1": 1, "n2": 1, "d1": 1, "d2": 1, "groups": 2, "devices": [1, 1],
                "selected": [1, 1], "class_weights": [1.0, 1.0], "loss_samples": 4 },
            "timing": { "iterations": 0, "seconds": 0.0 }, "ending": null,
        });
        self.write(&format!("{name}/manifest.json"), &manifest.to_string());
        let line = |(i, loss): (usize, &f64)| format!("{}\n", evaluation(10 * i as u64, *loss));
        let lines: String = losses.iter().enumerate().map(line).collect();
        self.write(&format!("{name}/metrics.jsonl"), &lines);
        self.path(name)
    }
}

fn evaluation(t: u64, loss: f64) -> Value {
    serde_json::json!({ "t": t, "p": 10, "q": 5, "eta": 0.1, "loss_train": loss, "loss_test": loss + 0.1,
        "auc": 0.5, "precision": 0.5, "recall": 0.5, "f1": 0.5, "accuracy": 0.5,
        "bytes_paper": 10.0 * t as f64, "bytes_exact": 40.0 * t as f64, "seconds": 0.1 * t as f64 })
}

use serde_json::Value;

fn series(paths: &[PathBuf]) -> Result<Vec<Series>> {
    super::series(paths, |_| {})
}

fn labels(paths: &[PathBuf]) -> Vec<String> {
    series(paths)
        .unwrap()
        .into_iter()
        .map(|s| s.label)
        .collect()
}

fn complaint<T>(result: Result<T>) -> String {
    format!("{:#}", result.err().expect("an error"))
}

#[test]
fn only_the_last_line_may_be_cut_off() {
    let folder = Folder::new("runs");
    let path = folder.run("a", &[], &[3.0, 2.0, 1.0]);
    let file = path.join("metrics.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    for cut in [1, 2, 40] {
        std::fs::write(&file, &whole[..whole.len() - cut]).unwrap();
        let read = Run::read(&path).unwrap().evaluations.len();
        // Without its line break alone, the last line is whole.
        assert_eq!(read, if cut == 1 { 3 } else { 2 }, "{cut} bytes cut off");
    }
    let damaged = whole.replacen("\"t\":10", "\"t\":ten", 1);
    std::fs::write(&file, damaged).unwrap();
    let error = complaint(Run::read(&path));
    assert!(
        error.contains("metrics.jsonl, line 2 is damaged"),
        "{error}"
    );
    std::fs::write(&file, whole.clone() + &whole).unwrap();
    let error = complaint(Run::read(&path));
    assert!(
        error.contains("line 4") && error.contains("iteration 0 comes after iteration 20"),
        "{error}"
    );
}

#[test]
fn a_ledger_is_read_or_refused_by_line() {
    let folder = Folder::new("runs");
    let path = folder.run("a", &[], &[1.0]);
    assert!(Run::read(&path).unwrap().ledger.is_empty());
    let header = "link,kind,direction,messages,bytes\n";
    folder.write(
        "a/ledger.csv",
        &format!("{header}device-edge,theta2,up,3,12\n"),
    );
    let line = &Run::read(&path).unwrap().ledger[0];
    assert_eq!(
        (line.kind.as_str(), line.messages, line.bytes),
        ("theta2", 3, 12)
    );
    for (text, place) in [
        (format!("{header}device-edge,theta2,up,3\n"), "line 2"),
        ("what\n".into(), "line 1"),
    ] {
        folder.write("a/ledger.csv", &text);
        let error = complaint(Run::read(&path));
        assert!(
            error.contains("ledger.csv") && error.contains(place),
            "{error}"
        );
    }
}

#[test]
fn runs_that_differ_in_the_seed_only_are_one_series() {
    let folder = Folder::new("runs");
    let a = folder.run("a", &["seed=2"], &[3.0, 2.0]);
    let b = folder.run("b", &["seed=1"], &[5.0, 4.0, 3.0]);
    let all = series(&[a.clone(), b.clone(), folder.path("b/../a")]).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].label, "by hand");
    let seeds: Vec<u64> = all[0].runs.iter().map(|r| r.experiment.seed).collect();
    assert_eq!(seeds, [1, 2], "in order, and the same run once only");
    let curve = all[0].curve("loss", Axis::Bytes);
    assert_eq!(curve.len(), 3);
    assert_eq!(
        (
            curve[1].x,
            curve[1].mean,
            curve[1].min,
            curve[1].max,
            curve[1].seeds
        ),
        (400.0, 3.0, 2.0, 4.0, 2)
    );
    assert!((curve[1].deviation.unwrap() - 2f64.sqrt()).abs() < 1e-12);
    assert_eq!((curve[2].seeds, curve[2].deviation), (1, None));
}

#[test]
fn the_same_seed_in_two_folders_counts_once() {
    let folder = Folder::new("runs");
    let a = folder.run("a", &[], &[3.0]);
    let b = folder.run("b", &[], &[3.0, 2.0]);
    let all = series(&[a, b.clone()]).unwrap();
    assert_eq!(all[0].runs.len(), 1);
    assert_eq!(all[0].runs[0].path, b, "the one that has come further");
}

#[test]
fn series_are_named_by_what_differs() {
    let folder = Folder::new("runs");
    let run = |name: &str, set: &[&str]| folder.run(name, set, &[1.0]);
    let plain = run("plain", &[]);
    let lean = run("lean", &["train.participation=0.05"]);
    assert_eq!(
        labels(&[plain.clone(), lean.clone()]),
        ["participation=0.1", "participation=0.05"]
    );
    let sparse = run(
        "sparse",
        &["train.global_interval=20", "train.local_interval=10"],
    );
    assert_eq!(
        labels(&[plain.clone(), sparse]),
        [
            "global_interval=10, local_interval=5",
            "global_interval=20, local_interval=10"
        ],
        "and not by how often it is evaluated, which follows"
    );
    let measured = run(
        "m",
        &[
            "time.compute=\"measured\"",
            "stop.auc=0.9",
            "train.iterations=100",
            "train.weight_decay=1.0",
        ],
    );
    assert_eq!(
        labels(&[plain, measured]),
        ["iterations=2000", "iterations=100"],
        "enough of many"
    );
}

#[test]
fn keys_lose_their_table_where_that_is_enough() {
    assert_eq!(labels::short("train.local_interval"), "local_interval");
    assert_eq!(labels::short("data.table.label"), "label");
    let doubles: Vec<&str> = ["data.table.steps", "model.hospital", "time.compute"]
        .into_iter()
        .filter(|key| labels::short(key) == *key)
        .collect();
    let names = |key: &str| key.rsplit('.').next().unwrap().to_owned();
    for key in doubles {
        let same = selvedge_core::experiment::KEYS
            .iter()
            .filter(|k| names(k.path) == names(key));
        assert!(same.count() > 1, "{key}");
    }
}

#[test]
fn different_data_is_refused_with_the_key() {
    let folder = Folder::new("runs");
    let a = folder.run("a", &["data.noise=0.5"], &[1.0]);
    let b = folder.run("b", &["data.noise=0.25"], &[1.0]);
    let error = complaint(series(&[a, b]));
    for part in [
        "/a ",
        "/b ",
        "data.noise is 0.5 in the first and 0.25 in the second",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_comparison_has_its_own_words_and_may_be_incomplete() {
    let folder = Folder::new("runs");
    folder.run("cmp/one/seed-1", &["seed=1"], &[1.0]);
    folder.run("cmp/one/seed-2", &["seed=2"], &[1.0]);
    folder.run(
        "cmp/two/seed-1",
        &["seed=1", "train.learning_rate=0.2"],
        &[1.0],
    );
    let note = r#"{ "name": "x", "kind": "compare", "experiment": {}, "seeds": [1, 2], "variants": [
        { "label": "plain", "folder": "one", "set": [] }, { "label": "fast", "folder": "two", "set": [] },
        { "label": "none", "folder": "three", "set": [] } ] }"#;
    folder.write("cmp/comparison.json", note);
    let path = folder.path("cmp");
    assert_eq!(labels(std::slice::from_ref(&path)), ["plain", "fast"]);
    let told = incomplete(std::slice::from_ref(&path)).unwrap();
    assert_eq!(
        told,
        [format!(
            "{}: 3 of 6 runs have begun, none of `none`",
            path.display()
        )]
    );
    let seeds = folder.write(
        "s/seeds.json",
        r#"{ "name": "x", "seeds": [1], "experiment": {} }"#,
    );
    let error = complaint(series(&[seeds.parent().unwrap().into()]));
    assert!(error.contains("none of its runs has begun yet"), "{error}");
}

#[test]
fn what_is_no_run_is_refused() {
    let folder = Folder::new("runs");
    let error = complaint(series(&[folder.path("")]));
    assert!(error.contains("is not a run directory"), "{error}");
    let error = complaint(series(&[folder.path("nowhere")]));
    assert!(error.contains("there is no such folder"), "{error}");
}

#[test]
fn seeds_that_are_steered_are_compared_at_the_same_iterations() {
    let folder = Folder::new("runs");
    let set = |seed: &'static str| ["train.adaptive=gain", seed];
    let one = folder.run("one", &set("seed=1"), &[4.0, 3.0, 2.0, 1.0]);
    let other = folder.run("other", &set("seed=2"), &[]);
    let lines = [(0, 6.0), (15, 3.0), (30, 0.0)].map(|(t, loss)| evaluation(t, loss).to_string());
    folder.write("other/metrics.jsonl", &(lines.join("\n") + "\n"));
    let found = series(&[one, other]).unwrap();
    let curve = found[0].curve("loss", Axis::Bytes);
    let points: Vec<_> = curve.iter().map(|p| (p.t, p.x, p.mean, p.seeds)).collect();
    // The second seed has 6, 4, 2, 0 there.
    let want = [
        (0, 0.0, 5.0, 2),
        (10, 400.0, 3.5, 2),
        (20, 800.0, 2.0, 2),
        (30, 1200.0, 0.5, 2),
    ];
    assert_eq!(points, want);
}

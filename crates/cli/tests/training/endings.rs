//! How runs end, what they print, and where they are put.

use crate::common::run::{Run, number, same_results};
use crate::common::{Place, says, words};
use serde_json::{Value, json};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text:?}"))
}

#[test]
fn json_is_one_object_and_nothing_else() {
    let place = Place::new("json");
    let ran = place.succeeds(&["train", "--json", "--set", "train.iterations=100"]);
    let object = json(&ran.stdout);
    let path = place.join(object["run"].as_str().unwrap());
    assert_eq!(path, place.join("runs/synthetic-42"));
    let run = Run(path);
    assert_eq!(object["last"], *run.metrics().last().unwrap());
    assert_eq!(object["seed"], 42);
    assert_eq!(object["ending"]["kind"], "finished");
    run.sent_as_many_bytes_as(&object["ledger"]);
}

#[test]
fn a_person_reads_the_metrics_the_bytes_and_what_to_do_next() {
    let place = Place::new("text");
    let ran = place.succeeds(&["train", "--set", "train.iterations=100"]);
    let run = Run::at(&place, "runs/synthetic-42");
    let last = run.metrics().pop().unwrap();
    for key in ["loss_train", "loss_test", "auc", "f1", "accuracy"] {
        let value = format!("{:.3}", number(&last, key));
        assert!(
            ran.stdout.contains(&value),
            "{key} {value}:\n{}",
            ran.stdout
        );
    }
    let megabytes = format!("{:.2} MB", number(&last, "bytes_exact") / 1e6);
    assert!(ran.stdout.contains(&megabytes), "{megabytes}");
    says(
        &ran.stdout,
        &[
            "AUC",
            "device → edge",
            "selvedge evaluate runs/synthetic-42",
        ],
    );
}

#[test]
fn runs_without_a_name_are_numbered() {
    let place = Place::new("numbered");
    let train = ["train", "--set", "train.iterations=10"];
    for name in ["synthetic-42", "synthetic-42-2", "synthetic-42-3"] {
        let run = Run::at(&place, &format!("runs/{name}"));
        assert!(!run.0.exists());
        let ran = place.succeeds(&train);
        assert!(run.file("model.safetensors").is_file(), "{name}");
        assert!(ran.stdout.contains(&format!("runs/{name}\n")));
    }
    place.succeeds(&["train", "--set", "train.iterations=10", "--set", "seed=5"]);
    assert!(place.join("runs/synthetic-5").is_dir());
    place.write("my own.toml", "[train]\niterations = 10\n");
    place.succeeds(&["train", "my own.toml"]);
    assert!(place.join("runs/my own-42").is_dir());
}

#[test]
fn seeds_are_runs_of_their_own_and_a_table_over_them() {
    let place = Place::new("seeds");
    let set = ["--set", "train.iterations=50", "--set", "data.validation=0"];
    let ran = place.succeeds(&[&["train", "--seeds", "3", "--out", "all"][..], &set].concat());
    let note = json(&std::fs::read_to_string(place.join("all/seeds.json")).unwrap());
    assert_eq!(note["seeds"], Value::from(vec![42, 43, 44]));

    let mut aucs = Vec::new();
    for seed in [42, 43, 44] {
        let one = Run::at(&place, &format!("all/seed-{seed}"));
        assert_eq!(one.manifest()["experiment"]["seed"], seed);
        let alone = format!("alone-{seed}");
        let seed_text = format!("seed={seed}");
        let args = ["train", "--set", &seed_text, "--out", &alone];
        place.succeeds(&[&args[..], &set].concat());
        same_results(&Run::at(&place, &alone), &one, &format!("seed {seed}"));
        aucs.push(number(one.metrics().last().unwrap(), "auc"));
    }
    assert_ne!(aucs[0], aucs[1], "another seed, another run");
    let mean = aucs.iter().sum::<f64>() / 3.0;
    let squares: f64 = aucs.iter().map(|a| (a - mean).powi(2)).sum();
    let row = format!("{mean:.4} ± {:.4}", (squares / 2.0).sqrt());
    let (_, table) = ran.stdout.split_once("3 seeds").expect("a table");
    let found = table.lines().find(|l| l.trim().starts_with("AUC"));
    assert!(found.is_some_and(|l| l.ends_with(&row)), "{row}:\n{table}");

    let args = ["train", "--seeds", "2", "--json", "--out", "two"];
    let ran = place.succeeds(&[&args[..], &set].concat());
    let list = json(&ran.stdout);
    let seeds: Vec<&Value> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["seed"])
        .collect();
    assert_eq!(seeds, [&Value::from(42), &Value::from(43)]);
}

#[test]
fn a_target_ends_a_run_at_the_first_evaluation_that_reaches_it() {
    let place = Place::new("target");
    place.succeeds(&["train", "--out", "whole"]);
    let ran = place.succeeds(&["train", "--set", "stop.auc=0.9", "--out", "stopped"]);
    says(&ran.stdout, &["stop.auc"]);
    let (whole, stopped) = (Run::at(&place, "whole"), Run::at(&place, "stopped"));
    let lines = stopped.metrics();
    let (last, before) = lines.split_last().unwrap();
    assert!(number(last, "auc_validation") >= 0.9, "{last}");
    assert!(
        before
            .iter()
            .all(|line| number(line, "auc_validation") < 0.9)
    );
    assert!(number(last, "t") < 1000.0);
    assert!(
        whole
            .text("metrics.jsonl")
            .starts_with(&stopped.text("metrics.jsonl"))
    );
    let ending = &stopped.manifest()["ending"];
    assert_eq!(
        (&ending["kind"], &ending["t"]),
        (&"reached".into(), &last["t"])
    );
    assert_eq!(ending["key"], "stop.auc");
    assert_eq!(ending["on"], "validation");
    assert_eq!(number(ending, "value"), number(last, "auc_validation"));

    // A run that has stopped stays stopped.
    place.succeeds(&["train", "--resume", "stopped"]);
    assert_eq!(stopped.metrics(), lines);
}

#[test]
fn a_budget_ends_a_run_at_the_first_global_aggregation_beyond_it() {
    let place = Place::new("budget");
    place.succeeds(&["train", "--set", "stop.bytes=1e6", "--out", "run"]);
    let run = Run::at(&place, "run");
    let last = run.metrics().pop().unwrap();
    let (t, bytes) = (number(&last, "t"), number(&last, "bytes_exact"));
    assert_eq!(t % 10.0, 0.0);
    assert!(bytes >= 1e6 && bytes * (t - 10.0) / t < 1e6, "{last}");
    assert_eq!(run.manifest()["ending"]["key"], "stop.bytes");
    assert!(run.file("model.safetensors").is_file());
    assert_eq!(run.manifest()["timing"]["iterations"], last["t"]);
}

#[test]
fn the_learning_rate_halves_where_it_is_told_to() {
    let place = Place::new("halving");
    let set = words("--set train.iterations=200 --set train.halve_every=60");
    place.succeeds(&[&["train", "--out", "run"][..], &set].concat());
    for line in Run::at(&place, "run").metrics() {
        let t = number(&line, "t");
        assert_eq!(
            number(&line, "eta"),
            0.1 / libm::pow(2f64, (t / 60.0).floor())
        );
    }
}

#[test]
fn a_validation_share_gives_a_best_model_and_none_gives_none() {
    let place = Place::new("validation");
    place.succeeds(&["train", "--out", "with"]);
    let with = Run::at(&place, "with");
    let lines = with.metrics();
    let score = |line: &Value| number(line, "auc_validation");
    let most = lines.iter().map(score).fold(f64::MIN, f64::max);
    let best = lines.iter().find(|line| score(line) == most).unwrap();
    assert_ne!(best["t"], lines.last().unwrap()["t"], "choose another seed");
    assert_ne!(
        with.bytes("best.safetensors"),
        with.bytes("model.safetensors")
    );

    let evaluate = ["evaluate", "with", "--best", "--uncalibrated", "--json"];
    let exact = json(&place.succeeds(&evaluate).stdout);
    let model = exact["model"].as_str().unwrap();
    assert!(model.ends_with("best.safetensors"), "{model}");
    agrees(&exact["test"], best);
    let validation = &exact["validation"];
    let difference = number(validation, "loss") - number(best, "loss_validation");
    assert!(difference.abs() <= 1e-9, "{validation} and {best}");
    assert_eq!(number(validation, "f1"), number(best, "f1_validation"));

    place.succeeds(&["train", "--set", "data.validation=0", "--out", "without"]);
    assert!(!place.join("without/best.safetensors").exists());
    place.refuses(
        &["evaluate", "without", "--best"],
        &["best.safetensors", "data.validation"],
    );
}

#[test]
fn evaluate_agrees_with_the_last_line_of_the_metrics() {
    let place = Place::new("evaluate");
    place.succeeds(&["train", "--out", "run"]);
    let last = Run::at(&place, "run").metrics().pop().unwrap();
    let as_trained = ["evaluate", "run", "--last", "--uncalibrated"];
    let exact = [&as_trained[..], &["--json"]].concat();
    let exact = json(&place.succeeds(&exact).stdout);
    agrees(&exact["test"], &last);
    let difference = number(&exact["train"], "loss") - number(&last, "loss_train");
    assert!(difference.abs() <= 1e-9, "{difference}");
    assert_eq!(exact["train"]["samples"], 2000);

    let confusion = exact["test"]["confusion"].as_array().unwrap();
    let count = |row: usize, column: usize| confusion[row][column].as_f64().unwrap();
    let right = count(0, 0) + count(1, 1);
    let all = right + count(0, 1) + count(1, 0);
    assert_eq!(all, number(&exact["test"], "samples"));
    assert_eq!(right / all, number(&last, "accuracy"));

    let page = place.succeeds(&as_trained).stdout;
    for key in ["loss", "precision", "recall", "f1", "accuracy"] {
        let value = format!("{:.4}", number(&exact["test"], key));
        assert!(page.contains(&value), "{key} {value}:\n{page}");
    }
}

/// Exact test metrics, and the same model's line in `metrics.jsonl`.
#[track_caller]
fn agrees(exact: &Value, line: &Value) {
    let difference = |a: f64, b: f64| (a - b).abs();
    assert!(difference(number(exact, "loss"), number(line, "loss_test")) <= 1e-9);
    // Histograms of 4,096 bins know AUC less exactly.
    let auc = difference(number(exact, "auc"), number(line, "auc"));
    assert!(auc <= 1e-3, "{exact} and {line}");
    for key in ["precision", "recall", "f1", "accuracy"] {
        assert_eq!(number(exact, key), number(line, key), "{key}");
    }
}

#[test]
fn patience_ends_a_run_and_more_of_it_goes_on() {
    let place = Place::new("patience");
    let set = words("--set train.learning_rate=0.5 --set train.iterations=1000");
    let patient = |patience: &str| format!("stop.patience={patience}");
    place.succeeds(&[&["train", "--out", "whole"][..], &set].concat());
    let short = patient("60");
    let args = ["train", "--out", "run", "--set", &short];
    let ran = place.succeeds(&[&args[..], &set].concat());
    says(
        &ran.stdout,
        &["Stopped: stop.patience", "validation samples"],
    );
    let (whole, run) = (Run::at(&place, "whole"), Run::at(&place, "run"));
    let manifest = run.manifest();
    let (ending, best) = (&manifest["ending"], number(&manifest, "best"));
    let t = number(ending, "t");
    assert!(t < 1000.0 && t - best >= 60.0, "{ending}");
    assert_eq!(
        (number(ending, "value"), &ending["on"]),
        (t - best, &"validation".into())
    );
    let metrics = run.text("metrics.jsonl");
    assert!(whole.text("metrics.jsonl").starts_with(&metrics));

    place.refuses(
        &["train", "--resume", "run", "--set", &patient("50")],
        &["stop.patience", "in any case"],
    );
    assert_eq!(run.manifest(), manifest, "what is refused changes nothing");
    place.succeeds(&["train", "--resume", "run", "--set", &patient("5000")]);
    same_results(&whole, &run, "with more patience");
    let manifest = run.manifest();
    assert_eq!(manifest["experiment"]["stop"]["patience"], 5000);
    assert_eq!(
        manifest["extended"][0]["changes"]["stop.patience"],
        json!([60, 5000])
    );
    assert_eq!(manifest["extended"][0]["ending"]["key"], "stop.patience");
}

#[test]
fn a_finished_run_that_is_given_more_is_as_if_it_had_been_that_long() {
    let place = Place::new("extended");
    let experiment = "[data]\nvalidation = 0.1\n[train]\nevaluate_every = 50\nhalve_every = 120\n\
        [optimiser]\nhospital = \"adam\"\nedge = \"momentum\"\nedge_rate = 0.2\ncloud = \"adam\"\n";
    place.write("my.toml", experiment);
    let long = |t: u64| format!("train.iterations={t}");
    place.succeeds(&[
        "train",
        "my.toml",
        "--trace",
        "--set",
        &long(400),
        "--out",
        "whole",
    ]);
    place.succeeds(&[
        "train",
        "my.toml",
        "--trace",
        "--set",
        &long(200),
        "--out",
        "run",
    ]);
    let (whole, run) = (Run::at(&place, "whole"), Run::at(&place, "run"));
    let before = run.manifest();

    for (set, expected) in [
        (long(200), "must be more"),
        (long(100), "must be more"),
        (long(405), "multiple of train.global_interval"),
        (
            "train.learning_rate=0.2".into(),
            "only train.iterations and the keys of [stop]",
        ),
        (
            "optimiser.cloud=sgd".into(),
            "only train.iterations and the keys of [stop]",
        ),
    ] {
        // What asks for nothing new just finds the run at its end.
        if set != long(200) {
            place.refuses(&["train", "--resume", "run", "--set", &set], &[expected]);
        }
    }
    assert_eq!(run.manifest(), before);

    place.succeeds(&["train", "--resume", "run", "--set", &long(400)]);
    same_results(&whole, &run, "given more");
    assert_eq!(run.text("trace.jsonl"), whole.text("trace.jsonl"));
    let now = run.manifest();
    assert_eq!(
        (&now["experiment"], &now["ending"]["t"]),
        (&whole.manifest()["experiment"], &400.into())
    );
    assert_eq!(
        now["extended"][0]["changes"],
        json!({ "train.iterations": [200, 400] })
    );
    assert_eq!(
        (
            &now["extended"][0]["t"],
            &now["extended"][0]["ending"]["kind"]
        ),
        (&200.into(), &"finished".into())
    );
    place.succeeds(&["evaluate", "run"]);

    // Killed between what the manifest says and the first checkpoint after it.
    let killed = Run::at(&place, "killed");
    place.succeeds(&[
        "train",
        "my.toml",
        "--trace",
        "--set",
        &long(200),
        "--out",
        "killed",
    ]);
    let checkpoint = killed.bytes("checkpoint/state.safetensors");
    place.succeeds(&["train", "--resume", "killed", "--set", &long(400)]);
    std::fs::write(killed.file("checkpoint/state.safetensors"), checkpoint).unwrap();
    place.succeeds(&["train", "--resume", "killed"]);
    same_results(&whole, &killed, "killed when given more");
    assert_eq!(killed.manifest()["extended"].as_array().unwrap().len(), 1);

    let cosine = [
        "train",
        "my.toml",
        "--set",
        "train.schedule=cosine",
        "--set",
        "train.halve_every=0",
    ];
    place.succeeds(&[&cosine[..], &["--set", &long(100), "--out", "cosine"]].concat());
    place.refuses(
        &["train", "--resume", "cosine", "--set", &long(200)],
        &["cosine", "--out"],
    );
}

#[test]
fn seeds_are_given_more_together() {
    let place = Place::new("extended-seeds");
    let train = [
        "train",
        "--seeds",
        "2",
        "--set",
        "train.evaluate_every=20",
        "--set",
    ];
    place.succeeds(&[&train[..], &["train.iterations=200", "--out", "whole"]].concat());
    place.succeeds(&[&train[..], &["train.iterations=100", "--out", "all"]].concat());
    place.succeeds(&["train", "--resume", "all", "--set", "train.iterations=200"]);
    for seed in ["seed-42", "seed-43"] {
        let [whole, found] = ["whole", "all"].map(|d| Run::at(&place, &format!("{d}/{seed}")));
        same_results(&whole, &found, seed);
    }
}

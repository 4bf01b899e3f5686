//! Hostile parties in simulation, with defences and without.

use crate::common::run::{Run, number};
use crate::common::{Place, says};

/// Those of a consortium.
const DEFENCES: [&str; 6] = [
    "defence.device_limit=100",
    "defence.embedding_limit=15",
    "defence.group_limit=30",
    "defence.reversal=3.5",
    "defence.scores=6",
    "defence.quarantine=5",
];

/// Trains on generated data, and says the last test AUC and what was printed.
fn train(place: &Place, name: &str, settings: &[&str]) -> (f64, String) {
    let common = [
        "train.iterations=400",
        "train.global_interval=5",
        "train.evaluate_every=100",
    ];
    let mut args = vec!["train", "--out", name];
    for setting in common.iter().chain(settings) {
        args.extend(["--set", setting]);
    }
    let ran = place.succeeds(&args);
    let last = Run::at(place, name).metrics().pop().unwrap();
    (number(&last, "auc"), ran.stdout)
}

#[test]
fn with_defences_a_few_hostile_parties_change_little_and_are_told() {
    let place = Place::new("attacks");
    for who in ["attack.devices=0.1", "attack.hospitals=2"] {
        let away = train(&place, &format!("away-{who}"), &[who, "attack.kind=absent"]).0;
        for kind in ["scale", "not-a-number", "huge"] {
            let kind = format!("attack.kind={kind}");
            let hostile = [who, &kind];
            let settings = [&hostile[..], &DEFENCES].concat();
            let (auc, said) = train(&place, &format!("{who}-{kind}"), &settings);
            assert!((auc - away).abs() < 0.02, "{who} {kind}: {auc} and {away}");
            says(&said, &["Left out", "in quarantine: "]);
        }
    }
    let (open, _) = train(
        &place,
        "open",
        &["attack.hospitals=2", "attack.kind=reverse"],
    );
    assert!(open < 0.8, "without defences it is spoiled: {open}");
}

#[test]
fn honest_runs_are_the_same_with_defences() {
    let place = Place::new("honest");
    train(&place, "plain", &[]);
    let (_, said) = train(&place, "defended", &DEFENCES);
    let model = |name| std::fs::read(Run::at(&place, name).file("model.safetensors")).unwrap();
    assert!(model("plain") == model("defended"), "to the bit: {said}");
    assert!(
        !said.contains("Left out") && !said.contains("quarantine"),
        "{said}"
    );
}

#[test]
fn who_reports_perfect_scores_is_left_out_of_evaluations_and_that_is_said() {
    let place = Place::new("lying");
    // Of few patients it could not be told.
    let many = "data.devices=1000";
    let lying = ["attack.hospitals=2", "attack.kind=metrics", many];
    let honest = train(&place, "honest", &[many]).0;
    let believed = train(&place, "believed", &lying).0;
    let settings = [&lying[..], &DEFENCES].concat();
    let (auc, said) = train(&place, "defended", &settings);
    assert!(believed > honest + 0.005, "{believed} and {honest}");
    assert!((auc - honest).abs() < 0.02, "{auc} and {honest}");
    says(&said, &["implausible", "of 2 groups"]);
    let last = Run::at(&place, "defended").metrics().pop().unwrap();
    let without = last["without"].as_array().unwrap();
    assert_eq!(without.len(), 2, "{last}");
    assert!(without.iter().all(|group| group["reason"] == "implausible"));
}

#[test]
fn a_run_with_hostile_parties_that_is_resumed_is_the_same() {
    let place = Place::new("resumed-attack");
    let settings = [
        &[
            "attack.devices=0.1",
            "attack.kind=scale",
            "train.iterations=200",
        ][..],
        &DEFENCES,
    ]
    .concat();
    let mut args = vec!["train", "--out", "whole"];
    settings.iter().for_each(|s| args.extend(["--set", s]));
    place.succeeds(&args);
    let whole = Run::at(&place, "whole");
    // A run that ends early and is given more goes through what is saved of the conduct of parties.
    args[2] = "short";
    args.extend(["--set", "train.iterations=100"]);
    place.succeeds(&args);
    place.succeeds(&[
        "train",
        "--resume",
        "short",
        "--set",
        "train.iterations=200",
    ]);
    let resumed = Run::at(&place, "short");
    for file in [
        "model.safetensors",
        "metrics.jsonl",
        "left-out.jsonl",
        "ledger.csv",
    ] {
        let read = |run: &Run| std::fs::read(run.file(file)).unwrap();
        assert!(read(&whole) == read(&resumed), "{file} differs");
    }
}

#[test]
fn a_backdoor_is_measured_with_its_mark_and_without() {
    let place = Place::new("backdoor");
    let settings = ["attack.devices=0.3", "attack.kind=backdoor"];
    let (_, said) = train(&place, "backdoor", &settings);
    says(
        &said,
        &["Backdoor", "% of marked test samples", "without the mark"],
    );
    let (_, said) = train(&place, "none", &[]);
    assert!(!said.contains("Backdoor"));
}

#[test]
fn an_attack_without_anybody_and_in_a_deployment_is_refused() {
    let place = Place::new("nobody");
    place.refuses(
        &["train", "--set", "attack.kind=scale"],
        &["nobody is hostile"],
    );
    place.refuses(
        &[
            "up",
            "--set",
            "attack.kind=scale",
            "--set",
            "attack.devices=0.1",
        ],
        &["[attack] is for simulations"],
    );
}

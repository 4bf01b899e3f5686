//! What cannot be compared, said before anything is written.

use crate::common::{Place, real_data, says, text, words};

#[test]
fn settings_that_cannot_be_are_named() {
    let place = Place::new("cmp-settings");
    let cases: &[(&str, &[&str])] = &[
        (
            "compare --algorithms hsdg",
            &["--algorithms hsdg", "did you mean \"hsgd\"?"],
        ),
        (
            "compare --algorithms hsgd,",
            &["--algorithms", "expected one of"],
        ),
        ("compare nonsense", &["no experiment `nonsense`"]),
        (
            "compare --set train.local_intervall=1",
            &["did you mean `train.local_interval`?"],
        ),
        (
            "compare --target acuracy=0.9",
            &["--target acuracy=0.9", "did you mean \"accuracy\"?"],
        ),
        ("compare --target auc", &["--target auc", "METRIC=VALUE"]),
        (
            "compare --target auc=1.5",
            &["--target auc=1.5", "at most 1"],
        ),
        ("compare --target auc=0", &["--target auc=0", "above 0"]),
        ("compare --target auc=NaN", &["--target auc=NaN"]),
        ("compare --target loss=-1", &["--target loss=-1", "above 0"]),
        ("compare --target loss=inf", &["--target loss=inf"]),
        (
            "compare --target f1=high",
            &["--target f1=high", "not a number"],
        ),
        ("compare --seeds 0", &["--seeds", "1..=10000"]),
        ("compare --seeds 10001", &["--seeds", "1..=10000"]),
        ("compare --seeds 99999999999999999999", &["--seeds"]),
        (
            "compare --learning-rates 0",
            &["--learning-rates 0", "above 0"],
        ),
        (
            "compare --learning-rates 0.1,NaN",
            &["--learning-rates NaN", "above 0"],
        ),
        (
            "compare --learning-rates=-0.1",
            &["--learning-rates -0.1", "above 0"],
        ),
        ("compare --learning-rates inf", &["--learning-rates inf"]),
        ("compare --learning-rates 0.1,,0.2", &["--learning-rates"]),
        ("compare --threads 0", &["--threads"]),
        ("compare --simd abacus", &["--simd abacus", "plain"]),
        ("sweep", &["--over"]),
        (
            "sweep --over train.local_interval",
            &["--over train.local_interval", "KEY=VALUE"],
        ),
        (
            "sweep --over train.local_interval=",
            &["variant local_interval="],
        ),
        (
            "sweep --over train.lokal=1,2",
            &["variant lokal=1", "unknown key `train.lokal`"],
        ),
        ("sweep --over seed=1,2", &["--over seed", "--seeds"]),
        (
            "sweep --over train.local_interval=1 --over train.local_interval=5",
            &["--over train.local_interval is given twice"],
        ),
        (
            "sweep --over train.local_interval=1,2,4,5",
            &[
                "variant local_interval=4",
                "is not a multiple of train.local_interval = 4",
                "local_interval = 2 or 5",
            ],
        ),
        (
            "sweep --over train.local_interval=2,5 --over train.global_interval=10,12 \
                 --set train.iterations=60",
            &["variant local_interval=5 global_interval=12"],
        ),
        (
            "sweep --over train.global_interval=10,15",
            &[
                "variant global_interval=15: train.iterations = ",
                "not a multiple of train.global_interval = 15",
            ],
        ),
        (
            "sweep --over train.local_interval=5,2,5",
            &["variant local_interval=5 is given twice"],
        ),
        (
            "sweep --over train.learning_rate=0.1,0.10",
            &["learning_rate=0.1 and learning_rate=0.10 are the same"],
        ),
        (
            "sweep --over train.learning_rate=0.1,0.2 --learning-rates 0.3",
            &["--over train.learning_rate and --learning-rates"],
        ),
        (
            "reproduce table9",
            &["table9", "did you mean \"table", "\"all\""],
        ),
        (
            "reproduce fig4 --data ers",
            &["--data ers", "did you mean \"esr\"?"],
        ),
        (
            "reproduce fig4 --data esr --intervals 0",
            &["--intervals 0", "at least 1"],
        ),
        ("reproduce fig4 --data esr --seeds 0", &["--seeds"]),
        (
            "reproduce fig4",
            &[
                "no data set is available",
                "selvedge data fetch",
                "--data-dir",
            ],
        ),
        (
            "reproduce fig4 --data esr",
            &[
                "SELVEDGE_DATA or --data-dir",
                "esr/Epileptic Seizure Recognition.csv",
            ],
        ),
        (
            "reproduce fig4 --data esr --data-dir .",
            &["no ESR file", "esr/Epileptic Seizure Recognition.csv"],
        ),
        (
            "reproduce fig4 --data esr --data-dir none",
            &["--data-dir none", "no such folder"],
        ),
        (
            "reproduce fig8 --data esr --set train.local_interval=5",
            &["--set train.local_interval", "tables and figures fix"],
        ),
        // The first of two would be right.
        (
            "reproduce fig4 --data esr --intervals 2,7 --set train.iterations=60",
            &["train.iterations = 60 is not a multiple of train.global_interval = 7"],
        ),
    ];
    for (args, parts) in cases {
        place.refuses(&words(&format!("{args} --out out")), parts);
        assert!(!place.join("out").exists(), "{args:?} left something");
    }
}

/// What somebody else wrote under a name of ours is not replaced, and nothing is trained first.
#[test]
fn a_reproduction_replaces_only_what_one_wrote() {
    let place = Place::new("rep-others");
    for name in ["reproduction.md", "reproduction.json"] {
        place.write(&format!("notes/{name}"), "my notes");
        let args = words("reproduce fig6 --data esr --set data.set=synthetic-esr --out notes");
        place.refuses(&args, &["--out", name, "a reproduction"]);
        let kept = std::fs::read_to_string(place.join(format!("notes/{name}"))).unwrap();
        assert_eq!(kept, "my notes");
        assert!(!place.join("notes/esr-1").exists());
        std::fs::remove_file(place.join(format!("notes/{name}"))).unwrap();
    }
}

/// A demonstration of a data set must not stand under its name in tables.
#[test]
fn a_demonstration_is_not_reproduced_under_the_name_of_the_set() {
    let Some(data) = real_data("a_demonstration_is_not_reproduced_under_the_name_of_the_set")
    else {
        return;
    };
    let place = Place::new("rep-demo");
    let args = [
        "reproduce",
        "fig4",
        "--data",
        "mimic3",
        "--data-dir",
        text(&data),
    ];
    place.refuses(
        &args,
        &["mimic3", "training samples are too few for MIMIC-III"],
    );
}

/// A file that is there but cannot be read is not the same as one that is missing.
#[test]
fn a_damaged_data_set_is_said_to_be_so() {
    let place = Place::new("rep-damaged");
    place.write(
        "data/esr/Epileptic Seizure Recognition.csv",
        "X1,X2,y\n1,2,3\n",
    );
    let ran = place.refuses(
        &["reproduce", "fig4", "--data-dir", "data"],
        &["no data set is available"],
    );
    says(
        &ran.stderr,
        &["note: esr: ", "Epileptic Seizure Recognition.csv"],
    );
}

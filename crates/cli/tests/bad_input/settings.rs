//! Experiments and options that cannot work.

use crate::common::run::Run;
use crate::common::{Place, Ran, words};

#[track_caller]
fn refuses_set(place: &Place, set: &[&str], parts: &[&str]) -> Ran {
    let mut args = vec!["train"];
    args.extend(set.iter().flat_map(|s| ["--set", s]));
    place.refuses(&args, parts)
}

/// An experiment file of this text is refused.
#[track_caller]
fn refuses_text(place: &Place, text: impl AsRef<[u8]>, parts: &[&str]) {
    place.write("my.toml", text);
    for command in [
        &["train", "my.toml"][..],
        &["train", "my.toml", "--out", "run"],
        &["train", "my.toml", "--seeds", "2"],
        &["data", "inspect", "my.toml"],
    ] {
        place.refuses(command, parts);
    }
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
    let place = Place::new("unknown-key");
    let cases: [(&str, &[&str]); 5] = [
        (
            "seed = 1\n\n[train]\niteratons = 500\n",
            &[
                "my.toml",
                "line 4",
                "train.iteratons",
                "did you mean `train.iterations`?",
            ],
        ),
        (
            "[data]\nseed = 1\n",
            &["line 2", "`data.seed`", "did you mean `seed`?"],
        ),
        (
            "[wardrobe]\ndoors = 2\n",
            &["line 1", "wardrobe", "selvedge experiments --keys"],
        ),
        (
            "[model]\nhospital = [{ linear = { out = 4, bias = true } }]\n",
            &["line 2", "bias", "out"],
        ),
        (
            "[model]\nhospital = [{ lstmm = { hidden = 4 } }]\n",
            &["line 2", "lstmm", "lstm"],
        ),
    ];
    for (text, parts) in cases {
        refuses_text(&place, text, parts);
    }
    for (set, part) in [
        ("train.iteratons=500", "did you mean `train.iterations`?"),
        ("train.iterations", "key=value"),
    ] {
        refuses_set(&place, &[set], &[&format!("--set {set}"), part]);
    }
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_what_is_expected() {
    let place = Place::new("types");
    for (set, part) in [
        ("train.iterations=many", "many"),
        ("train.iterations=-5", "-5"),
        ("train.iterations=2.5", "2.5"),
        ("seed=x", "\"x\""),
        ("time.shared_uplink=perhaps", "perhaps"),
        ("data.features=[1, 2, 3]", "[32, 32]"),
        ("data.features=7", "[4, 3]"),
        ("train.class_weights=heavy", "balanced"),
        ("train.broadcast=everybody", "selected"),
    ] {
        refuses_set(&place, &[set], &["--set", set, part]);
    }
    refuses_text(&place, "seed = \n", &["my.toml", "line 1"]);
    refuses_text(&place, "[train\niterations = 5\n", &["my.toml", "line 1"]);
    refuses_text(
        &place,
        "seed = 1\nseed = 2\n",
        &["my.toml", "line 2", "duplicate"],
    );
}

#[test]
fn a_run_that_cannot_be_steered_is_refused_with_what_can() {
    let place = Place::new("steered");
    refuses_set(
        &place,
        &["train.adaptive=best"],
        &[
            "--set train.adaptive=best",
            "`best`",
            "`off`",
            "`bound`",
            "`gain`",
        ],
    );
    for algorithm in ["jfl", "tdcd", "centralised", "fedavg"] {
        let set = format!("train.algorithm={algorithm}");
        refuses_set(
            &place,
            &[&set, "train.adaptive=gain"],
            &[
                "--set train.adaptive=gain",
                algorithm,
                "hsgd and c-hsgd",
                "use \"off\"",
            ],
        );
    }
    for mode in ["gain", "bound"] {
        let set = format!("train.adaptive={mode}");
        refuses_set(
            &place,
            &[&set, "train.halve_every=100"],
            &["--set train.halve_every=100", "train.adaptive", "use 0"],
        );
    }
    refuses_text(
        &place,
        "[train]\nadaptive = \"gains\"\n",
        &["my.toml", "line 2", "gains", "`gain`"],
    );
}

#[test]
fn intervals_that_do_not_divide_are_refused_with_some_that_do() {
    let place = Place::new("intervals");
    refuses_set(
        &place,
        &["train.local_interval=3"],
        &[
            "train.local_interval = 3",
            "train.global_interval = 10",
            "use train.local_interval = 2 or 5",
        ],
    );
    refuses_set(
        &place,
        &["train.iterations=1005"],
        &[
            "train.iterations = 1005",
            "train.global_interval = 10",
            "1000 or 1010",
        ],
    );
    refuses_text(
        &place,
        "[train]\niterations = 100\nglobal_interval = 20\nlocal_interval = 8\n",
        &["line 4", "train.local_interval = 8", "5 or 10"],
    );
    for key in ["iterations", "global_interval", "local_interval"] {
        let set = format!("train.{key}=0");
        refuses_set(&place, &[&set], &[&set, "at least 1"]);
    }
}

#[test]
fn shares_and_rates_outside_their_range_are_refused() {
    let place = Place::new("ranges");
    for value in ["0", "2", "nan", "-0.1", "inf"] {
        let set = format!("train.participation={value}");
        refuses_set(
            &place,
            &[&set],
            &[&set, "train.participation =", "at most 1"],
        );
    }
    for value in ["0", "-1", "nan", "inf"] {
        let set = format!("train.learning_rate={value}");
        refuses_set(&place, &[&set], &[&set, "above 0"]);
    }
    for set in [
        "data.test=1",
        "data.test=-0.1",
        "data.validation=1.5",
        "data.test=nan",
    ] {
        let (key, value) = set.split_once('=').unwrap();
        let named = format!("{key} = {}", value.replace("nan", "NaN"));
        refuses_set(&place, &[set], &[&named, "less than 1"]);
    }
    refuses_set(
        &place,
        &["train.weight_decay=-1"],
        &["train.weight_decay = -1", "at least 0"],
    );
    refuses_set(
        &place,
        &["data.noise=nan"],
        &["data.noise = NaN", "must be 0 to"],
    );
    refuses_set(&place, &["stop.auc=1.2"], &["stop.auc = 1.2", "at most 1"]);
    refuses_set(&place, &["stop.bytes=0"], &["stop.bytes = 0", "above 0"]);
    refuses_set(
        &place,
        &["time.mobile_up=0"],
        &["time.mobile_up = 0", "must be 1 to"],
    );
    refuses_set(&place, &["data.classes=1"], &["data.classes = 1", "2 to"]);
    refuses_set(
        &place,
        &["data.features=[0, 4]"],
        &["data.features = [0, 4]", "at least 1"],
    );
    refuses_set(
        &place,
        &["data.features=0"],
        &["data.features = [0, 0]", "at least 1"],
    );
    refuses_set(
        &place,
        &["train.class_weights=[1.0]"],
        &["1 factors", "2 classes"],
    );
    refuses_set(&place, &["train.algorithm=hsdg"], &["\"hsdg\"", "hsgd"]);
    refuses_set(
        &place,
        &["data.set=syntetic"],
        &["\"syntetic\"", "did you mean \"synthetic\"?"],
    );
}

#[test]
fn too_much_participation_is_not_called_too_little() {
    let place = Place::new("participation");
    let ran = refuses_set(&place, &["train.participation=2"], &["at most 1"]);
    assert!(!ran.stderr.contains("gives no device"), "{}", ran.stderr);
}

/// Layers that do not fit, what each is given, and what would be right.
const LAYERS: [(&str, &[&str]); 12] = [
    (
        "model.hospital=[{ conv1d = { out = 4, size = 3 } }]",
        &["model.hospital", "conv1d", "[16]", "window"],
    ),
    (
        "model.device=[{ lstm = { hidden = 4 } }]",
        &["model.device", "lstm", "[16]", "window"],
    ),
    (
        "model.device=[{ gru = { hidden = 4 } }]",
        &["model.device", "gru", "[16]", "window"],
    ),
    (
        "model.hospital=[{ window = { size = 8 } }, { conv1d = { out = 4, size = 3 } }]",
        &[
            "model.hospital",
            "layer 1",
            "size = 3",
            "2 steps",
            "at most 2",
        ],
    ),
    (
        "model.hospital=[{ window = { size = 4 } }, { linear = { out = 4 } }]",
        &["model.hospital", "layer 1", "linear", "[4, 4]", "flatten"],
    ),
    (
        "model.hospital=[{ window = { size = 8 } }, { maxpool = { size = 3 } }]",
        &["maxpool", "size = 3", "at most 2"],
    ),
    (
        "model.hospital=[{ conv2d = { out = 4, size = 3 } }]",
        &["conv2d", "[16]", "height"],
    ),
    (
        "model.hospital=[{ window = { size = 5000 } }, \"spectrum\"]",
        &["spectrum", "at most 2048 numbers", "[1, 5000]"],
    ),
    (
        "model.hospital=[{ pool = \"mean\" }]",
        &["pool", "[steps, features]", "[16]"],
    ),
    (
        "model.hospital=[{ window = { size = 4 } }, { lstm = { hidden = 4 } }, { gru = { hidden = 4 } }]",
        &["layer 2", "gru", "[4]", "sequence = true"],
    ),
    (
        "model.combined=[{ linear = { out = 3 } }]",
        &[
            "model.combined",
            "3 numbers",
            "2 classes",
            "{ linear = { out = 2 } }",
        ],
    ),
    (
        "model.hospital=[{ linear = { out = 0 } }]",
        &["linear", "out = 0", "at least 1"],
    ),
];

#[test]
fn layers_that_do_not_fit_are_named_with_what_they_are_given() {
    let place = Place::new("layers");
    for (set, parts) in LAYERS {
        refuses_set(&place, &[set], parts);
    }
    refuses_set(
        &place,
        &["model.device=[]"],
        &["model.device = []", "at least one"],
    );
    refuses_set(
        &place,
        &["model.device=[\"lstm\"]"],
        &["{ lstm = { hidden = 16 } }"],
    );
}

#[test]
fn a_layer_that_does_not_fit_is_complained_about_once() {
    let place = Place::new("once");
    for (set, parts) in LAYERS {
        let ran = refuses_set(&place, &[set], parts);
        let said = ran.stderr.matches(parts[parts.len() - 1]).count();
        assert_eq!(said, 1, "{}", ran.stderr);
    }
}

#[test]
fn an_experiment_that_is_not_there_or_not_text_is_named() {
    let place = Place::new("no-experiment");
    place.refuses(&["train", "my.toml"], &["my.toml", "no such file"]);
    place.refuses(
        &["train", "synthetc"],
        &["`synthetc`", "did you mean `synthetic`?"],
    );
    refuses_text(&place, b"seed = 1 # \xff\xfe\n", &["my.toml", "UTF-8"]);
    refuses_text(&place, b"\x1f\x8b\x08\x00garbage\x00\xff", &["my.toml"]);
    place.write("folder/readme.txt", "not a run");
    place.refuses(&["train", "folder"], &["folder", "manifest.json"]);
}

#[test]
fn a_folder_that_is_called_like_an_experiment_does_not_hide_it() {
    let place = Place::new("hidden-preset");
    // As in a data folder, where the set `esr` lies in `esr/`.
    place.write("synthetic/values.csv", "1,2,3\n");
    place.succeeds(&words(
        "train synthetic --set train.iterations=10 --out run",
    ));
    assert!(Run::at(&place, "run").file("model.safetensors").is_file());
}

#[test]
fn options_outside_their_range_are_refused() {
    let place = Place::new("options");
    place.refuses(&["train", "--threads", "0"], &["'0'", "--threads", "1..="]);
    place.refuses(&["train", "--threads", "-1"], &["-1"]);
    place.refuses(&["train", "--seeds", "0"], &["'0'", "--seeds"]);
    place.refuses(&["train", "--simd", "sse"], &["--simd sse", "plain"]);
    place.refuses(
        &["train", "--out", "a", "--resume", "b"],
        &["--out", "--resume"],
    );
    place.refuses(
        &["train", "--resume", "b", "--set", "seed=1"],
        &["there is no run in b"],
    );
    place.refuses(&["evaluate"], &["<RUN>"]);
    place.refuses(&["data", "export"], &["--out"]);
}

#[test]
fn optimisers_and_schedules_that_do_not_fit() {
    let place = Place::new("optimisers");
    let cases: [(&[&str], &[&str]); 13] = [
        (
            &["optimiser.hospital=adan"],
            &["optimiser.hospital=adan", "`adam`"],
        ),
        (
            &["optimiser.edge=adamw"],
            &["optimiser.edge=adamw", "`momentum`, `adam`"],
        ),
        (
            &["optimiser.cloud_rate=0"],
            &["optimiser.cloud_rate = 0", "above 0"],
        ),
        (
            &["optimiser.momentum=1"],
            &["optimiser.momentum = 1", "less than 1"],
        ),
        (
            &["optimiser.epsilon=0"],
            &["optimiser.epsilon = 0", "at least"],
        ),
        (
            &["optimiser.hospital=adamw"],
            &["adamw", "train.weight_decay", "\"adam\""],
        ),
        (
            &["train.algorithm=jfl", "optimiser.hospital=adam"],
            &["--set optimiser.hospital=adam", "jfl", "\"sgd\""],
        ),
        (
            &["train.algorithm=hospital-only", "optimiser.edge=adam"],
            &["optimiser.edge", "hospital-only", "\"sgd\""],
        ),
        (
            &["train.algorithm=tdcd", "optimiser.cloud=momentum"],
            &["optimiser.cloud", "tdcd", "\"sgd\""],
        ),
        (
            &["train.adaptive=gain", "optimiser.device_clip=1"],
            &["train.adaptive", "leave out [optimiser]"],
        ),
        (
            &["train.adaptive=gain", "train.schedule=cosine"],
            &["train.adaptive chooses η", "train.schedule"],
        ),
        (
            &["train.schedule=cosine", "train.halve_every=100"],
            &["--set train.halve_every=100", "cosine", "use 0"],
        ),
        (
            &["train.warm_up=1000", "train.iterations=1000"],
            &["train.warm_up = 1000", "less than", "1000"],
        ),
    ];
    for (set, says) in cases {
        refuses_set(&place, set, says);
    }
    place.refuses(
        &[
            "train",
            "--set",
            "stop.patience=100",
            "--set",
            "data.validation=0",
        ],
        &["stop.patience", "data.validation above 0"],
    );
    for (set, key) in [
        ("optimiser.cloud=adam", "[optimiser]"),
        ("train.warm_up=10", "train.warm_up"),
        ("train.schedule=cosine", "train.schedule"),
    ] {
        let tune = ["tune", "--target", "auc=0.9", "--set", set];
        place.refuses(&tune, &["plain gradient descent", key]);
    }
}

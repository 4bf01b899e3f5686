use super::*;
use crate::metrics::Metric;

fn error(text: &str) -> String {
    Experiment::parse(text, &[]).unwrap_err().to_string()
}

/// Dotted keys of a JSON object; lists and plain values are leaves.
fn leaves(value: &serde_json::Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let path = if prefix.is_empty() {
                    key.clone()
                } else {
                    format!("{prefix}.{key}")
                };
                leaves(value, &path, found);
            }
        }
        _ => found.push(prefix.into()),
    }
}

#[test]
fn the_table_of_keys_is_the_keys_there_are() {
    let mut experiment = Experiment::parse("", &[]).unwrap();
    let some = Some(0.5);
    experiment.train.raw_bytes = Some(1);
    experiment.train.adaptive = Adaptive::Gain;
    let compression = &mut experiment.compression;
    for codec in [
        &mut compression.theta0,
        &mut compression.zeta1,
        &mut compression.zeta2,
    ] {
        *codec = Some("none".into());
    }
    let stop = &mut experiment.stop;
    Metric::targets().for_each(|metric| stop.set_target(metric.name, 0.5));
    (stop.bytes, stop.seconds, stop.patience) = (some, some, Some(5));
    let train = &mut experiment.train;
    (train.schedule, train.warm_up) = (Fall::Cosine, 1);
    train.combined_weight_decay = 0.5;
    (train.loss, train.huber, train.quantile) = (crate::experiment::LossName::Huber, 2.0, 0.25);
    let optimiser = &mut experiment.optimiser;
    optimiser.hospital_rate = some;
    (optimiser.edge_rate, optimiser.cloud_rate) = (some, some);
    // A table that says nothing is not written.
    experiment.data.table.positive = "yes".into();
    experiment.data.table.event = "died".into();
    let data = &mut experiment.data;
    (data.outcome, data.intervals, data.horizon) = ("survival".into(), 5, some);
    data.hidden = 0.5;
    (data.derived, data.hours, data.every) = (vec!["mean".into()], 2, 3);
    data.scaling = "log".into();
    (experiment.defence.quarantine, experiment.attack.from) = (1, 1);
    let mut found = Vec::new();
    leaves(&serde_json::to_value(&experiment).unwrap(), "", &mut found);
    let mut listed: Vec<_> = KEYS.iter().map(|k| k.path.to_owned()).collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn algorithms_and_targets_are_all_there_are() {
    let of = |path: &str| KEYS.iter().find(|key| key.path == path).unwrap().values;
    let names = Algorithm::ALL.map(Algorithm::name);
    assert_eq!(of("train.algorithm").to_string(), names.join(" | "));
    for metric in Metric::targets() {
        assert_eq!(
            metric.stop.unwrap().values,
            of(&format!("stop.{}", metric.name))
        );
    }
}

#[test]
fn an_identity_has_what_is_not_as_usual_and_gives_the_experiment_back() {
    let plain = Experiment::parse("", &[]).unwrap();
    let paths = |identity: &str| -> Vec<String> {
        let path = |line: &str| line.split(" = ").next().unwrap().to_owned();
        identity.lines().map(path).collect()
    };
    let follow = [
        "train.evaluate_every",
        "model.hospital",
        "model.device",
        "model.combined",
        "time.compute_seconds",
    ];
    assert_eq!(paths(&plain.identity()), follow);
    let text = "seed = 7\n[data]\ngroups = 10\nfeatures = [[12, 8], [1, 6, 6]]\nnoise = 0.25\nsizes = [1, 2.5]\n\
        [data.table]\nid = \"a \\\"b\\\"\"\nmissing = \"mean\"\ncategorical = { sex = [\"f\", \"m\"] }\n\
        [train]\nadaptive = \"gain\"\nclass_weights = [0.1, 2]\nraw_bytes = 5\n\
        [compression]\nzeta1 = \"dither:16\"\n[time]\ncompute_seconds = 0.05\n[stop]\nf1 = 0.5\nbytes = 1e9";
    let experiment = Experiment::parse(text, &[]).unwrap();
    let identity = experiment.identity();
    assert_eq!(Experiment::parse(&identity, &[]).unwrap(), experiment);
    // Letter by letter: run numbers are made of it, and parties of other versions must find the same.
    let letters = "seed = 7\ndata.sizes = [1.0, 2.5]\ndata.features = [[12, 8], [1, 6, 6]]\ndata.noise = 0.25\n\
        data.table.id = 'a \"b\"'\n";
    assert_eq!(identity[..letters.len()], *letters);
    let mut set = paths(&identity);
    set.retain(|path| !follow.contains(&path.as_str()));
    let changed = "seed data.sizes data.features data.noise data.table.id data.table.categorical train.adaptive \
        train.class_weights train.raw_bytes compression.zeta1 stop.f1 stop.bytes";
    assert_eq!(set.join(" "), changed);
    let largest = Experiment {
        seed: u64::MAX,
        ..plain
    };
    assert!(largest.identity().contains(&u64::MAX.to_string()));
}

#[test]
fn an_experiment_survives_both_formats() {
    let text =
        "seed = 7\n[data]\nfeatures = 10\n[train]\nclass_weights = [1, 2]\n[stop]\nauc = 0.9";
    let experiment = Experiment::parse(text, &[]).unwrap();
    assert_eq!(
        Experiment::parse(&experiment.to_toml(), &[]).unwrap(),
        experiment
    );
    let json = serde_json::to_value(&experiment).unwrap();
    assert_eq!(Sets::GENERATED.from_json(&json).unwrap(), experiment);
}

#[test]
fn mistakes_are_named_with_line_value_and_remedy() {
    for (text, message) in [
        ("sed = 1", "line 1: unknown key `sed`: did you mean `seed`?"),
        (
            "[train]\n\nlocal_intervall = 1",
            "line 3: unknown key `train.local_intervall`: did you mean `train.local_interval`?",
        ),
        (
            "[data]\nseed = 1",
            "line 2: unknown key `data.seed`: did you mean `seed`?",
        ),
        (
            "[trian]\niterations = 1",
            "line 1: unknown key `trian`: did you mean `train`?",
        ),
        (
            "[train]\nlocal_interval = 3",
            "line 2: train.global_interval = 10 is not a multiple of train.local_interval = 3: use train.local_interval = 2 or 5",
        ),
        (
            "[train]\niterations = 15",
            "line 2: train.iterations = 15 is not a multiple of train.global_interval = 10: use 10 or 20",
        ),
        (
            "[train]\nparticipation = 0.0",
            "line 2: train.participation = 0 must be above 0 and at most 1",
        ),
        (
            "[train]\nlearning_rate = -1",
            "line 2: train.learning_rate = -1 must be above 0",
        ),
        (
            "[model]\ndevice = []",
            "line 2: model.device = [] has no layers: give at least one, like [{ linear = { out = 16 } }]",
        ),
    ] {
        assert_eq!(error(text), message);
    }
    for (text, part) in [
        (
            "[train]\niterations = \"many\"",
            "line 2: invalid type: string \"many\", expected a whole number",
        ),
        (
            "[train]\niterations = -5",
            "line 2: invalid value: integer `-5`, expected a whole number",
        ),
        ("seed = ", "line 1"),
        (
            "[model]\ndevice = [{ lstmm = { hidden = 3 } }]",
            "line 2: unknown variant `lstmm`, expected one of `linear`",
        ),
        (
            "[model]\ndevice = [\"lstm\"]",
            "layer `lstm` needs its size: { lstm = { hidden = 16 } }",
        ),
        (
            "[data]\nfeatures = 7",
            "features = 7 cannot be halved: give both sides, like [4, 3]",
        ),
    ] {
        let message = error(text);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn layers_without_keys_have_a_short_and_a_long_form() {
    let device = |layers: &str| {
        let text = format!("[model]\ndevice = {layers}");
        Experiment::parse(&text, &[]).map(|e| e.to_toml())
    };
    let short = device("[\"relu\", \"maxpool\", \"flatten\"]").unwrap();
    let long = device("[{ relu = {} }, { maxpool = {} }, { flatten = {} }]").unwrap();
    assert_eq!(short, long);
    assert!(
        short.contains("device = [\"relu\", { maxpool = { size = 2 } }, \"flatten\"]"),
        "{short}"
    );
    // Keys of a layer that came later are not written where they are not set: old experiments stay what they were.
    let recurrent = |keys: &str| {
        let layers = format!(
            "[{{ lstm = {{ hidden = 3, sequence = true }} }}, {{ gru = {{ {keys} }} }}, {{ pool = \"max\" }}]"
        );
        device(&layers).unwrap()
    };
    let written = recurrent("hidden = 2, sequence = false, both_ways = false");
    assert_eq!(written, recurrent("hidden = 2"));
    assert_eq!(written.matches("sequence").count(), 1, "{written}");
    assert!(!written.contains("both_ways"), "{written}");
    assert!(recurrent("hidden = 2, both_ways = true").contains("both_ways = true"));
    for (layers, part) in [
        ("[\"pool\"]", "{ pool = \"mean\" }"),
        (
            "[{ pool = \"sum\" }]",
            "expected one of `mean`, `max`, `last`",
        ),
    ] {
        let wrong = device(layers).unwrap_err().to_string();
        assert!(wrong.contains(part), "{wrong}");
    }
    let wrong = device("[{ tanh = { out = 3 } }]").unwrap_err().to_string();
    assert!(wrong.contains("unknown field `out`"), "{wrong}");
}

#[test]
fn overrides_win_and_their_mistakes_name_them() {
    let set = |option: &str| Experiment::parse("[train]\niterations = 50", &[option.to_owned()]);
    assert_eq!(set("train.iterations=70").unwrap().train.iterations, 70);
    assert_eq!(set("data.set=synthetic").unwrap().data.set, "synthetic");
    assert_eq!(
        set("data.features = [3, 4]")
            .unwrap()
            .data
            .features
            .device
            .len(),
        4
    );
    let message = |option| set(option).unwrap_err().to_string();
    assert_eq!(
        message("train.iterations=15"),
        "--set train.iterations=15: train.iterations = 15 is not a multiple of train.global_interval = 10: use 10 or 20"
    );
    assert!(message("train.iterations=x").starts_with("--set train.iterations=x: invalid type"));
    assert!(message("iterations=5").contains("did you mean `train.iterations`?"));
    assert!(message("train=5").contains("`train` is a table, not a key"));
    assert!(message("train.iterations").contains("use key=value"));
}

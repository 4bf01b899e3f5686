//! What is deployed is what is simulated: model, metrics and ledger.

use crate::deployment::{FORTY_INTERVALS, Up, place_with_server, simulated};
use selvedge_core::experiment::DefenceSettings;

fn same(name: &str, experiment: &str, more: &[&str]) {
    let Some(place) = place_with_server(name) else {
        return;
    };
    let expected = simulated(&place, experiment, &[]);
    let ended = Up::start(&place, "up", more).ends();
    ended.is(&expected, name);
    ended.stays_within_bounds(name);
    let payload = ended.said["payload_bytes"].as_u64().unwrap();
    assert!(payload > 0 && !ended.said["servers"].as_array().unwrap().is_empty());
}

#[test]
fn hsgd_with_one_gateway_and_with_several() {
    same("up-hsgd", FORTY_INTERVALS, &[]);
    same("up-gateways", FORTY_INTERVALS, &["--gateways", "4"]);
}

#[test]
fn c_hsgd_with_codecs_everywhere_and_error_feedback() {
    let compressed = FORTY_INTERVALS.replace("[train]", "[train]\nalgorithm = \"c-hsgd\"")
        + "[compression]\ncodec = \"top-k:64\"\ndevice_download = \"dither:16\"\ndevice_upload = \"dither:4\"\nglobal_upload = \"top-k:64\"\nglobal_download = \"dither:16\"\n";
    same("up-c-hsgd", &compressed, &[]);
    same(
        "up-c-hsgd-copy",
        &(compressed + "theta0_feedback = true\n"),
        &[],
    );
}

/// With Adam at every tier, clipping, a cosine, and an end by patience. The experiment ends with `[train]`.
pub(crate) fn with_adam(experiment: &str) -> String {
    let adam = "schedule = \"cosine\"\nwarm_up = 6\nweight_decay = 0.01\n[optimiser]\nhospital = \"adamw\"\n\
        edge = \"adam\"\ncloud = \"adam\"\nhospital_clip = 0.5\ndevice_clip = 0.5\n[stop]\npatience = 48\n";
    experiment.to_owned() + adam
}

/// With momentum at every tier.
pub(crate) fn with_momentum(experiment: &str) -> String {
    let momentum = "[optimiser]\nhospital = \"momentum\"\nedge = \"momentum\"\ncloud = \"momentum\"\nmomentum = 0.5\n";
    experiment.to_owned() + momentum
}

/// With all that `provision` writes for a consortium.
pub(crate) fn defended() -> String {
    let defences = DefenceSettings::of_a_consortium();
    format!(
        "{FORTY_INTERVALS}[defence]\n{}",
        toml::to_string(&defences).unwrap()
    )
}

#[test]
fn with_the_defences_of_a_consortium() {
    same("up-defended", &defended(), &["--gateways", "2"]);
}

#[test]
fn adam_at_every_tier() {
    same("up-adam", &with_adam(FORTY_INTERVALS), &[]);
}

#[test]
fn an_adaptive_run() {
    let adaptive = FORTY_INTERVALS.replace("[train]", "[train]\nadaptive = \"gain\"");
    same("up-adaptive", &adaptive, &[]);
}

/// The same question of another kind, with a network that answers it.
pub(crate) fn asking(outcome: &str) -> String {
    FORTY_INTERVALS.replace("[data]", &format!("[data]\noutcome = \"{outcome}\""))
}

/// Three labels, of which some are unknown.
pub(crate) fn partly_known() -> String {
    asking("labels").replace("[train]", "hidden = 0.2\nclasses = 3\n[train]")
}

#[test]
fn labels_some_of_which_are_unknown() {
    same("up-labels", &partly_known(), &["--gateways", "2"]);
}

#[test]
fn a_quantity_and_survival() {
    let huber = asking("quantity").replace("[train]", "[train]\nloss = \"huber\"");
    same("up-quantity", &huber, &[]);
    let with_adam = asking("survival").replace(
        "[data]",
        "[optimiser]\ncloud = \"adam\"\n[data]\nintervals = 5",
    );
    same("up-survival", &with_adam, &["--gateways", "2"]);
}

#[test]
fn runs_that_end_at_a_target_or_a_budget() {
    same(
        "up-target",
        &format!("{FORTY_INTERVALS}[stop]\naccuracy = 0.6\n"),
        &[],
    );
    same(
        "up-budget",
        &format!("{FORTY_INTERVALS}[stop]\nbytes = 200e3\n"),
        &[],
    );
}

#[test]
fn ten_hospitals_of_real_patients() {
    let Some(data) = std::env::var_os("SELVEDGE_DATA") else {
        println!("skipped: SELVEDGE_DATA is not set");
        return;
    };
    let Some(place) = place_with_server("up-esr") else {
        return;
    };
    let data = data.to_string_lossy().into_owned();
    let with_data = ["--data-dir", &data];
    let experiment = include_str!("../../../../experiments/esr.toml")
        .replace("iterations = 3000", "iterations = 30");
    let expected = simulated(&place, &experiment, &with_data);
    let ended = Up::start(&place, "up", &with_data).ends();
    ended.is(&expected, "ESR");
    ended.stays_within_bounds("ESR");
}

#[test]
fn what_is_said_of_the_data_is_said_of_a_deployment_too() {
    let Some(place) = place_with_server("up-notes") else {
        return;
    };
    let table: String = (0..40)
        .map(|n| format!("p{n},{},{},{}\n", n % 7, n % 5, ["no", "yes"][n % 2]))
        .collect();
    place.write("t.csv", format!("id,lab,pulse,label\n{table}"));
    place.write(
        "t.toml",
        "[data]\nset = \"table\"\npath = \"t.csv\"\ngroups = 1\ntest = 0\n[data.table]\nid = \"id\"\nlabel = \"label\"\n\
         hospital = [\"lab\"]\ndevice = [\"pulse\"]\n[train]\niterations = 10\n",
    );
    let ran = place.succeeds(&["up", "t.toml", "--out", "up"]);
    assert!(
        ran.stderr.contains("no rows are held out for testing"),
        "{}",
        ran.stderr
    );
}

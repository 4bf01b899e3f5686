//! Experiments, and what is built of them.

use super::told;
use crate::SETS;
use crate::synthetic;
use selvedge_core::experiment::Experiment;
use selvedge_core::model::Architecture;
use selvedge_core::outcome::Kind;

pub(super) fn experiment(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        read(text, &[]);
    }
}

pub(super) fn overrides(bytes: &[u8]) {
    if let Some(options) = options(bytes) {
        read("[train]\niterations = 50", &options);
    }
}

/// The first lines, each an option of the command line.
pub(super) fn options(bytes: &[u8]) -> Option<Vec<String>> {
    let lines = str::from_utf8(bytes).ok()?.lines();
    Some(lines.take(8).map(str::to_owned).collect())
}

pub(super) fn experiment_json(bytes: &[u8]) {
    let Some(value) = told(serde_json::from_slice(bytes)) else {
        return;
    };
    if let Some(experiment) = told(SETS.from_json(&value)) {
        build(&experiment);
    }
}

/// What is read can be written, read again and built.
fn read(text: &str, options: &[String]) {
    let Some(experiment) = told(SETS.parse(text, options)) else {
        return;
    };
    let text = experiment.to_toml();
    let again = SETS.parse(&text, &[]).map(|again| again.to_toml());
    assert_eq!(again.as_ref(), Ok(&text));
    build(&experiment);
}

/// Sizes that cannot be held must be refused before anything is computed with them.
fn build(experiment: &Experiment) {
    let data = &experiment.data;
    if data.set != "synthetic" || told(synthetic::check(data)).is_none() {
        return;
    }
    let (hospital, device) = (data.features.hospital, data.features.device);
    let built = Architecture::new(
        &experiment.model,
        hospital,
        device,
        (Kind::Class, data.classes),
    );
    if let Some(architecture) = told(built) {
        architecture.widths();
        architecture.tensors();
        for network in architecture.parts() {
            network.cost();
            assert!(network.tape() >= network.output().len());
            network.prepared();
            network.scratch();
        }
    }
}

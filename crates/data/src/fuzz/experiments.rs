//! Experiments, and what is built of them.

use super::told;
use crate::SETS;
use crate::synthetic;
use selvedge_core::experiment::Experiment;
use selvedge_core::model::Architecture;

pub(super) fn experiment(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if let Some(experiment) = told(SETS.parse(text, &[])) {
        written_and_read_again(&experiment);
        build(&experiment);
    }
}

pub(super) fn overrides(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let options: Vec<String> = text.lines().take(8).map(str::to_owned).collect();
    if let Some(experiment) = told(SETS.parse("[train]\niterations = 50", &options)) {
        written_and_read_again(&experiment);
        build(&experiment);
    }
}

pub(super) fn experiment_json(bytes: &[u8]) {
    let Some(value) = told(serde_json::from_slice(bytes)) else {
        return;
    };
    if let Some(experiment) = told(SETS.from_json(&value)) {
        build(&experiment);
    }
}

fn written_and_read_again(experiment: &Experiment) {
    let text = experiment.to_toml();
    let again = SETS.parse(&text, &[]).map(|again| again.to_toml());
    assert_eq!(again.as_ref(), Ok(&text));
}

/// Sizes that cannot be held must be refused before anything is computed with them.
fn build(experiment: &Experiment) {
    let data = &experiment.data;
    if data.set != "synthetic" || told(synthetic::check(data)).is_none() {
        return;
    }
    let (hospital, device) = (data.features.hospital, data.features.device);
    let built = Architecture::new(&experiment.model, hospital, device, data.classes);
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

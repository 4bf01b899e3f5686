//! What an experiment is trained with that says nothing of how: a model and an optimiser that learn most tables well.
//!
//! What is here was chosen on thirteen tables of all outcomes, by validation: ARCHITECTURE.md has the measurements.

use super::{
    Algorithm, Averager, Experiment, Method, ModelSettings, OptimiserSettings, Seen, Usual,
};
use selvedge_nn::{LayerSpec, RecurrentSpec};

/// Who gives one of these keys, or any of `[optimiser]`, says how to train.
const SAY_HOW: [&str; 4] = [
    "train.learning_rate",
    "train.schedule",
    "train.halve_every",
    "train.adaptive",
];

/// The share of training rows that chooses the iteration.
const VALIDATION: f64 = 0.15;

/// Where nothing can be chosen, training ends before it learns by heart.
const ITERATIONS: [u64; 2] = [300, 3000];
const PATIENCE: u64 = 400;

/// About so many samples take part in an iteration, or so many of each group.
const BATCH: usize = 256;
const BATCH_OF_GROUP: usize = 16;

/// Round shares, so that a few patients more or less change nothing.
const SHARES: [f64; 16] = [
    1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5,
];

const RATE: f64 = 0.003;
const DEVICE_RATE: f64 = 0.5;
const DECAY: f64 = 0.01;
const UNITS: usize = 64;
const RECURRENT_UNITS: usize = 32;

/// Whether these keys leave open how to train.
pub(super) fn is_open(given: &[String]) -> bool {
    let says = |key: &String| SAY_HOW.contains(&key.as_str()) || key.starts_with("optimiser.");
    !given.iter().any(says)
}

/// The layers of a model of which nothing is given, for what was seen of both sides.
pub(super) fn fit(model: &mut ModelSettings, usual: &mut Usual, seen: Seen) {
    let tower = |series: bool| match series {
        true => vec![LayerSpec::Gru(RecurrentSpec::new(RECURRENT_UNITS))],
        false => vec![LayerSpec::Linear { out: UNITS }, LayerSpec::Tanh],
    };
    let [hospital, device] = seen.series.map(tower);
    (model.hospital, model.device) = (Some(hospital), Some(device));
    usual.combined = vec![LayerSpec::Linear { out: UNITS }, LayerSpec::Relu];
}

/// The share of the rows that makes a batch of so many: 1, 0.5, 0.2, 0.1 and so on.
fn share(batch: usize, rows: usize) -> f64 {
    let wanted = batch as f64 / rows.max(1) as f64;
    let enough = SHARES
        .into_iter()
        .take_while(|share| *share >= wanted / 1.5);
    enough.last().unwrap_or(1.0)
}

impl OptimiserSettings {
    /// Adam, wherever the algorithm has somebody who remembers.
    pub(super) fn learning(algorithm: Algorithm) -> Self {
        let mut own = OptimiserSettings::default();
        if algorithm.has_hospitals() {
            (own.hospital, own.hospital_rate) = (Method::AdamW, Some(RATE));
        }
        if algorithm.has_edges() {
            (own.edge, own.edge_rate) = (Averager::Adam, Some(RATE));
        }
        own
    }
}

impl Experiment {
    /// Fills in how to train, but for the keys that are given.
    pub(super) fn learn(&mut self, given: &[String], rows: Option<usize>) {
        let is_open = |key: &str| !given.iter().any(|given| given == key);
        let groups = self.data.groups;
        if is_open("data.validation") {
            self.data.validation = VALIDATION;
        }
        let chooses = self.data.validation > 0.0;
        let t = &mut self.train;
        if is_open("train.global_interval") && is_open("train.local_interval") {
            (t.global_interval, t.local_interval) = (5, 1);
        }
        if is_open("train.iterations") {
            t.iterations =
                ITERATIONS[usize::from(chooses)].next_multiple_of(t.global_interval.max(1));
        }
        if let (true, Some(rows)) = (is_open("train.participation"), rows) {
            t.participation = share(BATCH.max(BATCH_OF_GROUP * groups), rows);
        }
        for (key, decay) in [
            ("train.weight_decay", &mut t.weight_decay),
            ("train.combined_weight_decay", &mut t.combined_weight_decay),
        ] {
            if is_open(key) {
                *decay = DECAY;
            }
        }
        t.learning_rate = DEVICE_RATE;
        self.optimiser = OptimiserSettings::learning(t.algorithm);
        if is_open("train.evaluate_every") {
            t.evaluate_every = Some(10_u64.next_multiple_of(t.global_interval.max(1)));
        }
        if chooses && is_open("stop.patience") {
            self.stop.patience = Some(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_round_and_batches_about_right() {
        for rows in [1, 30, 300, 385, 1_000, 5_000, 19_125, 100_000, 3_000_000] {
            let share = share(256, rows);
            let batch = share * rows as f64;
            assert!(SHARES.contains(&share), "{rows}: {share}");
            let all = rows as f64;
            assert!(
                (256.0_f64.min(all) / 1.5..=400.0_f64.min(all).max(385.0)).contains(&batch),
                "{rows}: {batch}"
            );
        }
        assert_eq!(share(256, 0), 1.0);
    }

    #[test]
    fn who_says_how_to_train_is_left_alone() {
        let open =
            |keys: &[&str]| is_open(&keys.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(open(&[
            "data.set",
            "train.iterations",
            "model.device",
            "stop.auc"
        ]));
        assert!(!open(&["train.learning_rate"]));
        assert!(!open(&["optimiser.cloud"]));
        assert!(!open(&["train.adaptive"]));
    }
}

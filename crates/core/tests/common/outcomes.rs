//! Experiments that ask something else about the same samples than their class.

use super::{layers, pick};
use selvedge_core::dataset::{Dataset, Outcome};
use selvedge_core::experiment::{ClassWeights, Experiment, LossName};
use selvedge_core::outcome::{Kind, Target};
use selvedge_nn::random::Stream;

/// Draws what is learnt: half of the time a class, as before; or something else, with everything that changes its loss.
pub fn any(stream: &mut Stream, e: &mut Experiment, dataset: &mut Dataset) {
    let kinds = [
        Kind::Class,
        Kind::Class,
        Kind::Class,
        Kind::Labels,
        Kind::Quantity,
        Kind::Survival,
    ];
    let kind = pick(stream, &kinds);
    let (names, outcome) = match kind {
        Kind::Class => return,
        Kind::Labels => (vec!["a", "b", "c"], Outcome::Labels),
        Kind::Quantity => {
            let [mean, deviation] = [4.0, 2.5];
            (vec!["days"], Outcome::Quantity { mean, deviation })
        }
        Kind::Survival => {
            let ends = pick(stream, &[&[2.0, 3.5, 5.0, 9.0][..], &[4.0]]).to_vec();
            (vec!["died"], Outcome::Survival { ends })
        }
    };
    match kind {
        Kind::Labels => {
            let weights = [
                ClassWeights::None,
                ClassWeights::Balanced,
                ClassWeights::Listed(vec![0.5, 2.0, 1.0]),
            ];
            e.train.class_weights = weights[stream.below(3) as usize].clone();
        }
        Kind::Quantity => {
            let losses = [LossName::Squared, LossName::Huber, LossName::Quantile];
            e.train.loss = pick(stream, &losses);
            match e.train.loss {
                LossName::Squared => {}
                LossName::Huber => e.train.huber = pick(stream, &[0.3, 1.0]),
                LossName::Quantile => e.train.quantile = pick(stream, &[0.2, 0.5]),
            }
        }
        Kind::Class | Kind::Survival => {}
    }
    dataset.outcome = outcome;
    dataset.classes = names.into_iter().map(str::to_owned).collect();
    let outputs = dataset.outcome.outputs(&dataset.classes);
    let combined =
        format!(r#"[{{"linear": {{"out": 4}}}}, "tanh", {{"linear": {{"out": {outputs}}}}}]"#);
    e.model.combined = Some(layers(&combined));
    let groups = dataset.groups.iter_mut().map(|group| &mut group.samples);
    for samples in groups.chain([&mut dataset.validation, &mut dataset.test]) {
        let classes = std::mem::take(&mut samples.y);
        let mut y = dataset.outcome.targets(&dataset.classes);
        for class in classes.classes() {
            y.push(Target::Numbers(&known(stream, kind, *class)));
        }
        samples.y = y;
    }
}

/// What is known of a sample that is of this class.
fn known(stream: &mut Stream, kind: Kind, class: u32) -> Vec<f32> {
    let value = (4.0 + 2.0 * class as f32 + stream.normal()).max(0.0);
    match kind {
        Kind::Class => Vec::new(),
        Kind::Quantity => vec![value],
        Kind::Survival => vec![value, stream.below(2) as f32],
        Kind::Labels => [class as f32, 1.0 - class as f32, stream.below(2) as f32]
            .map(|yes| pick(stream, &[yes, yes, f32::NAN]))
            .to_vec(),
    }
}

/// A target that runs may reach, wherever it is defined.
pub fn target(dataset: &Dataset) -> (&'static str, f64) {
    match dataset.outcome.kind() {
        Kind::Class => ("accuracy", 0.6),
        Kind::Quantity => ("mae", 2.0),
        Kind::Labels | Kind::Survival => ("loss", 0.6),
    }
}

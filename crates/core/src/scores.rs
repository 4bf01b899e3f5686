//! Running a model over samples.

use crate::dataset::Samples;
use crate::experiment::Side;
use crate::metrics::{Layout, LossSum, Tally};
use crate::model::{Architecture, Model};
use crate::objective::{Objective, Targets};
use rayon::prelude::*;

/// Samples a task takes at once.
const BLOCK: usize = 64;

/// The predictions of a model for some samples.
#[derive(Clone, Debug)]
pub struct Predictions {
    /// The sum of all losses, without class weights and regulariser.
    pub losses: LossSum,
    /// What is said, row after row: see [`Objective::answer`].
    pub answers: Vec<f32>,
}

/// Buffers for one sample at a time.
struct Workspace {
    hospital: Vec<f32>,
    device: Vec<f32>,
    combined: Vec<f32>,
    embeddings: Vec<f32>,
    d_logits: Vec<f32>,
}

impl Workspace {
    fn new(architecture: &Architecture) -> Self {
        Workspace {
            hospital: vec![0.0; architecture.hospital.tape()],
            device: vec![0.0; architecture.device.tape()],
            combined: vec![0.0; architecture.combined.tape()],
            embeddings: vec![0.0; architecture.combined.input().len()],
            d_logits: vec![0.0; architecture.combined.output().len()],
        }
    }
}

/// What the model says, and its losses, for the given rows of `samples` (all of them without a list).
pub fn predict(
    (architecture, objective): (&Architecture, &dyn Objective),
    model: &Model,
    samples: &Samples,
    rows: Option<&[u32]>,
) -> Predictions {
    let outputs = architecture.combined.output().len();
    let count = rows.map_or(samples.len(), <[u32]>::len);
    let mut answers = vec![0.0; count * outputs];
    let losses = answers
        .par_chunks_mut(BLOCK * outputs)
        .enumerate()
        .map_init(
            || Workspace::new(architecture),
            |workspace, (block, out)| {
                let mut losses = LossSum::default();
                for (i, out) in out.chunks_exact_mut(outputs).enumerate() {
                    let at = block * BLOCK + i;
                    let row = rows.map_or(at, |rows| rows[at] as usize);
                    let networks = (architecture, objective);
                    losses.add(predict_one(networks, model, samples, row, workspace, out));
                }
                losses
            },
        )
        .reduce(LossSum::default, LossSum::merged);
    Predictions { losses, answers }
}

fn predict_one(
    (architecture, objective): (&Architecture, &dyn Objective),
    model: &Model,
    samples: &Samples,
    row: usize,
    workspace: &mut Workspace,
    out: &mut [f32],
) -> f64 {
    let (hospital, device) = (&architecture.hospital, &architecture.device);
    let x2 = &samples.x2[row * device.input().len()..][..device.input().len()];
    let (_, e2) = workspace.embeddings.split_at_mut(hospital.output().len());
    match architecture.blind_to {
        Some(Side::Device) => e2.fill(0.0),
        _ => e2.copy_from_slice(device.forward(&model.theta2, x2, &mut workspace.device)),
    }
    let networks = (architecture, objective);
    finish_one(networks, model, samples, row, workspace, out)
}

/// The hospital's half: from its own features and ζ2, which is in its place already.
fn finish_one(
    (architecture, objective): (&Architecture, &dyn Objective),
    model: &Model,
    samples: &Samples,
    row: usize,
    workspace: &mut Workspace,
    out: &mut [f32],
) -> f64 {
    let Architecture {
        hospital,
        combined,
        blind_to,
        ..
    } = architecture;
    let x1 = &samples.x1[row * hospital.input().len()..][..hospital.input().len()];
    let (e1, _) = workspace.embeddings.split_at_mut(hospital.output().len());
    match blind_to {
        Some(Side::Hospital) => e1.fill(0.0),
        _ => e1.copy_from_slice(hospital.forward(&model.theta1, x1, &mut workspace.hospital)),
    }
    let logits = combined.forward(
        &model.theta0,
        &workspace.embeddings,
        &mut workspace.combined,
    );
    let level = architecture.level();
    objective.answer(level, logits, out);
    let target = samples.y.at(row);
    objective.loss(level, logits, target, false, &mut workspace.d_logits)
}

/// What a hospital says of its own rows, given their ζ2, one after the other.
pub(crate) fn predict_embedded(
    (architecture, objective): (&Architecture, &dyn Objective),
    model: &Model,
    samples: &Samples,
    rows: &[u32],
    zeta2: &[f32],
) -> Predictions {
    let mut workspace = Workspace::new(architecture);
    let outputs = architecture.combined.output().len();
    let (d1, d2) = (
        architecture.hospital.output().len(),
        architecture.device.output().len(),
    );
    let mut answers = vec![0.0; rows.len() * outputs];
    let mut losses = LossSum::default();
    let each = rows.iter().zip(zeta2.chunks_exact(d2));
    for ((row, zeta2), out) in each.zip(answers.chunks_exact_mut(outputs)) {
        workspace.embeddings[d1..].copy_from_slice(zeta2);
        let (networks, row) = ((architecture, objective), *row as usize);
        losses.add(finish_one(
            networks,
            model,
            samples,
            row,
            &mut workspace,
            out,
        ));
    }
    Predictions { losses, answers }
}

/// Held-out samples as training judges them: their losses, and counts that give the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOut {
    /// Of all samples.
    pub losses: LossSum,
    /// Of what is said of them and what is known.
    pub tally: Tally,
}

impl HeldOut {
    /// No samples yet.
    pub fn new(objective: &dyn Objective) -> Self {
        HeldOut {
            losses: LossSum::default(),
            tally: Tally::new(objective.layout()),
        }
    }

    /// Adds samples with what a model said of them.
    pub(crate) fn add(&mut self, objective: &dyn Objective, said: &Predictions, targets: &Targets) {
        self.losses = self.losses.merged(said.losses);
        objective.count(&mut self.tally, &said.answers, targets);
    }
}

/// The scores of a model on the samples of some groups. Scores of groups add up to those of all, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// Over training samples.
    pub training: LossSum,
    /// Over validation samples.
    pub validation: HeldOut,
    /// Over test samples.
    pub test: HeldOut,
}

impl Scores {
    /// No samples yet.
    pub fn new(objective: &dyn Objective) -> Self {
        Scores {
            training: LossSum::default(),
            validation: HeldOut::new(objective),
            test: HeldOut::new(objective),
        }
    }

    /// Whether a group can have sent them that has so many training samples to measure and, if that is known, so many
    /// of validation and of the test.
    pub(crate) fn are_of(
        &self,
        layout: Layout,
        training: usize,
        held_out: Option<[usize; 2]>,
    ) -> bool {
        let parts = [&self.validation, &self.test];
        let known = held_out.map_or(parts.map(|part| part.losses.samples()), |counts| {
            counts.map(|count| count as u64)
        });
        let fits = |(part, samples): (&HeldOut, u64)| {
            let counts = part.losses.is_of(samples) && part.tally.layout() == layout;
            counts && part.tally.is_of(samples)
        };
        self.training.is_of(training as u64) && parts.into_iter().zip(known).all(fits)
    }

    /// What they would be if every answer had been right and certain.
    pub(crate) fn perfect(&self) -> Scores {
        let certain = |samples: u64| {
            let mut sum = LossSum::default();
            (0..samples).for_each(|_| sum.add(0.0));
            sum
        };
        let of = |part: &HeldOut| HeldOut {
            losses: certain(part.losses.samples()),
            tally: part.tally.perfect(),
        };
        Scores {
            training: certain(self.training.samples()),
            validation: of(&self.validation),
            test: of(&self.test),
        }
    }

    /// Adds those of another group.
    pub fn merge(&mut self, other: &Scores) {
        self.training = self.training.merged(other.training);
        let pairs = [
            (&mut self.validation, &other.validation),
            (&mut self.test, &other.test),
        ];
        for (ours, theirs) in pairs {
            ours.losses = ours.losses.merged(theirs.losses);
            ours.tally.merge(&theirs.tally);
        }
    }
}

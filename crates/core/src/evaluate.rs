//! Running a model over samples.

use crate::dataset::Samples;
use crate::experiment::Side;
use crate::metrics::{Metrics, Tally};
use crate::model::{Architecture, Model};
use rayon::prelude::*;
use selvedge_nn::loss;

/// Samples a task takes at once. Losses are summed in samples, then in blocks, so that no number of
/// threads changes the sum.
const BLOCK: usize = 64;

/// What a model says of some samples.
#[derive(Clone, Debug)]
pub struct Predictions {
    /// The sum of all losses, without class weights and regulariser.
    pub loss_sum: f64,
    /// Probabilities, row after row.
    pub probabilities: Vec<f32>,
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

/// The model's probabilities and losses for the given rows of `samples` (all of them without a list).
pub fn predict(
    architecture: &Architecture,
    model: &Model,
    samples: &Samples,
    rows: Option<&[u32]>,
) -> Predictions {
    let classes = architecture.combined.output().len();
    let count = rows.map_or(samples.len(), <[u32]>::len);
    let mut probabilities = vec![0.0; count * classes];
    let losses: Vec<f64> = probabilities
        .par_chunks_mut(BLOCK * classes)
        .enumerate()
        .map_init(
            || Workspace::new(architecture),
            |workspace, (block, out)| {
                let mut sum = 0.0;
                for (i, out) in out.chunks_exact_mut(classes).enumerate() {
                    let at = block * BLOCK + i;
                    let row = rows.map_or(at, |rows| rows[at] as usize);
                    sum += predict_one(architecture, model, samples, row, workspace, out);
                }
                sum
            },
        )
        .collect();
    Predictions {
        loss_sum: losses.iter().sum(),
        probabilities,
    }
}

fn predict_one(
    architecture: &Architecture,
    model: &Model,
    samples: &Samples,
    row: usize,
    workspace: &mut Workspace,
    out: &mut [f32],
) -> f64 {
    let Architecture {
        hospital,
        device,
        combined,
        blind_to,
    } = architecture;
    let (len1, len2) = (hospital.input().len(), device.input().len());
    let x1 = &samples.x1[row * len1..][..len1];
    let x2 = &samples.x2[row * len2..][..len2];
    let (e1, e2) = workspace.embeddings.split_at_mut(hospital.output().len());
    match blind_to {
        Some(Side::Hospital) => e1.fill(0.0),
        _ => e1.copy_from_slice(hospital.forward(&model.theta1, x1, &mut workspace.hospital)),
    }
    match blind_to {
        Some(Side::Device) => e2.fill(0.0),
        _ => e2.copy_from_slice(device.forward(&model.theta2, x2, &mut workspace.device)),
    }
    let logits = combined.forward(
        &model.theta0,
        &workspace.embeddings,
        &mut workspace.combined,
    );
    let level = architecture.level();
    loss::softmax(level, logits, out);
    loss::cross_entropy(level, logits, samples.y[row], 1.0, &mut workspace.d_logits)
}

/// The mean loss and the metrics of a model on samples, as training reports them.
pub fn score(architecture: &Architecture, model: &Model, samples: &Samples) -> (f64, Metrics) {
    let predictions = predict(architecture, model, samples, None);
    let mut tally = Tally::new(architecture.combined.output().len());
    tally.add(&predictions.probabilities, &samples.y);
    (predictions.loss_sum / samples.len() as f64, tally.metrics())
}

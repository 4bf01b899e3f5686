//! The search for the likeliest correction: which ones to look at next, given how those before did.

use super::{Calibration, Sums};
use crate::metrics::Layout;
use crate::role::wire::{Reader, Wire, WireError, fields};

/// No search asks more often: five to ten times are usual.
pub const MOST_QUESTIONS: usize = 50;

/// How much of a step is tried: far away the parabola is not the function. All at once, since an answer may come from
/// far.
const SHARES: [f64; 4] = [1.0, 0.25, 0.0625, 0.015625];

/// The most corrections of one question.
pub const MOST_AT_ONCE: usize = SHARES.len();

/// Newton's method: from the best correction so far to the bottom of the parabola that touches the loss there, or less
/// far where that is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// What is asked about; nothing once the search is over.
    question: Vec<Calibration>,
    /// The best so far.
    best: Option<Best>,
    questions: u32,
}

fields!(Search {
    question,
    best,
    questions
});

#[derive(Clone, Debug, PartialEq)]
struct Best {
    calibration: Calibration,
    loss: f64,
    /// Against this way, and at most so much of it.
    step: Vec<f64>,
    share: f64,
}

fields!(Best {
    calibration,
    loss,
    step,
    share
});

impl Search {
    /// Begins with no correction; over at once where nothing can be corrected.
    pub fn new(layout: Layout) -> Self {
        Search {
            question: Calibration::none(layout).into_iter().collect(),
            best: None,
            questions: 0,
        }
    }

    /// The corrections of which the sums are wanted; nothing once the search is over.
    pub fn question(&self) -> Option<&[Calibration]> {
        (!self.question.is_empty()).then_some(&self.question)
    }

    /// The sums of the corrections that were [asked](Self::question) about, in their order.
    pub fn answered(&mut self, sums: &[Sums]) {
        let tried = std::mem::take(&mut self.question).into_iter().zip(sums);
        let losses = tried.map(|(tried, sums)| (sums.loss(&tried), tried, sums));
        let Some((loss, tried, sums)) = losses.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return;
        };
        self.questions += 1;
        if self.best.is_none() && !sums.tell_answers_apart(&tried) {
            return;
        }
        let gain = self.best.as_ref().map(|best| best.loss - loss);
        let goes_on = match &mut self.best {
            Some(best) if gain.is_some_and(|gain| gain.is_nan() || gain <= 0.0) => {
                best.share *= SHARES[SHARES.len() - 1] / 4.0;
                best.share >= 1e-9
            }
            best => {
                let (gradient, mut curvature) = sums.derivatives(&tried, sums.biases(&tried));
                let step = solve(&mut curvature, gradient);
                let moves = gain.is_none_or(|gain| gain >= 1e-12 * loss.abs().max(1.0));
                let goes_on = moves && step.is_some();
                *best = Some(Best {
                    calibration: tried,
                    loss,
                    step: step.unwrap_or_default(),
                    share: 1.0,
                });
                goes_on
            }
        };
        let best = self.best.as_ref();
        if let Some(best) = best.filter(|_| goes_on && (self.questions as usize) < MOST_QUESTIONS) {
            let moved = |share: f64| best.calibration.moved(&best.step, best.share * share);
            self.question = SHARES.map(moved).to_vec();
        }
    }

    /// Whether it can be one for such answers that is not over.
    pub(crate) fn goes_on_for(&self, layout: Layout) -> bool {
        let best = self.best.as_ref();
        let step = best.map_or(1, |best| best.step.len());
        let all = self
            .question
            .iter()
            .chain(best.map(|best| &best.calibration));
        !self.question.is_empty()
            && self.question.len() <= MOST_AT_ONCE
            && (step == 1 || step == 1 + layout.outputs)
            && all.into_iter().all(|one| one.is_for(layout))
    }

    /// The likeliest correction so far; nothing if all samples are of one class.
    pub fn found(self) -> Option<Calibration> {
        self.best.map(|best| best.calibration)
    }
}

/// x of A·x = b, where A is symmetric and positive, given by what lies on and below its diagonal.
fn solve(a: &mut [f64], mut b: Vec<f64>) -> Option<Vec<f64>> {
    let n = b.len();
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let rest = a[i * n + j] - sum;
            if i == j {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                a[i * n + i] = rest.sqrt();
            } else {
                a[i * n + j] = rest / a[j * n + j];
            }
        }
    }
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| a[i * n + k] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i * n + i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| a[k * n + i] * b[k]).sum();
        b[i] = (b[i] - sum) / a[i * n + i];
    }
    Some(b)
}

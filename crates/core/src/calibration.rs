//! Probabilities that mean what they say: corrected by what a model said of patients whom training did not see.
//!
//! A model that was trained with weights for rare classes, or for too long, calls a risk of 10 % a risk of 30 %. The
//! correction p′ = softmax(a · ln p + b) has one number for how sure the model is and one for each class; for two
//! classes this is Platt's. It is the likeliest one for the validation patients, drawn towards no correction by a prior
//! of one standard deviation, which a few dozen patients outweigh. Of labels each probability is corrected for itself:
//! p′ = σ(a · logit p + b). Quantities and survival curves are left as they are.
//!
//! ```text
//! Search ── a correction ──► Sums of each group ── added up ──► Search ──► … ──► the likeliest
//! ```
//!
//! A [`Search`] needs of the patients only [`Sums`], so that a cloud can make it with hospitals that keep the patients'
//! probabilities to themselves. Who has all patients makes the same search with the same sums: the same correction, to
//! the bit.

mod search;
mod sums;

pub use search::{MOST_AT_ONCE, MOST_QUESTIONS, Search};
pub use sums::Sums;

use crate::checks::are_finite;
use crate::metrics::Layout;
use crate::outcome::{Kind, Targets};
use selvedge_nn::loss::logistic;
use serde::{Deserialize, Serialize};

/// Of fewer samples a hospital says nothing to the cloud: sums over one are what the model says of that patient.
pub const FEWEST_SAMPLES: usize = 5;

/// Probabilities below this are taken for it: their logarithms stay finite.
pub const LEAST: f64 = 1e-30;

/// A model never counts for less than this, nor the other way around.
const LEAST_SCALE: f64 = 0.01;

/// With more classes only the scale is fitted: a few patients of each would not tell more.
const MOST_CLASSES: usize = 50;

/// A correction of probabilities: softmax(scale · ln p + bias), or of each for itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// How sure the model is to be, compared with what it says: below 1 it was too sure.
    pub scale: f64,
    /// What is added for each class.
    pub bias: Vec<f64>,
    /// Whether probabilities are those of labels: each is corrected for itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
}

/// What was found of a model that groups have measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The likeliest correction; nothing if all samples were of one class, or the model does not answer for one.
    pub calibration: Option<Calibration>,
    /// The validation samples of the groups that took part.
    pub samples: u64,
}

/// What was found of the models of a deployed run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibrations {
    /// Of the last model.
    pub model: Found,
    /// Of the one that was best on the validation samples, if there is one.
    pub best: Option<Found>,
}

impl Calibration {
    /// Leaves probabilities as they are; nothing where answers are no probabilities.
    pub fn none(layout: Layout) -> Option<Self> {
        let each = match layout.kind {
            Kind::Class => false,
            Kind::Labels => true,
            Kind::Quantity | Kind::Survival => return None,
        };
        Some(Calibration {
            scale: 1.0,
            bias: vec![0.0; layout.outputs],
            each,
        })
    }

    /// The likeliest correction, given probabilities row after row and what was true. Nothing if all samples are of one
    /// class, or no label is known both ways: the likeliest is then to say the same each time; nor if
    /// something is said that is no number. If some class or answer has
    /// no samples there are no biases.
    ///
    /// ```
    /// use selvedge_core::{calibration::Calibration, metrics::Layout, outcome::Targets};
    /// // It says 90 % each time, and is right three times of four.
    /// let said = [0.9f32, 0.1].repeat(400);
    /// let truth: Targets = (0..400).map(|i| u32::from(i % 4 == 0)).collect();
    /// let calibration = Calibration::fit(&said, &truth, Layout::classes(2)).unwrap();
    /// let corrected = calibration.apply(&said[..2]);
    /// assert!((corrected[0] - 0.75).abs() < 0.01);
    /// ```
    pub fn fit(probabilities: &[f32], truth: &Targets, layout: Layout) -> Option<Self> {
        if !are_finite(probabilities) {
            return None;
        }
        let mut search = Search::new(layout);
        while let Some(next) = search.question() {
            let of = |correction| Sums::of(correction, probabilities, truth);
            let sums: Vec<Sums> = next.iter().map(of).collect();
            search.answered(&sums);
        }
        search.found()
    }

    /// Whether it can be one for such answers.
    pub fn is_for(&self, layout: Layout) -> bool {
        let finite = self.bias.iter().all(|bias| bias.is_finite());
        let fits = Calibration::none(layout)
            .is_some_and(|none| none.bias.len() == self.bias.len() && none.each == self.each);
        fits && finite && self.scale.is_finite() && self.scale > 0.0
    }

    /// Corrected probabilities, row after row. What is no number stays so.
    pub fn apply(&self, probabilities: &[f32]) -> Vec<f32> {
        let classes = self.bias.len();
        let mut row = vec![0.0; classes];
        let mut out = Vec::with_capacity(probabilities.len());
        for said in probabilities.chunks_exact(classes) {
            self.look_at(said, &mut row);
            self.correct(&mut row);
            out.extend(row.iter().map(|p| *p as f32));
        }
        out
    }

    /// From probabilities to what is scaled: their logarithms, or each one's logit.
    fn look_at(&self, said: &[f32], row: &mut [f64]) {
        for (logit, p) in row.iter_mut().zip(said) {
            *logit = match self.each {
                false => log(*p),
                true => log(*p) - log(1.0 - *p),
            };
        }
    }

    /// From there to corrected probabilities, in place.
    fn correct(&self, row: &mut [f64]) {
        for (value, bias) in row.iter_mut().zip(&self.bias) {
            *value = self.scale * *value + bias;
        }
        if self.each {
            return row.iter_mut().for_each(|value| *value = logistic(*value));
        }
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for value in row.iter_mut() {
            *value = libm::exp(*value - most);
            sum += *value;
        }
        row.iter_mut().for_each(|value| *value /= sum);
    }

    /// How unlikely it is before anything is known: the prior's part of the loss.
    fn prior(&self) -> f64 {
        let biases = self.bias.iter().map(|b| b * b / 2.0).sum::<f64>();
        (self.scale - 1.0).powi(2) / 2.0 + biases
    }

    /// Some way from here against a step of the scale and of each bias, or of the scale alone.
    fn moved(&self, step: &[f64], share: f64) -> Self {
        let mut steps = step[1..].iter();
        let moved = |bias: &f64| bias - share * steps.next().unwrap_or(&0.0);
        Calibration {
            scale: (self.scale - share * step[0]).max(LEAST_SCALE),
            bias: self.bias.iter().map(moved).collect(),
            each: self.each,
        }
    }
}

fn log(p: f32) -> f64 {
    let p = f64::from(p);
    libm::log(if p < LEAST { LEAST } else { p })
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_nn::random::Key;

    fn none(classes: usize) -> Calibration {
        Calibration::none(Layout::classes(classes)).unwrap()
    }

    fn fit(said: &[f32], truth: &[u32], classes: usize) -> Option<Calibration> {
        Calibration::fit(said, &truth.to_vec().into(), Layout::classes(classes))
    }

    /// What a model says that should have said softmax(ln p / 0.5 − shift), and what was true.
    fn distorted(classes: usize, n: usize) -> (Vec<f32>, Vec<u32>) {
        let mut stream = Key::new(7).stream();
        let (mut said, mut truth) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let logits: Vec<f64> = (0..classes)
                .map(|_| f64::from(stream.normal()) * 1.5)
                .collect();
            let right = none(classes);
            let mut p = logits.clone();
            right.correct(&mut p);
            let mut at = f64::from(stream.uniform());
            let label = p.iter().position(|p| {
                at -= p;
                at < 0.0
            });
            truth.push(label.unwrap_or(classes - 1) as u32);
            let mut wrong: Vec<f64> = logits
                .iter()
                .zip(0..)
                .map(|(l, k)| 2.0 * l + f64::from(k))
                .collect();
            right.correct(&mut wrong);
            said.extend(wrong.iter().map(|p| *p as f32));
        }
        (said, truth)
    }

    #[test]
    fn a_known_distortion_is_undone() {
        for classes in [2, 4] {
            let (said, truth) = distorted(classes, 20_000);
            let found = fit(&said, &truth, classes).unwrap();
            assert!((found.scale - 0.5).abs() < 0.03, "{found:?}");
            for k in 0..classes - 1 {
                // What was said is 2 l + k, so half of it is too much by half a step.
                let step = found.bias[k + 1] - found.bias[k];
                assert!((step + 0.5).abs() < 0.1, "{found:?}");
            }
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let (said, truth) = distorted(3, 50);
        let some = Calibration {
            scale: 0.7,
            bias: vec![0.3, -0.2, 0.1],
            each: false,
        };
        let moved = |at: usize, h: f64| {
            let mut step = vec![0.0; 4];
            step[at] = -h;
            some.moved(&step, 1.0)
        };
        let slopes = |at: &Calibration| {
            Sums::of(at, &said, &truth.clone().into())
                .derivatives(at, 3)
                .0
        };
        let loss = |at: &Calibration| Sums::of(at, &said, &truth.clone().into()).loss(at);
        for (at, slope) in slopes(&some).iter().enumerate() {
            let h = 1e-5;
            let difference = loss(&moved(at, h)) - loss(&moved(at, -h));
            assert!((slope - difference / (2.0 * h)).abs() < 1e-5);
        }
        let found = fit(&said, &truth, 3).unwrap();
        let gradient = slopes(&found);
        assert!(gradient.iter().all(|g| g.abs() < 1e-3), "{gradient:?}");
    }

    #[test]
    fn two_classes_keep_their_order() {
        let (said, truth) = distorted(2, 300);
        let found = fit(&said, &truth, 2).unwrap();
        let corrected = found.apply(&said);
        for i in 1..300 {
            for j in 0..i {
                let change = |p: &[f32]| p[2 * i + 1] - p[2 * j + 1];
                assert!(change(&said) * change(&corrected) >= 0.0);
            }
        }
    }

    #[test]
    fn nonsense_stays_finite() {
        for (said, truth) in [
            (vec![0.0, 1.0, 1.0, 0.0], vec![0, 1]),
            (vec![0.5; 8], vec![1, 1, 0, 1]),
        ] {
            let found = fit(&said, &truth, 2).unwrap();
            assert!(found.scale.is_finite() && found.bias.iter().all(|b| b.is_finite()));
            assert!(found.apply(&said).iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }

    #[test]
    fn what_is_no_number_stays_so_and_calibrates_nothing() {
        let corrected = none(2).apply(&[f32::NAN, f32::NAN, 0.25, 0.75]);
        assert!(corrected[0].is_nan() && corrected[1].is_nan());
        assert!((corrected[2] - 0.25).abs() < 1e-6);
        let said = [0.9, 0.1, 0.2, 0.8, f32::NAN, f32::NAN];
        assert_eq!(fit(&said, &[0, 1, 1], 2), None);
    }

    #[test]
    fn one_class_calibrates_nothing_and_a_missing_one_has_no_bias() {
        assert_eq!(fit(&[], &[], 2), None);
        assert_eq!(fit(&[1.0, 0.0], &[1], 2), None);
        assert_eq!(fit(&[0.5; 8], &[1; 4], 2), None);
        let (said, mut truth) = distorted(3, 300);
        truth.iter_mut().for_each(|label| *label = (*label).min(1));
        let found = fit(&said, &truth, 3).unwrap();
        assert_eq!(found.bias, [0.0; 3]);
        assert_ne!(found.scale, 1.0);
    }

    #[test]
    fn groups_that_add_up_their_sums_find_the_same_to_the_bit() {
        for (classes, n) in [(2, 1), (2, 40), (3, 200), (60, 150)] {
            let (said, truth) = distorted(classes, n);
            let alone = fit(&said, &truth, classes);
            for groups in [2, 3, 7] {
                let mut search = Search::new(Layout::classes(classes));
                let mut questions = 0;
                while let Some(next) = search.question().map(<[_]>::to_vec) {
                    // Dealt out, and added up from the last to the first.
                    let mut all = vec![Sums::none(&next[0]); next.len()];
                    for m in (0..groups).rev() {
                        let mine = |i: &usize| i % groups == m;
                        let rows: Vec<usize> = (0..n).filter(mine).collect();
                        let said: Vec<f32> = rows
                            .iter()
                            .flat_map(|i| &said[i * classes..][..classes])
                            .copied()
                            .collect();
                        let truth: Targets = rows.iter().map(|i| truth[*i]).collect();
                        for (all, next) in all.iter_mut().zip(&next) {
                            let sums = Sums::of(next, &said, &truth);
                            assert!(sums.are_of(&none(classes)));
                            all.merge(&sums);
                        }
                    }
                    search.answered(&all);
                    questions += 1;
                }
                assert!(questions <= MOST_QUESTIONS, "{questions}");
                assert_eq!(search.found(), alone, "{classes} classes, {groups} groups");
            }
        }
    }
}

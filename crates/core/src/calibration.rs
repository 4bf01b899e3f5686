//! Probabilities that mean what they say: corrected by what a model said of patients whom training did not see.
//!
//! A model that was trained with weights for rare classes, or for too long, calls a risk of 10 % a risk of 30 %. The
//! correction p′ = softmax(a · ln p + b) has one number for how sure the model is and one for each class; for two
//! classes this is Platt's. It is the likeliest one for the validation patients, drawn towards no correction by a prior
//! of one standard deviation, which a few dozen patients outweigh.

use serde::{Deserialize, Serialize};

/// Probabilities below this are taken for it: their logarithms stay finite.
pub const LEAST: f64 = 1e-30;

/// A model never counts for less than this, nor the other way around.
const LEAST_SCALE: f64 = 0.01;

/// With more classes only the scale is fitted: a few patients of each would not tell more.
const MOST_CLASSES: usize = 50;

/// Newton steps; three to ten are usual.
const STEPS: usize = 100;

/// A correction of probabilities: softmax(scale · ln p + bias).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// How sure the model is to be, compared with what it says: below 1 it was too sure.
    pub scale: f64,
    /// What is added for each class.
    pub bias: Vec<f64>,
}

impl Calibration {
    /// Leaves probabilities as they are.
    pub fn none(classes: usize) -> Self {
        Calibration {
            scale: 1.0,
            bias: vec![0.0; classes],
        }
    }

    /// The likeliest correction, given probabilities row after row and what was true. Nothing if all samples are of one
    /// class: the likeliest is then to say that class each time. If some class has no samples there are no biases.
    ///
    /// ```
    /// use selvedge_core::calibration::Calibration;
    /// // It says 90 % each time, and is right three times of four.
    /// let said = [0.9f32, 0.1].repeat(400);
    /// let truth: Vec<u32> = (0..400).map(|i| u32::from(i % 4 == 0)).collect();
    /// let calibration = Calibration::fit(&said, &truth, 2).unwrap();
    /// let corrected = calibration.apply(&said[..2]);
    /// assert!((corrected[0] - 0.75).abs() < 0.01);
    /// ```
    pub fn fit(probabilities: &[f32], labels: &[u32], classes: usize) -> Option<Self> {
        let mut seen = vec![false; classes];
        for label in labels {
            *seen.get_mut(*label as usize)? = true;
        }
        if seen.iter().filter(|seen| **seen).count() < 2 {
            return None;
        }
        let biases = match classes <= MOST_CLASSES && seen.iter().all(|seen| *seen) {
            true => classes,
            false => 0,
        };
        let logs: Vec<f64> = probabilities.iter().map(|p| log(*p)).collect();
        let mut found = Calibration::none(classes);
        let mut loss = found.loss(&logs, labels);
        for _ in 0..STEPS {
            let Some(step) = found.newton_step(&logs, labels, biases) else {
                break;
            };
            // Halved until it helps: far away the parabola is not the function.
            let mut share = 1.0;
            let better = loop {
                let next = found.moved(&step, share);
                let its_loss = next.loss(&logs, labels);
                if its_loss < loss {
                    break Some((next, its_loss));
                }
                share /= 2.0;
                if share < 1e-9 {
                    break None;
                }
            };
            let Some((next, its_loss)) = better else {
                break;
            };
            let gain = loss - its_loss;
            (found, loss) = (next, its_loss);
            if gain < 1e-12 * loss.abs().max(1.0) {
                break;
            }
        }
        Some(found)
    }

    /// Corrected probabilities, row after row.
    pub fn apply(&self, probabilities: &[f32]) -> Vec<f32> {
        let classes = self.bias.len();
        let mut row = vec![0.0; classes];
        let mut out = Vec::with_capacity(probabilities.len());
        for said in probabilities.chunks_exact(classes) {
            for (logit, p) in row.iter_mut().zip(said) {
                *logit = log(*p);
            }
            self.softmax(&mut row);
            out.extend(row.iter().map(|p| *p as f32));
        }
        out
    }

    /// From logarithms to corrected probabilities, in place.
    fn softmax(&self, row: &mut [f64]) {
        for (value, bias) in row.iter_mut().zip(&self.bias) {
            *value = self.scale * *value + bias;
        }
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for value in row.iter_mut() {
            *value = libm::exp(*value - most);
            sum += *value;
        }
        row.iter_mut().for_each(|value| *value /= sum);
    }

    fn loss(&self, logs: &[f64], labels: &[u32]) -> f64 {
        let mut row = vec![0.0; self.bias.len()];
        let mut loss = (self.scale - 1.0).powi(2) / 2.0;
        loss += self.bias.iter().map(|b| b * b / 2.0).sum::<f64>();
        for (said, label) in logs.chunks_exact(row.len()).zip(labels) {
            row.copy_from_slice(said);
            self.softmax(&mut row);
            loss -= libm::log(row[*label as usize].max(LEAST));
        }
        loss
    }

    /// The way to the bottom of the parabola that touches the loss here.
    fn newton_step(&self, logs: &[f64], labels: &[u32], biases: usize) -> Option<Vec<f64>> {
        let (gradient, mut curvature) = self.derivatives(logs, labels, biases);
        solve(&mut curvature, gradient)
    }

    /// How the loss changes with the scale and each bias, or none, and how that changes.
    fn derivatives(&self, logs: &[f64], labels: &[u32], biases: usize) -> (Vec<f64>, Vec<f64>) {
        let classes = self.bias.len();
        let free = 1 + biases;
        let mut gradient = vec![0.0; free];
        let mut curvature = vec![0.0; free * free];
        gradient[0] = self.scale - 1.0;
        for (at, bias) in (1..free).zip(&self.bias) {
            gradient[at] = *bias;
        }
        for at in 0..free {
            curvature[at * free + at] = 1.0;
        }
        let mut row = vec![0.0; classes];
        for (said, label) in logs.chunks_exact(classes).zip(labels) {
            row.copy_from_slice(said);
            self.softmax(&mut row);
            let mean: f64 = row.iter().zip(said).map(|(p, l)| p * l).sum();
            let square: f64 = row.iter().zip(said).map(|(p, l)| p * l * l).sum();
            gradient[0] += mean - said[*label as usize];
            curvature[0] += square - mean * mean;
            for k in 0..free - 1 {
                gradient[1 + k] += row[k] - f64::from(u8::from(*label as usize == k));
                curvature[1 + k] += row[k] * (said[k] - mean);
                for j in 0..=k {
                    let same = if j == k { row[k] } else { 0.0 };
                    curvature[(1 + k) * free + 1 + j] += same - row[j] * row[k];
                }
            }
        }
        for k in 1..free {
            curvature[k * free] = curvature[k];
        }
        (gradient, curvature)
    }

    fn moved(&self, step: &[f64], share: f64) -> Self {
        let mut steps = step[1..].iter();
        let moved = |bias: &f64| bias - share * steps.next().unwrap_or(&0.0);
        Calibration {
            scale: (self.scale - share * step[0]).max(LEAST_SCALE),
            bias: self.bias.iter().map(moved).collect(),
        }
    }
}

fn log(p: f32) -> f64 {
    libm::log(f64::from(p).max(LEAST))
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

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_nn::random::Key;

    /// What a model says that should have said softmax(ln p / 0.5 − shift), and what was true.
    fn distorted(classes: usize, n: usize) -> (Vec<f32>, Vec<u32>) {
        let mut stream = Key::new(7).stream();
        let (mut said, mut truth) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let logits: Vec<f64> = (0..classes)
                .map(|_| f64::from(stream.normal()) * 1.5)
                .collect();
            let right = Calibration::none(classes);
            let mut p = logits.clone();
            right.softmax(&mut p);
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
            right.softmax(&mut wrong);
            said.extend(wrong.iter().map(|p| *p as f32));
        }
        (said, truth)
    }

    #[test]
    fn a_known_distortion_is_undone() {
        for classes in [2, 4] {
            let (said, truth) = distorted(classes, 20_000);
            let found = Calibration::fit(&said, &truth, classes).unwrap();
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
        let logs: Vec<f64> = said.iter().map(|p| log(*p)).collect();
        let some = Calibration {
            scale: 0.7,
            bias: vec![0.3, -0.2, 0.1],
        };
        let moved = |at: usize, h: f64| {
            let mut step = vec![0.0; 4];
            step[at] = -h;
            some.moved(&step, 1.0)
        };
        let (gradient, _) = some.derivatives(&logs, &truth, 3);
        for (at, slope) in gradient.iter().enumerate() {
            let h = 1e-5;
            let difference = moved(at, h).loss(&logs, &truth) - moved(at, -h).loss(&logs, &truth);
            assert!((slope - difference / (2.0 * h)).abs() < 1e-5);
        }
        let found = Calibration::fit(&said, &truth, 3).unwrap();
        let (gradient, _) = found.derivatives(&logs, &truth, 3);
        assert!(gradient.iter().all(|g| g.abs() < 1e-3), "{gradient:?}");
    }

    #[test]
    fn two_classes_keep_their_order() {
        let (said, truth) = distorted(2, 300);
        let found = Calibration::fit(&said, &truth, 2).unwrap();
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
            let found = Calibration::fit(&said, &truth, 2).unwrap();
            assert!(found.scale.is_finite() && found.bias.iter().all(|b| b.is_finite()));
            assert!(found.apply(&said).iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }

    #[test]
    fn one_class_calibrates_nothing_and_a_missing_one_has_no_bias() {
        assert_eq!(Calibration::fit(&[], &[], 2), None);
        assert_eq!(Calibration::fit(&[1.0, 0.0], &[1], 2), None);
        assert_eq!(Calibration::fit(&[0.5; 8], &[1; 4], 2), None);
        let (said, mut truth) = distorted(3, 300);
        truth.iter_mut().for_each(|label| *label = (*label).min(1));
        let found = Calibration::fit(&said, &truth, 3).unwrap();
        assert_eq!(found.bias, [0.0; 3]);
        assert_ne!(found.scale, 1.0);
    }
}

//! From probabilities to a class: the most probable one, or a threshold for one class.

use serde::Serialize;

/// How a class is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The class with the largest probability; the first in a tie.
    Largest,
    /// This class where its probability reaches the threshold, otherwise the most probable of the others.
    Threshold {
        /// The class.
        positive: usize,
        /// The least probability.
        threshold: f32,
    },
}

impl Decision {
    /// The class of one row.
    pub fn class(&self, row: &[f32]) -> usize {
        match *self {
            Decision::Largest => largest(row, None),
            Decision::Threshold {
                positive,
                threshold,
            } if row[positive] >= threshold => positive,
            Decision::Threshold { positive, .. } => largest(row, Some(positive)),
        }
    }
}

fn largest(row: &[f32], except: Option<usize>) -> usize {
    let mut best = usize::from(except == Some(0));
    for (class, p) in row.iter().enumerate() {
        if Some(class) != except && *p > row[best] {
            best = class;
        }
    }
    best
}

/// The goal of a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// This share of those who have the class is found.
    Sensitivity(f64),
    /// This share of those who do not have it is ruled out.
    Specificity(f64),
}

/// A threshold and what it reached where it was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Operating {
    /// The class.
    pub positive: usize,
    /// The least probability of it.
    pub threshold: f32,
    /// The share of those who have it that is found.
    pub sensitivity: f64,
    /// The share of those who do not have it that is ruled out.
    pub specificity: f64,
}

impl Operating {
    /// The threshold that meets the goal and is best for the other rate: the largest for a sensitivity, the least for a
    /// specificity. None without patients of both kinds.
    pub fn choose(
        probabilities: &[f32],
        labels: &[u32],
        classes: usize,
        positive: usize,
        goal: Goal,
    ) -> Option<Self> {
        let rows = probabilities.chunks_exact(classes).zip(labels);
        let mut scores: Vec<(f32, bool)> = rows
            .map(|(row, label)| (row[positive], *label as usize == positive))
            .collect();
        scores.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let positives = scores.iter().filter(|(_, is)| *is).count() as f64;
        let negatives = scores.len() as f64 - positives;
        if positives == 0.0 || negatives == 0.0 {
            return None;
        }
        // From nobody to everybody: sensitivity grows, specificity falls.
        let nobody = Operating {
            positive,
            threshold: f32::INFINITY,
            sensitivity: 0.0,
            specificity: 1.0,
        };
        let (mut found, mut false_alarms) = (0.0, 0.0);
        let mut best = nobody;
        for tied in scores.chunk_by(|a, b| a.0 == b.0) {
            let own = tied.iter().filter(|(_, is)| *is).count() as f64;
            found += own;
            false_alarms += tied.len() as f64 - own;
            let next = Operating {
                positive,
                threshold: tied[0].0,
                sensitivity: found / positives,
                specificity: (negatives - false_alarms) / negatives,
            };
            match goal {
                Goal::Sensitivity(wanted) if best.sensitivity >= wanted => break,
                Goal::Specificity(wanted) if next.specificity < wanted => break,
                _ => best = next,
            }
        }
        Some(best)
    }

    /// The decision by it.
    pub fn decision(&self) -> Decision {
        Decision::Threshold {
            positive: self.positive,
            threshold: self.threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_class_or_the_positive_one() {
        let row = [0.5, 0.3, 0.2];
        assert_eq!(Decision::Largest.class(&row), 0);
        let at = |positive, threshold| Decision::Threshold {
            positive,
            threshold,
        };
        assert_eq!(at(2, 0.2).class(&row), 2);
        assert_eq!(at(2, 0.21).class(&row), 0);
        assert_eq!(at(0, 0.6).class(&row), 1);
        assert_eq!(at(0, f32::INFINITY).class(&[1.0, 0.0]), 1);
    }

    #[test]
    fn thresholds_reach_their_goals_and_no_more() {
        let p = [0.9f32, 0.8, 0.8, 0.6, 0.4, 0.3];
        let y = [1, 1, 0, 0, 1, 0];
        let rows: Vec<f32> = p.iter().flat_map(|p| [1.0 - p, *p]).collect();
        let choose = |goal| Operating::choose(&rows, &y, 2, 1, goal).unwrap();
        let found = choose(Goal::Sensitivity(0.6));
        assert_eq!(found.threshold, 0.8);
        assert_eq!(
            [found.sensitivity, found.specificity],
            [2.0 / 3.0, 2.0 / 3.0]
        );
        assert_eq!(choose(Goal::Sensitivity(1.0)).threshold, 0.4);
        assert_eq!(choose(Goal::Sensitivity(0.0)).threshold, f32::INFINITY);
        assert_eq!(choose(Goal::Specificity(1.0)).threshold, 0.9);
        assert_eq!(choose(Goal::Specificity(0.5)).threshold, 0.8);
        assert_eq!(choose(Goal::Specificity(0.0)).threshold, 0.3);
        assert!(Operating::choose(&rows, &[1; 6], 2, 1, Goal::Sensitivity(0.5)).is_none());
        // Seven false alarms of a hundred are a specificity of 0.93, not of a little less.
        let p: Vec<f32> = (0..101).map(|n| 1.0 - n as f32 / 200.0).collect();
        let rows: Vec<f32> = p.iter().flat_map(|p| [1.0 - p, *p]).collect();
        let y: Vec<u32> = (0..101).map(|n| u32::from(n == 0)).collect();
        let found = Operating::choose(&rows, &y, 2, 1, Goal::Specificity(0.93)).unwrap();
        assert_eq!(found.specificity, 0.93);
    }
}

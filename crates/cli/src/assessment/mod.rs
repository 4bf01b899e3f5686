//! How good a trained model is on some patients: measures with intervals, confusion, curves, calibration, and each
//! group.
//!
//! ```text
//! commands/evaluate ──► Part (all that is measured) ──┬──► text: what a person reads
//!                                                     ├──► json: what a script reads
//!                                                     └──► page: curves to look at
//! ```

mod answers;
mod page;
mod table;
mod text;

pub(crate) use answers::{AnswersPart, Said, page as page_of_answers, text as text_of_answers};
pub(crate) use page::page;
pub(crate) use text::text;

use selvedge_core::assess::{
    Bin, Bootstrap, Estimate, MEASURES, Point, Scored, precision_recall, reliability, roc,
};
use selvedge_run::deciding::Deciding;
use serde_json::{Map, Value, json};

/// The place of the loss among the measures.
const LOSS: usize = 6;

/// Ranges of probability that calibration is shown in.
const BINS: usize = 10;

/// What was measured of some patients.
pub(crate) struct Part {
    /// `train`, `validation`, `test`, or the files.
    pub(crate) name: String,
    pub(crate) samples: usize,
    pub(crate) estimates: [Option<Estimate>; MEASURES.len()],
    pub(crate) confusion: Vec<Vec<u64>>,
    /// Of the positive class where there is one, else of each.
    pub(crate) curves: Vec<Curves>,
    pub(crate) groups: Vec<Group>,
    /// The class that sensitivity, predictive values and average precision are about.
    pub(crate) positive: Option<String>,
}

/// One class against the rest.
pub(crate) struct Curves {
    pub(crate) class: String,
    pub(crate) roc: Vec<Point>,
    pub(crate) precision_recall: Vec<Point>,
    pub(crate) reliability: Vec<Bin>,
    /// By how much what was said differs from what was so, on the mean.
    pub(crate) calibration_error: f64,
}

/// The patients of one group.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) samples: usize,
    pub(crate) estimates: [Option<Estimate>; MEASURES.len()],
    pub(crate) positive: Option<String>,
}

/// Patients with what was said of them and what is so.
pub(crate) struct Predicted<'a> {
    pub(crate) probabilities: Vec<f32>,
    pub(crate) labels: Vec<u32>,
    /// The mean loss to the last bit, where probabilities are as the model says them.
    pub(crate) loss: Option<f64>,
    /// Rows with the same number are of one patient; empty: each is of another.
    pub(crate) persons: &'a [u32],
    /// The group of each row, and the names; or nobody knows.
    pub(crate) groups: Option<(&'a [u32], &'a [String])>,
}

impl Part {
    /// Measures.
    pub(crate) fn new(
        name: impl Into<String>,
        predicted: &Predicted<'_>,
        classes: &[String],
        deciding: &Deciding,
        bootstrap: &Bootstrap,
    ) -> Self {
        let (probabilities, labels) = (&predicted.probabilities, &predicted.labels);
        let scored = |probabilities: &[f32], labels: &[u32]| {
            let looked_for = (classes.len(), deciding.positive);
            Scored::new(probabilities, labels, looked_for, deciding.decision())
        };
        let all = scored(probabilities, labels);
        let shown = match deciding.positive {
            Some(class) => class..class + 1,
            None => 0..classes.len(),
        };
        let curves = |class: usize| {
            let n = classes.len();
            let (bins, error) = reliability(probabilities, labels, n, class, BINS);
            Curves {
                class: classes[class].clone(),
                roc: roc(probabilities, labels, n, class),
                precision_recall: precision_recall(probabilities, labels, n, class),
                reliability: bins,
                calibration_error: error,
            }
        };
        let positive = deciding.positive_name().map(str::to_owned);
        let group = |name: &String, rows: &[usize]| {
            let of_rows: Vec<f32> = rows
                .iter()
                .flat_map(|row| &probabilities[row * classes.len()..][..classes.len()])
                .copied()
                .collect();
            let own: Vec<u32> = rows.iter().map(|row| labels[*row]).collect();
            let persons: Vec<u32> = match predicted.persons.is_empty() {
                true => Vec::new(),
                false => rows.iter().map(|row| predicted.persons[*row]).collect(),
            };
            Group {
                name: name.clone(),
                samples: rows.len(),
                estimates: bootstrap.estimate(&scored(&of_rows, &own), &persons),
                positive: positive.clone(),
            }
        };
        let mut groups = Vec::new();
        if let Some((of_row, names)) = predicted.groups {
            let mut rows = vec![Vec::new(); names.len()];
            for (row, group) in of_row.iter().enumerate() {
                rows[*group as usize].push(row);
            }
            let there = names.iter().zip(&rows).filter(|(_, rows)| !rows.is_empty());
            groups.extend(there.map(|(name, rows)| group(name, rows)));
        }
        let mut estimates = bootstrap.estimate(&all, predicted.persons);
        if let (Some(exact), Some(loss)) = (predicted.loss, &mut estimates[LOSS]) {
            loss.value = exact;
        }
        Part {
            name: name.into(),
            samples: labels.len(),
            estimates,
            confusion: all.confusion(),
            curves: shown.map(curves).collect(),
            groups,
            positive: positive.clone(),
        }
    }

    /// All of it.
    pub(crate) fn json(&self) -> Value {
        let mut value = estimates(&self.estimates);
        value["samples"] = json!(self.samples);
        value["positive"] = json!(self.positive);
        value["confusion"] = json!(self.confusion);
        value["curves"] = self.curves.iter().map(Curves::json).collect();
        if !self.groups.is_empty() {
            value["groups"] = self.groups.iter().map(Group::json).collect();
        }
        value
    }
}

impl Curves {
    fn json(&self) -> Value {
        let points = |points: &[Point], x: &str, y: &str| -> Value {
            let point = |p: &Point| {
                let threshold = p.threshold.is_finite().then_some(p.threshold);
                json!({ x: p.x, y: p.y, "threshold": threshold })
            };
            points.iter().map(point).collect()
        };
        json!({
            "class": self.class,
            "roc": points(&self.roc, "false_positive_rate", "true_positive_rate"),
            "precision_recall": points(&self.precision_recall, "recall", "precision"),
            "reliability": self.reliability,
            "calibration_error": self.calibration_error,
        })
    }
}

impl Group {
    fn json(&self) -> Value {
        let mut value = estimates(&self.estimates);
        value["name"] = json!(self.name);
        value["samples"] = json!(self.samples);
        value["positive"] = json!(self.positive);
        value
    }
}

/// Values by the names of their measures, and their intervals.
fn estimates(estimates: &[Option<Estimate>]) -> Value {
    let (mut values, mut intervals) = (Map::new(), Map::new());
    for (name, estimate) in MEASURES.into_iter().zip(estimates) {
        values.insert(name.into(), json!(estimate.map(|e| e.value)));
        if let Some(estimate) = estimate {
            intervals.insert(name.into(), json!(estimate.interval));
        }
    }
    values.insert("intervals".into(), Value::Object(intervals));
    Value::Object(values)
}

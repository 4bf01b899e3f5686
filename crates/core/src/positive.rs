//! Which class is the positive one: the one that sensitivity, predictive values and average precision are about.
//!
//! The order of classes says nothing about it: labels are sorted, and "survived" comes after "died".

use crate::experiment::Experiment;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Labels that say by themselves that something is the case.
const PRESENT: [&str; 24] = [
    "yes",
    "y",
    "true",
    "t",
    "positive",
    "pos",
    "present",
    "case",
    "event",
    "ill",
    "sick",
    "disease",
    "diseased",
    "abnormal",
    "died",
    "dead",
    "death",
    "deceased",
    "expired",
    "readmitted",
    "readmission",
    "relapse",
    "failure",
    "complication",
];

/// Labels that say by themselves that it is not: of two classes the other one is meant.
const ABSENT: [&str; 20] = [
    "no",
    "n",
    "false",
    "f",
    "negative",
    "neg",
    "absent",
    "none",
    "control",
    "non-case",
    "no event",
    "healthy",
    "well",
    "normal",
    "benign",
    "survived",
    "survivor",
    "alive",
    "not readmitted",
    "discharged alive",
];

/// The positive class, and why it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positive {
    /// Its place among the classes.
    pub class: usize,
    /// Its name.
    pub label: String,
    /// Why it is the positive one.
    pub why: Why,
}

/// Why a class is the positive one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// `data.table.positive` says so.
    Given,
    /// Its name says so, or the name of the other class does.
    Obvious,
    /// It has fewer training samples than the other.
    Rarer,
    /// It is the second of two that are equally frequent, or of which nobody knows how frequent they are.
    Second,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Given => "as data.table.positive says",
            Why::Obvious => "as its name says",
            Why::Rarer => "the rarer class in training; data.table.positive can choose the other",
            Why::Second => "the second class; data.table.positive can choose the other",
        })
    }
}

impl Positive {
    /// The positive class of an experiment; `counts` are the training samples of each class, or nothing where nobody
    /// knows them. Of more than two classes only the experiment can name one.
    ///
    /// ```
    /// use selvedge_core::experiment::Experiment;
    /// use selvedge_core::positive::{Positive, Why};
    ///
    /// let experiment = Experiment::parse("", &[])?;
    /// let of = |classes: [&str; 2]| {
    ///     let positive = Positive::of(&experiment, &classes.map(String::from), &[30, 70])?;
    ///     Some((positive.label, positive.why))
    /// };
    /// assert_eq!(of(["died", "survived"]), Some(("died".into(), Why::Obvious)));
    /// assert_eq!(of(["home", "ward"]), Some(("home".into(), Why::Rarer)));
    /// # Ok::<(), selvedge_core::experiment::ExperimentError>(())
    /// ```
    pub fn of(experiment: &Experiment, classes: &[String], counts: &[u64]) -> Option<Self> {
        let given = &experiment.data.table.positive;
        let named = classes.iter().position(|class| class == given);
        let (class, why) = match (named, classes) {
            (Some(class), _) => (class, Why::Given),
            (None, [first, second]) => of_two([first, second], counts),
            _ => return None,
        };
        Some(Positive {
            class,
            label: classes[class].clone(),
            why,
        })
    }
}

fn of_two(classes: [&str; 2], counts: &[u64]) -> (usize, Why) {
    let names = classes.map(|name| name.trim().to_lowercase());
    let is = |class: usize, known: &[&str]| known.contains(&names[class].as_str());
    // A code of 1 says something beside 0 only: of 1 and 2, either may be the healthy one.
    let coded = |class: usize| {
        let number = |class: usize| names[class].parse::<f64>().ok();
        number(class) == Some(1.0) && matches!(number(1 - class), Some(0.0 | -1.0))
    };
    let says_so = |class: usize| is(class, &PRESENT) || is(1 - class, &ABSENT) || coded(class);
    match (says_so(0), says_so(1), counts) {
        (true, false, _) => (0, Why::Obvious),
        (false, true, _) => (1, Why::Obvious),
        (_, _, [a, b]) if a < b => (0, Why::Rarer),
        (_, _, [a, b]) if b < a => (1, Why::Rarer),
        _ => (1, Why::Second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_then_numbers_then_the_order() {
        for (classes, counts, expected) in [
            (["no", "yes"], vec![10, 90], (1, Why::Obvious)),
            (["Yes", "no"], vec![90, 10], (0, Why::Obvious)),
            (["control", "tumour"], vec![10, 90], (1, Why::Obvious)),
            (["0", "1"], vec![10, 90], (1, Why::Obvious)),
            (["0.0", "1.0"], vec![10, 90], (1, Why::Obvious)),
            (["1", "2"], vec![10, 90], (0, Why::Rarer)),
            (["dead", "ill"], vec![90, 10], (1, Why::Rarer)),
            (["home", "ward"], vec![20, 20], (1, Why::Second)),
            (["home", "ward"], vec![], (1, Why::Second)),
        ] {
            assert_eq!(of_two(classes, &counts), expected, "{classes:?}");
        }
    }

    #[test]
    fn an_experiment_may_name_any_class() {
        let of = |given: &str, classes: &[&str]| {
            let set = [format!("data.table.positive={given}")];
            let experiment = Experiment::parse("", &set).unwrap();
            let classes: Vec<String> = classes.iter().map(|c| c.to_string()).collect();
            Positive::of(&experiment, &classes, &[1, 2, 3]).map(|p| (p.class, p.why))
        };
        assert_eq!(of("\"no\"", &["no", "yes"]), Some((0, Why::Given)));
        assert_eq!(of("\"b\"", &["a", "b", "c"]), Some((1, Why::Given)));
        assert_eq!(of("\"\"", &["a", "b", "c"]), None);
    }
}

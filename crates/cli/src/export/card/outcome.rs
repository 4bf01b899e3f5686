//! What the model was asked, and what its answers mean.

use super::Card;
use super::markdown::cell;
use crate::export::description::listed;
use selvedge_core::outcome::Outcome;
use selvedge_run::format::{count, counted};

impl Card<'_> {
    pub(super) fn outcome(&self) -> &Outcome {
        self.exported.trained.outcome()
    }

    /// The names of the classes or labels, or that of the quantity or of the event.
    fn names(&self) -> String {
        cell(&self.run.manifest.data.classes.join(", "))
    }

    /// What it predicts, in half a sentence.
    pub(super) fn predicts(&self) -> String {
        let names = self.names();
        match self.outcome() {
            Outcome::Class => format!(
                "predicts which of {} classes a sample has ({names})",
                self.exported.classes().len()
            ),
            Outcome::Labels => format!(
                "gives the probability of yes to each of {} ({names})",
                counted(self.exported.classes().len() as u64, "label")
            ),
            Outcome::Quantity { .. } => format!("predicts a quantity ({names})"),
            Outcome::Survival { ends } => format!(
                "gives the probability that an event ({names}) has not happened by each of {}",
                counted(ends.len() as u64, "time")
            ),
        }
    }

    /// The output of a file to be used, with what its columns are.
    pub(super) fn output(&self) -> (&'static str, String) {
        let output = match self.exported.calibration {
            Some(_) => "calibrated",
            None => self.exported.answers(),
        };
        let columns = match self.outcome() {
            Outcome::Survival { ends } => format!("none until {}", times(ends)),
            _ => self.exported.classes().join(", "),
        };
        (output, columns.replace(char::is_control, " "))
    }

    /// What its answers mean; classes explain themselves.
    pub(super) fn meaning(&self) -> Option<String> {
        let names = self.names();
        let text = match self.outcome() {
            Outcome::Class => return None,
            Outcome::Labels => format!(
                "Each label ({names}) is a question of its own: a sample may have none, one or several of them, and probabilities do not \
                 add up to 1. Training left out labels that are not known of a sample, and learnt from the others: if labels are rather known of \
                 some patients than of others, probabilities are those of patients like these."
            ),
            Outcome::Quantity { mean, deviation } => format!(
                "`prediction` is {names} in the unit of the training data, where its mean was {mean:.4} and its standard deviation {deviation:.4}. \
                 It is {}, and says nothing of how far a patient may be from it.",
                self.centre()
            ),
            Outcome::Survival { ends } => format!(
                "`survival` has {} numbers for each sample: the probability that the event ({names}) has not happened by {}, in the unit of the \
                 training data's times. The last is the horizon: of what comes later the model says nothing. Between two times the probability \
                 lies between theirs. Patients whose time ends without an event are censored: they count as without it until the last of these \
                 times at which they were still seen, and as unknown from then on. That is right only if who leaves is no more and no less at \
                 risk than who stays.",
                ends.len(),
                times(ends)
            ),
        };
        Some(format!("## What it says\n\n{text}\n"))
    }

    /// What of a quantity is predicted, by its loss.
    fn centre(&self) -> String {
        use selvedge_core::experiment::LossName;
        let train = &self.run.experiment.train;
        match train.loss {
            LossName::Quantile => format!(
                "the value below which a share of {} of samples like this one is expected to be",
                train.quantile
            ),
            LossName::Huber => {
                "about the mean of samples like this one, of which far ones count less".into()
            }
            _ => "the mean of samples like this one".into(),
        }
    }

    /// What training samples are counted by, and above which columns.
    pub(super) fn counted_by(&self) -> (&'static str, Vec<String>) {
        let names = || self.run.manifest.data.classes.iter();
        let both = |name: &String| ["without", "with"].map(|with| cell(&format!("{with} {name}")));
        match self.outcome() {
            Outcome::Class => (
                "Training samples of each class",
                names().map(|class| cell(class)).collect(),
            ),
            Outcome::Labels => (
                "Training samples that are known to be without and with each label",
                names().flat_map(both).collect(),
            ),
            Outcome::Quantity { .. } => ("Training samples", vec!["samples".into()]),
            Outcome::Survival { .. } => (
                "Training samples without and with the event by the end of their time",
                names().flat_map(both).collect(),
            ),
        }
    }

    /// How rare answers limit what can be learnt, where they are no classes.
    pub(super) fn rare_answers(&self, few: u64) -> Option<String> {
        let (_, answers) = self.counted_by();
        if matches!(self.outcome(), Outcome::Class | Outcome::Quantity { .. }) {
            return None;
        }
        let labels = &self.run.manifest.data.labels;
        let of = |at: usize| labels.iter().filter_map(|group| group.get(at)).sum::<u64>();
        let counts = answers.iter().enumerate().map(|(at, name)| (name, of(at)));
        let scarce = counts.filter(|(_, n)| *n < few && !labels.is_empty());
        let scarce: Vec<String> = scarce
            .map(|(name, n)| format!("{} {name}", count(n)))
            .collect();
        (!scarce.is_empty()).then(|| {
            format!(
                "Few training samples are {}: what it says of these is less certain than the rest.",
                scarce.join(", ")
            )
        })
    }
}

/// Where intervals end, with as many digits as data have.
fn times(ends: &[f64]) -> String {
    let ends: Vec<f32> = ends.iter().map(|end| *end as f32).collect();
    listed(&ends, ", ")
}

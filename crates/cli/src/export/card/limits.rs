//! Limits of use, from what the run shows about itself.

use super::markdown::cell;
use super::{Card, percent};
use selvedge_core::experiment::Side;
use selvedge_core::metrics::Metric;
use selvedge_core::outcome::Outcome;
use selvedge_run::format::{count, counted};

/// Fewer training samples than this are called few.
const FEW: u64 = 100;

/// A class with less than this share is called rare.
const RARE: f64 = 0.1;

/// Columns of which more than this share was not measured are listed.
const MOSTLY_MISSING: f64 = 0.5;

/// How many of anything are listed at most.
const MOST_LISTED: usize = 10;

impl Card<'_> {
    pub(super) fn limits(&self) -> String {
        let found = [
            self.purpose(),
            self.learning(),
            self.origin(),
            self.classes(),
            self.rare_answers(FEW),
            self.groups(),
            self.held_out(),
            self.calibration(),
            self.ending(),
            self.gaps(),
            self.blindness(),
            self.privacy(),
        ];
        let lines = found
            .into_iter()
            .flatten()
            .map(|line| format!("- {line}\n"));
        format!("## Limits of use\n\n{}", lines.collect::<String>())
    }

    fn purpose(&self) -> Option<String> {
        Some(
            "**Not a medical device.** This model has not been evaluated in clinical use. It must not be used to make decisions \
             about a patient, and no decision should rest on it before it has been evaluated with the patients, devices and practices \
             of the place where it is to be used."
                .into(),
        )
    }

    /// What it was trained on.
    fn origin(&self) -> Option<String> {
        let (manifest, set) = (&self.run.manifest, &self.run.experiment.data.set);
        if set.starts_with("synthetic") {
            return Some(format!(
                "**Trained on generated data** (`{}`): it knows nothing about any patient, whatever its metrics say.",
                cell(set)
            ));
        }
        Some(format!(
            "It was trained on {} samples of `{}` from {}. Other places measure different patients with different devices, in different \
             units and more or less often; columns must mean what they meant in training. It comes from one run with one seed: another seed \
             gives another model.",
            count(manifest.data.training_samples as u64),
            cell(set),
            counted(manifest.sizes.groups as u64, "group")
        ))
    }

    /// Of each class, its name and its training samples.
    fn class_counts(&self) -> Vec<(String, u64)> {
        let data = &self.run.manifest.data;
        let of = |class: usize| data.labels.iter().filter_map(|l| l.get(class)).sum();
        let named = |(class, name): (usize, &String)| (cell(name), of(class));
        match data.labels.is_empty() || !self.outcome().is_class() {
            true => Vec::new(),
            false => data.classes.iter().enumerate().map(named).collect(),
        }
    }

    fn classes(&self) -> Option<String> {
        let counts = self.class_counts();
        let all: u64 = counts.iter().map(|(_, n)| n).sum();
        let most = counts.iter().map(|(_, n)| *n).max()?;
        let share = |n: u64| n as f64 / all.max(1) as f64;
        let scarce = |(_, n): &&(String, u64)| *n < FEW || share(*n) < RARE;
        let told = |(name, n): &(String, u64)| {
            format!("{name} with {} ({})", count(*n), percent(share(*n)))
        };
        let scarce: Vec<String> = counts.iter().filter(scarce).map(told).collect();
        (!scarce.is_empty()).then(|| {
            format!(
                "Some classes have few training samples: {}. Predictions are less certain for them than for others. Always predicting the most \
                 frequent class would be right for {} of the training samples, so accuracy alone says little.",
                scarce.join(", "),
                percent(share(most))
            )
        })
    }

    fn groups(&self) -> Option<String> {
        let data = &self.run.manifest.data;
        let (_, answers) = self.counted_by();
        let told = |(m, labels): (usize, &Vec<u64>)| {
            let name = self.group_name(m);
            // Each label's two answers are of the same samples.
            let all: u64 = match self.outcome() {
                Outcome::Labels => labels.chunks(2).map(|own| own.iter().sum()).max()?,
                _ => labels.iter().sum(),
            };
            let empty = labels.iter().zip(&answers).filter(|(n, _)| **n == 0);
            let without: Vec<String> = empty.map(|(_, answer)| answer.clone()).collect();
            match (all < FEW, without.is_empty()) {
                (false, true) => None,
                (true, true) => Some(format!("{name} ({} samples)", count(all))),
                (_, false) => Some(format!(
                    "{name} ({} samples, none of {})",
                    count(all),
                    without.join(", ")
                )),
            }
        };
        let few: Vec<String> = data.labels.iter().enumerate().filter_map(told).collect();
        (!few.is_empty()).then(|| {
            format!(
                "Groups with few samples, or without some {}: {}. The mean over all groups says little about them.",
                match self.outcome() {
                    Outcome::Class => "class",
                    _ => "answer",
                },
                several(few)
            )
        })
    }

    fn held_out(&self) -> Option<String> {
        let test = self.run.manifest.data.test_samples as u64;
        match test {
            0 => Some("**No test samples**: its performance on unseen samples is unknown.".into()),
            n if n < 10 * FEW => Some(format!(
                "Only {} test samples: other samples could give quite different metrics. Metrics are over all test samples; performance by \
                 age, sex or other subgroups was not assessed.",
                count(n)
            )),
            _ => Some(
                "Metrics are over all test samples; performance by age, sex or other subgroups was not assessed.".into(),
            ),
        }
    }

    fn calibration(&self) -> Option<String> {
        let trained = self.exported.trained;
        match self.outcome() {
            Outcome::Quantity { .. } => return None,
            Outcome::Survival { .. } => {
                return Some(
                    "**Not calibrated**: probabilities of survival are the model's own, and were not corrected on validation samples."
                        .into(),
                );
            }
            Outcome::Class | Outcome::Labels => {}
        }
        Some(match trained.why_not_calibrated() {
            None => format!(
                "`calibrated` was fitted on {} from the same places: where the outcome is more or less common \
                 than here, probabilities will be miscalibrated. `probabilities` are not calibrated.",
                counted(trained.calibrated_on as u64, "validation sample")
            ),
            Some(why) => format!(
                "**Not calibrated**: a probability of 0.8 does not mean that 8 of 10 such samples have the class; only the order of \
                 probabilities is meaningful. They cannot be calibrated{why}."
            ),
        })
    }

    /// Whether it has learnt anything.
    fn learning(&self) -> Option<String> {
        let untrained = self.exported.trained.untrained()?;
        Some(format!("**Untrained**: {untrained}. Do not use it."))
    }

    /// Whether the test samples had a say in the model.
    fn ending(&self) -> Option<String> {
        let ending = self.run.manifest.ending.as_ref()?;
        let key = ending.key.as_deref().unwrap_or_default();
        match ending.kind.as_str() {
            "diverged" => Some(
                "**Training diverged**: a smaller learning rate would give a better model.".into(),
            ),
            "reached"
                if ending.on.as_deref().unwrap_or("test") == "test"
                    && Metric::targets()
                        .any(|m| m.tested && m.stop.is_some_and(|k| k.path == key)) =>
            {
                Some(format!(
                    "Training stopped as soon as the test samples reached {}: metrics on them are somewhat optimistic.",
                    cell(key)
                ))
            }
            _ => None,
        }
    }

    fn gaps(&self) -> Option<String> {
        let mut listed = Vec::new();
        for side in [Side::Hospital, Side::Device] {
            let statistics = self.exported.statistics(side);
            let gaps = statistics.names.iter().zip(&statistics.missing);
            let mostly = gaps.filter(|(_, share)| **share > MOSTLY_MISSING);
            listed.extend(
                mostly.map(|(name, share)| format!("{} ({:.0} %)", cell(name), 100.0 * share)),
            );
        }
        (!listed.is_empty()).then(|| {
            format!(
                "Mostly not measured in training: {}. Whether something was measured at all may say more than its value, and \
                 depends on local practice.",
                several(listed)
            )
        })
    }

    fn blindness(&self) -> Option<String> {
        let side = self.exported.architecture.blind_to?;
        Some(format!(
            "It does not use the data of the {}: that input has no effect.",
            match side {
                Side::Hospital => "hospital",
                Side::Device => "device",
            }
        ))
    }

    fn privacy(&self) -> Option<String> {
        Some(
            "**What a model reveals.** Weights can reveal data of training patients (inversion, membership inference), and anyone with a tower can turn \
             its embeddings, `zeta1` or `zeta2`, back into measurements. Training used no differential privacy and no secure aggregation of \
             models; compression is no protection. Do not give these files to anyone who must not learn about the patients in the training \
             data (docs/security.md of selvedge states what is protected and what is not)."
                .into(),
        )
    }
}

/// Things one after the other, but not too many.
fn several(mut all: Vec<String>) -> String {
    let more = all.len().saturating_sub(MOST_LISTED);
    all.truncate(MOST_LISTED);
    match more {
        0 => all.join("; "),
        n => format!("{}; and {n} more", all.join("; ")),
    }
}

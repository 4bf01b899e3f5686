//! Limits of use, from what the run shows about itself.

use super::markdown::cell;
use super::{Card, percent};
use selvedge_core::experiment::Side;
use selvedge_core::metrics::Metric;
use selvedge_run::format::count;

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
            self.origin(),
            self.classes(),
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
            "**Not a medical device.** Nobody has examined this model in care. It must not decide about a patient, and no decision should \
             rest on it without an examination with the patients, devices and habits of the place where it is to be used."
                .into(),
        )
    }

    /// What it was trained on.
    fn origin(&self) -> Option<String> {
        let (manifest, set) = (&self.run.manifest, &self.run.experiment.data.set);
        if set.starts_with("synthetic") {
            return Some(format!(
                "**Trained on generated numbers** (`{}`): it knows nothing of any patient, whatever its metrics say.",
                cell(set)
            ));
        }
        Some(format!(
            "It has seen {} training samples of `{}` from {} groups. Other places measure other patients with other devices, in other units \
             and more or less often; columns must mean what they meant there. One run with one seed was trained: another seed gives another \
             model.",
            count(manifest.data.training_samples as u64),
            cell(set),
            manifest.sizes.groups
        ))
    }

    /// Of each class, its name and its training samples.
    fn class_counts(&self) -> Vec<(String, u64)> {
        let data = &self.run.manifest.data;
        let of = |class: usize| data.labels.iter().filter_map(|l| l.get(class)).sum();
        let named = |(class, name): (usize, &String)| (cell(name), of(class));
        match data.labels.is_empty() {
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
                "Few training samples of some classes: {}. What it says of them is less certain than of others. Who always named the most \
                 frequent class of the training samples would be right in {} of them, so accuracy alone says little.",
                scarce.join(", "),
                percent(share(most))
            )
        })
    }

    fn groups(&self) -> Option<String> {
        let data = &self.run.manifest.data;
        let told = |(m, labels): (usize, &Vec<u64>)| {
            let name = self.group_name(m);
            let all: u64 = labels.iter().sum();
            let empty = labels.iter().zip(&data.classes).filter(|(n, _)| **n == 0);
            let without: Vec<String> = empty.map(|(_, class)| cell(class)).collect();
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
                "Groups with few samples, or without a class: {}. The mean over all groups says little about them.",
                several(few)
            )
        })
    }

    fn held_out(&self) -> Option<String> {
        let test = self.run.manifest.data.test_samples as u64;
        match test {
            0 => Some("**No test samples**: how good it is on samples that it has not seen is not known.".into()),
            n if n < 10 * FEW => Some(format!(
                "Only {} test samples: metrics could well be others with other samples. They are over all of them; how good it is \
                 for the old, the young, women or men was not measured.",
                count(n)
            )),
            _ => Some(
                "Metrics are over all test samples; how good it is for the old, the young, women or men was not measured.".into(),
            ),
        }
    }

    fn calibration(&self) -> Option<String> {
        let samples = self.run.manifest.data.validation_samples;
        Some(match self.exported.calibration {
            Some(_) => format!(
                "`calibrated` was fitted on {} validation samples of the same places: where classes are more or less frequent, it is off. \
                 `probabilities` are not calibrated.",
                count(samples as u64)
            ),
            None if samples == 0 => {
                "**Not calibrated**: there were no validation samples. A probability of 0.8 does not mean that 8 of 10 such samples have \
                 the class; only their order has a meaning."
                    .into()
            }
            None => "**Not calibrated**: a probability of 0.8 does not mean that 8 of 10 such samples have the class; only their order has \
                     a meaning. What it says of the validation samples, by which it could be corrected, is not in the run."
                .into(),
        })
    }

    /// Whether the test samples had a say in the model.
    fn ending(&self) -> Option<String> {
        let ending = self.run.manifest.ending.as_ref()?;
        let key = ending.key.as_deref().unwrap_or_default();
        match ending.kind.as_str() {
            "diverged" => {
                Some("**Training diverged**: a smaller learning rate gives a better model.".into())
            }
            "reached"
                if Metric::targets().any(|m| m.tested && m.stop.is_some_and(|k| k.path == key)) =>
            {
                Some(format!(
                    "Training ended as soon as the test samples reached {}: metrics on them are somewhat too good.",
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
                "Mostly not measured in training: {}. That something was measured at all may say more than its value, and \
                 depends on the habits of a place.",
                several(listed)
            )
        })
    }

    fn blindness(&self) -> Option<String> {
        let side = self.exported.architecture.blind_to?;
        Some(format!(
            "It knows nothing of what the {} has: that input changes nothing.",
            match side {
                Side::Hospital => "hospital",
                Side::Device => "device",
            }
        ))
    }

    fn privacy(&self) -> Option<String> {
        Some(
            "**What a model says.** Weights can give training samples away (inversion, membership), and embeddings `zeta1`, `zeta2` can be \
             turned back into what was measured by who has the tower. Training used no differential privacy and no secure aggregation of \
             models; compression is no protection. Give these files to nobody who must not learn about the patients of the training set \
             (docs/security.md of selvedge says what is defended and what is not)."
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

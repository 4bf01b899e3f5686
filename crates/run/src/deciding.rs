//! How a trained model's probabilities are turned into a class.

use crate::error::{Result, bail};
use crate::format::counted;
use crate::trained::Trained;
use selvedge_core::assess::{Decision, Goal, Operating};
use selvedge_core::experiment::{LossName, one_of};
use selvedge_core::outcome::{Kind, Outcome};
use serde_json::{Value, json};

/// The user's choices of probabilities and of the class.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Use the model's own probabilities.
    pub uncalibrated: bool,
    /// The positive class; by default the one that the run names.
    pub positive: Option<String>,
    /// The goal by which its threshold is chosen, on the validation patients; without one, the most likely class is
    /// predicted.
    pub goal: Option<Goal>,
}

/// Which probabilities, and which class.
pub struct Deciding {
    /// Whether probabilities are calibrated.
    pub calibrated: bool,
    /// The positive class, if there is one.
    pub positive: Option<usize>,
    /// Its name, and why it is the positive one.
    said: Option<(String, String)>,
    operating: Option<Operating>,
}

impl Deciding {
    /// Applies the wishes, with the threshold chosen on the validation patients.
    ///
    /// # Errors
    /// If there is no such class, or no threshold can be chosen.
    pub fn new(trained: &Trained, wishes: &Wishes) -> Result<Self> {
        let classes = trained.classes();
        let kind = trained.outcome().kind();
        if !kind.is_class() && (wishes.positive.is_some() || wishes.goal.is_some()) {
            bail!(
                "a positive class and its threshold are chosen among classes, but the run's outcome is {}: leave them out",
                kind.name()
            );
        }
        let calibrated = !wishes.uncalibrated && trained.calibration.is_some();
        let named = match &wishes.positive {
            None => None,
            Some(name) => match classes.iter().position(|class| class == name) {
                Some(class) => Some(class),
                None => {
                    let known: Vec<&str> = classes.iter().map(String::as_str).collect();
                    bail!("--positive {name}: {}", one_of(name, &known))
                }
            },
        };
        let (positive, said) = match (named, trained.manifest.positive()) {
            (Some(class), _) => (Some(class), Some("as --positive says".to_owned())),
            (None, Some(of_run)) => (Some(of_run.class), Some(of_run.why.to_string())),
            (None, None) => (None, None),
        };
        let name = positive.and_then(|class| classes.get(class)).cloned();
        let operating = match wishes.goal {
            None => None,
            Some(goal) => {
                let Some(positive) = positive else {
                    bail!(
                        "a threshold applies to one class, but there are {}: choose one with --positive, one of {}",
                        classes.len(),
                        classes.join(", ")
                    );
                };
                Some(operating(trained, calibrated, positive, goal)?)
            }
        };
        Ok(Deciding {
            calibrated,
            positive,
            said: name.zip(said),
            operating,
        })
    }

    /// From probabilities to a class.
    pub fn decision(&self) -> Decision {
        self.operating
            .map_or(Decision::Largest, |chosen| chosen.decision())
    }

    /// The probability from which on the positive class is predicted, chosen on the validation patients; infinite if none
    /// meets the goal.
    pub fn threshold(&self) -> Option<f32> {
        Some(self.operating?.threshold)
    }

    /// The name of the positive class.
    pub fn positive_name(&self) -> Option<&str> {
        self.said.as_ref().map(|(name, _)| name.as_str())
    }

    /// A description for people.
    pub fn about(&self, trained: &Trained) -> Vec<String> {
        let name = trained.classes().first().map_or("", String::as_str);
        match trained.outcome() {
            Outcome::Class | Outcome::Labels => {}
            Outcome::Quantity { .. } => {
                let what = match trained.experiment.train.loss {
                    LossName::Squared => "the mean that is expected".to_owned(),
                    LossName::Huber => "what is expected, with outliers counting less".to_owned(),
                    LossName::Quantile => {
                        let quantile = trained.experiment.train.quantile;
                        format!("a value that a share of {quantile} is expected to be below")
                    }
                };
                return vec![format!("The prediction is a quantity, {name:?}: {what}")];
            }
            Outcome::Survival { ends } => {
                let horizon = ends.last().copied().unwrap_or_default() as f32;
                return vec![format!(
                    "The prediction is the probability of no event, {name:?}, until the end of each of {} intervals, the last at {horizon}",
                    ends.len()
                )];
            }
        }
        let samples = counted(trained.calibrated_on as u64, "validation sample");
        let mut lines = vec![match (self.calibrated, trained.why_not_calibrated()) {
            (true, _) => format!("Probabilities are calibrated on {samples}"),
            (false, Some(why)) => {
                format!("Probabilities are the model's own: they cannot be calibrated{why}")
            }
            (false, None) => "Probabilities are the model's own, not calibrated".into(),
        }];
        if let Some((name, why)) = &self.said {
            lines.push(format!("The positive class is {name:?} ({why})"));
        }
        lines.push(match &self.operating {
            None if trained.outcome().kind() == Kind::Labels => {
                "A label is predicted when its probability is above one half".into()
            }
            None => "The prediction is the most likely class".into(),
            Some(chosen) if chosen.threshold.is_infinite() => format!(
                "No threshold that meets the goal predicts {:?}: sensitivity is 0",
                trained.classes()[chosen.positive]
            ),
            Some(chosen) => format!(
                "Predicts {:?} when its probability is at least {:.4}: sensitivity {:.3} and specificity {:.3} on the validation samples",
                trained.classes()[chosen.positive],
                chosen.threshold,
                chosen.sensitivity,
                chosen.specificity
            ),
        });
        lines
    }

    /// The same for a script.
    pub fn add_to(&self, trained: &Trained, value: &mut Value) {
        value["calibration"] = match self.calibrated {
            true => json!(trained.calibration),
            false => Value::Null,
        };
        value["positive"] = match &self.said {
            Some((class, why)) => json!({ "class": class, "why": why }),
            None => Value::Null,
        };
        value["validation_samples"] = json!(trained.calibrated_on);
        value["threshold"] = match &self.operating {
            None => Value::Null,
            // JSON has no infinity: a threshold that nobody reaches.
            Some(chosen) => json!({
                "positive": trained.classes()[chosen.positive],
                "probability": chosen.threshold.is_finite().then_some(chosen.threshold),
                "sensitivity": chosen.sensitivity,
                "specificity": chosen.specificity,
            }),
        };
    }
}

fn operating(
    trained: &Trained,
    calibrated: bool,
    positive: usize,
    goal: Goal,
) -> Result<Operating> {
    let Some((answers, targets)) = trained.validated(calibrated) else {
        if trained.validation.is_some() {
            bail!(
                "no threshold can be chosen: the model does not answer for all validation samples"
            );
        }
        if trained.manifest.data.validation_samples > 0 {
            bail!(
                "a threshold is chosen on what the model says of each validation sample, which only the hospitals of a deployed run know: leave it out, and choose one on data of your own with `selvedge evaluate`"
            );
        }
        bail!(
            "a threshold is chosen on validation samples, but the run has none: train with data.validation above 0, like --set data.validation=0.2"
        );
    };
    let classes = trained.classes();
    match Operating::choose(&answers, targets.classes(), classes.len(), positive, goal) {
        Some(chosen) => Ok(chosen),
        None => bail!(
            "no threshold can be chosen: of the {} validation samples, all or none are of the class {:?}",
            targets.len(),
            classes[positive]
        ),
    }
}

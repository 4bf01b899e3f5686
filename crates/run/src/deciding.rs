//! How a trained model's probabilities become a class, as somebody wants it.

use crate::error::{Result, bail};
use crate::format::count;
use crate::trained::Trained;
use selvedge_core::assess::{Decision, Goal, Operating};
use selvedge_core::experiment::one_of;
use serde_json::{Value, json};

/// What is wanted of the probabilities and of the class.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Probabilities as the model says them.
    pub uncalibrated: bool,
    /// The class that is looked for; by default the second of two.
    pub positive: Option<String>,
    /// What a threshold for it is chosen by, on the validation patients; without one the likeliest class is taken.
    pub goal: Option<Goal>,
}

/// Which probabilities, and which class.
pub struct Deciding {
    /// Whether probabilities are corrected.
    pub calibrated: bool,
    /// The class that is looked for, where one is.
    pub positive: Option<usize>,
    operating: Option<Operating>,
}

impl Deciding {
    /// What is wanted, chosen on the validation patients.
    ///
    /// # Errors
    /// If there is no such class, or no threshold can be chosen.
    pub fn new(trained: &Trained, wishes: &Wishes) -> Result<Self> {
        let classes = trained.classes();
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
        let positive = named.or((classes.len() == 2).then_some(1));
        let operating = match wishes.goal {
            None => None,
            Some(goal) => {
                let Some(positive) = positive else {
                    bail!(
                        "a threshold is of one class, and there are {}: say which with --positive, one of {}",
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
            operating,
        })
    }

    /// From probabilities to a class.
    pub fn decision(&self) -> Decision {
        self.operating
            .map_or(Decision::Largest, |chosen| chosen.decision())
    }

    /// What a person should know about it.
    pub fn about(&self, trained: &Trained) -> Vec<String> {
        let validated = trained.validation.as_ref().map_or(0, |v| v.labels.len());
        let patients = count(validated as u64);
        let mut lines = vec![match (self.calibrated, validated) {
            (true, _) => format!("Probabilities are calibrated on {patients} validation patients"),
            (false, 0) => "Probabilities are as the model says them: without validation patients (data.validation) they cannot be calibrated".into(),
            (false, _) => "Probabilities are as the model says them, not calibrated".into(),
        }];
        lines.push(match &self.operating {
            None => "The prediction is the likeliest class".into(),
            Some(chosen) if chosen.threshold.is_infinite() => format!(
                "The prediction is never {:?}: that reaches the goal already",
                trained.classes()[chosen.positive]
            ),
            Some(chosen) => format!(
                "The prediction is {:?} from a probability of {:.4} on: sensitivity {:.3} and specificity {:.3} on the validation patients",
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
        value["validation_samples"] =
            json!(trained.validation.as_ref().map_or(0, |v| v.labels.len()));
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
    let Some((probabilities, labels)) = trained.validated(calibrated) else {
        bail!(
            "a threshold is chosen on validation patients, and the run has none: train with data.validation above 0, like --set data.validation=0.2"
        );
    };
    let classes = trained.classes();
    match Operating::choose(&probabilities, labels, classes.len(), positive, goal) {
        Some(chosen) => Ok(chosen),
        None => bail!(
            "no threshold can be chosen: the {} validation patients are all, or none of them, of the class {:?}",
            labels.len(),
            classes[positive]
        ),
    }
}

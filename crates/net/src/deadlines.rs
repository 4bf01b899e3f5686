//! How long a party waits for others; defined only here.
//!
//! A deadline starts when the first of the awaited parties is there, so computing takes as long as it takes, and only
//! stragglers are cut off. Whoever is missing at the deadline is absent for that phase, if enough others are there
//! ([`Quorum`]); otherwise the party keeps waiting, and reports it. Without deadlines a party waits for everybody
//! indefinitely: the model is then that of a simulation in which nobody is absent.

use selvedge_core::role::{Phase, Quorum};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Seconds for each phase; none where there is no deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deadlines {
    /// Until all drawn devices have sent ζ2.
    pub exchange: Option<f64>,
    /// Until all devices have sent their models.
    pub upload: Option<f64>,
    /// Until all groups have sent their models to the cloud.
    pub global: Option<f64>,
    /// Until all groups have evaluated a model.
    pub evaluation: Option<f64>,
    /// The share of drawn devices that must be there.
    pub device_quorum: f64,
    /// The share of groups that must be there.
    pub group_quorum: f64,
}

impl Deadlines {
    /// How long a phase may take.
    pub fn of(&self, phase: Phase) -> Option<Duration> {
        let seconds = match phase {
            Phase::Exchange => self.exchange,
            Phase::Upload => self.upload,
            Phase::Global => self.global,
            Phase::Evaluation => self.evaluation,
        };
        seconds.map(Duration::from_secs_f64)
    }

    /// Who must be there.
    pub fn quorum(&self) -> Quorum {
        Quorum {
            devices: self.device_quorum,
            groups: self.group_quorum,
        }
    }

    /// What is wrong with these numbers, if anything is.
    ///
    /// # Errors
    /// The key, its value, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let seconds = [
            ("exchange", self.exchange),
            ("upload", self.upload),
            ("global", self.global),
            ("evaluation", self.evaluation),
        ];
        for (key, value) in seconds {
            if let Some(value) = value.filter(|v| !(*v > 0.0 && *v <= 1e7)) {
                return Err(format!(
                    "deadlines.{key} = {value}: choose a number of seconds above 0, at most 10,000,000, or leave it out"
                ));
            }
        }
        let shares = [
            ("device_quorum", self.device_quorum),
            ("group_quorum", self.group_quorum),
        ];
        for (key, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(format!(
                    "deadlines.{key} = {value}: choose a share from 0 to 1"
                ));
            }
        }
        Ok(())
    }
}

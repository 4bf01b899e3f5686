//! Simulated time: what the messages and the computation of a run would take on given links.
//!
//! Links are per subscriber and full duplex: devices, edges and hospitals have one each, the cloud has
//! none. Devices send in parallel, groups run in parallel, and the slowest counts where they meet: devices
//! at the edge, groups at a global aggregation.
//!
//! ```text
//! t_l = θ2 up and down                                    local aggregation
//! t_e = max( ζ2: device → edge → hospital ,               exchange
//!            θ0 and ζ1: hospital → edge → device )
//! t_g = max(θ0 + θ1, θ2) up and down                      global aggregation
//! t   = t_g + (P/Q)(t_l + t_e) + P·t_c                    one global interval
//! ```

use crate::experiment::TimeSettings;
use crate::model::Widths;
use serde::{Deserialize, Serialize};

/// Bits of one number on the wire.
const BITS: f64 = 32.0;

/// What an interval of one group sends, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Devices that take part.
    pub devices: usize,
    /// Samples of all of them.
    pub samples: usize,
    /// Samples of the device that has most.
    pub largest: usize,
}

/// Seconds for the parts of a run.
#[derive(Clone, Debug)]
pub struct Rates<'a> {
    settings: &'a TimeSettings,
    widths: Widths,
}

impl<'a> Rates<'a> {
    /// The links of an experiment.
    pub fn new(settings: &'a TimeSettings, widths: Widths) -> Self {
        Rates { settings, widths }
    }

    /// How many devices share one uplink.
    fn sharing(&self, devices: usize) -> f64 {
        if self.settings.shared_uplink {
            devices as f64
        } else {
            1.0
        }
    }

    /// t_l: every device's model up and the mean down.
    pub fn local_aggregation(&self, devices: usize) -> f64 {
        let s = self.settings;
        let bits = BITS * self.widths.n2 as f64;
        bits * (self.sharing(devices) / s.mobile_up + 1.0 / s.mobile_down)
    }

    /// t_e: ζ2 one way, θ0 and ζ1 the other.
    pub fn exchange(&self, traffic: Traffic) -> f64 {
        let (s, w) = (self.settings, self.widths);
        let Traffic {
            devices,
            samples,
            largest,
        } = traffic;
        let fixed = s.fixed_up.min(s.fixed_down);
        let numbers = |n: usize| BITS * n as f64;
        let up = self.sharing(devices) * numbers(largest * w.d2) / s.mobile_up
            + numbers(samples * w.d2) / fixed;
        let down =
            numbers(w.n0 + samples * w.d1) / fixed + numbers(w.n0 + largest * w.d1) / s.mobile_down;
        if s.sequential_exchange {
            up + down
        } else {
            up.max(down)
        }
    }

    /// t_g: the models of hospital and edge up, side by side, and down again.
    pub fn global_aggregation(&self) -> f64 {
        let (s, w) = (self.settings, self.widths);
        let bits = BITS * (w.n0 + w.n1).max(w.n2) as f64;
        bits * (1.0 / s.fixed_up + 1.0 / s.fixed_down)
    }

    /// t_c, as set in the experiment.
    pub fn iteration(&self) -> f64 {
        self.settings.compute_seconds() * self.settings.compute_scale
    }
}

/// How far each group has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    groups: Vec<f64>,
}

impl Clock {
    /// All groups at zero.
    pub fn new(groups: usize) -> Self {
        Clock {
            groups: vec![0.0; groups],
        }
    }

    /// One group works for a while.
    pub fn advance(&mut self, group: usize, seconds: f64) {
        self.groups[group] += seconds;
    }

    /// All groups meet: the slowest counts, and `seconds` come on top.
    pub fn meet(&mut self, seconds: f64) {
        let now = self.seconds() + seconds;
        self.groups.fill(now);
    }

    /// The time of the group that is furthest.
    pub fn seconds(&self) -> f64 {
        self.groups
            .iter()
            .fold(0.0, |latest, &t| if t > latest { t } else { latest })
    }
}

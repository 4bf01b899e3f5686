//! Simulated time: what the messages and the computation of a run would take on given links.
//!
//! Links are per subscriber and full duplex: devices, edges and hospitals have one each, the cloud has none. Devices
//! send in parallel, groups run in parallel, and the slowest counts where they meet: devices at the edge, groups at a
//! global aggregation.
//!
//! ```text
//! t_l = θ2 up and down                                    local aggregation
//! t_e = max( ζ2: device → edge → hospital ,               exchange
//!            θ0 and ζ1: hospital → edge → device )
//! t_g = max(θ0 + θ1, θ2) up and down                      global aggregation
//! t   = t_g + (P/Q)(t_l + t_e) + P·t_c                    one global interval
//! ```

use crate::experiment::TimeSettings;
use crate::ledger::{Messages, Payload};
use serde::{Deserialize, Serialize};

/// Bits of some messages of one size.
fn bits(payload: Payload, messages: usize) -> f64 {
    8.0 * payload.times(messages).bytes as f64
}

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
}

impl<'a> Rates<'a> {
    /// The links of an experiment.
    pub fn new(settings: &'a TimeSettings) -> Self {
        Rates { settings }
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
    pub fn local_aggregation(&self, sizes: &Messages, devices: usize) -> f64 {
        let s = self.settings;
        bits(sizes.theta2_up, 1) * (self.sharing(devices) / s.mobile_up)
            + bits(sizes.theta2_down, 1) / s.mobile_down
    }

    /// t_e: ζ2 one way, θ0 and ζ1 the other.
    pub fn exchange(&self, sizes: &Messages, traffic: Traffic) -> f64 {
        let s = self.settings;
        let Traffic {
            devices,
            samples,
            largest,
        } = traffic;
        let fixed = s.fixed_up.min(s.fixed_down);
        let up = self.sharing(devices) * bits(sizes.zeta2, largest) / s.mobile_up
            + bits(sizes.zeta2, samples) / fixed;
        let down = (bits(sizes.theta0, 1) + bits(sizes.zeta1, samples)) / fixed
            + (bits(sizes.theta0_to_device, 1) + bits(sizes.zeta1, largest)) / s.mobile_down;
        if s.sequential_exchange {
            up + down
        } else {
            up.max(down)
        }
    }

    /// t_g: the models of hospital and edge up, side by side, and down again.
    pub fn global_aggregation(&self, up: &[Payload; 3], down: &[Payload; 3]) -> f64 {
        let s = self.settings;
        let slower = |[theta0, theta1, theta2]: &[Payload; 3]| {
            (bits(*theta0, 1) + bits(*theta1, 1)).max(bits(*theta2, 1))
        };
        slower(up) / s.fixed_up + slower(down) / s.fixed_down
    }

    /// JFL's exchange: ζ2 from each device to its hospital, θ0 and ζ1 from there to each device, by the device's link.
    pub fn pair_exchange(&self, sizes: &Messages, traffic: Traffic) -> f64 {
        let s = self.settings;
        let Traffic {
            devices, largest, ..
        } = traffic;
        let up = self.sharing(devices) * bits(sizes.zeta2, largest) / s.mobile_up;
        let down = (bits(sizes.theta0_to_device, 1) + bits(sizes.zeta1, largest)) / s.mobile_down;
        if s.sequential_exchange {
            up + down
        } else {
            up.max(down)
        }
    }

    /// JFL's aggregation, up: each device's θ2 and the hospital's (θ0, θ1) for each of them.
    pub fn pair_upload(&self, [theta0, theta1, theta2]: &[Payload; 3], pairs: usize) -> f64 {
        let s = self.settings;
        let hospital = bits(*theta0, pairs) + bits(*theta1, pairs);
        let device = self.sharing(pairs) * bits(*theta2, 1);
        (device / s.mobile_up).max(hospital / s.fixed_up)
    }

    /// JFL's aggregation, down again.
    pub fn pair_download(&self, [theta0, theta1, theta2]: &[Payload; 3], pairs: usize) -> f64 {
        let s = self.settings;
        let hospital = bits(*theta0, pairs) + bits(*theta1, pairs);
        (bits(*theta2, 1) / s.mobile_down).max(hospital / s.fixed_down)
    }

    /// Raw data that several hospitals bring to one of them: `each` the bytes of one, `all` those that arrive.
    pub fn merge(&self, each: f64, all: f64) -> f64 {
        let s = self.settings;
        (8.0 * each / s.fixed_up).max(8.0 * all / s.fixed_down)
    }

    /// Raw data that leaves the devices for their edge: `each` the bytes of one device, `all` those of its group.
    pub fn devices_give(&self, each: f64, all: f64) -> f64 {
        let s = self.settings;
        let on_one_link = if s.shared_uplink { all } else { each };
        8.0 * on_one_link / s.mobile_up
    }

    /// Raw data that leaves an edge for its hospital.
    pub fn edge_gives(&self, all: f64) -> f64 {
        8.0 * all / self.settings.fixed_up.min(self.settings.fixed_down)
    }

    /// Raw data that leaves an edge or a hospital for the cloud, whose own link is no limit.
    pub fn cloud_takes(&self, all: f64) -> f64 {
        8.0 * all / self.settings.fixed_up
    }

    /// t_c, as set in the experiment.
    pub fn iteration(&self) -> f64 {
        self.settings.compute_seconds() * self.settings.compute_scale
    }
}

/// How far each group has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// When all groups met last; runs of earlier versions counted from the start.
    #[serde(default)]
    met: f64,
    /// How long each has worked since.
    groups: Vec<f64>,
}

impl Clock {
    /// All groups at zero.
    pub fn new(groups: usize) -> Self {
        Clock {
            met: 0.0,
            groups: vec![0.0; groups],
        }
    }

    /// How many groups it has.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// One group works for a while.
    pub fn advance(&mut self, group: usize, seconds: f64) {
        self.groups[group] += seconds;
    }

    /// How long a group has worked since all met, as it has counted itself.
    pub(crate) fn worked(&mut self, group: usize, seconds: f64) {
        self.groups[group] = seconds;
    }

    /// All groups meet: the slowest counts, and `seconds` come on top.
    pub fn meet(&mut self, seconds: f64) {
        self.met = self.seconds() + seconds;
        self.groups.fill(0.0);
    }

    /// The time of the group that is furthest.
    pub fn seconds(&self) -> f64 {
        let longest = |longest, &t: &f64| if t > longest { t } else { longest };
        self.met + self.groups.iter().fold(0.0, longest)
    }
}

//! What parties say to each other.

use crate::adaptive::Report;
use crate::codec::Codec;
use crate::schedule::Segment;
use selvedge_nn::random::Key;
use serde::{Deserialize, Serialize};

/// Numbers on the wire: as they are, or in a codec's frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numbers {
    /// As they are.
    Dense(Vec<f32>),
    /// In a frame of the codec that the experiment names for such messages.
    Frame(Vec<u8>),
}

impl Numbers {
    /// Packs numbers.
    pub(crate) fn pack(codec: Codec, key: Key, values: &[f32]) -> Self {
        if codec == Codec::None {
            return Numbers::Dense(values.to_vec());
        }
        let mut frame = Vec::new();
        codec.encode(key, values, &mut frame);
        Numbers::Frame(frame)
    }

    /// The numbers, if there are `count` of them.
    pub(crate) fn unpack(&self, codec: Codec, key: Key, count: usize) -> Option<Vec<f32>> {
        match self {
            Numbers::Dense(values) => (values.len() == count).then(|| values.clone()),
            Numbers::Frame(frame) => {
                let mut values = vec![0.0; count];
                codec.decode(key, frame, &mut values).ok()?;
                Some(values)
            }
        }
    }
}

/// A message. `t` is the iteration at which the interval or the aggregation it belongs to begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// Edge → device: take part, with this θ2 and these steps.
    Invite {
        /// The interval.
        t: u64,
        /// Q and η.
        segment: Segment,
        /// `θ2[m]`
        theta2: Numbers,
    },
    /// Device → edge: ζ2 of its samples.
    Zeta2 {
        /// The interval.
        t: u64,
        /// A row for each sample.
        zeta2: Vec<Numbers>,
    },
    /// Edge → hospital: ζ2 of those who are there.
    Batch {
        /// The interval.
        t: u64,
        /// By position of the subset: the rows of a device, nothing if it is absent.
        zeta2: Vec<Option<Vec<Numbers>>>,
    },
    /// Hospital → edge: θ0, and ζ1 of those who are there.
    Frozen {
        /// The interval.
        t: u64,
        /// θ0; nothing if nobody is there.
        theta0: Option<Numbers>,
        /// By position of the subset.
        zeta1: Vec<Option<Vec<Numbers>>>,
    },
    /// Edge → device: θ0 and its own ζ1.
    Lesson {
        /// The interval.
        t: u64,
        /// θ0
        theta0: Numbers,
        /// A row for each sample.
        zeta1: Vec<Numbers>,
    },
    /// Device → edge: its model after its steps, or the difference to what it was sent.
    Model {
        /// The interval.
        t: u64,
        /// `θ2[m][n]`
        theta2: Numbers,
    },
    /// Hospital → cloud, at a global aggregation.
    HospitalModel {
        /// The aggregation.
        t: u64,
        /// `θ0[m]`, or the difference to the last θ0.
        theta0: Numbers,
        /// `θ1[m]`, likewise.
        theta1: Numbers,
        /// For who steers.
        report: Option<Report>,
    },
    /// Edge → cloud, at a global aggregation.
    EdgeModel {
        /// The aggregation.
        t: u64,
        /// `θ2[m]`, or the difference to the last θ2.
        theta2: Numbers,
    },
    /// Cloud → hospital and edge: the parts of θ that it needs, and what comes next.
    Global {
        /// The aggregation.
        t: u64,
        /// θ0 and θ1 for the hospital, θ2 for the edge.
        parts: Vec<Numbers>,
        /// The aggregation whose θ they are differences to; nothing if they are whole.
        since: Option<u64>,
        /// P, Q and η from here on.
        segment: Segment,
        /// Whether what the group has lost by compression is of no use any more: its models are not in it, or θ is one of before.
        anew: bool,
        /// Whether the run is over.
        ended: bool,
    },
}

//! Which algorithm trains.

use super::keys::one_of;
use serde::{Deserialize, Serialize};

/// `train.algorithm`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Algorithm {
    /// The paper's Algorithm 1.
    Hsgd,
    /// The same, with θ0, ζ1 and ζ2 compressed.
    CHsgd,
    /// A model of its own for each pair of hospital and device, all of them averaged by the cloud.
    Jfl,
    /// All groups merged into one; no global aggregation, but raw data moves first.
    Tdcd,
    /// The same, with θ0, ζ1 and ζ2 compressed.
    CTdcd,
    /// All data in one place: not permitted in practice; a yardstick for the others.
    Centralised,
    /// Federated averaging over hospitals that were given their devices' raw data.
    FedAvg,
    /// Federated averaging over hospitals, without anything of the devices.
    HospitalOnly,
    /// Federated averaging over devices, without anything of the hospitals.
    DeviceOnly,
}

/// One side of a patient's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// x1, at the hospital.
    Hospital,
    /// x2, on the device.
    Device,
}

impl Algorithm {
    /// All there are; the paper's five first.
    pub const ALL: [Algorithm; 9] = [
        Algorithm::Hsgd,
        Algorithm::Jfl,
        Algorithm::Tdcd,
        Algorithm::CHsgd,
        Algorithm::CTdcd,
        Algorithm::Centralised,
        Algorithm::FedAvg,
        Algorithm::HospitalOnly,
        Algorithm::DeviceOnly,
    ];

    /// Those that the paper compares, in the order of its tables.
    pub const PAPER: [Algorithm; 5] = [
        Algorithm::Hsgd,
        Algorithm::Jfl,
        Algorithm::Tdcd,
        Algorithm::CHsgd,
        Algorithm::CTdcd,
    ];

    /// Their names, in the same order.
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = Self::ALL[i].name();
            i += 1;
        }
        names
    };

    /// Its name in files.
    ///
    /// ```
    /// use selvedge_core::experiment::Algorithm;
    /// assert_eq!(Algorithm::parse("c-hsgd").map(Algorithm::name), Ok("c-hsgd"));
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Hsgd => "hsgd",
            Algorithm::CHsgd => "c-hsgd",
            Algorithm::Jfl => "jfl",
            Algorithm::Tdcd => "tdcd",
            Algorithm::CTdcd => "c-tdcd",
            Algorithm::Centralised => "centralised",
            Algorithm::FedAvg => "fedavg",
            Algorithm::HospitalOnly => "hospital-only",
            Algorithm::DeviceOnly => "device-only",
        }
    }

    /// The algorithm of that name.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|a| a.name() == name);
        found.ok_or_else(|| one_of(name, &Self::NAMES))
    }

    /// Whether θ0 and embeddings go through codecs.
    pub const fn compresses(self) -> bool {
        matches!(self, Algorithm::CHsgd | Algorithm::CTdcd)
    }

    /// Whether all groups are one.
    pub const fn merges_groups(self) -> bool {
        matches!(
            self,
            Algorithm::Tdcd | Algorithm::CTdcd | Algorithm::Centralised
        )
    }

    /// Whether a hospital goes on from its own θ0 and θ1, and so has something to remember.
    pub const fn has_hospitals(self) -> bool {
        !matches!(self, Algorithm::Jfl | Algorithm::DeviceOnly)
    }

    /// Whether an edge goes on from its own θ2.
    pub const fn has_edges(self) -> bool {
        self.has_hospitals() && !matches!(self, Algorithm::HospitalOnly)
    }

    /// Whether a cloud averages the models of groups.
    pub const fn has_a_cloud(self) -> bool {
        !self.merges_groups()
    }

    /// Whether every step uses embeddings of the same iteration, as where both sides are in one place.
    pub const fn is_never_stale(self) -> bool {
        matches!(self, Algorithm::Centralised | Algorithm::FedAvg)
    }

    /// The side whose embedding is zero in training and evaluation.
    pub const fn blind_to(self) -> Option<Side> {
        match self {
            Algorithm::HospitalOnly => Some(Side::Device),
            Algorithm::DeviceOnly => Some(Side::Hospital),
            _ => None,
        }
    }
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Algorithm> for String {
    fn from(algorithm: Algorithm) -> Self {
        algorithm.name().into()
    }
}

impl TryFrom<String> for Algorithm {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::parse(&name).map_err(|right| format!("train.algorithm = \"{name}\": {right}"))
    }
}

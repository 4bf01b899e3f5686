//! Every byte that is sent, by link, kind and direction.
//!
//! Two counters are kept. `exact` counts every message. `paper` counts what the paper's C(P, Q) does: of
//! each interval the device models and ζ2 going up and θ0 and ζ1 leaving the hospital, of each global
//! aggregation θ1 going up. Both are sums over charged messages; closed forms only test them.

use crate::clock::Traffic;
use crate::model::Widths;
use serde::{Deserialize, Serialize};

/// Bytes of one number on the wire.
pub const WORD: u64 = 4;

/// Two parties that talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// A device and its edge.
    DeviceEdge,
    /// An edge and its hospital.
    EdgeHospital,
    /// A hospital and the cloud.
    HospitalCloud,
    /// An edge and the cloud.
    EdgeCloud,
}

/// What a message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The combined model.
    Theta0,
    /// The hospital tower.
    Theta1,
    /// The device tower.
    Theta2,
    /// Hospital embeddings.
    Zeta1,
    /// Device embeddings.
    Zeta2,
}

/// Which way a message goes: up is device → edge → hospital, and to the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Towards the cloud.
    Up,
    /// Away from it.
    Down,
}

impl Link {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Link::DeviceEdge => "device-edge",
            Link::EdgeHospital => "edge-hospital",
            Link::HospitalCloud => "hospital-cloud",
            Link::EdgeCloud => "edge-cloud",
        }
    }

    /// Who sends and who receives.
    pub fn ends(self, direction: Direction) -> (&'static str, &'static str) {
        let (below, above) = self.name().split_once('-').unwrap_or_default();
        match direction {
            Direction::Up => (below, above),
            Direction::Down => (above, below),
        }
    }
}

impl Kind {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Theta0 => "theta0",
            Kind::Theta1 => "theta1",
            Kind::Theta2 => "theta2",
            Kind::Zeta1 => "zeta1",
            Kind::Zeta2 => "zeta2",
        }
    }
}

impl Direction {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Between whom.
    pub link: Link,
    /// What.
    pub kind: Kind,
    /// Which way.
    pub direction: Direction,
    /// How many messages.
    pub messages: u64,
    /// How many bytes of payload.
    pub bytes: u64,
}

impl Entry {
    /// Whether the paper's C(P, Q) counts these messages.
    pub fn in_paper(&self) -> bool {
        use {Direction::*, Kind::*, Link::*};
        matches!(
            (self.link, self.kind, self.direction),
            (DeviceEdge, Theta2 | Zeta2, Up)
                | (EdgeHospital, Theta0 | Zeta1, Down)
                | (HospitalCloud, Theta1, Up)
        )
    }
}

/// All that was sent by all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    entries: Vec<Entry>,
}

impl Ledger {
    /// Charges `messages` messages that hold `words` numbers in all.
    pub fn charge(
        &mut self,
        link: Link,
        kind: Kind,
        direction: Direction,
        messages: usize,
        words: usize,
    ) {
        if messages == 0 {
            return;
        }
        let (messages, bytes) = (messages as u64, WORD * words as u64);
        let found = self
            .entries
            .binary_search_by_key(&(link, kind, direction), |e| (e.link, e.kind, e.direction));
        match found {
            Ok(at) => {
                self.entries[at].messages += messages;
                self.entries[at].bytes += bytes;
            }
            Err(at) => self.entries.insert(
                at,
                Entry {
                    link,
                    kind,
                    direction,
                    messages,
                    bytes,
                },
            ),
        }
    }

    /// The messages of one group's exchange.
    pub(crate) fn charge_exchange(&mut self, w: Widths, receivers: usize, traffic: Traffic) {
        use {Direction::*, Kind::*, Link::*};
        let Traffic {
            devices, samples, ..
        } = traffic;
        self.charge(DeviceEdge, Theta2, Down, receivers, receivers * w.n2);
        self.charge(DeviceEdge, Zeta2, Up, devices, samples * w.d2);
        if devices > 0 {
            self.charge(EdgeHospital, Zeta2, Up, 1, samples * w.d2);
            self.charge(EdgeHospital, Theta0, Down, 1, w.n0);
            self.charge(EdgeHospital, Zeta1, Down, 1, samples * w.d1);
        }
        self.charge(DeviceEdge, Theta0, Down, devices, devices * w.n0);
        self.charge(DeviceEdge, Zeta1, Down, devices, samples * w.d1);
    }

    /// The models of one group's hospital and edge, one way.
    pub(crate) fn charge_global(&mut self, w: Widths, direction: Direction, times: usize) {
        self.charge(
            Link::HospitalCloud,
            Kind::Theta0,
            direction,
            times,
            times * w.n0,
        );
        self.charge(
            Link::HospitalCloud,
            Kind::Theta1,
            direction,
            times,
            times * w.n1,
        );
        self.charge(
            Link::EdgeCloud,
            Kind::Theta2,
            direction,
            times,
            times * w.n2,
        );
    }

    /// The lines, by link, kind and direction.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Every byte.
    pub fn exact(&self) -> u64 {
        self.entries.iter().map(|e| e.bytes).sum()
    }

    /// The bytes that the paper counts.
    pub fn paper(&self) -> u64 {
        self.entries
            .iter()
            .filter(|e| e.in_paper())
            .map(|e| e.bytes)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_add_up_by_link_kind_and_direction() {
        let mut ledger = Ledger::default();
        ledger.charge(Link::DeviceEdge, Kind::Zeta2, Direction::Up, 3, 30);
        ledger.charge(Link::DeviceEdge, Kind::Theta2, Direction::Down, 1, 5);
        ledger.charge(Link::DeviceEdge, Kind::Zeta2, Direction::Up, 1, 10);
        ledger.charge(Link::EdgeCloud, Kind::Theta2, Direction::Up, 0, 0);
        assert_eq!(ledger.entries().len(), 2);
        let zeta2 = &ledger.entries()[1];
        assert_eq!(
            (zeta2.kind, zeta2.messages, zeta2.bytes),
            (Kind::Zeta2, 4, 160)
        );
        assert_eq!((ledger.exact(), ledger.paper()), (180, 160));
    }
}

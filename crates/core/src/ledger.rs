//! Every byte that is sent, by link, kind and direction.
//!
//! Two counters are kept. `exact` counts every message. `paper` counts what the paper's C(P, Q) does: of each interval
//! the device models and ζ2 going up and θ0 and ζ1 leaving the hospital, of each global aggregation θ1 going up. Both
//! are sums over charged messages; closed forms only test them.

use crate::clock::Traffic;
use crate::codec::Codec;
use crate::message_path::{Compression, Leg};
use crate::model::Widths;
use serde::{Deserialize, Serialize};

/// Bytes of one number on the wire.
pub const WORD: u64 = 4;

/// Two parties that exchange messages.
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
    /// A device and its hospital, without an edge between them (JFL).
    DeviceHospital,
    /// A device and the cloud (JFL).
    DeviceCloud,
    /// A hospital and another one, which all data is brought to (TDCD).
    HospitalHospital,
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
    /// Features and labels, where an algorithm gives them away.
    Raw,
    /// A few numbers for the controller of a steered run.
    Report,
    /// P, Q and η of a new segment.
    Settings,
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
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Link::DeviceEdge => "device-edge",
            Link::EdgeHospital => "edge-hospital",
            Link::HospitalCloud => "hospital-cloud",
            Link::EdgeCloud => "edge-cloud",
            Link::DeviceHospital => "device-hospital",
            Link::DeviceCloud => "device-cloud",
            Link::HospitalHospital => "hospital-hospital",
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
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Theta0 => "theta0",
            Kind::Theta1 => "theta1",
            Kind::Theta2 => "theta2",
            Kind::Zeta1 => "zeta1",
            Kind::Zeta2 => "zeta2",
            Kind::Raw => "raw",
            Kind::Report => "report",
            Kind::Settings => "settings",
        }
    }
}

impl Direction {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// What one message of each kind holds in a group's interval: θ of one device, ζ of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// θ0, to the edge.
    pub theta0: Payload,
    /// θ0, to one device.
    pub theta0_to_device: Payload,
    /// ζ1 of one sample.
    pub zeta1: Payload,
    /// ζ2 of one sample.
    pub zeta2: Payload,
    /// θ2, to one device.
    pub theta2_down: Payload,
    /// θ2, from one device.
    pub theta2_up: Payload,
}

impl Messages {
    /// Everything in a frame of its codec.
    pub fn new(w: Widths, codecs: &Compression) -> Self {
        Messages {
            theta0: codecs.payload(Leg::Theta0, w.n0),
            theta0_to_device: codecs.payload(Leg::Theta0ToDevices, w.n0),
            zeta1: codecs.payload(Leg::Zeta1, w.d1),
            zeta2: codecs.payload(Leg::Zeta2, w.d2),
            theta2_down: codecs.payload(Leg::DeviceModel, w.n2),
            theta2_up: codecs.payload(Leg::DeviceStep, w.n2),
        }
    }
}

/// What a message holds, as both counters see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// Bytes that travel.
    pub bytes: u64,
    /// Bits that the paper counts, where it counts the message.
    pub paper_bits: u64,
}

impl Payload {
    /// This many numbers as they are.
    pub fn dense(numbers: usize) -> Self {
        Payload::raw(WORD * numbers as u64)
    }

    /// This many bytes as they are.
    pub fn raw(bytes: u64) -> Self {
        Payload {
            bytes,
            paper_bits: 8 * bytes,
        }
    }

    /// This many numbers in a frame of a codec, whose length follows from these two alone.
    pub fn coded(codec: Codec, numbers: usize) -> Self {
        Payload {
            bytes: codec.frame_len(numbers) as u64,
            paper_bits: codec.paper_bits(numbers),
        }
    }

    /// Several of the same.
    #[must_use]
    pub fn times(self, n: usize) -> Self {
        Payload {
            bytes: self.bytes * n as u64,
            paper_bits: self.paper_bits * n as u64,
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
    /// How many bits of them the paper counts.
    pub paper_bits: u64,
}

impl Entry {
    fn counts(&self) -> [u64; 3] {
        [self.messages, self.bytes, self.paper_bits]
    }
}

/// What lines are in order of.
fn key(entry: &Entry) -> (Link, Kind, Direction) {
    (entry.link, entry.kind, entry.direction)
}

/// Whether the paper's C(P, Q) counts such messages. For JFL, which it gives no formula for, the same things are
/// counted where they travel; raw data is counted, as its figures for TDCD are.
fn in_paper(link: Link, kind: Kind, direction: Direction) -> bool {
    use {Direction::*, Kind::*, Link::*};
    matches!(
        (link, kind, direction),
        (DeviceEdge | DeviceCloud, Theta2, Up)
            | (DeviceEdge | DeviceHospital, Zeta2, Up)
            | (EdgeHospital | DeviceHospital, Theta0 | Zeta1, Down)
            | (HospitalCloud, Theta1, Up)
            | (_, Raw, _)
    )
}

/// All that was sent by all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    entries: Vec<Entry>,
}

impl Ledger {
    /// Charges `messages` messages that hold `payload` in all.
    pub fn charge(
        &mut self,
        link: Link,
        kind: Kind,
        direction: Direction,
        messages: usize,
        payload: Payload,
    ) {
        if messages == 0 {
            return;
        }
        let paper_bits = match in_paper(link, kind, direction) {
            true => payload.paper_bits,
            false => 0,
        };
        let found = self
            .entries
            .binary_search_by_key(&(link, kind, direction), key);
        let at = found.unwrap_or_else(|at| {
            let entry = Entry {
                link,
                kind,
                direction,
                messages: 0,
                bytes: 0,
                paper_bits: 0,
            };
            self.entries.insert(at, entry);
            at
        });
        let entry = &mut self.entries[at];
        // Groups that count nonsense must not take anybody down.
        entry.messages = entry.messages.saturating_add(messages as u64);
        entry.bytes = entry.bytes.saturating_add(payload.bytes);
        entry.paper_bits = entry.paper_bits.saturating_add(paper_bits);
    }

    /// Charges so many messages of a size up, and as many down.
    pub(crate) fn charge_both_ways(
        &mut self,
        link: Link,
        kind: Kind,
        messages: usize,
        each: Payload,
    ) {
        for direction in [Direction::Up, Direction::Down] {
            self.charge(link, kind, direction, messages, each.times(messages));
        }
    }

    /// The messages of one group's exchange: θ2 to `receivers`, ζ2 up, θ0 and ζ1 down.
    pub(crate) fn charge_exchange(&mut self, sizes: &Messages, receivers: usize, traffic: Traffic) {
        use {Direction::*, Kind::*, Link::*};
        let Traffic {
            devices, samples, ..
        } = traffic;
        let (zeta1, zeta2) = (sizes.zeta1.times(samples), sizes.zeta2.times(samples));
        let theta2 = sizes.theta2_down.times(receivers);
        self.charge(DeviceEdge, Theta2, Down, receivers, theta2);
        self.charge(DeviceEdge, Zeta2, Up, devices, zeta2);
        if devices > 0 {
            self.charge(EdgeHospital, Zeta2, Up, 1, zeta2);
            self.charge(EdgeHospital, Theta0, Down, 1, sizes.theta0);
            self.charge(EdgeHospital, Zeta1, Down, 1, zeta1);
        }
        let theta0 = sizes.theta0_to_device.times(devices);
        self.charge(DeviceEdge, Theta0, Down, devices, theta0);
        self.charge(DeviceEdge, Zeta1, Down, devices, zeta1);
    }

    /// The models of one group's hospital and edge, one way.
    pub(crate) fn charge_global(&mut self, sizes: &[Payload; 3], direction: Direction) {
        use {Kind::*, Link::*};
        let [theta0, theta1, theta2] = *sizes;
        self.charge(HospitalCloud, Theta0, direction, 1, theta0);
        self.charge(HospitalCloud, Theta1, direction, 1, theta1);
        self.charge(EdgeCloud, Theta2, direction, 1, theta2);
    }

    /// A ledger of these lines, if they are in order and each is there once.
    pub(crate) fn from_entries(entries: Vec<Entry>) -> Option<Self> {
        let ledger = Ledger { entries };
        ledger.is_in_order().then_some(ledger)
    }

    /// Whether the lines are in order and each is there once; one that was read may not be so.
    pub(crate) fn is_in_order(&self) -> bool {
        self.entries.is_sorted_by(|a, b| key(a) < key(b))
    }

    /// Adds what another ledger has become since it was `before`: nothing, where that has become less.
    pub(crate) fn absorb(&mut self, now: &Ledger, before: &Ledger) {
        for e in &now.entries {
            let place = |ledger: &Ledger| ledger.entries.binary_search_by_key(&key(e), key);
            let known = place(before).map_or([0; 3], |at| before.entries[at].counts());
            let at = place(self).unwrap_or_else(|at| {
                let nothing = Entry {
                    messages: 0,
                    bytes: 0,
                    paper_bits: 0,
                    ..*e
                };
                self.entries.insert(at, nothing);
                at
            });
            let entry = &mut self.entries[at];
            let new = |i: usize| e.counts()[i].saturating_sub(known[i]);
            entry.messages = entry.messages.saturating_add(new(0));
            entry.bytes = entry.bytes.saturating_add(new(1));
            entry.paper_bits = entry.paper_bits.saturating_add(new(2));
        }
    }

    /// Whether it can have become this from `before`: no line counts less.
    pub(crate) fn has_grown_from(&self, before: &Ledger) -> bool {
        before.entries.iter().all(|e| {
            let there = self.entries.binary_search_by_key(&key(e), key);
            let now = there.map_or([0; 3], |at| self.entries[at].counts());
            now.into_iter()
                .zip(e.counts())
                .all(|(now, before)| now >= before)
        })
    }

    /// The lines, by link, kind and direction.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Every byte.
    pub fn exact(&self) -> u64 {
        let bytes = self.entries.iter().map(|e| e.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// The bytes that the paper counts; compressed ones can be fractions.
    pub fn paper(&self) -> f64 {
        let bits = self.entries.iter().map(|e| e.paper_bits);
        bits.fold(0, u64::saturating_add) as f64 / 8.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_add_up_by_link_kind_and_direction() {
        let mut ledger = Ledger::default();
        ledger.charge(
            Link::DeviceEdge,
            Kind::Zeta2,
            Direction::Up,
            3,
            Payload::dense(30),
        );
        ledger.charge(
            Link::DeviceEdge,
            Kind::Theta2,
            Direction::Down,
            1,
            Payload::dense(5),
        );
        ledger.charge(
            Link::DeviceEdge,
            Kind::Zeta2,
            Direction::Up,
            1,
            Payload::dense(10),
        );
        ledger.charge(
            Link::EdgeCloud,
            Kind::Theta2,
            Direction::Up,
            0,
            Payload::default(),
        );
        assert_eq!(ledger.entries().len(), 2);
        let zeta2 = &ledger.entries()[1];
        assert_eq!(
            (zeta2.kind, zeta2.messages, zeta2.bytes),
            (Kind::Zeta2, 4, 160)
        );
        assert_eq!((ledger.exact(), ledger.paper()), (180, 160.0));
    }

    #[test]
    fn what_a_ledger_has_become_is_added_once_and_nonsense_is_borne() {
        let of = |bytes: &[(Kind, u64)]| {
            let mut ledger = Ledger::default();
            for (kind, bytes) in bytes {
                let payload = Payload {
                    bytes: *bytes,
                    paper_bits: *bytes,
                };
                ledger.charge(Link::EdgeCloud, *kind, Direction::Up, 1, payload);
            }
            ledger
        };
        let mut all = of(&[(Kind::Theta1, 5)]);
        let before = of(&[(Kind::Theta0, 10)]);
        let now = of(&[(Kind::Theta0, 12), (Kind::Theta2, 3)]);
        all.absorb(&now, &before);
        let found: Vec<_> = all.entries().iter().map(|e| (e.kind, e.bytes)).collect();
        assert_eq!(
            found,
            [(Kind::Theta0, 2), (Kind::Theta1, 5), (Kind::Theta2, 3)]
        );
        all.absorb(&Ledger::default(), &now);
        all.absorb(&before, &now);
        assert_eq!(all.exact(), 10, "what became less adds nothing");
        all.absorb(&of(&[(Kind::Theta1, u64::MAX)]), &Ledger::default());
        all.charge(
            Link::EdgeCloud,
            Kind::Theta1,
            Direction::Up,
            1,
            Payload::raw(1),
        );
        assert_eq!(all.exact(), u64::MAX);
        assert!(all.paper().is_finite());
        let entries = all.entries().iter().rev().cloned().collect();
        assert_eq!(Ledger::from_entries(entries), None);
    }
}

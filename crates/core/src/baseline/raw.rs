//! Raw data that an algorithm moves before it can train: the bytes and the time of what HSGD avoids.

use crate::clock::Rates;
use crate::ledger::{Direction, Kind, Link, Payload};
use crate::state::Progress;
use crate::task::Task;

/// S bytes of all groups, by who holds them.
struct Raw {
    /// M
    groups: usize,
    /// Features and labels of all hospitals.
    hospitals: u64,
    /// Features of all devices.
    devices: u64,
    /// Devices of all groups.
    senders: usize,
}

impl Raw {
    fn of(task: &Task<'_>) -> Self {
        let data = task.given;
        let (x1, x2) = (data.hospital.len() as u128, data.device.len() as u128);
        let all = task.raw_bytes();
        let devices = (u128::from(all) * x2 / (x1 + x2 + 1)) as u64;
        Raw {
            groups: data.groups.len(),
            hospitals: all - devices,
            devices,
            senders: data.devices(),
        }
    }

    /// A group's share of some bytes.
    fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.groups as f64
    }
}

/// TDCD: all groups but one bring what they hold to that one, (M − 1)/M of S.
pub(super) fn merge_groups(task: &Task<'_>, progress: &mut Progress) {
    let groups = task.given.groups.len();
    let all = task.raw_bytes();
    let moved = u128::from(all) * (groups as u128 - 1) / groups as u128;
    progress.ledger.charge(
        Link::HospitalHospital,
        Kind::Raw,
        Direction::Up,
        groups - 1,
        Payload::raw(moved as u64),
    );
    if groups > 1 {
        let each = all as f64 / groups as f64;
        let arrives = each * (groups - 1) as f64;
        let rates = Rates::new(&task.experiment.time);
        progress.clock.meet(rates.merge(each, arrives));
    }
}

/// Centralised training: hospitals and devices bring all of S to the cloud, devices by way of their edges.
pub(super) fn to_the_cloud(task: &Task<'_>, progress: &mut Progress) {
    let raw = Raw::of(task);
    let (up, kind) = (Direction::Up, Kind::Raw);
    let (ledger, groups) = (&mut progress.ledger, raw.groups);
    let hospitals = Payload::raw(raw.hospitals);
    let devices = Payload::raw(raw.devices);
    ledger.charge(Link::HospitalCloud, kind, up, groups, hospitals);
    ledger.charge(Link::DeviceEdge, kind, up, raw.senders, devices);
    ledger.charge(Link::EdgeCloud, kind, up, groups, devices);
    let rates = Rates::new(&task.experiment.time);
    let [hospital, edge] = [raw.hospitals, raw.devices].map(|b| rates.cloud_takes(raw.share(b)));
    progress
        .clock
        .meet(hospital.max(devices_give(&rates, &raw) + edge));
}

/// FedAvg on whole records: devices bring their part of S to their hospitals, by way of their edges.
pub(super) fn to_the_hospitals(task: &Task<'_>, progress: &mut Progress) {
    let raw = Raw::of(task);
    let (up, kind) = (Direction::Up, Kind::Raw);
    let devices = Payload::raw(raw.devices);
    let ledger = &mut progress.ledger;
    ledger.charge(Link::DeviceEdge, kind, up, raw.senders, devices);
    ledger.charge(Link::EdgeHospital, kind, up, raw.groups, devices);
    let rates = Rates::new(&task.experiment.time);
    let edge = rates.edge_gives(raw.share(raw.devices));
    progress.clock.meet(devices_give(&rates, &raw) + edge);
}

/// The time until the edges have what their devices give, all groups and all devices having equally much.
fn devices_give(rates: &Rates<'_>, raw: &Raw) -> f64 {
    let each = raw.devices as f64 / raw.senders as f64;
    rates.devices_give(each, raw.share(raw.devices))
}

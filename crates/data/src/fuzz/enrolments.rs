//! Enrolment: whatever a neighbour says at whatever moment, nobody breaks.

use crate::PseudonymKey;
use crate::enrol::{self, OwnSide};
use crate::table::{Bytes, Side};
use selvedge_core::enrol::{Enrolment, Terms};
use selvedge_core::experiment::{DataSettings, TableSettings};
use selvedge_core::outcome::Kind;
use selvedge_core::protocol::{Event, Outbox, Party, Protocol};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

const HOSPITAL: Party = Party::Hospital(0);
const EDGE: Party = Party::Edge(0);
const GATEWAY: Party = Party::Gateway(0, 0);

/// Who may speak to whom.
const PAIRS: [(Party, Party); 8] = [
    (GATEWAY, EDGE),
    (HOSPITAL, EDGE),
    (Party::Cloud, EDGE),
    (EDGE, HOSPITAL),
    (Party::Cloud, HOSPITAL),
    (EDGE, GATEWAY),
    (HOSPITAL, Party::Cloud),
    (EDGE, Party::Cloud),
];

/// The most messages of a proper enrolment that come before what is tried.
const MOST_STEPS: usize = 40;

/// What may be asked.
const KINDS: usize = Kind::ALL.len();

fn terms(kind: Kind) -> Option<Terms> {
    let texts = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
    let mut data = DataSettings {
        set: "table".into(),
        groups: 1,
        test: 0.1,
        table: TableSettings {
            id: "id".into(),
            label: "ill".into(),
            labels: texts(&["0", "1"]),
            hospital: texts(&["lab"]),
            device: texts(&["hr"]),
            ..TableSettings::default()
        },
        ..DataSettings::default()
    };
    let table = &mut data.table;
    if kind != Kind::Class {
        data.outcome = kind.name().into();
        table.labels.clear();
    }
    match kind {
        Kind::Class | Kind::Labels => {}
        Kind::Quantity => table.label = "days".into(),
        Kind::Survival => {
            (table.label, table.event) = ("days".into(), "died".into());
            (data.intervals, data.horizon) = (3, Some(12.0));
        }
    }
    enrol::terms(&data, 1).ok()
}

fn own(terms: &Terms, side: Side) -> Option<OwnSide> {
    let mut text = match side {
        Side::Hospital => "id,ill,days,died,lab\n".to_owned(),
        Side::Device => "id,hr\n".to_owned(),
    };
    for patient in 0..14 {
        text += &match side {
            // Enough have the event for when it was to be told.
            Side::Hospital => format!(
                "{patient},{},{patient},{},{patient}.5\n",
                patient % 2,
                u8::from(patient > 0)
            ),
            Side::Device => format!("{patient},{}\n", 60 + patient),
        };
    }
    let open = |_: &Path| -> std::io::Result<Box<dyn Bytes>> {
        Ok(Box::new(Cursor::new(text.clone().into_bytes())))
    };
    let tables = vec![super::place().to_owned()];
    OwnSide::read(terms, side, tables, PseudonymKey::new([7; 32]), &open).ok()
}

type World = BTreeMap<Party, Enrolment>;

fn world(kind: Kind) -> Option<World> {
    let terms = terms(kind)?;
    let hospital = own(&terms, Side::Hospital)?;
    let gateway = own(&terms, Side::Device)?;
    Some(BTreeMap::from([
        (Party::Cloud, Enrolment::cloud(terms.clone(), &[1])),
        (
            HOSPITAL,
            Enrolment::hospital(terms.clone(), 0, hospital, &[2]),
        ),
        (EDGE, Enrolment::edge(terms.clone(), 0, 1, &[3])),
        (GATEWAY, Enrolment::gateway(terms, (0, 0), 1, gateway, &[4])),
    ]))
}

/// What a party has to say, all of it.
fn says(party: &mut Enrolment) -> Vec<(Party, Vec<u8>)> {
    let mut outbox = Outbox::default();
    party.handle(Event::Retry, &mut outbox);
    let said = outbox.messages.iter();
    said.map(|(to, message)| (*to, party.encode(0, message).bytes))
        .collect()
}

/// Somebody says something to a party; what it answers at once is lost.
fn hears(party: &mut Enrolment, from: Party, bytes: &[u8]) {
    if let Some(message) = super::told(party.decode(0, bytes)) {
        party.handle(Event::Received(from, message), &mut Outbox::default());
    }
}

/// Delivers so many messages of a proper enrolment, each to `see` first.
fn deliver(world: &mut World, count: usize, see: &mut dyn FnMut(usize, &[u8])) {
    let mut next = 0;
    loop {
        let before = next;
        for (pair, (from, to)) in PAIRS.into_iter().enumerate() {
            let said = world.get_mut(&from).map(says).unwrap_or_default();
            for (_, bytes) in said.iter().filter(|(whom, _)| *whom == to) {
                if next == count {
                    return;
                }
                next += 1;
                see(pair, bytes);
                if let Some(party) = world.get_mut(&to) {
                    hears(party, from, bytes);
                    if party.to_write().is_some() {
                        party.written(Ok(()));
                    }
                }
            }
        }
        // Nobody has anything to say.
        if next == before {
            return;
        }
    }
}

/// The first byte says what is asked and how far a proper enrolment has got, the second who speaks to whom; the rest is
/// what is said, twice.
pub(super) fn enrolment(bytes: &[u8]) {
    let [steps, pair, said @ ..] = bytes else {
        return;
    };
    let steps = usize::from(*steps);
    let Some(mut world) = world(Kind::ALL[steps / MOST_STEPS % KINDS]) else {
        return;
    };
    deliver(&mut world, steps % MOST_STEPS, &mut |_, _| {});
    let (from, to) = PAIRS[usize::from(*pair) % PAIRS.len()];
    for _ in 0..2 {
        if let Some(party) = world.get_mut(&to) {
            hears(party, from, said);
            says(party);
        }
    }
    // The others hear what comes of it.
    deliver(&mut world, 8, &mut |_, _| {});
}

/// Every message of a proper enrolment, at its moment.
pub(super) fn enrolments() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, kind) in Kind::ALL.into_iter().enumerate() {
        let mut steps = number * MOST_STEPS;
        if let Some(mut world) = world(kind) {
            deliver(&mut world, MOST_STEPS - 1, &mut |pair, bytes| {
                let mut seed = vec![steps as u8, pair as u8];
                seed.extend_from_slice(bytes);
                seeds.push(seed);
                steps += 1;
            });
        }
    }
    seeds
}

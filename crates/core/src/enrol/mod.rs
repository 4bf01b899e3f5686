//! Enrolment: parties that hold their own tables determine who takes part and the common scaling, once, before
//! training.
//!
//! ```text
//!            Roll ►               ◄ Roll                   Totals ►
//!  gateway ◄───────► edge ◄──────────────► hospital ◄────────────────► cloud
//!            ◄ Share       Roster ►   ◄ Labels            ◄ Common
//!            Sums ►                 Totals ► (the edge's own link to the cloud) ◄ Common
//!            ◄ Common
//! ```
//!
//! - Measurements never leave the party that holds them. Patients are named by pseudonyms, which only the hospital and the
//!   gateways of a group can make; edge and cloud cannot reverse them.
//! - The edge matches the patients of hospital and gateways ([`Counts`]) and draws the held-out ones. It learns the pseudonyms
//!   and labels of its own group, as it does in training.
//! - What is asked need not be a class. Of a quantity hospital and edge sum up what they know of their group, as of a column;
//!   of survival they count events over time, no fewer than ten at once (`known`).
//! - Means and deviations come from sums, which are exact in any order (`ring`). A gateway masks its sums with secrets shared with
//!   each other gateway of its group, so that the edge sees only the group's total. The cloud sees one total for each group and
//!   side, of ten patients or more.
//! - All check the same digests, and then each writes its result ([`Enrolled`]).
//!
//! This protects against curious parties, not against cheating ones: an edge that chose rosters at will could learn
//! from their sums.
//!
//! [`Enrolment`] is one party without input and output. It sends its neighbours everything that they have not
//! acknowledged yet, at once when there is something new and again when nothing has happened for a while, so messages
//! may be lost, doubled, late or out of order. The cloud gives the enrolment a random number; when a party is restarted
//! the cloud gives another, and all start over. Hospital and gateways get the data of their own patients through
//! [`Holdings`], wherever it is stored.

mod cloud;
mod duty;
mod edge;
mod enrolled;
mod gateway;
mod holdings;
mod hospital;
mod index;
mod known;
mod line;
mod message;
mod ring;
mod roll;
mod terms;

pub use enrolled::{Enrolled, OwnPart, OwnShard};
pub use holdings::{Holdings, Rows};
pub use index::{Index, IndexGroup, VERSION as INDEX_VERSION};
pub use message::{Columns, Envelope};
pub use roll::{Counts, is_roll};
pub use terms::Terms;

use crate::protocol::{Doing, Event, Outbox, Packet, Party, Protocol, Unread};
use crate::statistics::Statistics;
use cloud::Cloud;
use duty::{Context, Duty, Trouble, Words};
use edge::Edge;
use gateway::Gateway;
use hospital::Hospital;
use line::Line;
use message::{Body, LONGEST_REASON, VERSION};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// No message is longer.
pub const LONGEST_MESSAGE: usize = 512 << 20;

/// The most gateways of a group.
pub const MOST_GATEWAYS: usize = 10_000;

/// Between who has stopped and why.
const STOPPED: &str = " has stopped: ";

/// One party that enrols.
pub struct Enrolment {
    at: Context,
    duty: Box<dyn Duty>,
    /// How many numbers the cloud has given.
    numbers: u64,
    /// Whether somebody was started again, so that another number is needed.
    again: bool,
    lines: BTreeMap<Party, Line>,
    enrolled: Option<Enrolled>,
    written: bool,
    failed: Option<Failure>,
}

/// Why a party has given up.
#[derive(Debug)]
struct Failure {
    /// For its own people.
    own: String,
    /// For its neighbours.
    told: String,
}

/// The fingerprint of a set that nobody has as a whole.
fn fingerprint(statistics: &Statistics, digests: &[String]) -> String {
    let all: Vec<String> = std::iter::once(statistics.fingerprint())
        .chain(digests.iter().cloned())
        .collect();
    short_digest("set", &all)
}

/// 32 digits for some texts.
fn short_digest(purpose: &str, texts: &[String]) -> String {
    let mut digest = Sha256::new();
    digest.update(purpose.as_bytes());
    for text in texts {
        digest.update([0]);
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text.as_bytes());
    }
    hex(&digest.finalize()[..16])
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Enrolment {
    /// The cloud. `random` is 16 bytes or more that nobody can guess.
    pub fn cloud(terms: Terms, random: &[u8]) -> Self {
        let groups = 0..terms.groups();
        let lines = groups.flat_map(|m| [Party::Hospital(m), Party::Edge(m)]);
        let lines = lines.collect();
        let duty = Box::new(Cloud::default());
        let mut cloud = Self::new(Party::Cloud, (terms, 0), duty, lines, random);
        cloud.renew();
        cloud
    }

    /// The hospital of a group.
    pub fn hospital(terms: Terms, group: usize, own: impl Holdings, random: &[u8]) -> Self {
        let lines = vec![Party::Cloud, Party::Edge(group)];
        let duty = Box::new(Hospital::new(own));
        Self::new(Party::Hospital(group), (terms, 0), duty, lines, random)
    }

    /// The edge of a group with so many gateways.
    pub fn edge(terms: Terms, group: usize, gateways: usize, random: &[u8]) -> Self {
        let own = [Party::Cloud, Party::Hospital(group)].into_iter();
        let lines = own.chain((0..gateways).map(|g| Party::Gateway(group, g)));
        let lines = lines.collect();
        let duty = Box::new(Edge::default());
        Self::new(Party::Edge(group), (terms, gateways), duty, lines, random)
    }

    /// A gateway: its group and its number, of so many.
    pub fn gateway(
        terms: Terms,
        (group, gateway): (usize, usize),
        gateways: usize,
        own: impl Holdings,
        random: &[u8],
    ) -> Self {
        let duty = Box::new(Gateway::new(own));
        let lines = vec![Party::Edge(group)];
        let party = Party::Gateway(group, gateway);
        Self::new(party, (terms, gateways), duty, lines, random)
    }

    fn new(
        party: Party,
        (terms, gateways): (Terms, usize),
        duty: Box<dyn Duty>,
        neighbours: Vec<Party>,
        random: &[u8],
    ) -> Self {
        let line = |party| (party, Line::default());
        Enrolment {
            at: Context {
                party,
                terms,
                gateways,
                life: short_digest("life", &[hex(random)]),
                number: None,
            },
            duty,
            numbers: 0,
            again: false,
            lines: neighbours.into_iter().map(line).collect(),
            enrolled: None,
            written: false,
            failed: None,
        }
    }

    /// The parties it exchanges messages with.
    pub fn neighbours(&self) -> Vec<Party> {
        self.lines.keys().copied().collect()
    }

    /// From whom it takes the enrolment's number.
    fn above(&self) -> Option<Party> {
        match self.at.party {
            Party::Cloud => None,
            Party::Hospital(_) | Party::Edge(_) => Some(Party::Cloud),
            Party::Gateway(m, _) => Some(Party::Edge(m)),
        }
    }

    /// The cloud begins another enrolment.
    fn renew(&mut self) {
        self.numbers += 1;
        let life = self.at.life.clone();
        let words = ["number".into(), life, self.numbers.to_string()];
        self.begin_anew(short_digest("enrolment", &words));
    }

    /// Begins the enrolment of that number; what was said in another is forgotten.
    fn begin_anew(&mut self, number: String) {
        if self.written {
            self.fail(Trouble::Told(format!(
                "the others started over after {} had finished: restart all parties, with --again",
                self.at.party
            )));
            return;
        }
        self.lines.values_mut().for_each(Line::reset);
        (self.again, self.enrolled) = (false, None);
        self.at.number = Some(number);
        let said = self.duty.begin(&self.at);
        self.push(said);
    }

    fn push(&mut self, said: Words) {
        for (to, body) in said {
            if let Some(line) = self.lines.get_mut(&to) {
                line.push(body);
            }
        }
    }

    fn fail(&mut self, trouble: Trouble) {
        let (own, told) = match trouble {
            Trouble::Told(why) => (why.clone(), why),
            Trouble::Own(error) => {
                let told = format!(
                    "the data of {} is invalid; the reason is shown there",
                    self.at.party
                );
                (error, told)
            }
        };
        let plain = |text: &str| -> String {
            let shown = text.chars().filter(|c| !c.is_control());
            shown.take(LONGEST_REASON).collect()
        };
        self.failed.get_or_insert(Failure {
            told: plain(&told),
            own,
        });
    }

    /// Says to each neighbour what it has not heard yet: everything, or what is another than before.
    fn speak(&mut self, everything: bool, outbox: &mut Outbox<Envelope>) {
        for (to, line) in &mut self.lines {
            let (place, body) = line.next();
            let head = Envelope {
                version: VERSION,
                about: self.at.terms.about.clone(),
                number: self.at.number.clone(),
                life: self.at.life.clone(),
                heard: line.heard,
                place,
                body: None,
                again: self.again,
                stopped: self.failed.as_ref().map(|failure| failure.told.clone()),
            };
            let said = Some((head.clone(), body.is_some()));
            if everything || line.said != said {
                let body = body.cloned();
                outbox.send(*to, Envelope { body, ..head });
                line.said = said;
            }
        }
    }

    /// A neighbour says something. Gives whether anything follows from it.
    fn hear(&mut self, from: Party, envelope: Envelope) -> bool {
        let (above, number) = (self.above(), self.at.number.clone());
        let Some(line) = self.lines.get_mut(&from).filter(|_| self.failed.is_none()) else {
            return false;
        };
        let complaint = match (
            envelope.version == VERSION,
            envelope.about == self.at.terms.about,
        ) {
            (false, _) => Some("it runs a different version of selvedge"),
            (_, false) => Some("it has a different experiment: [data] or the seed differs"),
            _ => None,
        };
        if let Some(complaint) = complaint {
            let news = line.complaint.as_deref() != Some(complaint);
            line.complaint = Some(complaint.into());
            return news;
        }
        line.complaint = None;
        let before = line.life.replace(envelope.life.clone());
        let mut news = before.is_none();
        // What was said to its former self is forgotten there, and what that said may not fit what this one will.
        let restarted = before.is_some_and(|life| life != envelope.life);
        let from_below = Some(from) != above && !self.is_beside(from);
        let asks = envelope.again && from_below && envelope.number == number;
        if (restarted || asks) && number.is_some() && !self.again {
            self.again = true;
            news = true;
            if self.at.party == Party::Cloud {
                self.renew();
            }
        }
        if Some(from) == above && envelope.number.is_some() && envelope.number != self.at.number {
            self.begin_anew(envelope.number.clone().unwrap_or_default());
            news = true;
        }
        if envelope.number.is_none() || envelope.number != self.at.number || self.failed.is_some() {
            return news;
        }
        if let Some(why) = envelope.stopped {
            let why: String = why.chars().take(LONGEST_REASON).collect();
            // Who was the first to stop is told, and not the whole way to here.
            self.fail(Trouble::Told(match why.contains(STOPPED) {
                true => why,
                false => format!("{from}{STOPPED}{why}"),
            }));
            return true;
        }
        let Some(line) = self.lines.get_mut(&from).filter(|_| !self.again) else {
            return news;
        };
        news |= line.acknowledge(envelope.heard);
        if let Some(body) = envelope.body.filter(|_| envelope.place == line.heard) {
            line.heard += 1;
            self.take(from, body);
            news = true;
        }
        news
    }

    /// Hospital and edge of a group are beside each other: neither passes on what the other asks of the cloud.
    fn is_beside(&self, other: Party) -> bool {
        matches!(
            (self.at.party, other),
            (Party::Hospital(_), Party::Edge(_)) | (Party::Edge(_), Party::Hospital(_))
        )
    }

    fn take(&mut self, from: Party, body: Body) {
        if let Body::Done(dataset) = &body {
            let own = self.enrolled.as_ref().and_then(|e| e.index.as_ref());
            let same = own.is_none_or(|(index, _)| index.dataset == *dataset);
            match (self.lines.get_mut(&from), same) {
                (Some(line), true) => line.done = true,
                _ => self.fail(Trouble::Told(format!(
                    "{from} has written a different data set"
                ))),
            }
            return;
        }
        match self.duty.heard(&self.at, from, body) {
            Ok((said, enrolled)) => {
                self.push(said);
                if enrolled.is_some() {
                    self.enrolled = enrolled;
                }
            }
            Err(trouble) => self.fail(trouble),
        }
    }

    /// What to write now: none before it is known, and none once it is [`written`](Self::written).
    pub fn to_write(&self) -> Option<&Enrolled> {
        self.enrolled
            .as_ref()
            .filter(|_| !self.written && self.failed.is_none())
    }

    /// It was written; or it could not be, which is reported to the others without a reason.
    pub fn written(&mut self, done: Result<(), String>) {
        let index = self.enrolled.as_ref().and_then(|e| e.index.as_ref());
        let Some(dataset) = index.map(|(index, _)| index.dataset.clone()) else {
            return;
        };
        match done {
            Ok(()) => {
                self.written = true;
                for line in self.lines.values_mut() {
                    line.push(Body::Done(dataset.clone()));
                }
            }
            Err(own) => {
                let told = format!("{} cannot write its data folder", self.at.party);
                self.failed.get_or_insert(Failure { own, told });
            }
        }
    }

    /// What it waits for, for people, and whom: who is not there, or cannot be listened to, or has not come so far.
    fn waits(&self) -> (String, Vec<Party>) {
        let of = |is: fn(&Line) -> bool| -> Vec<Party> {
            let lines = self.lines.iter().filter(|(_, line)| is(line));
            lines.map(|(party, _)| *party).collect()
        };
        let named = |parties: &[Party]| {
            let names: Vec<String> = parties.iter().map(Party::to_string).collect();
            names.join(", ")
        };
        let complaint = |(party, line): (&Party, &Line)| {
            let complaint = line.complaint.as_ref()?;
            Some(format!("{party}: {complaint}"))
        };
        let complaints: Vec<String> = self.lines.iter().filter_map(complaint).collect();
        let absent = of(|line| line.life.is_none());
        if !complaints.is_empty() {
            (complaints.join("; "), of(|line| line.complaint.is_some()))
        } else if !absent.is_empty() {
            let what = format!("waits for {}, not heard from yet", named(&absent));
            (what, absent)
        } else if self.written {
            let open = of(|line| !line.done);
            let what = format!("has written its data; waits for {}", named(&open));
            (what, open)
        } else if self.at.number.is_none() {
            let what = "waits for the cloud to number this enrolment".into();
            (what, vec![Party::Cloud])
        } else {
            let waits = self.duty.waits(&self.at);
            (format!("waits for {}", named(&waits)), waits)
        }
    }
}

impl Protocol for Enrolment {
    type Message = Envelope;

    fn party(&self) -> Party {
        self.at.party
    }

    fn begin(&mut self, _: Option<&[u8]>, outbox: &mut Outbox<Envelope>) -> Result<(), Unread> {
        self.speak(true, outbox);
        Ok(())
    }

    fn handle(&mut self, event: Event<Envelope>, outbox: &mut Outbox<Envelope>) {
        match event {
            Event::Received(from, envelope) => {
                let news = self.hear(from, envelope);
                // Who only says again that it has finished does not keep this one here.
                outbox.news = news || !self.is_over();
                // Once it is written there is more to say.
                outbox.go_on = self.to_write().is_some();
                self.speak(false, outbox);
            }
            Event::Retry => self.speak(true, outbox),
            Event::GoOn => self.speak(false, outbox),
            Event::Deadline(..) | Event::Appeared(_) | Event::Silenced(..) => {}
        }
    }

    fn encode(&self, _: u64, message: &Envelope) -> Packet {
        Packet {
            bytes: serde_json::to_vec(message).unwrap_or_default(),
            kind: "enrolment",
            is_of_evaluation: false,
            is_awaited: true,
        }
    }

    fn decode(&self, _: u64, bytes: &[u8]) -> Result<Envelope, Unread> {
        Envelope::read(bytes).map_err(|problem| Unread {
            why: "malformed",
            problem,
        })
    }

    fn doing(&self) -> Doing {
        let (what, missing) = self.waits();
        Doing {
            t: 0,
            what,
            missing,
            below_quorum: false,
            gone: Vec::new(),
        }
    }

    /// Whether there is nothing more to say or to hear.
    fn is_over(&self) -> bool {
        self.has_ended() && self.lines.values().all(Line::is_told)
    }

    /// Whether it has written everything and all neighbours have, though they may not know of each other yet.
    fn has_ended(&self) -> bool {
        self.written && self.lines.values().all(|line| line.done)
    }

    fn failure(&self) -> Option<String> {
        self.failed.as_ref().map(|failure| failure.own.clone())
    }
}

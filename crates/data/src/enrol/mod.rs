//! Enrolment: parties that hold tables of their own find out who takes part and what all scale by, once, before training.
//!
//! ```text
//!            Roll ►               ◄ Roll                   Totals ►
//!  gateway ◄───────► edge ◄──────────────► hospital ◄────────────────► cloud
//!            ◄ Part        Roster ►   ◄ Labels            ◄ Common
//!            Sums ►                 Totals ► (the edge's own link to the cloud) ◄ Common
//!            ◄ Common
//! ```
//!
//! - What was measured never leaves who holds it. Patients are named by pseudonyms, which only hospital and gateways of a group
//!   can make; edge and cloud cannot turn them back.
//! - The edge compares who is known to whom ([`Counts`]) and draws who is held out. It learns pseudonyms and labels of its own
//!   group, as it does in training.
//! - Means and deviations come from sums, which are exact in any order (`ring`). A gateway hides its sums by secrets that it shares
//!   with each other gateway of its group, so that the edge sees only the group's total. The cloud sees one total for each group and
//!   side, of ten patients or more.
//! - All check the same digests, and then each writes its own folder: what [`read_party`](crate::read_party) reads, and
//!   `enrolment.json`.
//!
//! It protects from who is curious, not from who cheats: an edge that made up rosters of its choice could learn from their sums.
//!
//! [`Enrolment`] is one party without input and output. It says everything that its neighbours have not heard yet
//! ([`say`](Enrolment::say)), again and again, so that messages may be lost, doubled, late and out of order. The cloud gives the
//! enrolment a random number; when somebody is started again it gives another, and all begin anew.

mod asked;
mod cloud;
mod edge;
mod enrolled;
mod gateway;
mod hospital;
mod line;
mod message;
mod own;
mod ring;
mod roll;
mod terms;

pub use asked::Asked;
pub use enrolled::{Enrolled, Summary, check_data_folder};
pub use own::OwnSide;
pub use roll::Counts;
pub use terms::Terms;

use crate::pseudonym::hex;
use crate::{DataError, Statistics};
use cloud::Cloud;
use edge::Edge;
use gateway::Gateway;
use hospital::Hospital;
use line::Line;
use message::{Body, Envelope, LONGEST_REASON, VERSION, is_hex};
use selvedge_core::role::Party;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// No message is longer.
pub const LONGEST_MESSAGE: usize = 512 << 20;

/// The most gateways of a group.
pub const MOST_GATEWAYS: usize = 10_000;

/// Between who has stopped and why.
const STOPPED: &str = " has stopped: ";

/// What is to be said, and to whom.
type Words = Vec<(Party, Body)>;

/// What a party knows while it listens.
struct Context<'a> {
    party: Party,
    terms: &'a Terms,
    /// Gateways of its group.
    gateways: usize,
    /// The enrolment's.
    number: &'a str,
    /// This process's own.
    life: &'a str,
}

impl Context<'_> {
    /// Its group; the cloud never asks.
    fn group(&self) -> usize {
        match self.party {
            Party::Cloud => 0,
            Party::Hospital(m) | Party::Edge(m) | Party::Gateway(m, _) => m,
        }
    }

    /// A gateway's number; others never ask.
    fn gateway(&self) -> usize {
        match self.party {
            Party::Gateway(_, g) => g,
            _ => 0,
        }
    }
}

/// Why a party gives up.
enum Trouble {
    /// Everybody may know.
    Told(String),
    /// It is about what only this party may see.
    Own(DataError),
}

impl From<DataError> for Trouble {
    fn from(error: DataError) -> Self {
        Trouble::Own(error)
    }
}

impl Trouble {
    fn nonsense(from: Party, what: &str) -> Self {
        Trouble::Told(format!("{from} has sent {what} that cannot be"))
    }

    fn too_few(group: usize, there: usize) -> Self {
        Trouble::Told(format!(
            "group {group} has {there} patients to train on: expected at least {}, since the sums of fewer would show too much of each",
            roll::FEWEST
        ))
    }
}

enum Role {
    Cloud(Cloud),
    Hospital(Hospital),
    Edge(Edge),
    Gateway(Gateway),
}

/// One party that enrols.
pub struct Enrolment {
    party: Party,
    terms: Terms,
    gateways: usize,
    role: Role,
    life: String,
    number: Option<String>,
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

impl Enrolment {
    /// The cloud. `random` is 16 bytes or more that nobody can guess.
    pub fn cloud(terms: Terms, random: &[u8]) -> Self {
        let groups = 0..terms.groups();
        let lines = groups.flat_map(|m| [Party::Hospital(m), Party::Edge(m)]);
        let lines = lines.collect();
        let mut cloud = Self::new(
            Party::Cloud,
            (terms, 0),
            Role::Cloud(Cloud::default()),
            lines,
            random,
        );
        cloud.renew();
        cloud
    }

    /// The hospital of a group.
    pub fn hospital(terms: Terms, group: usize, own: OwnSide, random: &[u8]) -> Self {
        let lines = vec![Party::Cloud, Party::Edge(group)];
        let role = Role::Hospital(Hospital::new(own));
        Self::new(Party::Hospital(group), (terms, 0), role, lines, random)
    }

    /// The edge of a group with so many gateways.
    pub fn edge(terms: Terms, group: usize, gateways: usize, random: &[u8]) -> Self {
        let own = [Party::Cloud, Party::Hospital(group)].into_iter();
        let lines = own.chain((0..gateways).map(|g| Party::Gateway(group, g)));
        let lines = lines.collect();
        let role = Role::Edge(Edge::default());
        Self::new(Party::Edge(group), (terms, gateways), role, lines, random)
    }

    /// A gateway: its group and its number, of so many.
    pub fn gateway(
        terms: Terms,
        (group, gateway): (usize, usize),
        gateways: usize,
        own: OwnSide,
        random: &[u8],
    ) -> Self {
        let role = Role::Gateway(Gateway::new(own));
        let lines = vec![Party::Edge(group)];
        let party = Party::Gateway(group, gateway);
        Self::new(party, (terms, gateways), role, lines, random)
    }

    fn new(
        party: Party,
        (terms, gateways): (Terms, usize),
        role: Role,
        neighbours: Vec<Party>,
        random: &[u8],
    ) -> Self {
        Enrolment {
            party,
            terms,
            gateways,
            role,
            life: short_digest("life", &[hex(random)]),
            number: None,
            numbers: 0,
            again: false,
            lines: neighbours
                .into_iter()
                .map(|p| (p, Line::default()))
                .collect(),
            enrolled: None,
            written: false,
            failed: None,
        }
    }

    /// Who it is.
    pub fn party(&self) -> Party {
        self.party
    }

    /// Those it talks to.
    pub fn neighbours(&self) -> Vec<Party> {
        self.lines.keys().copied().collect()
    }

    /// From whom it takes the enrolment's number.
    fn above(&self) -> Option<Party> {
        match self.party {
            Party::Cloud => None,
            Party::Hospital(_) | Party::Edge(_) => Some(Party::Cloud),
            Party::Gateway(m, _) => Some(Party::Edge(m)),
        }
    }

    /// The cloud begins another enrolment.
    fn renew(&mut self) {
        self.numbers += 1;
        let words = ["number".into(), self.life.clone(), self.numbers.to_string()];
        self.begin(short_digest("enrolment", &words));
    }

    /// Begins the enrolment of that number; what was said in another is forgotten.
    fn begin(&mut self, number: String) {
        if self.written {
            self.fail(Trouble::Told(format!(
                "the others began anew when {} had finished: start all parties again, with --again",
                self.party
            )));
            return;
        }
        self.lines.values_mut().for_each(Line::reset);
        (self.again, self.enrolled) = (false, None);
        let at = Context {
            party: self.party,
            terms: &self.terms,
            gateways: self.gateways,
            number: &number,
            life: &self.life,
        };
        let said = match &mut self.role {
            Role::Cloud(role) => {
                *role = Cloud::default();
                Vec::new()
            }
            Role::Edge(role) => {
                *role = Edge::default();
                Vec::new()
            }
            Role::Hospital(role) => role.begin(&at),
            Role::Gateway(role) => role.begin(&at),
        };
        self.number = Some(number);
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
                    "the data of {} is of no use; it says why itself",
                    self.party
                );
                (error.to_string(), told)
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

    /// Everything that it has to say now: one message for each neighbour, to be sent at once when it is another than before, and
    /// else now and then.
    pub fn say(&self) -> Vec<(Party, Vec<u8>)> {
        let message = |(to, line): (&Party, &Line)| {
            let (place, body) = line.next();
            let envelope = Envelope {
                version: VERSION,
                about: self.terms.about.clone(),
                number: self.number.clone(),
                life: self.life.clone(),
                heard: line.heard,
                place,
                body: body.cloned(),
                again: self.again,
                stopped: self.failed.as_ref().map(|failure| failure.told.clone()),
            };
            (*to, serde_json::to_vec(&envelope).unwrap_or_default())
        };
        self.lines.iter().map(message).collect()
    }

    /// A neighbour says something. Gives whether anything follows from it.
    ///
    /// # Errors
    /// If it is not a message of enrolment; that changes nothing.
    pub fn hear(&mut self, from: Party, bytes: &[u8]) -> Result<bool, String> {
        if self.failed.is_some() {
            return Ok(false);
        }
        let (above, number) = (self.above(), self.number.clone());
        let Some(line) = self.lines.get_mut(&from) else {
            return Err(format!("{from} is no neighbour"));
        };
        if bytes.len() > LONGEST_MESSAGE {
            return Err("it is too long".into());
        }
        let envelope: Envelope = serde_json::from_slice(bytes)
            .map_err(|error| format!("it is no message of enrolment: {error}"))?;
        let is_name = |text: &String| is_hex(text, 32);
        if !is_name(&envelope.life) || !envelope.number.as_ref().is_none_or(is_name) {
            return Err("it is no message of enrolment: expected 32 hexadecimal digits".into());
        }
        let complaint = match (
            envelope.version == VERSION,
            envelope.about == self.terms.about,
        ) {
            (false, _) => Some("it runs another version of selvedge"),
            (_, false) => Some("it has another experiment: [data] or the seed differ"),
            _ => None,
        };
        if let Some(complaint) = complaint {
            let news = line.complaint.as_deref() != Some(complaint);
            line.complaint = Some(complaint.into());
            return Ok(news);
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
            if self.party == Party::Cloud {
                self.renew();
            }
        }
        if Some(from) == above && envelope.number.is_some() && envelope.number != self.number {
            self.begin(envelope.number.clone().unwrap_or_default());
            news = true;
        }
        if envelope.number.is_none() || envelope.number != self.number || self.failed.is_some() {
            return Ok(news);
        }
        if let Some(why) = envelope.stopped {
            let why: String = why.chars().take(LONGEST_REASON).collect();
            // Who was the first to stop is told, and not the whole way to here.
            self.fail(Trouble::Told(match why.contains(STOPPED) {
                true => why,
                false => format!("{from}{STOPPED}{why}"),
            }));
            return Ok(true);
        }
        let Some(line) = self.lines.get_mut(&from).filter(|_| !self.again) else {
            return Ok(news);
        };
        news |= line.acknowledge(envelope.heard);
        if let Some(body) = envelope.body.filter(|_| envelope.place == line.heard) {
            line.heard += 1;
            self.take(from, body);
            news = true;
        }
        Ok(news)
    }

    /// Hospital and edge of a group are beside each other: neither passes on what the other asks of the cloud.
    fn is_beside(&self, other: Party) -> bool {
        matches!(
            (self.party, other),
            (Party::Hospital(_), Party::Edge(_)) | (Party::Edge(_), Party::Hospital(_))
        )
    }

    fn take(&mut self, from: Party, body: Body) {
        if let Body::Done(dataset) = &body {
            let own = self.enrolled.as_ref().and_then(|e| e.index.as_ref());
            let same = own.is_none_or(|(index, _)| index.dataset == *dataset);
            match (self.lines.get_mut(&from), same) {
                (Some(line), true) => line.done = true,
                _ => self.fail(Trouble::Told(format!("{from} has written another set"))),
            }
            return;
        }
        let number = self.number.clone().unwrap_or_default();
        let at = Context {
            party: self.party,
            terms: &self.terms,
            gateways: self.gateways,
            number: &number,
            life: &self.life,
        };
        let heard = match &mut self.role {
            Role::Cloud(role) => role.heard(&at, from, body),
            Role::Hospital(role) => role.heard(&at, from, body),
            Role::Edge(role) => role.heard(&at, from, body),
            Role::Gateway(role) => role.heard(&at, from, body),
        };
        match heard {
            Ok((said, enrolled)) => {
                self.push(said);
                if enrolled.is_some() {
                    self.enrolled = enrolled;
                }
            }
            Err(trouble) => self.fail(trouble),
        }
    }

    /// What is to be written now: nothing before it is known, and nothing once it is [`written`](Self::written).
    pub fn to_write(&self) -> Option<&Enrolled> {
        self.enrolled
            .as_ref()
            .filter(|_| !self.written && self.failed.is_none())
    }

    /// It is written; or it cannot be, which the others are told without a reason.
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
                let told = format!("{} cannot write its data folder", self.party);
                self.failed.get_or_insert(Failure { own, told });
            }
        }
    }

    /// Why it has given up, if it has.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_ref().map(|failure| failure.own.as_str())
    }

    /// Whether it has written everything and all neighbours have, though they may not know of each other yet.
    pub fn has_finished(&self) -> bool {
        self.written && self.lines.values().all(|line| line.done)
    }

    /// Whether there is nothing more to say or to hear.
    pub fn is_over(&self) -> bool {
        self.has_finished() && self.lines.values().all(Line::is_told)
    }

    /// What it waits for, for people: who is not there, or cannot be listened to, or has not come so far.
    pub fn waits(&self) -> String {
        let complaint = |(party, line): (&Party, &Line)| {
            let complaint = line.complaint.as_ref()?;
            Some(format!("{party}: {complaint}"))
        };
        let complaints: Vec<String> = self.lines.iter().filter_map(complaint).collect();
        if !complaints.is_empty() {
            return complaints.join("; ");
        }
        let named = |parties: Vec<Party>| {
            let names: Vec<String> = parties.iter().map(Party::to_string).collect();
            names.join(", ")
        };
        let absent = self.lines.iter().filter(|(_, line)| line.life.is_none());
        let absent: Vec<Party> = absent.map(|(party, _)| *party).collect();
        if !absent.is_empty() {
            return format!("waits for {}, not heard of yet", named(absent));
        }
        if self.written {
            let open = self.lines.iter().filter(|(_, line)| !line.done);
            let open: Vec<Party> = open.map(|(party, _)| *party).collect();
            return format!("has written its data; waits for {}", named(open));
        }
        let Some(number) = &self.number else {
            return "waits for the cloud's number of this enrolment".into();
        };
        let at = Context {
            party: self.party,
            terms: &self.terms,
            gateways: self.gateways,
            number,
            life: &self.life,
        };
        let waits = match &self.role {
            Role::Cloud(role) => role.waits(&at),
            Role::Hospital(role) => role.waits(&at),
            Role::Edge(role) => role.waits(&at),
            Role::Gateway(role) => role.waits(&at),
        };
        format!("waits for {}", named(waits))
    }
}

#[cfg(test)]
mod tests;

//! Parties that talk to each other, as state machines without input and output: what happens to one goes in, what it wants of
//! the world comes out. Whoever trains ([`role`](crate::role)), asks for predictions ([`Asker`](crate::role::Asker)) or enrols
//! ([`enrol`](crate::enrol)) is one; the driver that brings them messages, keeps their records and sends what they say is the
//! same for all.

use crate::run::Ending;
use crate::state::Evaluation;
use serde::{Deserialize, Serialize};

/// A party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Party {
    /// There is one.
    Cloud,
    /// Of a group.
    Hospital(usize),
    /// Of a group.
    Edge(usize),
    /// A group, and the gateway's number in it.
    Gateway(usize, usize),
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Party::Cloud => write!(f, "cloud"),
            Party::Hospital(m) => write!(f, "hospital {m}"),
            Party::Edge(m) => write!(f, "edge {m}"),
            Party::Gateway(m, g) => write!(f, "gateway {m}-{g}"),
        }
    }
}

/// What a party waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// An edge for its devices' ζ2.
    Exchange,
    /// An edge for its devices' models.
    Upload,
    /// The cloud for the groups' models.
    Global,
    /// The cloud for the groups' scores.
    Evaluation,
}

/// What happens to a party.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<M> {
    /// A message arrives.
    Received(Party, M),
    /// Time is up for a phase that began at this iteration.
    Deadline(Phase, u64),
    /// Somebody is there, perhaps again, and may have forgotten what it was told.
    Appeared(Party),
    /// What the party asked for itself ([`Outbox::go_on`]).
    GoOn,
    /// Nothing has happened for a while.
    Retry,
}

/// Who was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Absence {
    /// In which phase.
    pub phase: Phase,
    /// At which iteration: the exchange's, the end of an interval, or the global aggregation's.
    pub t: u64,
    /// The group.
    pub group: usize,
    /// The device, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
}

/// What a party wants of the world.
#[derive(Clone, Debug)]
pub struct Outbox<M> {
    /// What must be kept before anything else here is done.
    pub record: Option<Vec<u8>>,
    /// Messages to be sent.
    pub messages: Vec<(Party, M)>,
    /// Phases that somebody may end by a deadline from now on.
    pub phases: Vec<(Phase, u64)>,
    /// Phases that are over: their deadlines are of no use any more.
    pub over: Vec<(Phase, u64)>,
    /// Who was decided to be absent.
    pub absences: Vec<Absence>,
    /// Whether the cloud has decided on an aggregation, or says again what it has decided last.
    pub aggregated: bool,
    /// What the cloud has found.
    pub evaluations: Vec<Evaluation>,
    /// Whether there is more to do at once, once this is done: [`Event::GoOn`].
    pub go_on: bool,
    /// How the run has ended, as the cloud sees it.
    pub ending: Option<Ending>,
    /// For how many patients a prediction was answered or passed on.
    pub answered: u64,
    /// Whether something came of it that a party waits for which is in no run: so the others are not gone.
    pub news: bool,
}

impl<M> Default for Outbox<M> {
    fn default() -> Self {
        Outbox {
            record: None,
            messages: Vec::new(),
            phases: Vec::new(),
            over: Vec::new(),
            absences: Vec::new(),
            aggregated: false,
            evaluations: Vec::new(),
            go_on: false,
            ending: None,
            answered: 0,
            news: false,
        }
    }
}

impl<M> Outbox<M> {
    pub(crate) fn send(&mut self, to: Party, message: M) {
        self.messages.push((to, message));
    }
}

/// What a party is doing, for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doing {
    /// The iteration that comes next.
    pub t: u64,
    /// In words.
    pub what: String,
    /// For whom it waits.
    pub missing: Vec<Party>,
    /// Whether it waits for a quorum, its deadline being over.
    pub below_quorum: bool,
}

/// A message as it is sent.
#[derive(Clone, Debug)]
pub struct Packet {
    /// All of it.
    pub bytes: Vec<u8>,
    /// What it is called, for who counts.
    pub kind: &'static str,
    /// Whether it is there to measure a model, and not to train one.
    pub is_of_evaluation: bool,
    /// Whether its sender waits for something: what comes of it may be lost, and is asked for again after a while.
    pub is_awaited: bool,
}

/// Why bytes are of no use to a party.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct Unread {
    /// In a word or two, for who counts.
    pub why: &'static str,
    /// What is wrong with them.
    pub problem: String,
}

/// A party that talks.
pub trait Protocol {
    /// What it says and hears.
    type Message;

    /// Who it is.
    fn party(&self) -> Party;

    /// Whether it has to find anything again after a crash.
    fn keeps_records(&self) -> bool {
        false
    }

    /// Whether it has to say that it is there: others may not know, or may have been told something else before.
    fn greets(&self) -> bool {
        false
    }

    /// Begins, with the record that it has left, if it has.
    ///
    /// # Errors
    /// If that is no record of this party.
    fn begin(
        &mut self,
        record: Option<&[u8]>,
        outbox: &mut Outbox<Self::Message>,
    ) -> Result<(), Unread>;

    /// What happens, and what it does about it.
    fn handle(&mut self, event: Event<Self::Message>, outbox: &mut Outbox<Self::Message>);

    /// A message as it is sent in a run; of no run, the number says nothing.
    fn encode(&self, run: u64, message: &Self::Message) -> Packet;

    /// The message that somebody has sent.
    ///
    /// # Errors
    /// If it is none, or one of another run.
    fn decode(&self, run: u64, bytes: &[u8]) -> Result<Self::Message, Unread>;

    /// What it is doing, for people.
    fn doing(&self) -> Doing;

    /// What it waits for, in a word, and at which iteration: for who measures how long that takes.
    fn stage(&self) -> (&'static str, u64) {
        ("talking", 0)
    }

    /// Whether it is over for it: it has nothing more to hear or to say.
    fn is_over(&self) -> bool;

    /// Whether it knows that it has ended, though others may not.
    fn has_ended(&self) -> bool {
        self.is_over()
    }

    /// Why it has given up, if it has.
    fn failure(&self) -> Option<String> {
        None
    }
}

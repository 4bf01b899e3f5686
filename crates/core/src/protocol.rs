//! Parties that exchange messages, as state machines without input and output: events go in, actions come out. A party
//! that trains ([`role`](crate::role)), asks for predictions ([`Asker`](crate::role::Asker)) or enrols
//! ([`enrol`](crate::enrol)) is one; the driver that delivers their messages, keeps their records and sends what they
//! want to send is the same for all.

use crate::checks::Reason;
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

impl Phase {
    /// All of them.
    pub const ALL: [Phase; 4] = [
        Phase::Exchange,
        Phase::Upload,
        Phase::Global,
        Phase::Evaluation,
    ];
}

/// An event for a party.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<M> {
    /// A message arrives.
    Received(Party, M),
    /// Time is up for a phase that began at this iteration.
    Deadline(Phase, u64),
    /// A party has appeared, perhaps again, and may have forgotten what it was told.
    Appeared(Party),
    /// A party is not listened to, since it floods: in a phase that a deadline can end, it is not waited for until it is
    /// heard of.
    Silenced(Phase, Party),
    /// The party asked for it itself ([`Outbox::go_on`]).
    GoOn,
    /// Nothing has happened for a while.
    Retry,
}

/// An absence.
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
    /// Why it was left out, if it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Absence {
    /// A device that was not there.
    pub fn of_device(phase: Phase, t: u64, group: usize, device: u32) -> Self {
        Absence {
            phase,
            t,
            group,
            device: Some(device),
            reason: None,
        }
    }

    /// A group that was not there.
    pub fn of_group(phase: Phase, t: u64, group: usize) -> Self {
        Absence {
            phase,
            t,
            group,
            device: None,
            reason: None,
        }
    }

    /// One that was left out, and why.
    #[must_use]
    pub fn because(self, reason: Reason) -> Self {
        Absence {
            reason: Some(reason),
            ..self
        }
    }
}

impl Absence {
    /// Whether it was noted behind an iteration, at which the party is again. An exchange begins an interval, all else
    /// ends one.
    pub fn is_behind(&self, t: u64) -> bool {
        match self.phase {
            Phase::Exchange => self.t >= t,
            Phase::Upload | Phase::Global | Phase::Evaluation => self.t > t,
        }
    }
}

/// What a party wants to be done.
#[derive(Clone, Debug)]
pub struct Outbox<M> {
    /// The record, to be kept before anything else here is done.
    pub record: Option<Vec<u8>>,
    /// Messages to send.
    pub messages: Vec<(Party, M)>,
    /// Phases that a deadline may end from now on.
    pub phases: Vec<(Phase, u64)>,
    /// Phases that are over: their deadlines no longer apply.
    pub over: Vec<(Phase, u64)>,
    /// Parties that were declared absent.
    pub absences: Vec<Absence>,
    /// The party goes back to this iteration: absences that it has noted behind it are none any more.
    pub back: Option<u64>,
    /// What people should know.
    pub notices: Vec<String>,
    /// Whether the cloud has decided on an aggregation, or repeats its last decision.
    pub aggregated: bool,
    /// The cloud's evaluations.
    pub evaluations: Vec<Evaluation>,
    /// Whether there is more to do right after this: [`Event::GoOn`].
    pub go_on: bool,
    /// How the run has ended, as the cloud sees it.
    pub ending: Option<Ending>,
    /// For how many patients a prediction was answered or passed on.
    pub answered: u64,
    /// Why this party does not go on: it ends, so that people look.
    pub stop: Option<String>,
    /// Whether a party outside a run made progress: so the others are still there.
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
            back: None,
            notices: Vec::new(),
            aggregated: false,
            evaluations: Vec::new(),
            go_on: false,
            ending: None,
            answered: 0,
            stop: None,
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
    /// The next iteration.
    pub t: u64,
    /// A description.
    pub what: String,
    /// The parties it waits for.
    pub missing: Vec<Party>,
    /// Whether it waits for a quorum although its deadline has passed.
    pub below_quorum: bool,
    /// Parties that have missed so many deadlines in a row that it does not wait for them until it hears of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<Party>,
}

/// A message as it is sent.
#[derive(Clone, Debug)]
pub struct Packet {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Its name, for counters.
    pub kind: &'static str,
    /// Whether it serves to evaluate a model, not to train one.
    pub is_of_evaluation: bool,
    /// Whether its sender waits for an answer: it may be lost, and is then sent again after a while.
    pub is_awaited: bool,
}

/// Why bytes cannot be used by a party.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct Unread {
    /// In a word or two, for counters.
    pub why: &'static str,
    /// What is wrong with them.
    pub problem: String,
}

/// A party that exchanges messages.
pub trait Protocol {
    /// What it says and hears.
    type Message;

    /// Who it is.
    fn party(&self) -> Party;

    /// Whether it needs records to recover from a crash.
    fn keeps_records(&self) -> bool {
        false
    }

    /// Whether it has to announce itself: others may not know of it, or may have heard something else before.
    fn greets(&self) -> bool {
        false
    }

    /// Begins, from its last record if there is one.
    ///
    /// # Errors
    /// If that is not a record of this party.
    fn begin(
        &mut self,
        record: Option<&[u8]>,
        outbox: &mut Outbox<Self::Message>,
    ) -> Result<(), Unread>;

    /// Handles an event.
    fn handle(&mut self, event: Event<Self::Message>, outbox: &mut Outbox<Self::Message>);

    /// Encodes a message for a run; outside a run, the number means nothing.
    fn encode(&self, run: u64, message: &Self::Message) -> Packet;

    /// Decodes a message.
    ///
    /// # Errors
    /// If it is invalid, or belongs to another run.
    fn decode(&self, run: u64, bytes: &[u8]) -> Result<Self::Message, Unread>;

    /// What it is doing, for people.
    fn doing(&self) -> Doing;

    /// What it waits for, in a word, and at which iteration: for measuring how long that takes.
    fn stage(&self) -> (&'static str, u64) {
        ("talking", 0)
    }

    /// Whether it is finished: it has nothing more to receive or to send.
    fn is_over(&self) -> bool;

    /// Whether it knows that the end is reached, though others may not.
    fn has_ended(&self) -> bool {
        self.is_over()
    }

    /// Why it has given up, if it has.
    fn failure(&self) -> Option<String> {
        None
    }
}

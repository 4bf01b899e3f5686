//! The four parties as state machines without input and output: what happens to one goes in, what it wants sent comes out.
//!
//! ```text
//!            Invite θ2 ►          Batch ζ2 ►            HospitalModel θ0, θ1 ►
//!  gateway ◄──────────► edge ◄──────────────► hospital ◄─────────────────────► cloud
//!            ◄ Zeta2                ◄ Frozen θ0, ζ1                 ◄ Global θ
//!            Lesson θ0, ζ1 ►                        EdgeModel θ2 ► (the edge's own link to the cloud)
//!            ◄ Models θ2
//! ```
//!
//! They call what the loop calls ([`exchange`](crate::exchange), [`local_steps`](crate::local_steps),
//! [`aggregate`](crate::aggregate)), each on its own party's data, and give the loop's model bit for bit.
//!
//! - A gateway carries devices, any number or one. The edge drives its group: it invites the devices that it drew, passes ζ2
//!   to the hospital and θ0 and ζ1 to the devices, and averages what comes back. At a global aggregation hospital and edge
//!   upload, and wait for the cloud.
//! - Every message names the iteration it belongs to. What is late, doubled or not asked for changes nothing; what asks again
//!   is answered again, with the same answer. So a message may be sent any number of times.
//! - What cannot be changes nothing either: a message with other lengths, of somebody else's devices, of times that this run
//!   does not have. Each party looks before it keeps or passes on anything, so that one who talks nonsense costs nobody else
//!   what they hold, and may still say the right thing later.
//! - A *deadline* is an event like any other; a phase that may be ended by one begins when the first of those who are awaited
//!   is there. Whoever is missing then is absent for that phase, which is noted ([`Outbox::absences`]): the loop with the same
//!   absences makes the same model. With fewer there than the [`Quorum`], the party waits on.
//! - A *record* ([`Outbox::record`]) is what a party must find again after a crash, and is kept before anything that follows
//!   from it is sent. The hospital's is the decision who took part in an exchange, the edge's whose models are in θ2, the
//!   cloud's which groups are in θ. A gateway has none.
//! - [`Event::Retry`] makes a party send again what it waits for an answer to.
//! - When the run is over, hospital and edge still answer for the model that they were left with, as long as somebody lets
//!   them: an [`Asker`] sends ζ2 of some patients, and the hospital answers with probabilities.

mod asker;
mod cloud;
mod edge;
mod gateway;
mod hospital;
mod joint;
mod message;
pub mod wire;

pub use crate::message_path::Numbers;
pub use asker::{Answer, AskError, Asker};
pub use cloud::Cloud;
pub use edge::Edge;
pub use gateway::Gateway;
pub use hospital::Hospital;
pub use joint::{About, MOST_ASKED, Newcomers, Why};
pub use message::{Counted, Message, Part};

use crate::dataset::Samples;
use crate::run::Ending;
use crate::schedule::Segment;
use crate::state::Evaluation;
use crate::task::Task;
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
pub enum Event {
    /// A message arrives.
    Received(Party, Message),
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

/// How many of those who are awaited must be there before a deadline counts; never less than one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quorum {
    /// The share of an interval's drawn devices; of those who take part, where fewer do.
    pub devices: f64,
    /// The share of the groups.
    pub groups: f64,
}

/// How many of `all` a share is.
fn quorum(share: f64, all: usize) -> usize {
    ((share * all as f64).ceil() as usize).clamp(1, all.max(1))
}

/// Whether a cloud can have announced that θ was aggregated at `t`, and that this comes next or that it was the end.
fn is_possible(task: &Task<'_>, (t, segment): (u64, &Segment), ended: bool) -> bool {
    let iterations = task.experiment.train.iterations;
    match ended {
        true => segment.is_sound(t, iterations),
        false => segment.goes_on_from(t, iterations),
    }
}

/// What a party wants of the world.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// What must be kept before anything else here is done.
    pub record: Option<Vec<u8>>,
    /// Messages to be sent.
    pub messages: Vec<(Party, Message)>,
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
}

impl Outbox {
    fn send(&mut self, to: Party, message: Message) {
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

/// Held-out samples of one party: validation, then test. A hospital has x1, a gateway x2.
pub type HeldOutSamples = [Samples; 2];

/// Any of the four.
pub enum Role<'a> {
    /// Averages the groups.
    Cloud(Box<Cloud<'a>>),
    /// Steps on θ0 and θ1.
    Hospital(Box<Hospital<'a>>),
    /// Drives a group.
    Edge(Box<Edge<'a>>),
    /// Carries devices.
    Gateway(Box<Gateway<'a>>),
}

impl Role<'_> {
    /// Who it is.
    pub fn party(&self) -> Party {
        match self {
            Role::Cloud(_) => Party::Cloud,
            Role::Hospital(role) => role.party(),
            Role::Edge(role) => role.party(),
            Role::Gateway(role) => role.party(),
        }
    }

    /// Begins, with the record that it has left, if it has.
    ///
    /// # Errors
    /// If that is no record of this party.
    pub fn begin(
        &mut self,
        record: Option<&[u8]>,
        outbox: &mut Outbox,
    ) -> Result<(), wire::WireError> {
        match (self, record) {
            (Role::Cloud(role), None) => role.start(outbox),
            (Role::Cloud(role), Some(record)) => role.restore(record, outbox)?,
            (Role::Hospital(role), Some(record)) => role.restore(record, outbox)?,
            (Role::Edge(role), None) => role.start(outbox),
            (Role::Edge(role), Some(record)) => role.restore(record, outbox)?,
            (Role::Hospital(_), None) | (Role::Gateway(_), _) => {}
        }
        Ok(())
    }

    /// What happens, and what it does about it.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        match self {
            Role::Cloud(role) => role.handle(event, outbox),
            Role::Hospital(role) => role.handle(event, outbox),
            Role::Edge(role) => role.handle(event, outbox),
            Role::Gateway(role) => role.handle(event, outbox),
        }
    }

    /// What it is doing.
    pub fn doing(&self) -> Doing {
        match self {
            Role::Cloud(role) => role.doing(),
            Role::Hospital(role) => role.doing(),
            Role::Edge(role) => role.doing(),
            Role::Gateway(role) => role.doing(),
        }
    }

    /// What it waits for, in a word, and at which iteration: for who measures how long that takes.
    pub fn stage(&self) -> (&'static str, u64) {
        match self {
            Role::Cloud(role) => role.stage(),
            Role::Hospital(role) => role.stage(),
            Role::Edge(role) => role.stage(),
            Role::Gateway(_) => ("answering", 0),
        }
    }

    /// Whether the run is over for it: it has nothing more to hear or to say.
    pub fn is_over(&self) -> bool {
        match self {
            Role::Cloud(role) => role.is_over(),
            Role::Hospital(role) => role.is_over(),
            Role::Edge(role) => role.is_over(),
            Role::Gateway(role) => role.is_over(),
        }
    }

    /// Whether it knows that the run has ended, though others may not.
    pub fn has_ended(&self) -> bool {
        match self {
            Role::Cloud(role) => role.ending().is_some(),
            Role::Edge(role) => role.has_ended(),
            _ => self.is_over(),
        }
    }
}

//! The four parties as state machines without input and output: events go in, messages come out.
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
//! - Every message names the iteration it belongs to. Late, doubled or unrequested messages change nothing; repeated requests get
//!   the same answer again. So a message may be sent any number of times.
//! - Invalid messages change nothing either: those with wrong lengths, of somebody else's devices, of iterations that this run
//!   does not have. Each party checks before it keeps or passes on anything, so that a party that sends nonsense does no harm to
//!   others, and may still send the right message later.
//! - A *deadline* is an event like any other; a phase that may be ended by one begins when the first of the awaited parties is
//!   there. Whoever is missing then is absent for that phase, which is recorded ([`Outbox::absences`]): the loop with the same
//!   absences gives the same model. With fewer present than the [`Quorum`], the party keeps waiting.
//! - A *record* ([`Outbox::record`]) is what a party needs after a crash, and is kept before anything that follows from it is
//!   sent. The hospital's states who took part in an exchange, the edge's whose models are in θ2, the cloud's which groups are in
//!   θ. A gateway has none.
//! - [`Event::Retry`] makes a party send again what it waits for an answer to.
//! - When the run is over, hospital and edge can keep running to answer for the trained model: an [`Asker`] sends ζ2 of some
//!   patients, and the hospital answers with probabilities.

mod asker;
mod cloud;
mod edge;
mod gateway;
mod hospital;
mod joint;
mod message;
pub mod wire;

pub use crate::message_path::Numbers;
pub use crate::protocol::{Absence, Doing, Packet, Party, Phase, Protocol, Unread};
pub use asker::{Answer, AskError, Asker};
pub use cloud::Cloud;
pub use edge::Edge;
pub use gateway::Gateway;
pub use hospital::Hospital;
pub use joint::{About, MOST_ASKED, Newcomers, Why};
pub use message::{Counted, Message, Portion};

use crate::conduct::Conduct;
use crate::dataset::Samples;
use crate::protocol;
use crate::schedule::Segment;
use crate::task::Task;
use serde::{Deserialize, Serialize};

/// An event for a party of a run.
pub type Event = protocol::Event<Message>;

/// What a party of a run wants to be done.
pub type Outbox = protocol::Outbox<Message>;

/// How many of the awaited parties must be present for a deadline to take effect; at least one.
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

/// Who has missed so many deadlines of a phase in a row is not waited for until it is heard of: one that is gone for good
/// must not cost all others a deadline in each interval.
const MOST_MISSED: u32 = 3;

/// Whether a phase is over: all are there, or a quorum is and nobody is waited for any more.
fn is_enough((there, all): (usize, usize), quorum: usize, waits: bool) -> bool {
    there == all || (there >= quorum && !waits)
}

/// What a party that goes back cannot have again, in words.
fn forgotten(memories: &[&[f32]], conduct: &Conduct) -> &'static str {
    match memories.iter().all(|part| part.is_empty()) && conduct.is_empty() {
        true => "; nothing else is lost",
        false => {
            "; what compression, optimiser and defences remembered is lost: another model than without it"
        }
    }
}

/// Whether a cloud can have announced that θ was aggregated at `t`, and that this comes next or that it was the end.
fn is_possible(task: &Task<'_>, (t, segment): (u64, &Segment), ended: bool) -> bool {
    let iterations = task.experiment.train.iterations;
    match ended {
        true => segment.is_sound(t, iterations),
        false => segment.goes_on_from(t, iterations),
    }
}

impl Role<'_> {
    /// Those in quarantine whom a party is to hear again, once it has read its record: groups at the cloud, devices at
    /// a hospital or an edge. A gateway holds nothing against anybody.
    pub fn pardon(&mut self, who: &[u32]) {
        let pardoned = match self {
            Role::Cloud(role) => &mut role.pardoned,
            Role::Hospital(role) => &mut role.pardoned,
            Role::Edge(role) => &mut role.pardoned,
            Role::Gateway(_) => return,
        };
        pardoned.extend_from_slice(who);
    }
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

/// The same of any of the four.
macro_rules! each {
    ($role:expr, $one:ident => $what:expr) => {
        match $role {
            Role::Cloud($one) => $what,
            Role::Hospital($one) => $what,
            Role::Edge($one) => $what,
            Role::Gateway($one) => $what,
        }
    };
}

impl Protocol for Role<'_> {
    type Message = Message;

    fn party(&self) -> Party {
        match self {
            Role::Cloud(_) => Party::Cloud,
            Role::Hospital(role) => role.party(),
            Role::Edge(role) => role.party(),
            Role::Gateway(role) => role.party(),
        }
    }

    fn keeps_records(&self) -> bool {
        !matches!(self, Role::Gateway(_))
    }

    fn greets(&self) -> bool {
        true
    }

    fn begin(&mut self, record: Option<&[u8]>, outbox: &mut Outbox) -> Result<(), Unread> {
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

    fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        each!(self, role => role.handle(event, outbox))
    }

    fn encode(&self, run: u64, message: &Message) -> Packet {
        // Who only answers a question waits for nothing, and what it waits for otherwise may be lost.
        let is_awaited = !message.is_of_prediction() || self.has_ended();
        wire::packet(run, message, is_awaited)
    }

    fn decode(&self, run: u64, bytes: &[u8]) -> Result<Message, Unread> {
        Ok(wire::decode(run, bytes)?)
    }

    fn doing(&self) -> Doing {
        each!(self, role => role.doing())
    }

    fn stage(&self) -> (&'static str, u64) {
        match self {
            Role::Cloud(role) => role.stage(),
            Role::Hospital(role) => role.stage(),
            Role::Edge(role) => role.stage(),
            Role::Gateway(role) => ("answering", role.doing().t),
        }
    }

    fn is_over(&self) -> bool {
        each!(self, role => role.is_over())
    }

    fn failure(&self) -> Option<String> {
        match self {
            Role::Gateway(role) => role.failure(),
            _ => None,
        }
    }

    fn has_ended(&self) -> bool {
        match self {
            Role::Cloud(role) => role.ending().is_some(),
            Role::Edge(role) => role.has_ended(),
            _ => self.is_over(),
        }
    }
}

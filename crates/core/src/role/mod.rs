//! The four parties as state machines without input and output: what happens to one goes in, what it wants sent comes out.
//!
//! ```text
//!            Invite θ2 ►          Batch ζ2 ►            HospitalModel θ0, θ1 ►
//!   device ◄──────────► edge ◄──────────────► hospital ◄─────────────────────► cloud
//!            ◄ Zeta2                ◄ Frozen θ0, ζ1                 ◄ Global θ
//!            Lesson θ0, ζ1 ►                        EdgeModel θ2 ► (the edge's own link to the cloud)
//!            ◄ Model θ2
//! ```
//!
//! They call what the loop calls ([`exchange`](crate::exchange), [`local_steps`](crate::local_steps),
//! [`aggregate`](crate::aggregate)), each on its own party's data, and give the loop's model bit for bit.
//!
//! - The edge drives its group: it invites the devices that it drew, passes ζ2 to the hospital and θ0 and ζ1 to the devices,
//!   and averages what comes back. At a global aggregation hospital and edge upload, and wait for the cloud.
//! - Every message names the iteration it belongs to. What is late, doubled or not asked for changes nothing; what asks again
//!   is answered again, with the same answer. So a message may be sent any number of times.
//! - A *deadline* is an event like any other. Whoever is missing then is absent for that phase, which is noted
//!   ([`Outbox::absences`]): the loop with the same absences makes the same model.
//! - [`Event::Retry`] makes a party send again what it waits for an answer to.

mod cloud;
mod device;
mod edge;
mod hospital;
mod message;

pub use cloud::Cloud;
pub use device::Device;
pub use edge::Edge;
pub use hospital::Hospital;
pub use message::{Message, Numbers};

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
    /// A group and the device's number in it.
    Device(usize, u32),
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
}

/// What happens to a party.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message arrives.
    Received(Party, Message),
    /// Time is up for a phase that began at this iteration.
    Deadline(Phase, u64),
    /// Nothing has happened for a while.
    Retry,
}

/// Who was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Absence {
    /// In which phase.
    pub phase: Phase,
    /// At which iteration: the exchange's, the end of an interval, or the global aggregation's.
    pub t: u64,
    /// The group.
    pub group: usize,
    /// The device, if it is one.
    pub device: Option<u32>,
}

/// What a party wants of the world.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// Messages to be sent.
    pub messages: Vec<(Party, Message)>,
    /// Phases that have begun, and that somebody may end by a deadline.
    pub phases: Vec<(Phase, u64)>,
    /// Who was decided to be absent.
    pub absences: Vec<Absence>,
}

impl Outbox {
    fn send(&mut self, to: Party, message: Message) {
        self.messages.push((to, message));
    }
}

//! What one of the four does when it enrols, apart from how it is said and heard.

use super::message::Body;
use super::{Enrolled, Terms, roll};
use crate::protocol::Party;

/// What is to be said, and to whom.
pub(super) type Words = Vec<(Party, Body)>;

/// What follows from something that was heard: what is said, and what is written down once that is known.
pub(super) type Follows = Result<(Words, Option<Enrolled>), Trouble>;

/// What one of the four does when it enrols.
pub(super) trait Duty {
    /// It begins, perhaps anew, and has this to say.
    fn begin(&mut self, at: &Context) -> Words;

    fn heard(&mut self, at: &Context, from: Party, body: Body) -> Follows;

    /// For whom it waits.
    fn waits(&self, at: &Context) -> Vec<Party>;
}

/// What a party knows while it listens.
pub(super) struct Context {
    pub(super) party: Party,
    pub(super) terms: Terms,
    /// Gateways of its group.
    pub(super) gateways: usize,
    /// This process's own.
    pub(super) life: String,
    /// The enrolment's, once the cloud has given it one.
    pub(super) number: Option<String>,
}

impl Context {
    /// Its group; the cloud never asks.
    pub(super) fn group(&self) -> usize {
        match self.party {
            Party::Cloud => 0,
            Party::Hospital(m) | Party::Edge(m) | Party::Gateway(m, _) => m,
        }
    }

    /// Its group, for people.
    pub(super) fn own_group(&self) -> String {
        format!("group {}", self.group())
    }

    /// A gateway's number; others never ask.
    pub(super) fn gateway(&self) -> usize {
        match self.party {
            Party::Gateway(_, g) => g,
            _ => 0,
        }
    }

    /// The enrolment's number; nobody asks before it is there.
    pub(super) fn number(&self) -> &str {
        self.number.as_deref().unwrap_or_default()
    }
}

/// Why a party gives up.
pub(super) enum Trouble {
    /// Everybody may know.
    Told(String),
    /// It is about what only this party may see.
    Own(String),
}

impl Trouble {
    pub(super) fn nonsense(from: Party, what: &str) -> Self {
        Trouble::Told(format!("{from} has sent {what}"))
    }

    pub(super) fn too_few(group: usize, there: usize) -> Self {
        Trouble::Told(format!(
            "group {group} has {there} patients to train on: expected at least {}, since sums over fewer would reveal too much about each",
            roll::FEWEST
        ))
    }
}

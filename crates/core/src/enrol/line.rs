//! What two neighbours have said to each other: everything in order and once, whatever is lost, doubled or late on the
//! way.

use super::message::{Body, Envelope};

/// One neighbour, as a party sees it.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Which start of the neighbour was heard.
    pub(super) life: Option<String>,
    /// Why it is not listened to, if it is not.
    pub(super) complaint: Option<String>,
    /// All that is to be said.
    bodies: Vec<Body>,
    /// How much of it was heard.
    acknowledged: usize,
    /// How much was heard of the neighbour's.
    pub(super) heard: usize,
    /// Whether the neighbour has written everything down.
    pub(super) done: bool,
    /// What was said last, without its body, and whether it had one.
    pub(super) said: Option<(Envelope, bool)>,
}

impl Line {
    /// Forgets what was said, but not who is there.
    pub(super) fn reset(&mut self) {
        *self = Line {
            life: self.life.take(),
            complaint: self.complaint.take(),
            ..Line::default()
        };
    }

    /// Has something to say.
    pub(super) fn push(&mut self, body: Body) {
        self.bodies.push(body);
    }

    /// What is to be said now, and its place.
    pub(super) fn next(&self) -> (usize, Option<&Body>) {
        (self.acknowledged, self.bodies.get(self.acknowledged))
    }

    /// The neighbour says how much it has heard; whether that is news.
    pub(super) fn acknowledge(&mut self, heard: usize) -> bool {
        let news = heard > self.acknowledged && heard <= self.bodies.len();
        if news {
            self.acknowledged = heard;
        }
        news
    }

    /// Whether the neighbour has heard everything.
    pub(super) fn is_told(&self) -> bool {
        self.acknowledged == self.bodies.len()
    }
}

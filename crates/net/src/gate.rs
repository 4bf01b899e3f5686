//! What one sender may have on its way to a party, and what becomes of one that sends more.
//!
//! A party listens to each sender on a subject of its own. An honest one sends a *turn* in an interval of the receiver,
//! and repeats itself now and then; whoever sends much more floods. The party then withdraws its interest in that
//! subject, so that the sender's server drops the flood where it comes in, and neither the party nor a link, nor anybody
//! else's messages, meet it. After a pause it listens for a moment and takes nothing: only if the sender is calm is it
//! heard again, else the pause is twice as long. Nothing is lost for good, since all that matters is said again.

use crate::chunks::name;
use crate::counters::Dropped;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Turns that may wait to be handled.
const WAITING: f64 = 4.0;

/// Turns that may come at once: a receiver that was stopped for a while finds what was repeated meanwhile.
const AT_ONCE: f64 = 8.0;

/// Turns that may follow with each interval of the receiver, and with each second.
const PER_INTERVAL: f64 = 2.0;
const PER_SECOND: f64 = 2.0;

/// How long a sender that floods is not listened to, at first and at the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// How long it must be calm before it is heard again, and until its next pause is a first one.
pub(crate) const CALM: Duration = Duration::from_millis(250);
const FORGIVEN: Duration = Duration::from_secs(60);

/// What an honest sender sends a party in one of its intervals, at most.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Messages, or pieces of them.
    pub messages: usize,
    /// Bytes of all of them.
    pub bytes: usize,
}

impl Turn {
    /// What share of it so many bytes in one message are.
    fn share(&self, bytes: usize) -> f64 {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        share(1, self.messages).max(share(bytes, self.bytes))
    }

    /// Messages that can be on their way at once.
    pub(crate) fn messages_at_once(&self) -> usize {
        (AT_ONCE * self.messages as f64) as usize
    }
}

/// Why a message is not handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declined {
    /// The same one waits to be handled.
    Doubled,
    /// Too much of its sender waits.
    Crowded,
}

/// What comes from one sender.
#[derive(Debug)]
pub(crate) struct Gate {
    turn: Turn,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Turns that may come, as of then.
    left: f64,
    at: Instant,
    /// What waits to be handled: names, and how many turns.
    waiting: HashSet<u64>,
    turns: f64,
    /// The last pause, and when it began.
    pause: Option<(Duration, Instant)>,
    dropped: Dropped,
}

impl Gate {
    pub(crate) fn new(turn: Turn) -> Self {
        Gate {
            turn,
            state: Mutex::new(State {
                left: AT_ONCE,
                at: Instant::now(),
                waiting: HashSet::new(),
                turns: 0.0,
                pause: None,
                dropped: Dropped::default(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something of so many bytes may come; if not, its sender floods.
    pub(crate) fn admits(&self, bytes: usize) -> bool {
        let mut state = self.state();
        let now = Instant::now();
        let since = now.duration_since(state.at).as_secs_f64();
        (state.left, state.at) = ((state.left + PER_SECOND * since).min(AT_ONCE), now);
        state.left -= self.turn.share(bytes);
        state.left > 0.0
    }

    /// The party is at another interval: more may come.
    pub(crate) fn goes_on(&self) {
        let mut state = self.state();
        state.left = (state.left + PER_INTERVAL).min(AT_ONCE);
    }

    /// A message is to wait until it is handled; its name, if it may.
    pub(crate) fn lets_wait(&self, message: &[u8]) -> Result<u64, Declined> {
        let (name, share) = (name(message), self.turn.share(message.len()));
        let mut state = self.state();
        if state.waiting.contains(&name) {
            return Err(Declined::Doubled);
        }
        // A single message may be more than a turn: what is too long is dropped before.
        if !state.waiting.is_empty() && state.turns + share > WAITING {
            state.dropped.add(message.len());
            return Err(Declined::Crowded);
        }
        state.waiting.insert(name);
        state.turns += share;
        Ok(name)
    }

    /// A message of so many bytes does not wait any more.
    pub(crate) fn is_handled(&self, name: u64, bytes: usize) {
        let mut state = self.state();
        if state.waiting.remove(&name) {
            state.turns -= self.turn.share(bytes);
        }
        if state.waiting.is_empty() {
            state.turns = 0.0;
        }
    }

    /// Something was dropped.
    pub(crate) fn drops(&self, bytes: usize) {
        self.state().dropped.add(bytes);
    }

    /// The sender is not listened to any more; for how long.
    pub(crate) fn closes(&self) -> Duration {
        let mut state = self.state();
        let now = Instant::now();
        let pause = match state.pause {
            Some((before, at)) if now.duration_since(at) < before + FORGIVEN => {
                (2 * before).min(LONGEST_PAUSE)
            }
            _ => FIRST_PAUSE,
        };
        state.pause = Some((pause, now));
        state.dropped.cut_off += 1;
        state.dropped.is_cut_off = true;
        pause
    }

    /// The sender is listened to, to see whether it is calm.
    pub(crate) fn opens(&self) {
        let mut state = self.state();
        (state.left, state.at) = (AT_ONCE / 2.0, Instant::now());
    }

    /// The sender is heard again.
    pub(crate) fn is_open(&self) {
        self.state().dropped.is_cut_off = false;
    }

    /// What was dropped so far.
    pub(crate) fn dropped(&self) -> Dropped {
        self.state().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Turn = Turn {
        messages: 10,
        bytes: 1000,
    };

    #[test]
    fn turns_are_admitted_and_floods_are_not() {
        let gate = Gate::new(TURN);
        // A turn in each interval, for ever, in whatever pieces.
        for interval in 0..1000 {
            match interval % 2 {
                0 => assert!((0..10).all(|_| gate.admits(100))),
                _ => assert!(gate.admits(1000)),
            }
            gate.goes_on();
        }
        let admitted = |bytes| (0..1000).filter(|_| gate.admits(bytes)).count();
        assert!((60..=90).contains(&admitted(1)), "eight turns at once");
        gate.opens();
        assert!((3..=5).contains(&admitted(1000)), "of bytes too");
    }

    #[test]
    fn what_waits_is_bounded_and_doubles_are_known() {
        let gate = Gate::new(TURN);
        let message = |i: usize| vec![i as u8; 250];
        let first = gate.lets_wait(&message(0)).expect("there is room");
        assert_eq!(gate.lets_wait(&message(0)), Err(Declined::Doubled));
        let more = (1..100).filter(|i| gate.lets_wait(&message(*i)).is_ok());
        assert_eq!(more.count(), 15, "of 250 bytes, four turns are 16");
        assert_eq!(gate.dropped().messages, 84);
        gate.is_handled(first, 250);
        assert!(gate.lets_wait(&message(0)).is_ok(), "it may come again");
        // One that is longer than all turns together finds its place when nothing else is there.
        assert!(Gate::new(TURN).lets_wait(&[0; 9000]).is_ok());
    }

    #[test]
    fn pauses_grow() {
        let gate = Gate::new(TURN);
        let pauses: Vec<u64> = (0..5).map(|_| gate.closes().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 8]);
        assert!(gate.dropped().is_cut_off);
        gate.is_open();
        assert_eq!(
            (gate.dropped().cut_off, gate.dropped().is_cut_off),
            (5, false)
        );
    }
}

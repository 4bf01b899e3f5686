//! Waiting for a server.

use super::RecordError;
use async_nats::Client;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long to wait before something is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// A server that is there, and does not do what it is asked for so long, needs somebody to look at it: the party ends
/// with the reason, and is started again by whoever looks after it.
const LONGEST: Duration = Duration::from_secs(25);

/// Context for waiting for a server.
pub struct World<'a> {
    stop: &'a AtomicBool,
    notice: &'a dyn Fn(&str),
    /// Is told what keeps it waiting, at once.
    trouble: &'a dyn Fn(&str),
    tries: Cell<u32>,
    /// Since when a server that is there has not done it.
    since: Cell<Option<Instant>>,
}

impl<'a> World<'a> {
    /// Waits until `stop` is set; reports to `notice`, less and less often, and each time to `trouble`.
    pub fn new(stop: &'a AtomicBool, notice: &'a dyn Fn(&str), trouble: &'a dyn Fn(&str)) -> Self {
        World {
            stop,
            notice,
            trouble,
            tries: Cell::new(0),
            since: Cell::new(None),
        }
    }

    /// Tells people something.
    pub(super) fn tell(&self, text: &str) {
        (self.notice)(text);
    }

    /// How long a server that is there has not done what it is to do.
    pub(super) fn lasts(&self) -> Duration {
        self.since
            .get()
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits a little. Without a connection that may go on for ever: what is lost is a server, and it says so itself.
    pub(super) async fn pause(
        &self,
        client: &Client,
        why: &dyn std::fmt::Display,
    ) -> Result<(), RecordError> {
        if self.stop.load(Ordering::SeqCst) {
            return Err(RecordError::Stopped);
        }
        let text = format!("waits for the server that keeps its records: {why}");
        let connected = client.connection_state() == async_nats::connection::State::Connected;
        let since = self.since.get().filter(|_| connected);
        self.since
            .set(connected.then(|| since.unwrap_or_else(Instant::now)));
        if self.lasts() >= LONGEST {
            return Err(RecordError::Unkept {
                seconds: LONGEST.as_secs(),
                problem: why.to_string(),
            });
        }
        (self.trouble)(&text);
        self.tries.set(self.tries.get() + 1);
        // A server that is being started again is no news.
        if self.tries.get() >= 4 && self.tries.get().is_power_of_two() {
            (self.notice)(&text);
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }
}

//! How Ctrl-C ends what runs, and a run that is shown until then.

use anyhow::{Context, Result};
use selvedge_core::run::Interval;
use selvedge_run::Watcher;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set by the first Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Signals that come together are one wish to stop (`timeout` sends two at once); a later one ends the process.
const ONE_WISH: Duration = Duration::from_secs(1);

/// From now on Ctrl-C ends intervals, not the process.
pub(crate) fn catch_interrupts() -> Result<()> {
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        let first = *first.get_or_insert_with(Instant::now);
        if INTERRUPTED.swap(true, Ordering::SeqCst) && first.elapsed() > ONE_WISH {
            std::process::exit(130);
        }
    })
    .context("cannot catch Ctrl-C")
}

/// Whether somebody has pressed Ctrl-C.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Set once somebody has.
pub(crate) fn interrupted_flag() -> &'static AtomicBool {
    &INTERRUPTED
}

/// What shows how far a run is.
pub(crate) trait Display: Send {
    /// A run begins, or goes on, at `t`.
    fn begin(&mut self, t: u64);
    /// An interval has ended.
    fn update(&mut self, interval: &Interval<'_>);
    /// Something to say.
    fn say(&self, text: &str);
    /// No run any more.
    fn close(&self);
}

/// A run that is shown, until somebody presses Ctrl-C.
pub(crate) struct Shown<'a, D>(pub(crate) &'a mut D);

impl<D: Display> Watcher for Shown<'_, D> {
    fn begins(&mut self, t: u64) {
        self.0.begin(t);
    }

    fn interval(&mut self, interval: &Interval<'_>) -> ControlFlow<()> {
        self.0.update(interval);
        if !is_interrupted() {
            return ControlFlow::Continue(());
        }
        self.0.say("Ctrl-C: saving …");
        ControlFlow::Break(())
    }

    fn ends(&mut self) {
        self.0.close();
    }
}

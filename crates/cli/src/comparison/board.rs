//! One display for all runs of a comparison.

use crate::interrupt::goes_on;
use crate::progress::Bar;
use selvedge_core::run::Interval;
use selvedge_run::Watcher;
use selvedge_run::format::count;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How far all runs are, on the error output: a bar in a terminal, plain lines elsewhere.
pub(super) struct Board {
    bar: Bar,
    shown: Mutex<Shown>,
}

struct Shown {
    runs: usize,
    finished: usize,
    /// Iterations of all runs, and those that are there now.
    total: u64,
    position: u64,
    /// Labels of the runs that are at work.
    at_work: Vec<String>,
}

impl Board {
    pub(super) fn new(label: &str, runs: usize, total: u64) -> Self {
        Board {
            bar: Bar::new(label),
            shown: Mutex::new(Shown {
                runs,
                finished: 0,
                total,
                position: 0,
                at_work: Vec::new(),
            }),
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run that had ended before.
    pub(super) fn was_there(&self, iterations: u64) {
        let mut shown = self.shown();
        shown.finished += 1;
        shown.position += iterations;
        self.bar.skip(iterations);
    }

    /// The display of one run.
    pub(super) fn run(&self, label: &str, iterations: u64) -> OneRun<'_> {
        self.shown().at_work.push(label.into());
        OneRun {
            board: self,
            label: label.into(),
            iterations,
            t: 0,
        }
    }

    fn advance(&self, shown: &mut Shown, iterations: u64) {
        shown.position += iterations;
        self.bar
            .update(shown.position, Some(shown.total), || shown.text());
    }

    pub(super) fn say(&self, text: &str) {
        self.bar.say(text);
    }

    pub(super) fn close(&self) {
        self.bar.close();
    }
}

impl Shown {
    fn text(&self) -> String {
        let mut text = format!(
            "{} of {} runs",
            count(self.finished as u64),
            count(self.runs as u64)
        );
        if !self.at_work.is_empty() {
            text += &format!("  ({})", self.at_work.join(", "));
        }
        text
    }
}

/// One run on the board.
pub(super) struct OneRun<'a> {
    board: &'a Board,
    label: String,
    iterations: u64,
    t: u64,
}

impl OneRun<'_> {
    /// The run has ended, maybe before its last iteration.
    pub(super) fn finish(self) {
        let mut shown = self.board.shown();
        shown.finished += 1;
        shown.at_work.retain(|label| *label != self.label);
        self.board.advance(&mut shown, self.iterations - self.t);
    }
}

impl Watcher for OneRun<'_> {
    fn begins(&mut self, t: u64) {
        let mut shown = self.board.shown();
        self.board.bar.skip(t);
        self.t = t;
        self.board.advance(&mut shown, t);
    }

    fn interval(&mut self, interval: &Interval<'_>) -> ControlFlow<()> {
        let t = interval.state.progress.t;
        let mut shown = self.board.shown();
        self.board.advance(&mut shown, t - self.t);
        self.t = t;
        drop(shown);
        goes_on(|text| self.board.say(text))
    }
}

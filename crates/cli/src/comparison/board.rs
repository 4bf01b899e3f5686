//! One display for all runs of a comparison.

use crate::interrupt::goes_on;
use crate::progress::{LINE_EVERY, terminal_bar};
use indicatif::ProgressBar;
use selvedge_core::run::Interval;
use selvedge_run::Watcher;
use selvedge_run::format::{count, seconds};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How far all runs are, on the error output: a bar in a terminal, plain lines elsewhere.
pub(super) struct Board {
    bar: ProgressBar,
    shown: Mutex<Shown>,
}

struct Shown {
    runs: usize,
    finished: usize,
    /// Iterations of all runs, those that were there before, and those that are there now.
    total: u64,
    before: u64,
    position: u64,
    started: Instant,
    printed: Instant,
    /// Labels of the runs that are at work.
    at_work: Vec<String>,
}

impl Board {
    pub(super) fn new(label: &str, runs: usize, total: u64) -> Self {
        let template = "{prefix} {bar:30.cyan/dim} {msg}  {eta} left";
        let now = Instant::now();
        Board {
            bar: terminal_bar(label, template, Some(total)),
            shown: Mutex::new(Shown {
                runs,
                finished: 0,
                total,
                before: 0,
                position: 0,
                started: now,
                printed: now,
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
        shown.before += iterations;
        self.advance(&mut shown, iterations);
        self.bar.reset_eta();
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
        self.bar.set_position(shown.position);
        self.bar.set_message(shown.text());
    }

    pub(super) fn say(&self, text: &str) {
        self.bar.suspend(|| crate::say(text));
    }

    pub(super) fn close(&self) {
        self.bar.finish_and_clear();
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
        shown.before += t;
        self.t = t;
        self.board.advance(&mut shown, t);
    }

    fn interval(&mut self, interval: &Interval<'_>) -> ControlFlow<()> {
        let t = interval.state.progress.t;
        let mut shown = self.board.shown();
        self.board.advance(&mut shown, t - self.t);
        self.t = t;
        if self.board.bar.is_hidden() && shown.printed.elapsed() >= LINE_EVERY {
            shown.printed = Instant::now();
            let done = (shown.position - shown.before).max(1) as f64;
            let left = (shown.total - shown.position) as f64 / done;
            let left = left * shown.started.elapsed().as_secs_f64();
            crate::say(&format!("{}  about {} left", shown.text(), seconds(left)));
        }
        drop(shown);
        goes_on(|text| self.board.say(text))
    }
}

//! What a person sees while something runs: training at a glance and bars in a terminal, plain lines elsewhere.

mod bar;
mod glance;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use bar::Bar;
pub(crate) use terminal::has_colours;

use crate::interrupt::goes_on;
use glance::{Course, Glance, Parties, Present};
use selvedge_core::dataset::Dataset;
use selvedge_core::metrics::Metric;
use selvedge_core::outcome::Kind;
use selvedge_core::run::Interval;
use selvedge_core::state::Evaluation;
use selvedge_run::Watcher;
use selvedge_run::format::{bytes, score, seconds};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use terminal::Block;

/// How often plain lines come at most.
pub(crate) const LINE_EVERY: Duration = Duration::from_secs(5);

/// How often a terminal is drawn at most.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// The display of one run, on the error output.
///
/// Training takes turns with it, so between two drawings it only looks at the time.
pub(crate) struct Progress {
    label: String,
    total: u64,
    parties: Parties,
    /// What is drawn in a terminal; elsewhere lines are written.
    block: Option<RefCell<Block>>,
    started: Instant,
    first: u64,
    shown: Option<Instant>,
    /// What the last evaluation found, and how it went so far.
    last: Option<Evaluation>,
    loss: Course,
    kind: Kind,
    /// How the metric went that stands for all of its kind.
    chief: Course,
    /// Why P, Q and η are what they are, as it was told last.
    told: Option<String>,
}

impl Progress {
    /// A display for a run of so many iterations on these data.
    pub(crate) fn new(label: &str, total: u64, dataset: &Dataset) -> Self {
        Progress {
            label: label.to_owned(),
            total,
            parties: Parties::of(dataset),
            block: terminal::can_draw().then(|| RefCell::new(Block::new())),
            started: Instant::now(),
            first: 0,
            shown: None,
            last: None,
            loss: Course::default(),
            kind: dataset.outcome.kind(),
            chief: Course::default(),
            told: None,
        }
    }

    fn note(&mut self, evaluation: &Evaluation) {
        self.loss.add(evaluation.loss_train);
        if let Some(value) = Metric::chief(self.kind).of(evaluation) {
            self.chief.add(value);
        }
        self.last = Some(evaluation.clone());
    }

    /// Iterations a second, and the seconds that are left, once there is anything to tell them by.
    fn speed(&self, t: u64) -> Option<(f64, f64)> {
        let done = t.checked_sub(self.first).filter(|done| *done > 0)? as f64;
        let speed = done / self.started.elapsed().as_secs_f64().max(1e-9);
        Some((speed, self.total.saturating_sub(t) as f64 / speed))
    }

    fn draw(&self, interval: &Interval<'_>, block: &RefCell<Block>) {
        let progress = &interval.state.progress;
        let glance = Glance {
            label: &self.label,
            total: self.total,
            speed: self.speed(progress.t),
            progress,
            learning_rate: interval.learning_rate,
            last: self.last.as_ref(),
            loss: &self.loss,
            kind: self.kind,
            chief: &self.chief,
            parties: self.parties,
            present: Present::of(interval.groups),
        };
        let (columns, rows) = terminal::size();
        let lines = glance.lines(columns, rows);
        block.borrow_mut().draw(&lines, columns);
    }

    /// The same as one plain line.
    fn line(&mut self, interval: &Interval<'_>) -> String {
        let progress = &interval.state.progress;
        let t = progress.t;
        let mut parts = vec![format!("t {t}/{}", self.total)];
        if let Some(e) = &self.last {
            parts.push(format!("loss {:.3}", e.loss_train));
            let chief = Metric::chief(self.kind);
            parts.push(format!("{} {}", chief.heading, score(chief.of(e))));
        }
        let ledger = &progress.ledger;
        let sent = bytes(ledger.exact() as f64 / self.parties.groups.max(1) as f64);
        let links = glance::shares(ledger, |e| e.link.name());
        parts.push(match links.is_empty() {
            true => format!("{sent} per group"),
            false => format!("{sent} per group ({})", links.join(", ")),
        });
        parts.push(Present::of(interval.groups).text(self.parties));
        parts.extend(glance::settings(progress, interval.learning_rate));
        if let Some((_, left)) = self.speed(t).filter(|_| t < self.total) {
            parts.push(format!("about {} left", seconds(left)));
        }
        let why = glance::why(progress);
        if why != self.told {
            parts.extend(why.as_ref().map(|why| format!("({why})")));
            self.told = why;
        }
        parts.join("  ")
    }

    fn clear(&self) {
        if let Some(block) = &self.block {
            block.borrow_mut().clear();
        }
    }

    fn update(&mut self, interval: &Interval<'_>) {
        if let Some(evaluation) = interval.evaluation {
            self.note(evaluation);
        }
        let every = match self.block {
            Some(_) => DRAW_EVERY,
            None => LINE_EVERY,
        };
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= every);
        match &self.block {
            Some(block) if due => self.draw(interval, block),
            None if due || interval.state.progress.t == self.total => {
                let line = self.line(interval);
                crate::say(&line);
            }
            _ => return,
        }
        self.shown = Some(Instant::now());
    }
}

impl Watcher for Progress {
    fn begins(&mut self, t: u64) {
        (self.first, self.started) = (t, Instant::now());
    }

    fn interval(&mut self, interval: &Interval<'_>) -> ControlFlow<()> {
        self.update(interval);
        goes_on(|text| {
            self.clear();
            crate::say(text);
        })
    }

    fn ends(&mut self) {
        self.clear();
    }
}

/// The display of one download, on the error output.
pub(crate) struct Bytes {
    bar: Bar,
    begun: bool,
}

impl Bytes {
    /// A display for a file.
    pub(crate) fn new(label: &str) -> Self {
        Bytes {
            bar: Bar::new(label),
            begun: false,
        }
    }

    /// So many bytes are there, of so many if anybody knows.
    pub(crate) fn update(&mut self, at: u64, total: Option<u64>) {
        if !self.begun {
            // What an earlier call brought says nothing about the speed of this one.
            self.bar.skip(at);
            self.begun = true;
        }
        let speed = self.bar.speed(at);
        self.bar.update(at, total, || {
            let total = total.map(|total| format!(" of {}", bytes(total as f64)));
            let speed = speed.map(|speed| format!("  {}/s", bytes(speed)));
            [Some(bytes(at as f64)), total, speed]
                .into_iter()
                .flatten()
                .collect()
        });
    }

    /// Something to say beside the bar.
    pub(crate) fn say(&self, text: &str) {
        self.bar.say(text);
    }

    /// Takes the display away.
    pub(crate) fn close(&self) {
        self.bar.close();
    }
}

//! What a person sees while training or a download runs: a bar in a terminal, plain lines elsewhere.

use crate::format::{bytes, rate, score, seconds};
use crate::training::Display;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use selvedge_core::run::Interval;
use selvedge_core::state::{self, Evaluation};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often plain lines come at most.
pub(crate) const LINE_EVERY: Duration = Duration::from_secs(5);

/// The display of one run, on the error output.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    started: Instant,
    first: u64,
    printed: Option<Instant>,
    /// What the last evaluation found.
    found: String,
}

impl Progress {
    /// A display for a run of so many iterations.
    pub(crate) fn new(label: &str, total: u64) -> Self {
        let template = "{prefix} {bar:30.cyan/dim} t {human_pos}/{human_len}  {msg}  {eta} left";
        Progress {
            bar: terminal_bar(label, template, Some(total)),
            total,
            started: Instant::now(),
            first: 0,
            printed: None,
            found: String::new(),
        }
    }
}

impl Display for Progress {
    fn begin(&mut self, t: u64) {
        (self.first, self.started) = (t, Instant::now());
        if let Some(bar) = &self.bar {
            bar.set_position(t);
            bar.reset_eta();
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| crate::say(text)),
            None => crate::say(text),
        }
    }

    fn update(&mut self, interval: &Interval<'_>) {
        let t = interval.state.progress.t;
        if let Some(evaluation) = interval.evaluation {
            self.found = line(evaluation);
        }
        let now = format!("{}{}", self.found, settings(&interval.state.progress));
        if let Some(bar) = &self.bar {
            bar.set_position(t);
            if interval.evaluation.is_some() || interval.change().is_some() {
                bar.set_message(now);
            }
            return;
        }
        if interval.evaluation.is_none() {
            return;
        }
        let due = self.printed.is_none_or(|last| last.elapsed() >= LINE_EVERY) || t == self.total;
        if due {
            self.printed = Some(Instant::now());
            let spent = self.started.elapsed().as_secs_f64();
            let left = spent / (t - self.first).max(1) as f64 * (self.total - t) as f64;
            crate::say(&format!(
                "t {t}/{}  {now}  about {} left",
                self.total,
                seconds(left)
            ));
        }
    }

    fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar, if there is a terminal to draw it in.
pub(crate) fn terminal_bar(label: &str, template: &str, total: Option<u64>) -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_prefix(label.to_owned());
        bar
    })
}

/// The display of one download, on the error output.
pub(crate) struct Bytes {
    label: String,
    bar: Option<ProgressBar>,
    begun: bool,
    printed: Instant,
}

impl Bytes {
    /// A display for a file.
    pub(crate) fn new(label: &str) -> Self {
        let template = "{prefix} {bar:30.cyan/dim} {msg}  {decimal_bytes_per_sec}  {eta} left";
        Bytes {
            label: label.to_owned(),
            bar: terminal_bar(label, template, None),
            begun: false,
            printed: Instant::now(),
        }
    }

    /// So many bytes are there, of so many if anybody knows.
    pub(crate) fn update(&mut self, at: u64, total: Option<u64>) {
        let text = || match total {
            Some(total) => format!("{} of {}", bytes(at as f64), bytes(total as f64)),
            None => bytes(at as f64),
        };
        if let Some(bar) = &self.bar {
            if let Some(total) = total {
                bar.set_length(total);
            }
            bar.set_position(at);
            bar.set_message(text());
            if !self.begun {
                // What an earlier call brought says nothing about the speed of this one.
                bar.reset_eta();
            }
        } else if self.printed.elapsed() >= LINE_EVERY {
            self.printed = Instant::now();
            crate::say(&format!("{}: {}", self.label, text()));
        }
        self.begun = true;
    }

    /// Something to say beside the bar.
    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| crate::say(text)),
            None => crate::say(text),
        }
    }

    /// Takes the display away.
    pub(crate) fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// P, Q and η as they are now, where somebody steers; else they are what the experiment says.
fn settings(progress: &state::Progress) -> String {
    let segment = &progress.segment;
    let (p, q) = (segment.global_interval, segment.local_interval);
    match progress.controller {
        Some(_) => format!("  P {p}  Q {q}  η {}", rate(segment.learning_rate)),
        None => String::new(),
    }
}

fn line(e: &Evaluation) -> String {
    format!(
        "loss {:.3}  AUC {}  {} a group",
        e.loss_train,
        score(e.test.auc),
        bytes(e.bytes_exact)
    )
}

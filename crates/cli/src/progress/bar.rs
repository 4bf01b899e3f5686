//! How far something is, on the error output: a bar in a terminal, plain lines elsewhere.

use super::terminal::{self, Block, Ink, Line, narrow};
use super::{DRAW_EVERY, LINE_EVERY};
use selvedge_run::format::seconds;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const WIDTH: usize = 30;

/// The display, for one thread or for several.
pub(crate) struct Bar {
    label: String,
    shown: Mutex<Shown>,
}

struct Shown {
    /// What is drawn in a terminal; elsewhere lines are written.
    block: Option<Block>,
    last: Option<Instant>,
    /// What was there before, which says nothing about the speed, and when it began.
    first: u64,
    started: Instant,
}

impl Bar {
    pub(crate) fn new(label: &str) -> Self {
        let block = terminal::can_draw().then(Block::new);
        let now = Instant::now();
        Bar {
            label: label.chars().map(narrow).collect(),
            shown: Mutex::new(Shown {
                // A line says nothing that its command does not say, before some time has passed.
                last: block.is_none().then_some(now),
                block,
                first: 0,
                started: now,
            }),
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So much was there already.
    pub(crate) fn skip(&self, done: u64) {
        self.shown().first += done;
    }

    /// So much is done a second, once there is anything to tell it by.
    pub(crate) fn speed(&self, at: u64) -> Option<f64> {
        self.shown().speed(at)
    }

    /// Shows how far it is, of how much if anybody knows, unless that was shown just now.
    pub(crate) fn update(&self, at: u64, total: Option<u64>, text: impl FnOnce() -> String) {
        let mut shown = self.shown();
        let every = match shown.block {
            Some(_) => DRAW_EVERY,
            None => LINE_EVERY,
        };
        if shown.last.is_some_and(|last| last.elapsed() < every) {
            return;
        }
        self.show(&mut shown, (at, total), &text());
    }

    /// Shows it in any case: something else begins.
    pub(crate) fn step(&self, at: u64, total: Option<u64>, text: &str) {
        self.show(&mut self.shown(), (at, total), text);
    }

    fn show(&self, shown: &mut Shown, (at, total): (u64, Option<u64>), text: &str) {
        shown.last = Some(Instant::now());
        let left = shown.speed(at).zip(total).filter(|(_, total)| at < *total);
        let left = left.map(|(speed, total)| seconds((total - at) as f64 / speed));
        let Some(block) = &mut shown.block else {
            let left = left.map_or(String::new(), |left| format!("  about {left} left"));
            crate::say(&format!("{}: {text}{left}", self.label));
            return;
        };
        let mut line = Line::default();
        line.add(Ink::Plain, format!("{} ", self.label));
        if let Some(total) = total {
            line.add_bar(at as f64 / total.max(1) as f64, WIDTH);
        }
        line.add(
            Ink::Plain,
            format!(" {}", text.chars().map(narrow).collect::<String>()),
        );
        if let Some(left) = left {
            line.add(Ink::Plain, format!("  {left} left"));
        }
        let (columns, _) = terminal::size();
        line.cut(columns.saturating_sub(1));
        block.draw(&[line], columns);
    }

    /// Something to say besides.
    pub(crate) fn say(&self, text: &str) {
        let mut shown = self.shown();
        shown.block.iter_mut().for_each(Block::clear);
        crate::say(text);
    }

    /// Takes the display away.
    pub(crate) fn close(&self) {
        self.shown().block.iter_mut().for_each(Block::clear);
    }
}

impl Shown {
    fn speed(&self, at: u64) -> Option<f64> {
        let done = at.checked_sub(self.first).filter(|done| *done > 0)? as f64;
        Some(done / self.started.elapsed().as_secs_f64().max(1e-9))
    }
}

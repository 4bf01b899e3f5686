//! A run at a glance: at most eight lines, for any width and height of a terminal.

use super::terminal::{Ink, Line, narrow};
use crate::comparison::table::targets_of;
use crate::sparkline::sparkline;
use selvedge_core::dataset::Dataset;
use selvedge_core::group::Turnout;
use selvedge_core::ledger::Ledger;
use selvedge_core::metrics::Metric;
use selvedge_core::outcome::Kind;
use selvedge_core::state::{Evaluation, Progress};
use selvedge_run::format::{bytes, count, rate, score, seconds};

/// The most lines there are.
pub(super) const LINES: usize = 8;

/// Who there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parties {
    pub(super) groups: usize,
    pub(super) devices: usize,
}

impl Parties {
    pub(super) fn of(dataset: &Dataset) -> Self {
        Parties {
            groups: dataset.groups.len(),
            devices: dataset.groups.iter().map(|g| g.offsets.devices()).sum(),
        }
    }
}

/// Who took part in an interval, and who was drawn and was absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Present {
    drawn: usize,
    absent: usize,
}

impl Present {
    pub(super) fn of(groups: &[Turnout]) -> Self {
        let drawn = groups.iter().map(|g| g.subset.len()).sum();
        let missing = |there: &Vec<bool>| there.iter().filter(|there| !**there).count();
        let absent = groups.iter().map(|g| missing(&g.uploaded)).sum();
        Present { drawn, absent }
    }

    /// `200 of 2,000 devices`
    pub(super) fn text(self, parties: Parties) -> String {
        let all = count(parties.devices as u64);
        let absent = match self.absent {
            0 => String::new(),
            n => format!(", {} absent", count(n as u64)),
        };
        match self.drawn {
            0 => format!("{all} devices"),
            n => format!("{} of {all} devices{absent}", count(n as u64)),
        }
    }
}

/// How a number went, thinned out so that it never takes much room.
#[derive(Default)]
pub(super) struct Course {
    values: Vec<f32>,
    /// Every so many are kept, and so many have come since.
    every: usize,
    since: usize,
}

impl Course {
    const MOST: usize = 512;

    pub(super) fn add(&mut self, value: f64) {
        self.since += 1;
        if self.since < self.every {
            return;
        }
        self.since = 0;
        self.values.push(value as f32);
        if self.values.len() >= Self::MOST {
            let mut place = 0;
            self.values.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every = 2 * self.every.max(1);
        }
    }
}

/// What is shown.
pub(super) struct Glance<'a> {
    pub(super) label: &'a str,
    pub(super) total: u64,
    /// Iterations a second, and seconds that are left; nothing before the first interval.
    pub(super) speed: Option<(f64, f64)>,
    pub(super) progress: &'a Progress,
    pub(super) learning_rate: f64,
    pub(super) last: Option<&'a Evaluation>,
    pub(super) loss: &'a Course,
    pub(super) kind: Kind,
    /// The metric that stands for all of its kind.
    pub(super) chief: &'a Course,
    pub(super) parties: Parties,
    pub(super) present: Present,
}

impl Glance<'_> {
    /// The lines for a terminal of so many columns and rows; none is wider, and they leave a row for the cursor.
    pub(super) fn lines(&self, columns: usize, rows: usize) -> Vec<Line> {
        // A letter in the last column makes some terminals go on to the next line.
        let width = columns.saturating_sub(1);
        let mut lines = vec![self.bar(width)];
        lines.push(self.course(width, "loss", self.last.map(|e| e.loss_train), self.loss));
        let chief = Metric::chief(self.kind);
        let now = self.last.and_then(|e| chief.of(e));
        lines.push(self.course(width, chief.heading, now, self.chief));
        lines.push(self.sent(width));
        lines.push(fitted(
            width,
            "settings",
            &settings(self.progress, self.learning_rate),
        ));
        lines.push(self.here(width));
        if let Some(why) = why(self.progress) {
            lines.insert(5, fitted(width, "why", &[why]));
        }
        let kinds = shares(&self.progress.ledger, |e| e.kind.name());
        lines.push(fitted(width, "by kind", &kinds));
        lines.truncate(rows.saturating_sub(1).clamp(1, LINES));
        lines.iter_mut().for_each(|line| line.cut(width));
        lines
    }

    /// How far it is, how fast, and how long it takes yet.
    fn bar(&self, width: usize) -> Line {
        let t = self.progress.t.min(self.total);
        let mut right = format!(" t {}/{}", count(t), count(self.total));
        if let Some((speed, left)) = self.speed {
            let speed = match speed {
                speed if speed < 10.0 => format!("{speed:.1}"),
                speed => count(speed.round() as u64),
            };
            for part in [
                format!("  {} left", seconds(left)),
                format!("  {speed} iterations/s"),
            ] {
                if right.chars().count() + part.len() + BAR_LEAST < width {
                    right += &part;
                }
            }
        }
        let room = width.saturating_sub(right.chars().count());
        let mut line = Line::default();
        let label: String = self.label.chars().map(narrow).collect();
        if label.chars().count() + 1 + BAR_LEAST <= room {
            line.add(Ink::Plain, format!("{label} "));
        }
        let room = room.saturating_sub(line.width()).min(BAR_MOST);
        line.add_bar(t as f64 / self.total.max(1) as f64, room);
        line.add(Ink::Plain, right);
        line
    }

    /// A metric as it is, how it went, and others of its kind where there is room.
    fn course(&self, width: usize, name: &str, now: Option<f64>, course: &Course) -> Line {
        let mut line = head(name);
        line.add(Ink::Plain, score(now));
        let room = width.saturating_sub(line.width() + 1);
        let bars = sparkline(&course.values, room.min(BAR_MOST));
        line.add(Ink::Bright, format!(" {bars}"));
        if let Some(e) = self.last {
            let other = |m: &&Metric| m.tested && m.heading != name;
            let more: Vec<String> = match name {
                "loss" => vec![format!("test {}", score(e.loss_test))],
                _ => targets_of(self.kind)
                    .filter(other)
                    .map(|m| format!("{} {}", m.heading, score(m.of(e))))
                    .collect(),
            };
            add_what_fits(&mut line, width, &more);
        }
        line
    }

    /// Bytes of a group, and over which links.
    fn sent(&self, width: usize) -> Line {
        let ledger = &self.progress.ledger;
        let each = ledger.exact() as f64 / self.parties.groups.max(1) as f64;
        let mut parts = vec![format!("{} per group", bytes(each))];
        parts.extend(shares(ledger, |e| e.link.name()));
        fitted(width, "sent", &parts)
    }

    /// Who there is and who takes part.
    fn here(&self, width: usize) -> Line {
        let Parties { groups, devices } = self.parties;
        let each = match devices.is_multiple_of(groups.max(1)) {
            true => format!(" × {} devices", count((devices / groups.max(1)) as u64)),
            false => String::new(),
        };
        let now = format!("{} take part", self.present.text(self.parties));
        let who = format!("{} groups{each}", count(groups as u64));
        fitted(width, "devices", &[now, who])
    }
}

/// The bar has at least and at most so many columns, as have the courses of metrics.
const BAR_LEAST: usize = 8;
const BAR_MOST: usize = 60;

/// P, Q and η as they are now.
pub(super) fn settings(progress: &Progress, eta: f64) -> Vec<String> {
    let segment = &progress.segment;
    vec![
        format!("P {}", segment.global_interval),
        format!("Q {}", segment.local_interval),
        format!("η {}", rate(eta)),
    ]
}

/// Why P, Q and η are what they are, if anything has changed them.
pub(super) fn why(progress: &Progress) -> Option<String> {
    let change = progress.controller.as_ref().and_then(|c| c.change.as_ref());
    if let Some(change) = change {
        return Some(format!("since t {}: {}", count(change.t), change.reason));
    }
    let every = progress.segment.halve_every?;
    Some(format!("η is halved every {} iterations", count(every)))
}

/// Shares of all bytes by what `name` says, the largest first; none that would be 0 %.
pub(super) fn shares(
    ledger: &Ledger,
    name: fn(&selvedge_core::ledger::Entry) -> &'static str,
) -> Vec<String> {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for entry in ledger.entries() {
        match sums.iter_mut().find(|(known, _)| *known == name(entry)) {
            Some((_, sum)) => *sum = sum.saturating_add(entry.bytes),
            None => sums.push((name(entry), entry.bytes)),
        }
    }
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let all = ledger.exact().max(1) as f64;
    let shares = sums
        .into_iter()
        .map(|(name, sum)| (name, 100.0 * sum as f64 / all));
    let seen = shares.filter(|(_, share)| *share >= 0.5);
    seen.map(|(name, share)| format!("{name} {share:.0} %"))
        .collect()
}

fn head(name: &str) -> Line {
    let mut line = Line::default();
    line.add(Ink::Faint, format!("{:<9}", format!("{name} ")));
    line
}

/// A line of parts: the first in any case, the others as long as they fit.
fn fitted(width: usize, name: &str, parts: &[String]) -> Line {
    let mut line = head(name);
    if let Some((first, others)) = parts.split_first() {
        line.add(Ink::Plain, first.clone());
        add_what_fits(&mut line, width, others);
    }
    line
}

fn add_what_fits(line: &mut Line, width: usize, parts: &[String]) {
    for part in parts {
        if line.width() + 2 + part.chars().count() > width {
            return;
        }
        line.add(Ink::Plain, format!("  {part}"));
    }
}

#[cfg(test)]
impl Course {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn line(&self, width: usize) -> String {
        sparkline(&self.values, width)
    }
}

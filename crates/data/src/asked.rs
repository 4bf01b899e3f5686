//! What is asked about rows, before it is known which of them train; and what follows once that is known.

use crate::DataError;
use crate::rows::Rows;
use crate::settings::wrong;
use crate::split::Split;
use selvedge_core::outcome::{Kind, Outcome, Targets};
use selvedge_nn::random::Key;

/// First word of the key by which labels are hidden.
const HIDDEN: u64 = u64::from_be_bytes(*b"hideknow");

/// What is known of rows where that is no class.
#[derive(Debug)]
pub(crate) struct Known {
    /// The kind of outcome.
    pub(crate) kind: Kind,
    /// Of each row: see [`Target`](selvedge_core::outcome::Target).
    pub(crate) targets: Targets,
    /// What rows are told apart by where they are dealt out: [`Rows::y`] says which of these each is.
    pub(crate) strata: Vec<String>,
    /// When survival curves end, where the set says it and not its events.
    pub(crate) horizon: Option<f64>,
}

/// Labels that are being hidden.
struct Hiding {
    key: Key,
    share: f64,
    known: u64,
    hidden: u64,
}

impl Hiding {
    fn new(share: f64, seed: u64) -> Self {
        Hiding {
            key: Key::new(seed).with(HIDDEN),
            share,
            known: 0,
            hidden: 0,
        }
    }

    /// Some of a row's.
    fn hide(&mut self, row: u64, labels: &mut [f32]) {
        let mut stream = self.key.with(row).stream();
        for label in labels {
            let is_hidden = f64::from(stream.uniform()) < self.share;
            self.known += u64::from(!label.is_nan());
            self.hidden += u64::from(is_hidden && !label.is_nan());
            if is_hidden {
                *label = f32::NAN;
            }
        }
    }

    fn told(&self) -> String {
        format!(
            "{} of {} known labels of training rows are hidden (data.hidden)",
            self.hidden, self.known
        )
    }
}

/// Hides a share of the labels of generated training rows, group after group, and says so.
pub(crate) fn hide_generated<'a>(
    kind: Kind,
    groups: impl Iterator<Item = &'a mut Targets>,
    share: f64,
    seed: u64,
) -> Result<Option<String>, DataError> {
    if kind != Kind::Labels || share == 0.0 {
        return Known::nothing_to_hide(share);
    }
    let (mut hiding, mut row) = (Hiding::new(share, seed), 0);
    for targets in groups {
        if let Targets::Numbers { each, values } = targets {
            for labels in values.chunks_exact_mut(*each) {
                hiding.hide(row, labels);
                row += 1;
            }
        }
    }
    Ok(Some(hiding.told()))
}

/// Names of labels: so that unusual ones are few, an unknown label counts as no.
const NO_OR_YES: [&str; 2] = ["without", "with"];

impl Known {
    /// Of rows of which each is known in so many numbers; and which stratum each row is in.
    pub(crate) fn new(kind: Kind, names: &[String], values: Vec<f32>) -> (Self, Vec<u32>) {
        let each = match kind {
            Kind::Class | Kind::Quantity => 1,
            Kind::Labels => names.len(),
            Kind::Survival => 2,
        };
        let rows = || values.chunks_exact(each);
        let name = names.first().map_or("", String::as_str);
        let (strata, y) = match kind {
            // Those with the first label, and those with an event, are spread evenly.
            Kind::Class | Kind::Labels | Kind::Survival => {
                let at = if kind == Kind::Survival { 1 } else { 0 };
                let yes = |row: &[f32]| u32::from(row[at] > 0.5);
                let strata = NO_OR_YES.map(|with| format!("{with} {name}"));
                (strata, rows().map(yes).collect())
            }
            Kind::Quantity => {
                let mut sorted: Vec<f32> = values.iter().copied().filter(|x| !x.is_nan()).collect();
                sorted.sort_unstable_by(f32::total_cmp);
                let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
                let strata = [
                    format!("{name} below {middle}"),
                    format!("{name} from {middle}"),
                ];
                (
                    strata,
                    values.iter().map(|x| u32::from(*x >= middle)).collect(),
                )
            }
        };
        let known = Known {
            kind,
            targets: Targets::Numbers { each, values },
            strata: strata.to_vec(),
            horizon: None,
        };
        (known, y)
    }

    /// What is known of the training rows.
    pub(crate) fn training(&self, split: &Split) -> Targets {
        let rows: Vec<u32> = split
            .groups
            .iter()
            .flatten()
            .map(|row| *row as u32)
            .collect();
        self.targets.of(&rows)
    }

    /// Hides a share of the known labels of training rows, and says so.
    pub(crate) fn hide(
        &mut self,
        split: &Split,
        share: f64,
        seed: u64,
    ) -> Result<Option<String>, DataError> {
        if share == 0.0 {
            return Ok(None);
        }
        let (Kind::Labels, Targets::Numbers { each, values }) = (self.kind, &mut self.targets)
        else {
            return Err(not_labels(share));
        };
        let mut hiding = Hiding::new(share, seed);
        for row in split.groups.iter().flatten() {
            hiding.hide(*row as u64, &mut values[row * *each..][..*each]);
        }
        Ok(Some(hiding.told()))
    }

    /// Of classes nothing is hidden.
    pub(crate) fn nothing_to_hide(share: f64) -> Result<Option<String>, DataError> {
        match share == 0.0 {
            true => Ok(None),
            false => Err(not_labels(share)),
        }
    }

    /// What a user should know of labels that are hardly known, and of groups that know none.
    pub(crate) fn notes(&self, rows: &Rows, split: &Split) -> Vec<String> {
        let mut notes = Vec::new();
        let Targets::Numbers { each, values } = &self.targets else {
            return notes;
        };
        let names: Vec<&str> = split.names.iter().map(String::as_str).collect();
        match self.kind {
            Kind::Labels => {
                for (label, name) in rows.classes.iter().enumerate() {
                    let of = |row: &usize| values[row * each + label];
                    for (answer, word) in NO_OR_YES.iter().enumerate() {
                        let is = |row: &usize| of(row) == answer as f32;
                        if !split.groups.iter().flatten().any(is) {
                            notes.push(format!("no training rows are known to be {word} {name:?}: it cannot be learnt"));
                        }
                    }
                }
                let unknown = |rows: &[usize]| {
                    let mut known = rows.iter().flat_map(|row| &values[row * each..][..*each]);
                    known.all(|y| y.is_nan())
                };
                let mut lacking = Vec::new();
                for (rows_of_group, name) in split.groups.iter().zip(names) {
                    if unknown(rows_of_group) {
                        notes.push(format!("no label of {name} is known: it learns nothing"));
                        continue;
                    }
                    for (label, of_label) in rows.classes.iter().enumerate() {
                        let mut known = rows_of_group.iter().map(|row| values[row * each + label]);
                        if known.all(f32::is_nan) {
                            lacking.push(format!("{of_label:?} at {name}"));
                        }
                    }
                }
                notes.extend(told("not known of any training row: ", &lacking));
            }
            Kind::Survival => {
                for (rows, name) in split.groups.iter().zip(names) {
                    if rows.iter().all(|row| values[2 * row + 1] < 0.5) {
                        notes.push(format!("nobody of {name} has the event in training"));
                    }
                }
            }
            Kind::Class | Kind::Quantity => {}
        }
        notes
    }
}

/// What no training row of a group is, where a file names the groups. Splits make groups that lack classes on purpose.
pub(crate) fn absent_classes(rows: &Rows, split: &Split) -> Option<String> {
    let given = rows.given_groups.as_ref()?;
    let named = split.names.iter().zip(&split.groups);
    let named = named.filter(|(name, _)| given.names.contains(name));
    let mut lacking = Vec::new();
    for (name, of_group) in named {
        let mut there = vec![false; rows.classes.len()];
        of_group
            .iter()
            .for_each(|row| there[rows.y[*row] as usize] = true);
        let classes = rows.classes.iter().zip(there);
        let absent = classes.filter(|(_, there)| !there);
        lacking.extend(absent.map(|(class, _)| format!("{class:?} at {name}")));
    }
    told("no training row of that class: ", &lacking)
}

/// The most that are named of what groups lack.
const MOST_NAMED: usize = 6;

fn told(what: &str, lacking: &[String]) -> Option<String> {
    let shown = &lacking[..lacking.len().min(MOST_NAMED)];
    let more = match lacking.len() - shown.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    (!lacking.is_empty()).then(|| format!("{what}{}{more}", shown.join(", ")))
}

fn not_labels(share: f64) -> DataError {
    let expected = "only labels can be hidden: expected 0 for other outcomes";
    wrong("hidden", share, expected)
}

/// An outcome of this kind and name, by what training rows show, which are given group after group.
pub(crate) fn outcome<'a, I: Iterator<Item = &'a Targets>>(
    kind: Kind,
    name: &str,
    training: impl Fn() -> I,
    (intervals, horizon): (usize, Option<f64>),
) -> Result<Outcome, DataError> {
    match kind {
        Kind::Class => Ok(Outcome::Class),
        Kind::Labels => Ok(Outcome::Labels),
        Kind::Quantity => {
            let all = || training().flat_map(|y| y.numbers()).map(|x| f64::from(*x));
            let count = all().count().max(1) as f64;
            let mean = all().sum::<f64>() / count;
            let squares: f64 = all().map(|x| (x - mean) * (x - mean)).sum();
            let deviation = (squares / count).sqrt();
            match deviation.is_normal() {
                true => Ok(Outcome::Quantity { mean, deviation }),
                false => Err(wrong(
                    "outcome",
                    format!("{name:?}"),
                    format!(
                        "all training rows have the value {mean}, so there is nothing to learn: expected a quantity that varies"
                    ),
                )),
            }
        }
        Kind::Survival => {
            let all = || training().flat_map(|y| y.numbers().chunks_exact(2));
            let longest = all().map(|known| f64::from(known[0])).fold(0.0, f64::max);
            let events = all().filter(|known| known[1] > 0.5);
            let mut times: Vec<f64> = events.map(|known| f64::from(known[0])).collect();
            times.sort_unstable_by(f64::total_cmp);
            let Some(last) = times.last().copied().filter(|last| *last > 0.0) else {
                return Err(wrong(
                    "outcome",
                    format!("{name:?}"),
                    "no training row has the event after time 0, so there is nothing to learn: expected some",
                ));
            };
            let horizon = horizon.unwrap_or(last);
            if horizon > longest {
                let expected = format!(
                    "nobody in training was seen for longer than {longest}: expected at most that"
                );
                return Err(wrong("horizon", horizon, expected));
            }
            times.retain(|time| *time <= horizon);
            match times.is_empty() {
                true => {
                    let expected = "no training row has the event by then: expected a later time";
                    Err(wrong("horizon", horizon, expected))
                }
                false => Ok(by_events(&times, horizon, intervals)),
            }
        }
    }
}

/// So many intervals up to a horizon, each with about as many of these events, in order.
fn by_events(times: &[f64], horizon: f64, intervals: usize) -> Outcome {
    let quantile = |k: usize| times[(k * times.len() / intervals).min(times.len() - 1)];
    Outcome::survival((1..intervals).map(quantile), horizon, intervals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_about_as_many_events_each() {
        let times: Vec<f64> = (1..=100).map(|t| f64::from(t * t)).collect();
        let is = |times: &[f64], horizon, ends: &[f64]| {
            let ends = ends.to_vec();
            let found = by_events(times, horizon, ends.len());
            assert_eq!(found, Outcome::Survival { ends });
        };
        is(
            &times,
            10_000.0,
            &[26.0 * 26.0, 51.0 * 51.0, 76.0 * 76.0, 10_000.0],
        );
        is(&[5.0; 9], 8.0, &[2.0, 4.0, 6.0, 8.0]);
        is(&[5.0], 5.0, &[5.0]);
    }
}

//! Measures of survival.

use super::{Agreement, Answered, surprise};
use crate::assess::mean;
use crate::outcome::interval;

/// Of whole curves; one for each end of an interval follows.
pub(super) const MEASURES: [&str; 3] = ["concordance", "brier", "loss"];

impl Answered<'_> {
    pub(super) fn of_survival(&self, ends: &[f64], weights: &[u32], loss: f64) -> Vec<f64> {
        let known = self.targets.numbers();
        let horizon = ends.last().copied().unwrap_or_default();
        // Harrell's: of whom the event was seen, everybody who was longer without one is compared with. From the last
        // time to the first, those who were there longer are counted by risk.
        let most = self.ranks.iter().copied().max().unwrap_or(0) as usize;
        let mut longer = Counts::new(most);
        let (mut won, mut pairs) = (0.0, 0.0);
        let time = |row: &u32| f64::from(known[2 * *row as usize]).min(horizon);
        let event = |row: &u32| {
            let at = 2 * *row as usize;
            known[at + 1] > 0.5 && f64::from(known[at]) <= horizon
        };
        for together in self.by_time.chunk_by(|a, b| time(a) == time(b)).rev() {
            // Who left at the very time of an event was there longer than that.
            for row in together.iter().filter(|row| !event(row)) {
                longer.add(self.ranks[*row as usize], weights[*row as usize]);
            }
            for row in together.iter().filter(|row| event(row)) {
                let weight = f64::from(weights[*row as usize]);
                let rank = self.ranks[*row as usize];
                let (below, same) = (longer.below(rank), longer.at(rank));
                won += weight * (below as f64 + 0.5 * same as f64);
                pairs += weight * longer.all as f64;
            }
            for row in together.iter().filter(|row| event(row)) {
                longer.add(self.ranks[*row as usize], weights[*row as usize]);
            }
        }
        let brier = self.brier(ends, weights);
        let defined: Vec<Option<f64>> = brier
            .iter()
            .map(|b| Some(*b).filter(|b| !b.is_nan()))
            .filter(Option::is_some)
            .collect();
        let mut values = vec![
            if pairs > 0.0 { won / pairs } else { f64::NAN },
            mean(defined.into_iter()).unwrap_or(f64::NAN),
            loss,
        ];
        values.extend(brier);
        values
    }

    /// At each end, the squared distance of what was said from what was so, with those who left earlier made up for by
    /// those like them who stayed: weights are inverse to the chance of not having left, by Kaplan and Meier.
    fn brier(&self, ends: &[f64], weights: &[u32]) -> Vec<f64> {
        let known = self.targets.numbers();
        let of = |row: u32| {
            let at = 2 * row as usize;
            (f64::from(known[at]), known[at + 1] > 0.5)
        };
        let all: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        // The chance of not having left before, and until, the time of each row.
        let mut stayed = vec![(1.0, 1.0); weights.len()];
        let (mut there, mut chance) = (all, 1.0);
        let time = |row: &u32| of(*row).0;
        let mut steps: Vec<(f64, f64)> = Vec::new();
        for together in self.by_time.chunk_by(|a, b| time(a) == time(b)) {
            let weight = |row: &&u32| f64::from(weights[**row as usize]);
            let sum = |events: bool| -> f64 {
                let some = together.iter().filter(|row| of(**row).1 == events);
                some.map(|row| weight(&row)).sum()
            };
            let (events, left) = (sum(true), sum(false));
            let before = chance;
            let at_risk = there - events;
            if left > 0.0 && at_risk > 0.0 {
                chance *= 1.0 - left / at_risk;
            }
            together
                .iter()
                .for_each(|row| stayed[*row as usize] = (before, chance));
            steps.push((time(&together[0]), chance));
            there -= events + left;
        }
        let until = |end: f64| {
            // Who leaves at an end was there until then.
            let step = steps.iter().rev().find(|(time, _)| *time < end);
            step.map_or(1.0, |(_, chance)| *chance)
        };
        let at_end = |(place, end): (usize, &f64)| {
            let stays = until(*end);
            let mut sum = 0.0;
            for (row, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0) {
                let said = f64::from(self.answers[row * ends.len() + place]);
                let (time, event) = of(row as u32);
                let chance = match (time >= *end && !(event && time <= *end), event) {
                    (true, _) => stays,
                    (false, true) => stayed[row].0,
                    (false, false) => continue,
                };
                let truth = f64::from(u8::from(!(event && time <= *end)));
                if chance <= 0.0 {
                    return f64::NAN;
                }
                sum += f64::from(*weight) * (said - truth) * (said - truth) / chance;
            }
            sum / all
        };
        ends.iter().enumerate().map(at_end).collect()
    }

    pub(super) fn agreement_of_survival(&self, ends: &[f64]) -> Vec<Agreement> {
        let known = self.targets.numbers();
        let (n, horizon) = (ends.len(), ends[ends.len() - 1]);
        let event = |row: usize| 1.0 - f64::from(self.answers[row * n + n - 1]);
        let pairs = (0..self.targets.len()).map(|row| (row, event(row)));
        self.grouped(pairs.collect(), &self.names[0], &|rows| {
            let times = rows.iter().map(|row| [known[2 * row], known[2 * row + 1]]);
            1.0 - kaplan_meier(times.collect(), horizon)
        })
    }
}

/// The negative logarithm of the likelihood of what is known of a patient, by what was said of the ends of intervals.
pub(super) fn loss(ends: &[f64], said: &[f32], known: &[f32]) -> f64 {
    let (survived, event) = interval(ends, [known[0], known[1]]);
    let until = |end: usize| match end.checked_sub(1) {
        None => 1.0,
        Some(at) => f64::from(said[at]),
    };
    match event {
        true => surprise(until(survived) - until(survived + 1)),
        false => surprise(until(survived)),
    }
}

/// The share that is without the event at a time, of patients who were seen for different times.
fn kaplan_meier(mut known: Vec<[f32; 2]>, until: f64) -> f64 {
    known.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let (mut there, mut share) = (known.len() as f64, 1.0);
    for together in known.chunk_by(|a, b| a[0] == b[0]) {
        if f64::from(together[0][0]) > until {
            break;
        }
        let events = together.iter().filter(|known| known[1] > 0.5).count() as f64;
        share *= 1.0 - events / there;
        there -= together.len() as f64;
    }
    share
}

/// How many there are of each rank, and below it: a Fenwick tree.
struct Counts {
    tree: Vec<u64>,
    each: Vec<u64>,
    all: u64,
}

impl Counts {
    fn new(most: usize) -> Self {
        Counts {
            tree: vec![0; most + 1],
            each: vec![0; most + 1],
            all: 0,
        }
    }

    fn add(&mut self, rank: u32, count: u32) {
        self.each[rank as usize] += u64::from(count);
        self.all += u64::from(count);
        let mut at = rank as usize;
        while at < self.tree.len() {
            self.tree[at] += u64::from(count);
            at += at & at.wrapping_neg();
        }
    }

    fn at(&self, rank: u32) -> u64 {
        self.each[rank as usize]
    }

    fn below(&self, rank: u32) -> u64 {
        let (mut sum, mut at) = (0, rank as usize - 1);
        while at > 0 {
            sum += self.tree[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::{losses, value};
    use super::*;
    use crate::metrics::risk;
    use crate::outcome::{Outcome, Targets};
    use selvedge_nn::random::Key;

    #[test]
    fn concordance_is_that_of_all_pairs() {
        let mut stream = Key::new(3).stream();
        let outcome = Outcome::Survival {
            ends: vec![5.0, 20.0],
        };
        let names = ["death".to_owned()];
        let n = 120;
        let values: Vec<f32> = (0..n)
            .flat_map(|_| [stream.below(25) as f32, stream.below(2) as f32])
            .collect();
        let answers: Vec<f32> = (0..n)
            .flat_map(|_| {
                let first = (stream.below(8) + 1) as f32 / 9.0;
                [first, first * first]
            })
            .collect();
        let targets = Targets::Numbers {
            each: 2,
            values: values.clone(),
        };
        let of = (&outcome, &names[..]);
        let answered = Answered::new(of, &answers, &targets, losses(of, &answers, &targets), None);
        let known = |row: usize| {
            let event = values[2 * row + 1] > 0.5 && values[2 * row] <= 20.0;
            (values[2 * row].min(20.0), event)
        };
        let said = |row: usize| risk(&answers[2 * row..][..2]);
        let (mut won, mut pairs) = (0.0, 0.0);
        for i in (0..n).filter(|i| known(*i).1) {
            for j in (0..n).filter(|j| *j != i) {
                let (mine, theirs) = (known(i), known(j));
                if theirs.0 > mine.0 || (theirs.0 == mine.0 && !theirs.1) {
                    pairs += 1.0;
                    won += match said(i).total_cmp(&said(j)) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                }
            }
        }
        assert!((value(&answered, "concordance") - won / pairs).abs() < 1e-12);
    }

    #[test]
    fn without_anybody_leaving_brier_is_the_mean_square() {
        let outcome = Outcome::Survival {
            ends: vec![2.0, 4.0],
        };
        let names = ["death".to_owned()];
        let targets = Targets::Numbers {
            each: 2,
            values: vec![1.0, 1.0, 3.0, 1.0, 9.0, 1.0],
        };
        let answers = [0.5, 0.25, 0.75, 0.5, 1.0, 1.0];
        let of = (&outcome, &names[..]);
        let answered = Answered::new(of, &answers, &targets, losses(of, &answers, &targets), None);
        let first = (0.25 + 0.0625 + 0.0) / 3.0;
        let second = (0.0625 + 0.25 + 0.0) / 3.0;
        assert!((value(&answered, "brier at 2") - first).abs() < 1e-12);
        assert!((value(&answered, "brier") - (first + second) / 2.0).abs() < 1e-12);
        assert_eq!(
            kaplan_meier(vec![[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]], 2.5),
            1.0 - 1.0 / 3.0
        );
        assert!((kaplan_meier(vec![[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]], 3.0)).abs() < 1e-12);
    }
}

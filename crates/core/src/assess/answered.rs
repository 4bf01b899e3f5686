//! Measures of what is no class: labels, quantities, survival.
//!
//! As for classes, each measure is a function of how often each row counts, so that intervals come from resampled
//! patients.

use super::{Bootstrap, Estimate, Ranking, mean};
use crate::metrics::{area, risk};
use crate::outcome::{Outcome, Target, Targets, interval};

/// Groups of equal size that calibration is shown in.
const GROUPS: usize = 10;

/// What was said of some patients, with what is known of them.
pub struct Answered<'a> {
    outcome: &'a Outcome,
    names: &'a [String],
    answers: &'a [f32],
    targets: &'a Targets,
    /// Of each row, the loss that training would have had.
    losses: Vec<f64>,
    /// Of labels: the order of what is said of each.
    rankings: Vec<Ranking>,
    /// Of survival: rows by time, the earliest first.
    by_time: Vec<u32>,
    /// And the risk that each row is given, as its rank among all.
    ranks: Vec<u32>,
    /// The quantile that was learnt, if one was.
    quantile: Option<f64>,
}

/// Samples of which similar things were said, and what was so.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Agreement {
    /// The label, where there are several; the quantity, or the event.
    pub of: String,
    /// The mean of what was said.
    pub said: f64,
    /// The mean of what was so; of survival by Kaplan and Meier.
    pub observed: f64,
    /// How many samples.
    pub samples: usize,
}

impl<'a> Answered<'a> {
    /// From what was said, row after row, what is known, and the loss of each row; with the quantile that was learnt.
    pub fn new(
        (outcome, names): (&'a Outcome, &'a [String]),
        answers: &'a [f32],
        targets: &'a Targets,
        losses: Vec<f64>,
        quantile: Option<f64>,
    ) -> Self {
        let outputs = outcome.outputs(names);
        let rows = targets.len();
        let rankings = match outcome {
            Outcome::Labels => (0..outputs)
                .map(|k| Ranking::new((0..rows).map(|row| answers[row * outputs + k])))
                .collect(),
            _ => Vec::new(),
        };
        let (mut by_time, mut ranks) = (Vec::new(), Vec::new());
        if let Outcome::Survival { .. } = outcome {
            let time = |row: &u32| targets.numbers()[2 * *row as usize];
            by_time = (0..rows as u32).collect();
            by_time.sort_by(|a, b| time(a).total_cmp(&time(b)));
            let ranking = Ranking::new(answers.chunks_exact(outputs).map(risk));
            ranks = vec![0; rows];
            for (rank, tied) in (1..).zip(ranking.tied()) {
                tied.iter().for_each(|row| ranks[*row as usize] = rank);
            }
        }
        Answered {
            outcome,
            names,
            answers,
            targets,
            losses,
            rankings,
            by_time,
            ranks,
            quantile,
        }
    }

    /// The names of the measures.
    pub fn measures(&self) -> Vec<String> {
        let names: &[&str] = match self.outcome {
            Outcome::Class => &[],
            Outcome::Labels => &[
                "auc",
                "auprc",
                "micro_auc",
                "micro_auprc",
                "accuracy",
                "loss",
                "brier",
            ],
            Outcome::Quantity { .. } => &[
                "mae",
                "rmse",
                "r2",
                "median_absolute_error",
                "bias",
                "correlation",
                "loss",
            ],
            Outcome::Survival { .. } => &["concordance", "brier", "loss"],
        };
        let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
        match self.outcome {
            Outcome::Labels => {
                for name in self.names {
                    names.push(format!("auc of {name}"));
                    names.push(format!("auprc of {name}"));
                }
            }
            Outcome::Survival { ends } => {
                names.extend(ends.iter().map(|end| format!("brier at {}", *end as f32)));
            }
            Outcome::Quantity { .. } if self.quantile.is_some() => {
                names.push("share_below".into());
            }
            Outcome::Class | Outcome::Quantity { .. } => {}
        }
        names
    }

    /// The measures where each row counts so often; NaN where one is not defined.
    fn weighted(&self, weights: &[u32]) -> Vec<f64> {
        let all: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        let per_row = self.losses.iter().zip(weights);
        let loss = per_row.map(|(loss, w)| loss * f64::from(*w)).sum::<f64>() / all;
        match self.outcome {
            Outcome::Class => Vec::new(),
            Outcome::Labels => self.of_labels(weights, loss),
            Outcome::Quantity { .. } => self.of_quantity(weights, loss),
            Outcome::Survival { ends } => self.of_survival(ends, weights, loss),
        }
    }

    /// Every measure that is defined, with its interval. Rows with the same number in `persons` belong to one patient.
    pub fn estimate(&self, bootstrap: &Bootstrap, persons: &[u32]) -> Vec<Option<Estimate>> {
        let rows = self.targets.len();
        let mut known: Vec<u32> = persons.to_vec();
        known.sort_unstable();
        known.dedup();
        let patients = if persons.is_empty() {
            rows
        } else {
            known.len()
        };
        let count = self.measures().len();
        bootstrap.resampled((rows, persons), &vec![patients; count], |weights| {
            self.weighted(weights)
        })
    }

    fn of_labels(&self, weights: &[u32], loss: f64) -> Vec<f64> {
        let n = self.names.len();
        let known = self.targets.numbers();
        let count = |label: usize, tied: &[u32]| {
            let mut split = (0u64, 0u64);
            for row in tied {
                let weight = u64::from(weights[*row as usize]);
                let y = known[*row as usize * n + label];
                match y > 0.5 {
                    _ if y.is_nan() => {}
                    true => split.0 += weight,
                    false => split.1 += weight,
                }
            }
            split
        };
        let curve = |label: usize| -> Vec<(u64, u64)> {
            let tied = self.rankings[label].tied();
            tied.map(|tied| count(label, tied)).collect()
        };
        let curves: Vec<Vec<(u64, u64)>> = (0..n).map(curve).collect();
        let auc: Vec<Option<f64>> = curves
            .iter()
            .map(|curve| area(&mut curve.iter().copied()))
            .collect();
        let auprc: Vec<Option<f64>> = curves
            .iter()
            .map(|curve| crate::metrics::average_precision(&mut curve.iter().copied()))
            .collect();
        // All labels of all patients in one list.
        let mut pooled: Vec<(f32, (u64, u64))> = Vec::new();
        let (mut right, mut squares, mut all) = (0.0, 0.0, 0.0);
        for (row, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0) {
            for label in 0..n {
                let (p, y) = (self.answers[row * n + label], known[row * n + label]);
                if y.is_nan() {
                    continue;
                }
                let weight = u64::from(*weight);
                let yes = y > 0.5;
                let split = if yes { (weight, 0) } else { (0, weight) };
                pooled.push((p, split));
                all += weight as f64;
                right += weight as f64 * f64::from(u8::from((p > 0.5) == yes));
                squares += weight as f64 * (f64::from(p) - f64::from(y)).powi(2);
            }
        }
        pooled.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let add = |(a, b): (u64, u64), (c, d): (u64, u64)| (a + c, b + d);
        let tied = pooled.chunk_by(|a, b| a.0 == b.0);
        let pooled: Vec<(u64, u64)> = tied
            .map(|tied| tied.iter().fold((0, 0), |sum, (_, split)| add(sum, *split)))
            .collect();
        let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let mut values = vec![
            or_nan(mean(auc.iter().copied().filter(Option::is_some))),
            or_nan(mean(auprc.iter().copied().filter(Option::is_some))),
            or_nan(area(&mut pooled.iter().copied())),
            or_nan(crate::metrics::average_precision(
                &mut pooled.iter().copied(),
            )),
            right / all,
            loss,
            squares / all,
        ];
        for (auc, auprc) in auc.into_iter().zip(auprc) {
            values.push(or_nan(auc));
            values.push(or_nan(auprc));
        }
        values
    }

    fn of_quantity(&self, weights: &[u32], loss: f64) -> Vec<f64> {
        let truth = self.targets.numbers();
        let pairs = || {
            let each = self.answers.iter().zip(truth).zip(weights);
            each.map(|((said, y), w)| (f64::from(*said), f64::from(*y), f64::from(*w)))
        };
        let all: f64 = pairs().map(|(_, _, w)| w).sum();
        let over =
            |of: &dyn Fn(f64, f64) -> f64| pairs().map(|(a, y, w)| w * of(a, y)).sum::<f64>() / all;
        let (said, so) = (over(&|a, _| a), over(&|_, y| y));
        let squares = over(&|a, y| (a - y) * (a - y));
        let variance = over(&|_, y| (y - so) * (y - so));
        let of_said = over(&|a, _| (a - said) * (a - said));
        let both = over(&|a, y| (a - said) * (y - so));
        let mut errors: Vec<(f64, f64)> = pairs()
            .filter(|(_, _, w)| *w > 0.0)
            .map(|(a, y, w)| ((a - y).abs(), w))
            .collect();
        errors.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut before = 0.0;
        let middle = errors.iter().find(|(_, weight)| {
            before += weight;
            2.0 * before >= all
        });
        let defined = |value: f64, is: bool| if is { value } else { f64::NAN };
        let mut values = vec![
            over(&|a, y| (a - y).abs()),
            squares.sqrt(),
            defined(1.0 - squares / variance, variance > 0.0),
            middle.map_or(f64::NAN, |(error, _)| *error),
            said - so,
            defined(
                both / (variance * of_said).sqrt(),
                variance > 0.0 && of_said > 0.0,
            ),
            loss,
        ];
        if self.quantile.is_some() {
            values.push(over(&|a, y| f64::from(u8::from(y <= a))));
        }
        values
    }

    fn of_survival(&self, ends: &[f64], weights: &[u32], loss: f64) -> Vec<f64> {
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

    /// What was said beside what was so, in groups of about equal size from the lowest to the highest; of survival at the
    /// horizon.
    pub fn agreement(&self) -> Vec<Agreement> {
        let known = self.targets.numbers();
        let rows = self.targets.len();
        match self.outcome {
            Outcome::Class => Vec::new(),
            Outcome::Labels => {
                let n = self.names.len();
                let of_label = |label: usize| {
                    let there = (0..rows).filter(move |row| !known[row * n + label].is_nan());
                    let pairs =
                        there.map(move |row| (row, f64::from(self.answers[row * n + label])));
                    self.grouped(pairs.collect(), &self.names[label], &|rows| {
                        let yes = rows.iter().map(|row| f64::from(known[row * n + label]));
                        yes.sum::<f64>() / rows.len() as f64
                    })
                };
                (0..n).flat_map(of_label).collect()
            }
            Outcome::Quantity { .. } => {
                let pairs = (0..rows).map(|row| (row, f64::from(self.answers[row])));
                self.grouped(pairs.collect(), &self.names[0], &|rows| {
                    rows.iter().map(|row| f64::from(known[*row])).sum::<f64>() / rows.len() as f64
                })
            }
            Outcome::Survival { ends } => {
                let (n, horizon) = (ends.len(), ends[ends.len() - 1]);
                let event = |row: usize| 1.0 - f64::from(self.answers[row * n + n - 1]);
                let pairs = (0..rows).map(|row| (row, event(row)));
                self.grouped(pairs.collect(), &self.names[0], &|rows| {
                    let times = rows.iter().map(|row| [known[2 * row], known[2 * row + 1]]);
                    1.0 - kaplan_meier(times.collect(), horizon)
                })
            }
        }
    }

    fn grouped(
        &self,
        mut said: Vec<(usize, f64)>,
        of: &str,
        observed: &dyn Fn(&[usize]) -> f64,
    ) -> Vec<Agreement> {
        said.sort_by(|a, b| a.1.total_cmp(&b.1));
        let all = said.len();
        let group = |k: usize| {
            let some = &said[k * all / GROUPS..(k + 1) * all / GROUPS];
            let rows: Vec<usize> = some.iter().map(|(row, _)| *row).collect();
            (!rows.is_empty()).then(|| Agreement {
                of: of.to_owned(),
                said: some.iter().map(|(_, said)| said).sum::<f64>() / rows.len() as f64,
                observed: observed(&rows),
                samples: rows.len(),
            })
        };
        (0..GROUPS).filter_map(group).collect()
    }
}

/// The loss of each row by what was said of it: of labels and survival the negative logarithm of its likelihood.
pub fn losses(
    (outcome, names): (&Outcome, &[String]),
    answers: &[f32],
    targets: &Targets,
) -> Vec<f64> {
    const LEAST: f64 = 1e-30;
    let outputs = outcome.outputs(names);
    let surprise = |p: f64| -libm::log(p.max(LEAST));
    let of = |(row, said): (usize, &[f32])| match (outcome, targets.at(row)) {
        (Outcome::Labels, Target::Numbers(known)) => {
            let each = said.iter().zip(known).filter(|(_, y)| !y.is_nan());
            let terms = each.map(|(p, y)| {
                let p = f64::from(*p);
                surprise(if *y > 0.5 { p } else { 1.0 - p })
            });
            terms.sum::<f64>() / names.len() as f64
        }
        (Outcome::Survival { ends }, Target::Numbers(known)) => {
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
        _ => f64::NAN,
    };
    answers.chunks_exact(outputs).enumerate().map(of).collect()
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
    use super::*;
    use selvedge_nn::random::Key;

    fn value(answered: &Answered<'_>, name: &str) -> f64 {
        let at = answered.measures().iter().position(|n| n == name).unwrap();
        answered.weighted(&vec![1; answered.targets.len()])[at]
    }

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

    #[test]
    fn a_quantity_has_the_measures_of_its_definitions() {
        let outcome = Outcome::Quantity {
            mean: 2.0,
            deviation: 1.0,
        };
        let names = ["days".to_owned()];
        let targets = Targets::Numbers {
            each: 1,
            values: vec![1.0, 2.0, 3.0, 6.0],
        };
        let answers = [2.0, 2.0, 2.0, 4.0];
        let answered = Answered::new(
            (&outcome, &names),
            &answers,
            &targets,
            vec![0.0; 4],
            Some(0.5),
        );
        assert_eq!(value(&answered, "mae"), 1.0);
        assert_eq!(value(&answered, "bias"), -0.5);
        assert_eq!(value(&answered, "median_absolute_error"), 1.0);
        assert_eq!(value(&answered, "share_below"), 0.5);
        assert!((value(&answered, "r2") - (1.0 - 1.5 / 3.5)).abs() < 1e-12);
    }
}

//! What is taken of the scores that groups report of their own patients. (A group's model is judged elsewhere:
//! [`checks`](crate::checks).)
//!
//! A hospital that reports what it likes must not end a run at a target, choose its best model, or make it look diverged.
//! Whose losses are not finite is left out, unless the run has diverged: unless most are not finite, or beyond all
//! sense. And with `defence.scores`, so is who differs from the
//! others by more than chance and the usual differences between hospitals explain. Figures are compared, each in
//! standard deviations of chance:
//!
//! - right answers, given how many patients of each class there are;
//! - how high its patients score beside those of all, given the same;
//! - the mean loss of its held-out patients, and that of its training patients;
//! - for quantities and survival, in place of the first two, mean errors.
//!
//! A hospital that lies within these bounds is believed.

use crate::checks::Reason;
use crate::metrics::{LossSum, Tally, area};
use crate::objective::Objective;
use crate::scores::Scores;
use crate::state::Without;
use crate::task::Task;

/// With fewer groups nobody can say who is unlike the others.
const LEAST: usize = 4;

/// Where some losses are not finite, a mean loss beyond this says the same: the model gives what is true a chance of
/// e⁻¹⁰⁰⁰. It alone says nothing, since what a loss measures depends on the objective.
const SENSELESS: f64 = 1000.0;

/// The scores of all whose reports can be used, and whose cannot. Tallies are large: without `defence.scores` they are
/// added up as they come.
pub(crate) fn pooled(
    task: &Task<'_>,
    quarantined: &[usize],
    reported: impl Iterator<Item = Option<Scores>>,
) -> (Scores, Vec<Without>) {
    let mut pool = Pool::new(&*task.objective);
    let limit = task.experiment.defence.scores;
    let (mut kept, mut broken) = (Vec::new(), Vec::new());
    // Somebody has to say how it goes.
    let nobody_is_heard = quarantined.len() == task.given.groups.len();
    for (group, scores) in reported.enumerate() {
        let is_out = task.judges && !nobody_is_heard && quarantined.contains(&group);
        match scores {
            None => pool.leave_out(group, None),
            Some(_) if is_out => pool.leave_out(group, Some(Reason::Quarantined)),
            Some(scores) if task.judges && is_broken(&scores) => broken.push((group, scores)),
            Some(scores) if task.judges && limit > 0.0 => kept.push((group, scores)),
            Some(scores) => pool.take(&scores),
        }
    }
    for ((group, scores), is_unlike) in kept.iter().zip(are_unlike(limit, &kept)) {
        match is_unlike {
            true => pool.leave_out(*group, Some(Reason::Implausible)),
            false => pool.take(scores),
        }
    }
    pool.judge(&broken);
    pool.without.sort_unstable_by_key(|without| without.group);
    (pool.sum, pool.without)
}

struct Pool {
    sum: Scores,
    without: Vec<Without>,
    /// Training samples of those whose loss is beyond all sense.
    senseless: u128,
}

fn weight(scores: &Scores) -> u128 {
    u128::from(scores.training.samples())
}

impl Pool {
    fn new(objective: &dyn Objective) -> Self {
        Pool {
            sum: Scores::new(objective),
            without: Vec::new(),
            senseless: 0,
        }
    }

    fn take(&mut self, scores: &Scores) {
        self.sum.merge(scores);
        if scores.training.mean() > SENSELESS {
            self.senseless += weight(scores);
        }
    }

    /// Leaves out those of whom some losses are not finite, unless most are lost.
    fn judge(&mut self, broken: &[(usize, Scores)]) {
        let not_finite: u128 = broken.iter().map(|(_, scores)| weight(scores)).sum();
        let sensible = weight(&self.sum).saturating_sub(self.senseless);
        let most_are = not_finite + self.senseless > sensible;
        for (group, scores) in broken {
            match most_are {
                true => self.sum.merge(scores),
                false => self.leave_out(*group, Some(Reason::NotFinite)),
            }
        }
    }

    fn leave_out(&mut self, group: usize, reason: Option<Reason>) {
        let group = group as u32;
        self.without.push(Without { group, reason });
    }
}

/// Whether these are the scores of a model that is lost: its training loss is not finite or, where that of a held-out
/// sample is not, beyond all sense.
pub(crate) fn are_of_a_lost_model(scores: &Scores) -> bool {
    let loss = scores.training.mean();
    !loss.is_finite() || loss > SENSELESS && is_broken(scores)
}

fn is_broken(scores: &Scores) -> bool {
    let sums = [
        scores.training,
        scores.validation.losses,
        scores.test.losses,
    ];
    sums.iter().any(|sum| !sum.total().is_finite())
}

/// Who differs from the others by more than `limit` standard deviations.
fn are_unlike(limit: f64, reports: &[(usize, Scores)]) -> Vec<bool> {
    let mut unlike = vec![false; reports.len()];
    if reports.len() < LEAST {
        return unlike;
    }
    let held_out: Vec<(Tally, LossSum)> = reports.iter().map(|(_, s)| held_out(s)).collect();
    let mut all = held_out[0].0.clone();
    held_out[1..].iter().for_each(|(tally, _)| all.merge(tally));
    let of = |figure: fn(&Tally, &Tally) -> f64| -> Vec<f64> {
        held_out.iter().map(|(own, _)| figure(own, &all)).collect()
    };
    let losses: Vec<LossSum> = held_out.iter().map(|(_, losses)| *losses).collect();
    let training: Vec<LossSum> = reports.iter().map(|(_, s)| s.training).collect();
    let mean_of = |sums: &[LossSum]| {
        let each = sums.iter().map(|sum| (sum.total(), sum.samples()));
        mean_errors(&each.collect::<Vec<_>>())
    };
    let mut figures = vec![
        (of(right_answers), half as Spread),
        (of(placement), half),
        (mean_of(&losses), three_quarters),
        (mean_of(&training), three_quarters),
    ];
    // Of quantities and survival curves there are no right answers, but errors.
    let errors: Vec<Vec<(f64, u64)>> = held_out.iter().map(|(tally, _)| tally.errors()).collect();
    for place in 0..errors[0].len() {
        let each: Vec<(f64, u64)> = errors.iter().map(|own| own[place]).collect();
        figures.push((mean_errors(&each), three_quarters));
    }
    for (figure, spread) in figures {
        let usual = median(&figure);
        let apart: Vec<f64> = figure.iter().map(|x| (x - usual).abs()).collect();
        let deviation = f64::max(1.0, spread(&apart));
        for (unlike, apart) in unlike.iter_mut().zip(apart) {
            *unlike |= apart > limit * deviation;
        }
    }
    unlike
}

/// Of validation and test together.
fn held_out(scores: &Scores) -> (Tally, LossSum) {
    let mut tally = scores.validation.tally.clone();
    tally.merge(&scores.test.tally);
    let losses = scores.validation.losses.merged(scores.test.losses);
    (tally, losses)
}

/// By how many standard deviations a group has more right answers than all would have for its patients.
fn right_answers(own: &Tally, all: &Tally) -> f64 {
    let (mut more, mut variance) = (0.0, 0.0);
    for (class, (own, all)) in own.confusion().iter().zip(all.confusion()).enumerate() {
        let [patients, of_all] = [*own, all].map(|row| row.iter().sum::<u64>() as f64);
        if patients > 0.0 {
            // Of labels there are two rows each, without and with it.
            let right = class % own.len();
            let recall = all[right] as f64 / of_all;
            more += own[right] as f64 - patients * recall;
            variance += patients * recall * (1.0 - recall);
        }
    }
    more / libm::sqrt(f64::max(variance, 1.0))
}

/// The same of how high its patients score in their own class, and how low in others.
fn placement(own: &Tally, all: &Tally) -> f64 {
    let (mut higher, mut variance) = (0.0, 0.0);
    for class in all.scored() {
        let ([own, own_others], [all, all_others]) = (own.scores(class), all.scores(class));
        let against = |ours: &[u64], theirs: &[u64]| {
            area(&mut ours.iter().copied().zip(theirs.iter().copied()))
        };
        let Some(usual) = against(all, all_others) else {
            continue;
        };
        let halves = [
            (own, against(own, all_others)),
            (own_others, against(all, own_others)),
        ];
        for (patients, area) in halves {
            if let Some(area) = area {
                let patients = patients.iter().sum::<u64>() as f64;
                higher += patients * (area - usual);
                variance += patients * usual * (1.0 - usual);
            }
        }
    }
    higher / libm::sqrt(f64::max(variance, 1.0))
}

/// How far mean losses or errors are from the median one. One deviates from its mean by about that mean.
fn mean_errors(sums: &[(f64, u64)]) -> Vec<f64> {
    let mean = |(total, count): &(f64, u64)| total / *count as f64;
    let there = sums.iter().filter(|(_, count)| *count > 0);
    let usual = median(&there.map(mean).collect::<Vec<_>>());
    let apart = |sum: &(f64, u64)| match sum.1 > 0 && usual > 0.0 {
        true => (mean(sum) / usual - 1.0) * libm::sqrt(sum.1 as f64),
        false => 0.0,
    };
    sums.iter().map(apart).collect()
}

/// The standard deviation of distances from the usual figure.
type Spread = fn(&[f64]) -> f64;

/// That of a normal distribution of which half are no farther out.
fn half(apart: &[f64]) -> f64 {
    median(apart) / 0.6745
}

/// The same of three quarters, if that is more. Losses depend on what classes a hospital has, and where four of ten have
/// others than the rest, half would say nothing of those four.
fn three_quarters(apart: &[f64]) -> f64 {
    let mut sorted = apart.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = (3 * sorted.len()).div_ceil(4).saturating_sub(1);
    let farthest = sorted.get(at).copied().unwrap_or(0.0);
    f64::max(half(apart), farthest / 1.1503)
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[at],
        _ => (sorted[at - 1] + sorted[at]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Softmax;
    use selvedge_nn::random::{Key, Stream};

    const CLASSES: usize = 3;
    const NOBODY: [usize; 0] = [];

    /// A hospital's report of a model that finds the right class with this much evidence, for patients of whom the shares
    /// of classes differ from hospital to hospital.
    fn report(stream: &mut Stream, patients: usize, evidence: f32) -> Scores {
        let mut scores = Scores::new(&Softmax::new(CLASSES));
        let common = stream.below(CLASSES as u64) as u32;
        for n in 0..3 * patients {
            let label = match stream.below(2) {
                0 => common,
                _ => stream.below(CLASSES as u64) as u32,
            };
            let logit = |class: usize| {
                let right = if class == label as usize {
                    evidence
                } else {
                    0.0
                };
                libm::exp(f64::from(right + stream.normal()))
            };
            let odds: Vec<f64> = (0..CLASSES).map(logit).collect();
            let all: f64 = odds.iter().sum();
            let probabilities: Vec<f32> = odds.iter().map(|x| (x / all) as f32).collect();
            let loss = -libm::log(odds[label as usize] / all);
            let part = match n % 3 {
                0 => {
                    scores.training.add(loss);
                    continue;
                }
                1 => &mut scores.validation,
                _ => &mut scores.test,
            };
            part.losses.add(loss);
            part.tally.add(&probabilities, &[label]);
        }
        scores
    }

    fn found(reports: &[Scores], limit: f64) -> Vec<usize> {
        let reports: Vec<(usize, Scores)> = reports.iter().cloned().enumerate().collect();
        let unlike = are_unlike(limit, &reports);
        (0..reports.len()).filter(|m| unlike[*m]).collect()
    }

    #[test]
    fn honest_hospitals_are_believed_and_too_good_or_too_bad_ones_are_not() {
        for seed in 0..60 {
            let mut stream = Key::new(seed).stream();
            let evidence = [0.0, 0.7, 1.5, 4.0][seed as usize % 4];
            let patients = [30, 120, 500][seed as usize % 3];
            let mut reports: Vec<Scores> = (0..10)
                .map(|_| report(&mut stream, patients, evidence))
                .collect();
            assert_eq!(found(&reports, 6.0), NOBODY, "seed {seed}");
            // Two of ten may lie together; there is nothing to gain where all are nearly always right, and of few
            // patients it cannot be told.
            if evidence < 4.0 && patients > 30 {
                for liar in [3, 7] {
                    reports[liar] = reports[liar].perfect();
                }
                assert_eq!(found(&reports, 6.0), [3, 7], "seed {seed}");
                reports[3] = report(&mut stream, patients.max(120), -2.0);
                assert_eq!(found(&reports, 6.0), [3, 7], "seed {seed}");
            }
        }
    }

    #[test]
    fn who_is_not_finite_is_left_out_unless_most_are_lost() {
        let of = |loss: f64, samples: usize| {
            let mut scores = Scores::new(&Softmax::new(CLASSES));
            (0..samples).for_each(|_| scores.training.add(loss));
            scores
        };
        let judged = |groups: &[(f64, usize)]| {
            let mut pool = Pool::new(&Softmax::new(CLASSES));
            let mut broken = Vec::new();
            for (group, (loss, samples)) in groups.iter().enumerate() {
                let scores = of(*loss, *samples);
                match is_broken(&scores) {
                    true => broken.push((group, scores)),
                    false => pool.take(&scores),
                }
            }
            pool.judge(&broken);
            let without: Vec<u32> = pool.without.iter().map(|out| out.group).collect();
            (are_of_a_lost_model(&pool.sum), without)
        };
        let nobody = Vec::new();
        assert_eq!(judged(&[(f64::NAN, 90), (0.5, 100)]), (false, vec![0]));
        assert_eq!(
            judged(&[(f64::NAN, 110), (0.5, 100)]),
            (true, nobody.clone())
        );
        // The other group is lost as well.
        assert_eq!(
            judged(&[(f64::NAN, 90), (2e6, 100)]),
            (true, nobody.clone())
        );
        assert_eq!(
            judged(&[(f64::NAN, 90), (2e6, 50), (0.5, 150)]),
            (false, vec![0])
        );
        // A large loss alone is a loss.
        assert_eq!(judged(&[(2e6, 90), (2e6, 100)]), (false, nobody));
        // So is that of a held-out sample which is none, but not with both.
        for (loss, is_lost) in [(0.5, false), (2e6, true)] {
            let mut scores = of(loss, 10);
            scores.test.losses.add(f64::NAN);
            assert_eq!(are_of_a_lost_model(&scores), is_lost);
        }
    }

    #[test]
    fn hospitals_that_differ_among_each_other_are_all_believed() {
        for seed in 0..20 {
            let mut stream = Key::new(seed).stream();
            let reports: Vec<Scores> = (0..10)
                .map(|m| report(&mut stream, 200, 0.4 + 0.2 * m as f32))
                .collect();
            assert_eq!(found(&reports, 6.0), NOBODY, "seed {seed}");
        }
        let mut stream = Key::new(7).stream();
        let mut few: Vec<Scores> = (0..3).map(|_| report(&mut stream, 99, 1.0)).collect();
        few[0] = few[0].perfect();
        assert_eq!(found(&few, 6.0), NOBODY, "three cannot say who is unlike");
    }

    #[test]
    fn hospitals_whose_patients_are_harder_to_learn_are_believed() {
        let mut stream = Key::new(8).stream();
        let mut reports: Vec<Scores> = (0..10).map(|_| report(&mut stream, 200, 1.0)).collect();
        for hard in &mut reports[..4] {
            let mean = hard.training.mean();
            (0..200).for_each(|_| hard.training.add(5.0 * mean));
        }
        assert_eq!(found(&reports, 6.0), NOBODY);
        reports[9] = reports[9].perfect();
        assert_eq!(found(&reports, 6.0), [9]);
    }
}

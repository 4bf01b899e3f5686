//! Who sends steps the wrong way round.
//!
//! How far an honest group steps, and where to, depends on its patients, and where groups hold different diseases their
//! steps differ as much as a hostile one's would. But an honest step is (nearly) the gradient of some loss: when the others
//! have pushed θ somewhere, it pulls back. One that was reversed pushes on. So no group is compared with another, but its
//! step with its own step before:
//!
//! ```text
//! z = ⟨ u(t + P) − u(t), D ⟩ / (‖D‖ · √(‖u(t + P)‖² + ‖u(t)‖²)),   D = what the others' steps moved θ by at t
//! ```
//!
//! z is mostly noise, below zero on average for an honest group. Its sum over the last hundred aggregations or so, in
//! standard deviations, is what counts; of a hospital z is the sum of those of θ0 and θ1, whose lengths differ. That
//! sum is normal around zero or below: in a run of ten groups, chance alone lifts one over 3.5 once in about 250 runs.
//! Where learning rates are so small that steps do not depend on where θ is, it says nothing.
//!
//! How strongly most groups pull back tells how much there is to be seen: a group that pushes on while most pull back is
//! found sooner (`lead`).
//!
//! Of steps the cloud keeps sketches: sums of their numbers with random signs, of which products are about the same.

use crate::keys::{Purpose, key};
use crate::model::Model;

/// Numbers of a sketch: products are right to about 1/√512 of the lengths.
const SKETCH: usize = 512;

/// About how many aggregations are remembered.
const REMEMBERED: f64 = 100.0;

/// So many times the limit cannot be chance.
const CERTAIN: f64 = 1.25;

/// How much of what most groups pull back is added to the score of all, and at most which share of the limit: who does
/// neither pull back nor push on is not to be taken for reversed.
const LEAD: [f64; 2] = [0.5, 0.5];

/// Before so many there is no verdict.
const LEAST: u32 = 16;

/// The parts of a group's halves: its hospital's θ0 and θ1, its edge's θ2.
const HALVES: [&[usize]; 2] = [&[0, 1], &[2]];

/// What the cloud remembers of the halves of each group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reversals {
    /// Nothing where it is not watched.
    pub(crate) groups: Vec<[Half; 2]>,
}

/// Which way the steps of a group go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Heading {
    /// As an honest party's do, as far as can be told.
    Forward,
    /// Perhaps the wrong way: such a step is better left out, but it may be chance.
    Suspect,
    /// The wrong way.
    Reversed,
}

/// One half of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Half {
    /// Sketches of its last step, part by part; empty if it was not there.
    pub(crate) last: Vec<f32>,
    /// How much that step counted in θ.
    pub(crate) weight: f64,
    /// Σz and Σz², older ones less.
    pub(crate) sum: f64,
    pub(crate) squares: f64,
    /// How many there were.
    pub(crate) count: u32,
}

impl Half {
    /// By how many standard deviations it pushes on (above zero) or pulls back.
    fn score(&self) -> f64 {
        match self.count >= LEAST && self.squares > 0.0 {
            true => self.sum / libm::sqrt(self.squares),
            false => 0.0,
        }
    }

    fn observe(&mut self, now: &[f32], others: &[f64]) {
        let parts = now.chunks(SKETCH).zip(self.last.chunks(SKETCH));
        let parts = parts.zip(others.chunks(SKETCH));
        let seen: Vec<f64> = parts
            .filter_map(|((now, last), o)| pushes(now, last, o))
            .collect();
        if !seen.is_empty() {
            let (z, kept) = (seen.iter().sum::<f64>(), 1.0 - 1.0 / REMEMBERED);
            self.sum = kept * self.sum + z;
            self.squares = kept * self.squares + z * z;
            self.count = self.count.saturating_add(1);
        }
    }
}

/// z of one part, if it can be told.
fn pushes(now: &[f32], before: &[f32], others: &[f64]) -> Option<f64> {
    let (mut product, mut moved, mut lengths) = (0.0, 0.0, 0.0);
    for ((now, before), moves) in now.iter().zip(before).zip(others) {
        let (now, before) = (f64::from(*now), f64::from(*before));
        product += (now - before) * moves;
        moved += moves * moves;
        lengths += now * now + before * before;
    }
    let scale = libm::sqrt(moved * lengths);
    (scale > 0.0 && scale.is_finite()).then(|| product / scale)
}

/// What is added to the scores of a half, given all of them: more, the more most groups pull back.
fn lead(mut scores: Vec<f64>, limit: f64) -> f64 {
    scores.sort_unstable_by(f64::total_cmp);
    let median = scores.get(scores.len() / 2).copied().unwrap_or(0.0);
    f64::clamp(-LEAD[0] * median, 0.0, LEAD[1] * limit)
}

/// A step of one part in a few numbers.
fn sketch(from: &[f32], to: &[f32], seed: u64) -> Vec<f32> {
    let mut sums = vec![0.0f64; SKETCH];
    let mut stream = key(seed, Purpose::Sketch).stream();
    let mut signs = 0u64;
    for (place, (from, to)) in from.iter().zip(to).enumerate() {
        if place.is_multiple_of(64) {
            signs = stream.next_u64();
        }
        let x = f64::from(*to) - f64::from(*from);
        sums[place % SKETCH] += if signs & 1 == 1 { x } else { -x };
        signs >>= 1;
    }
    sums.into_iter().map(|x| x as f32).collect()
}

impl Reversals {
    /// Looks at the steps of the groups that are there, from θ to their models, each with its weight. `limit` is how
    /// many standard deviations are too many to be believed. Says which way each group goes, hospital or edge.
    pub(crate) fn observe(
        &mut self,
        seed: u64,
        limit: f64,
        (theta, groups): (&Model, &[Model]),
        there: &[(usize, u64)],
    ) -> Vec<Heading> {
        self.groups.resize_with(groups.len(), Default::default);
        for (half, parts) in HALVES.into_iter().enumerate() {
            let step = |m: usize| -> Vec<f32> {
                let part =
                    |part: &usize| sketch(theta.parts()[*part], groups[m].parts()[*part], seed);
                parts.iter().flat_map(part).collect()
            };
            let mut now: Vec<(Vec<f32>, f64)> = vec![Default::default(); groups.len()];
            for (m, weight) in there {
                now[*m] = (step(*m), *weight as f64);
            }
            let all = self.moved(half);
            for (group, (now, weight)) in self.groups.iter_mut().zip(now) {
                let group = &mut group[half];
                if !group.last.is_empty() && !now.is_empty() {
                    let own = group.last.iter().map(|x| group.weight * f64::from(*x));
                    let others: Vec<f64> =
                        all.iter().zip(own).map(|(all, own)| all - own).collect();
                    group.observe(&now, &others);
                }
                (group.last, group.weight) = (now, weight);
            }
        }
        let leads = [0, 1].map(|half| {
            let scores = self.groups.iter().map(|group| group[half].score());
            lead(scores.collect(), limit)
        });
        let judge = |half: &Half, lead: f64| match half.score() + lead {
            score if score > CERTAIN * limit => Heading::Reversed,
            score if score > limit => Heading::Suspect,
            _ => Heading::Forward,
        };
        let of_group =
            |group: &[Half; 2]| judge(&group[0], leads[0]).max(judge(&group[1], leads[1]));
        self.groups.iter().map(of_group).collect()
    }

    /// As bytes, for files and records; none where nothing is watched.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut numbers: Vec<f64> = Vec::new();
        for half in self.groups.iter().flatten() {
            let Half {
                last,
                weight,
                sum,
                squares,
                count,
            } = half;
            numbers.extend([
                *weight,
                *sum,
                *squares,
                f64::from(*count),
                last.len() as f64,
            ]);
            numbers.extend(last.iter().map(|x| f64::from(*x)));
        }
        numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    /// From bytes, if they can be those of so many groups.
    pub fn from_bytes(bytes: &[u8], groups: usize) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut numbers = words.iter().map(|word| f64::from_le_bytes(*word));
        let mut half = |parts: &[usize]| {
            let [weight, sum, squares, count, length] =
                std::array::from_fn(|_| numbers.next().unwrap_or(f64::NAN));
            let length = [0, parts.len() * SKETCH]
                .into_iter()
                .find(|known| *known as f64 == length)?;
            let last: Vec<f32> = numbers.by_ref().take(length).map(|x| x as f32).collect();
            let sound =
                last.len() == length && [weight, sum, squares].iter().all(|x| x.is_finite());
            let counted = count >= 0.0 && count <= f64::from(u32::MAX) && squares >= 0.0;
            (sound && counted).then_some(Half {
                last,
                weight,
                sum,
                squares,
                count: count as u32,
            })
        };
        let mut all = Vec::new();
        if !bytes.is_empty() {
            for _ in 0..groups {
                all.push([half(HALVES[0])?, half(HALVES[1])?]);
            }
        }
        (rest.is_empty() && numbers.next().is_none()).then_some(Reversals { groups: all })
    }

    /// The step of a group did not count in θ.
    pub(crate) fn left_out(&mut self, group: usize) {
        for half in self.groups.get_mut(group).into_iter().flatten() {
            half.weight = 0.0;
        }
    }

    /// What all steps before have moved θ by, but for a factor.
    fn moved(&self, half: usize) -> Vec<f64> {
        let mut sum = vec![0.0; HALVES[half].len() * SKETCH];
        for group in &self.groups {
            for (sum, x) in sum.iter_mut().zip(&group[half].last) {
                *sum += group[half].weight * f64::from(*x);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_nn::random::Key;

    use Heading::{Forward, Reversed};

    /// The worst that is said of groups that pull noisily towards points of their own; some send that reversed, some are
    /// away now and then.
    fn headings(reversed: &[usize], rounds: u64, pull: f32) -> Vec<Heading> {
        let (groups, n) = (8, 700);
        let mut stream = Key::new(5).stream();
        let mut normal = || stream.normal();
        let mut point = || Model {
            theta0: (0..n / 2).map(|_| normal()).collect(),
            theta1: (0..n / 2).map(|_| normal()).collect(),
            theta2: (0..n).map(|_| normal()).collect(),
        };
        let aims: Vec<Model> = (0..groups).map(|_| point()).collect();
        let (mut theta, mut reversals) = (point(), Reversals::default());
        let mut worst = vec![Forward; groups];
        for t in 0..rounds {
            let sent = aims.iter().enumerate().map(|(m, aim)| {
                let (mut model, noise) = (theta.clone(), point());
                for part in 0..3 {
                    let sign = if reversed.contains(&m) && part < 2 {
                        -1.0
                    } else {
                        1.0
                    };
                    let (aim, noise) = (aim.parts()[part], noise.parts()[part]);
                    for ((x, aim), noise) in model.parts_mut()[part].iter_mut().zip(aim).zip(noise)
                    {
                        *x += sign * pull * (aim - *x + 2.0 * noise);
                    }
                }
                model
            });
            let sent: Vec<Model> = sent.collect();
            let there: Vec<(usize, u64)> = (0..groups)
                .filter(|m| !(*m as u64 + t).is_multiple_of(9))
                .map(|m| (m, 3))
                .collect();
            let now = reversals.observe(1, 3.5, (&theta, &sent), &there);
            let both = worst.iter_mut().zip(now);
            both.for_each(|(worst, now)| *worst = now.max(*worst));
            for part in 0..3 {
                let before = theta.parts()[part].to_vec();
                for (m, _) in &there {
                    let step = sent[*m].parts()[part].iter().zip(&before);
                    for (x, (to, from)) in theta.parts_mut()[part].iter_mut().zip(step) {
                        *x += (to - from) / there.len() as f32;
                    }
                }
            }
        }
        worst
    }

    #[test]
    fn who_pushes_on_is_found_and_nobody_else() {
        let expected = |reversed: &[usize]| -> Vec<Heading> {
            let of = |m| match reversed.contains(&m) {
                true => Reversed,
                false => Forward,
            };
            (0..8).map(of).collect()
        };
        for reversed in [&[][..], &[3], &[0, 6]] {
            assert_eq!(headings(reversed, 250, 0.1), expected(reversed));
        }
        assert_eq!(
            headings(&[3], 250, 1e-6),
            expected(&[]),
            "nothing depends on θ"
        );
        assert_eq!(
            headings(&[3], LEAST as u64, 0.1),
            expected(&[]),
            "too early"
        );
    }

    #[test]
    fn what_most_groups_do_helps_to_judge_one_but_does_not_condemn_it() {
        assert_eq!(lead(vec![-4.0, -3.0, -2.0, 1.0], 3.5), 1.0);
        assert_eq!(
            lead(vec![-9.0, -8.0, -7.0], 3.5),
            1.75,
            "at most half the limit"
        );
        assert_eq!(lead(vec![0.0, 0.5, 0.2], 3.5), 0.0);
        assert_eq!(lead(Vec::new(), 3.5), 0.0);
    }

    #[test]
    fn bytes_make_the_same_again_and_others_are_refused() {
        let half = |count, last: Vec<f32>| Half {
            last,
            weight: 2.0,
            sum: -1.5,
            squares: 3.0,
            count,
        };
        let one = [half(3, vec![0.25; 2 * SKETCH]), half(0, Vec::new())];
        let watched = Reversals {
            groups: vec![one.clone(), one],
        };
        let bytes = watched.to_bytes();
        assert_eq!(Reversals::from_bytes(&bytes, 2), Some(watched));
        assert_eq!(Reversals::from_bytes(&[], 2), Some(Reversals::default()));
        for length in 1..bytes.len().min(200) {
            assert_eq!(Reversals::from_bytes(&bytes[..length], 2), None);
        }
        assert_eq!(Reversals::from_bytes(&bytes, 1), None);
        assert_eq!(Reversals::from_bytes(&bytes, 3), None);
    }

    #[test]
    fn products_of_sketches_are_about_those_of_steps() {
        let mut stream = Key::new(9).stream();
        let mut numbers =
            |scale: f32| -> Vec<f32> { (0..5000).map(|_| scale * stream.normal()).collect() };
        let (a, b, zero) = (numbers(1.0), numbers(2.0), vec![0.0; 5000]);
        let mixed: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let dot =
            |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum() };
        let of = |x: &[f32]| sketch(&zero, x, 4);
        let (x, y) = (of(&a), of(&mixed));
        let length = |a: &[f32]| dot(a, a).sqrt();
        let off = (dot(&x, &y) - dot(&a, &mixed)).abs() / (length(&a) * length(&mixed));
        assert!(off < 4.0 / (SKETCH as f64).sqrt(), "{off}");
        assert_eq!(of(&zero), vec![0.0; SKETCH]);
    }
}

//! When things happen: a run is a list of segments, each with its own P, Q and η.

use crate::experiment::{Fall, TrainSettings};
use serde::{Deserialize, Serialize};

/// A stretch of a run with one P, one Q and one η, beginning at a global aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its first iteration.
    pub start: u64,
    /// P
    pub global_interval: u64,
    /// Q
    pub local_interval: u64,
    /// η0
    pub learning_rate: f64,
    /// T0: the learning rate is halved every T0 iterations, counted from `start`.
    pub halve_every: Option<u64>,
}

impl Segment {
    /// The first segment of a run.
    pub fn first(train: &TrainSettings) -> Self {
        Segment {
            start: 0,
            global_interval: match train.adaptive.is_off() {
                true => train.global_interval,
                false => train.local_interval,
            },
            local_interval: match train.algorithm.is_never_stale() {
                true => 1,
                false => train.local_interval,
            },
            learning_rate: train.learning_rate,
            halve_every: (train.halve_every > 0).then_some(train.halve_every),
        }
    }

    /// The same with P and Q cut to fit into the remaining iterations.
    #[must_use]
    pub fn cut(self, left: u64) -> Self {
        let global_interval = self.global_interval.clamp(1, left.max(1));
        let fits = |q: &u64| global_interval.is_multiple_of(*q);
        Segment {
            global_interval,
            local_interval: (1..=self.local_interval.min(global_interval))
                .rev()
                .find(fits)
                .unwrap_or(1),
            ..self
        }
    }

    /// About how many global aggregations there are from one iteration to another: one at least.
    pub(crate) fn aggregations_until(&self, from: u64, to: u64) -> u64 {
        to.saturating_sub(from)
            .div_ceil(self.global_interval.max(1))
            .max(1)
    }

    /// Whether this is a valid segment of a run of this many iterations, with a local aggregation or an exchange at
    /// `t`. All other methods assume it: check segments from outside first.
    pub fn is_sound(&self, t: u64, iterations: u64) -> bool {
        let Segment {
            start,
            global_interval: p,
            local_interval: q,
            learning_rate,
            halve_every,
        } = *self;
        let numbers = p > 0 && q > 0 && halve_every != Some(0);
        let rate = learning_rate > 0.0 && learning_rate.is_finite();
        let in_time = start <= t && t <= iterations;
        numbers && rate && in_time && p.is_multiple_of(q) && self.exchanges_at(t)
    }

    /// Whether it is sound, and an interval that begins at `t` ends within the run.
    pub fn has_interval_at(&self, t: u64, iterations: u64) -> bool {
        self.is_sound(t, iterations) && self.local_interval <= iterations - t
    }

    /// Whether it is sound, θ is aggregated at `t`, and it is once more within the run.
    pub fn goes_on_from(&self, t: u64, iterations: u64) -> bool {
        self.is_sound(t, iterations)
            && self.aggregates_globally_at(t)
            && self.global_interval <= iterations - t
    }

    /// Whether it goes on from an aggregation at `global`, and `t` is in the global interval that begins there or at
    /// its end.
    pub fn leads_from(&self, global: u64, t: u64, iterations: u64) -> bool {
        self.goes_on_from(global, iterations)
            && self.is_sound(t, iterations)
            && (global..=global + self.global_interval).contains(&t)
    }

    /// Whether a local aggregation and an exchange happen at `t`.
    pub fn exchanges_at(&self, t: u64) -> bool {
        (t - self.start).is_multiple_of(self.local_interval)
    }

    /// Whether a global aggregation happens at `t`.
    pub fn aggregates_globally_at(&self, t: u64) -> bool {
        (t - self.start).is_multiple_of(self.global_interval)
    }

    /// η_t = η0·2^(−⌊(t − start)/T0⌋)
    pub fn learning_rate_at(&self, t: u64) -> f64 {
        let halvings = self.halve_every.map_or(0, |every| (t - self.start) / every);
        // Halving is exact, one at a time; after 2,200 of them nothing is left of any number.
        (0..halvings.min(2200)).fold(self.learning_rate, |eta, _| eta / 2.0)
    }
}

/// The learning rates of a party over a run: those of the segments, on the way up at first and perhaps falling along a
/// cosine. A run in which they are more than the segments' has one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Schedule {
    /// The party's own initial rate, if it is not the segment's.
    initial: Option<f64>,
    /// Iterations of the way up.
    warm_up: u64,
    /// Where the cosine ends, if there is one.
    cosine: Option<u64>,
}

impl Schedule {
    /// That of an experiment's devices.
    pub fn of(train: &TrainSettings) -> Self {
        Schedule {
            initial: None,
            warm_up: train.warm_up,
            cosine: (train.schedule == Fall::Cosine).then_some(train.iterations),
        }
    }

    /// The same from another initial rate, if one is given.
    #[must_use]
    pub fn from(self, initial: Option<f64>) -> Self {
        Schedule { initial, ..self }
    }

    /// η_t
    pub fn rate(&self, segment: &Segment, t: u64) -> f64 {
        let learning_rate = self.initial.unwrap_or(segment.learning_rate);
        let rate = Segment {
            learning_rate,
            ..*segment
        }
        .learning_rate_at(t);
        match self.cosine {
            _ if t < self.warm_up => rate * (t + 1) as f64 / self.warm_up as f64,
            Some(end) => {
                let gone = (t - self.warm_up) as f64 / end.saturating_sub(self.warm_up) as f64;
                rate * (0.5 + 0.5 * libm::cos(std::f64::consts::PI * gone.min(1.0)))
            }
            None => rate,
        }
    }

    /// η_t as a share of the initial rate.
    pub fn share(&self, segment: &Segment, t: u64) -> f64 {
        let one = Segment {
            learning_rate: 1.0,
            ..*segment
        };
        self.from(None).rate(&one, t)
    }

    /// How far the steps of an interval go along gradients of length 1.
    pub(crate) fn reach(&self, segment: &Segment, first: u64) -> f64 {
        let end = first + segment.local_interval;
        match self.cosine.is_none() && first >= self.warm_up {
            true => self.rate(segment, first) * segment.local_interval as f64,
            false => (first..end).map(|t| self.rate(segment, t)).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_cuts_a_segment_to_intervals_that_fit() {
        let cut = |p: u64, q: u64, left: u64| {
            let segment = Segment {
                start: 30,
                global_interval: p,
                local_interval: q,
                learning_rate: 0.1,
                halve_every: None,
            };
            let cut = segment.cut(left);
            assert_eq!((cut.start, cut.learning_rate), (30, 0.1));
            (cut.global_interval, cut.local_interval)
        };
        assert_eq!(cut(12, 4, 100), (12, 4), "all of it fits");
        assert_eq!(cut(12, 4, 12), (12, 4));
        assert_eq!(cut(12, 12, 7), (7, 7), "P = Q stays so");
        assert_eq!(cut(12, 4, 10), (10, 2), "the largest Q that divides P");
        assert_eq!(cut(12, 6, 7), (7, 1));
        assert_eq!(cut(12, 4, 1), (1, 1));
        assert_eq!(cut(12, 4, 0), (1, 1), "nothing is left: never zero");
        for (p, q, left) in [(60, 20, 59), (60, 15, 44), (200, 200, 199), (8, 2, 3)] {
            let (p, q) = cut(p, q, left);
            assert!(p <= left && p.is_multiple_of(q) && q >= 1);
        }
    }

    #[test]
    fn what_cannot_be_a_segment_is_told() {
        let right = Segment {
            start: 20,
            global_interval: 12,
            local_interval: 4,
            learning_rate: 0.1,
            halve_every: Some(7),
        };
        assert!(right.is_sound(20, 44) && right.is_sound(28, 44) && right.is_sound(44, 44));
        assert!(!right.is_sound(16, 44) && !right.is_sound(22, 44) && !right.is_sound(48, 44));
        assert!(right.has_interval_at(40, 44) && !right.has_interval_at(44, 44));
        assert!(right.goes_on_from(32, 44) && !right.goes_on_from(36, 99));
        assert!(!right.goes_on_from(44, 44));
        assert!(right.leads_from(20, 20, 44) && right.leads_from(20, 32, 44));
        assert!(!right.leads_from(20, 36, 44) && !right.leads_from(32, 28, 44));
        let wrong: [fn(&mut Segment); 9] = [
            |s| s.start = u64::MAX,
            |s| s.global_interval = 0,
            |s| s.local_interval = 0,
            |s| s.local_interval = 5,
            |s| s.local_interval = u64::MAX,
            |s| s.halve_every = Some(0),
            |s| s.learning_rate = f64::NAN,
            |s| s.learning_rate = f64::INFINITY,
            |s| s.learning_rate = 0.0,
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            let mut segment = right;
            change(&mut segment);
            for t in [0, 20, 28, 44, u64::MAX - 1, u64::MAX] {
                let sound = segment.is_sound(t, 44) || segment.is_sound(t, u64::MAX);
                assert!(!sound || (number == 0 && t == u64::MAX), "{number} at {t}");
            }
        }
        let long = Segment {
            start: 0,
            global_interval: u64::MAX,
            local_interval: 1,
            ..right
        };
        assert!(long.is_sound(3, 44) && !long.goes_on_from(0, 44));
        assert!(long.leads_from(0, u64::MAX, u64::MAX));
    }

    #[test]
    fn rates_rise_and_fall() {
        let settings = |warm_up, schedule| TrainSettings {
            iterations: 110,
            learning_rate: 0.8,
            warm_up,
            schedule,
            ..TrainSettings::default()
        };
        let all = |train: &TrainSettings| {
            let (schedule, segment) = (Schedule::of(train), Segment::first(train));
            move |t| schedule.rate(&segment, t)
        };
        let plain = all(&settings(0, Fall::Halving));
        assert!((0..=110).all(|t| plain(t) == 0.8));
        let warm = all(&settings(10, Fall::Halving));
        assert_eq!([warm(0), warm(4), warm(9), warm(50)], [0.08, 0.4, 0.8, 0.8]);
        let both = all(&settings(10, Fall::Cosine));
        assert_eq!(
            [both(0), both(9), both(10), both(60), both(110)],
            [0.08, 0.8, 0.8, 0.4, 0.0]
        );
        assert!((10..110).all(|t| both(t + 1) < both(t)) && both(109) > 0.0);
        let cosine = all(&settings(0, Fall::Cosine));
        assert_eq!((cosine(0), cosine(55), cosine(110)), (0.8, 0.4, 0.0));

        let train = settings(10, Fall::Cosine);
        let (schedule, segment) = (Schedule::of(&train), Segment::first(&train));
        let own = schedule.from(Some(0.001));
        assert_eq!(
            [own.rate(&segment, 9), own.rate(&segment, 60)],
            [0.001, 0.0005]
        );
        assert_eq!(
            [own.share(&segment, 4), own.share(&segment, 60)],
            [0.5, 0.5]
        );
        let sum: f64 = (5..10).map(both).sum();
        assert_eq!(schedule.reach(&segment, 5), sum);
        assert_eq!(Schedule::default().reach(&segment, 5), 4.0);
    }

    #[test]
    fn the_learning_rate_halves_from_the_segments_start() {
        let segment = Segment {
            start: 100,
            global_interval: 10,
            local_interval: 5,
            learning_rate: 0.8,
            halve_every: Some(20),
        };
        assert_eq!(segment.learning_rate_at(100), 0.8);
        assert_eq!(segment.learning_rate_at(119), 0.8);
        assert_eq!(segment.learning_rate_at(120), 0.4);
        assert_eq!(segment.learning_rate_at(160), 0.1);
        assert!(segment.exchanges_at(105) && !segment.aggregates_globally_at(105));
        assert!(segment.aggregates_globally_at(110));
        assert_eq!(
            Segment {
                halve_every: None,
                ..segment
            }
            .learning_rate_at(9_999),
            0.8
        );
    }
}

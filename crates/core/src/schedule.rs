//! When things happen: a run is a list of segments, each with its own P, Q and η.

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
    /// T0: the learning rate is halved every so many iterations, counted from `start`.
    pub halve_every: Option<u64>,
}

impl Segment {
    /// The same with P and Q that fit into the iterations that are left.
    #[must_use]
    pub fn cut(self, left: u64) -> Self {
        let global_interval = self.global_interval.min(left.max(1));
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

//! From values to places on a chart.

use super::ticks::Scale;

/// Values to places along one axis.
pub(super) struct Mapping {
    pub(super) scale: Scale,
    pub(super) lo: f64,
    pub(super) hi: f64,
    /// Where `lo` and `hi` are.
    from: f64,
    to: f64,
}

impl Mapping {
    pub(super) fn new(scale: Scale, (lo, hi): (f64, f64), (from, to): (f64, f64)) -> Self {
        Mapping {
            scale,
            lo,
            hi,
            from,
            to,
        }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let of = |v: f64| match self.scale {
            Scale::Linear => v,
            Scale::Log => libm::log10(v),
        };
        let share = (of(value) - of(self.lo)) / (of(self.hi) - of(self.lo));
        self.from + share * (self.to - self.from)
    }
}

/// The range of an axis over `values`: a little more than they take, unless `tight`.
pub(super) fn range(values: impl Iterator<Item = f64>, scale: Scale, tight: bool) -> (f64, f64) {
    let values = values.filter(|v| v.is_finite());
    let (lo, hi) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| {
        (lo.min(v), hi.max(v))
    });
    match scale {
        _ if lo > hi => (1.0, 10.0),
        Scale::Log if lo == hi => (lo / 2.0, hi * 2.0),
        Scale::Log => (lo, hi),
        Scale::Linear if lo == hi => {
            let around = if lo == 0.0 { 1.0 } else { 0.1 * lo.abs() };
            (lo - around, hi + around)
        }
        Scale::Linear if tight => (lo, hi),
        Scale::Linear => {
            let padding = 0.05 * (hi - lo);
            // What is never below 0 needs no room there.
            let low = if lo >= 0.0 {
                (lo - padding).max(0.0)
            } else {
                lo - padding
            };
            (low, hi + padding)
        }
    }
}

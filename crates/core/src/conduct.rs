//! What is held against parties: how often they have sent what had to be left out.
//!
//! An offence counts ten, and each time that a party sends what can be used, 1 is forgotten. So who offends now and
//! then, as an honest party with an odd patient may, is never far from zero; who keeps offending ends in quarantine, and
//! is not heard again in this run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one offence counts.
const OFFENCE: u32 = 10;

/// What is held against some parties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conduct {
    /// By their numbers. Those who have done nothing are not in it.
    scores: BTreeMap<u32, u32>,
    /// How long what they send usually is, squared: the largest median so far. Groups send two halves.
    usual: [f64; 2],
}

impl Conduct {
    /// What is held against one.
    pub fn score(&self, who: u32) -> u32 {
        self.scores.get(&who).copied().unwrap_or(0)
    }

    /// Whether nothing is known of anybody, nor of what is usual.
    pub fn is_empty(&self) -> bool {
        *self == Conduct::default()
    }

    /// Whether nothing is held against anybody.
    pub fn is_clean(&self) -> bool {
        self.scores.is_empty()
    }

    /// How long what they send usually is, squared, given the median of what they send now. (Near the end of training
    /// most hardly step, and a few honest ones do as much as all did at the beginning.)
    pub(crate) fn usual(&mut self, half: usize, median: f64) -> f64 {
        if median.is_finite() {
            self.usual[half] = self.usual[half].max(median);
        }
        self.usual[half]
    }

    /// Whether one is in quarantine, where that is after so many offences; 0: never.
    pub fn is_quarantined(&self, who: u32, after: u64) -> bool {
        after > 0 && u64::from(self.score(who)) >= after.saturating_mul(u64::from(OFFENCE))
    }

    /// Those in quarantine.
    pub fn quarantined(&self, after: u64) -> impl Iterator<Item = u32> {
        let all = self.scores.keys().copied();
        all.filter(move |who| self.is_quarantined(*who, after))
    }

    /// One has sent what had to be left out.
    pub(crate) fn offended(&mut self, who: u32) {
        let score = self.scores.entry(who).or_default();
        *score = score.saturating_add(OFFENCE);
    }

    /// What is held against one is forgotten.
    pub(crate) fn pardon(&mut self, who: u32) {
        self.scores.remove(&who);
    }

    /// One has sent what could be used.
    pub(crate) fn behaved(&mut self, who: u32) {
        if let Some(score) = self.scores.get_mut(&who) {
            *score -= 1;
            if *score == 0 {
                self.scores.remove(&who);
            }
        }
    }

    /// Its parts, for the wire.
    pub(crate) fn parts(&self) -> (Vec<(u32, u32)>, (f64, f64)) {
        let scores = self.scores.iter();
        let scores = scores.map(|(who, score)| (*who, *score)).collect();
        (scores, self.usual.into())
    }

    /// Of parts, if they can be some.
    pub(crate) fn from_parts((scores, usual): (Vec<(u32, u32)>, (f64, f64))) -> Option<Self> {
        let in_order = scores.is_sorted_by(|a, b| a.0 < b.0);
        let any = scores.iter().all(|(_, score)| *score > 0);
        let usual = <[f64; 2]>::from(usual);
        let sound = usual.iter().all(|usual| usual.is_finite() && *usual >= 0.0);
        (in_order && any && sound).then(|| Conduct {
            scores: scores.into_iter().collect(),
            usual,
        })
    }
}

/// What is held against the devices of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceConduct {
    /// By their hospital, for ζ2.
    pub embeddings: Conduct,
    /// By their edge, for θ2.
    pub models: Conduct,
}

impl DeviceConduct {
    /// Whether nothing is known of any device, nor of what is usual.
    pub fn is_empty(&self) -> bool {
        *self == DeviceConduct::default()
    }

    /// How many devices are in quarantine.
    pub fn quarantined(&self, after: u64) -> usize {
        let mut all: Vec<u32> = self.embeddings.quarantined(after).collect();
        all.extend(self.models.quarantined(after));
        all.sort_unstable();
        all.dedup();
        all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_offending_is_quarantined_and_who_offends_now_and_then_is_not() {
        let mut conduct = Conduct::default();
        for round in 0..1000 {
            match round % 12 {
                0 => conduct.offended(7),
                _ => conduct.behaved(7),
            }
            conduct.behaved(8);
            assert!(!conduct.is_quarantined(7, 2));
        }
        assert_eq!(conduct.score(8), 0);
        conduct.offended(8);
        assert!(conduct.is_quarantined(8, 1) && !conduct.is_quarantined(8, 2));
        conduct.behaved(8);
        conduct.offended(8);
        conduct.offended(8);
        assert!(conduct.is_quarantined(8, 2) && !conduct.is_quarantined(8, 0));
        assert_eq!(conduct.quarantined(2).collect::<Vec<_>>(), [8]);
        conduct.usual(0, 3.0);
        conduct.usual(1, 0.5);
        assert_eq!(
            (conduct.usual(0, 2.0), conduct.usual(1, f64::NAN)),
            (3.0, 0.5)
        );
        assert_eq!(Conduct::from_parts(conduct.parts()), Some(conduct));
        assert_eq!(
            Conduct::from_parts((vec![(2, 1), (1, 1)], (0.0, 0.0))),
            None
        );
        assert_eq!(Conduct::from_parts((vec![(2, 1)], (0.0, f64::NAN))), None);
    }
}

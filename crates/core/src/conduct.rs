//! What is held against parties: how often they have sent what had to be left out.
//!
//! An offence counts [`OFFENCE`], and each time that a party sends what can be used, 1 is forgotten. So who offends now and
//! then, as an honest party with an odd patient may, is never far from zero; who keeps offending ends in quarantine, and
//! is not heard again in this run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one offence counts.
const OFFENCE: u32 = 10;

/// What is held against some parties, by their numbers. Those who have done nothing are not in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conduct(BTreeMap<u32, u32>);

impl Conduct {
    /// What is held against one.
    pub fn score(&self, who: u32) -> u32 {
        self.0.get(&who).copied().unwrap_or(0)
    }

    /// Whether anything is held against anybody.
    pub fn is_clean(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one is in quarantine, where that is after so many offences; 0: never.
    pub fn is_quarantined(&self, who: u32, after: u64) -> bool {
        after > 0 && u64::from(self.score(who)) >= after.saturating_mul(u64::from(OFFENCE))
    }

    /// Those in quarantine.
    pub fn quarantined(&self, after: u64) -> impl Iterator<Item = u32> {
        let all = self.0.keys().copied();
        all.filter(move |who| self.is_quarantined(*who, after))
    }

    /// One has sent what had to be left out.
    pub(crate) fn offended(&mut self, who: u32) {
        let score = self.0.entry(who).or_default();
        *score = score.saturating_add(OFFENCE);
    }

    /// One has sent what could be used.
    pub(crate) fn behaved(&mut self, who: u32) {
        if let Some(score) = self.0.get_mut(&who) {
            *score -= 1;
            if *score == 0 {
                self.0.remove(&who);
            }
        }
    }

    /// As pairs, for the wire.
    pub(crate) fn pairs(&self) -> Vec<(u32, u32)> {
        self.0.iter().map(|(who, score)| (*who, *score)).collect()
    }

    /// Of pairs, if they can be some.
    pub(crate) fn from_pairs(pairs: Vec<(u32, u32)>) -> Option<Self> {
        let in_order = pairs.is_sorted_by(|a, b| a.0 < b.0);
        let any = pairs.iter().all(|(_, score)| *score > 0);
        (in_order && any).then(|| Conduct(pairs.into_iter().collect()))
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

/// What is held against anybody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conducts {
    /// Groups, by the cloud, for θ.
    pub groups: Conduct,
    /// Devices, group by group.
    pub devices: Vec<DeviceConduct>,
}

impl Conducts {
    /// Of the devices of so many groups: before the first interval there are none.
    pub(crate) fn of_devices(&mut self, groups: usize) -> &mut [DeviceConduct] {
        self.devices.resize_with(groups, DeviceConduct::default);
        &mut self.devices
    }

    /// Whether anything is held against anybody.
    pub fn is_clean(&self) -> bool {
        let clean = |devices: &DeviceConduct| *devices == DeviceConduct::default();
        self.groups.is_clean() && self.devices.iter().all(clean)
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
        assert_eq!(Conduct::from_pairs(conduct.pairs()), Some(conduct));
        assert_eq!(Conduct::from_pairs(vec![(2, 1), (1, 1)]), None);
    }
}

//! How the subset A_m of a group's devices is drawn (line 13 of Algorithm 1).

use crate::keys::{Purpose, key};
use selvedge_nn::random::Key;

/// What to draw.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// For this group.
    pub group: usize,
    /// For the interval that begins here.
    pub t: u64,
    /// K_m: numbers below this.
    pub devices: usize,
    /// |A_m|: so many of them.
    pub count: usize,
    /// The random numbers of this group and interval.
    pub key: Key,
}

impl Draw {
    /// The draw of one group and interval.
    pub fn new(seed: u64, group: usize, t: u64, devices: usize, count: usize) -> Self {
        let key = key(seed, Purpose::Select).with(group as u64).with(t);
        Draw {
            group,
            t,
            devices,
            count,
            key,
        }
    }
}

/// Draws the devices that take part in an interval.
///
/// Any party must be able to recompute the draw, so it may depend on nothing but its arguments.
pub trait Selection: Send + Sync {
    /// Puts `draw.count` different numbers below `draw.devices` into `subset`, in increasing order.
    fn select(&self, draw: Draw, subset: &mut Vec<u32>);
}

/// Every subset of the wanted size is equally likely.
///
/// ```
/// use selvedge_core::selection::{Draw, Selection, Uniform};
/// let mut subset = Vec::new();
/// Uniform.select(Draw::new(42, 0, 10, 1000, 3), &mut subset);
/// assert!(subset.len() == 3 && subset.is_sorted() && subset[2] < 1000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Uniform;

impl Selection for Uniform {
    fn select(&self, draw: Draw, subset: &mut Vec<u32>) {
        let Draw {
            devices,
            count,
            key,
            ..
        } = draw;
        assert!(count <= devices, "{count} of {devices} devices");
        let mut stream = key.stream();
        subset.clear();
        if 2 * count > devices {
            // Walk over all devices and take each with the chance that leaves the rest uniform.
            for device in 0..devices {
                let wanted = (count - subset.len()) as u64;
                if stream.below((devices - device) as u64) < wanted {
                    subset.push(device as u32);
                }
            }
            return;
        }
        // Draw until there are enough different ones. By symmetry no subset is preferred, and the work does not grow
        // with the number of devices.
        while subset.len() < count {
            while subset.len() < count {
                subset.push(stream.below(devices as u64) as u32);
            }
            subset.sort_unstable();
            subset.dedup();
        }
    }
}

/// |A_m| = max(1, round(α·K_m))
pub fn subset_size(participation: f64, devices: usize) -> usize {
    ((participation * devices as f64).round() as usize).clamp(1, devices.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_is_equally_likely() {
        for (devices, count) in [(6, 2), (5, 3), (4, 4), (7, 1)] {
            let mut counts = std::collections::HashMap::<Vec<u32>, u32>::new();
            let draws = 30_000;
            let mut subset = Vec::new();
            for t in 0..draws {
                Uniform.select(Draw::new(9, 0, t, devices, count), &mut subset);
                assert_eq!(subset.len(), count);
                assert!(subset.is_sorted_by(|a, b| a < b) && subset[count - 1] < devices as u32);
                *counts.entry(subset.clone()).or_default() += 1;
            }
            let ways = (1..=count).fold(1, |ways, i| ways * (devices + 1 - i) / i) as f64;
            assert_eq!(counts.len(), ways as usize);
            let expected = draws as f64 / ways;
            // Six standard deviations.
            let slack = 6.0 * (expected * (1.0 - 1.0 / ways)).sqrt();
            for (subset, n) in counts {
                assert!(
                    (f64::from(n) - expected).abs() <= slack,
                    "{subset:?}: {n} of {expected}"
                );
            }
        }
    }

    #[test]
    fn at_least_one_device_and_at_most_all() {
        assert_eq!(subset_size(0.02, 920), 18);
        assert_eq!(subset_size(0.0001, 920), 1);
        assert_eq!(subset_size(1.0, 920), 920);
        assert_eq!(subset_size(0.5, 1), 1);
    }
}

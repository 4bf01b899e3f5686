//! What training sees: samples already split by group, by side and by device.
//!
//! Readers and generators (crate `selvedge-data`) fill these types; nothing in them says where the
//! numbers came from.

use selvedge_nn::{Shape, random::Key};

/// Samples with both sides and the label, one row each.
///
/// Row `n` of `x1` is what the hospital holds, row `n` of `x2` what the device holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Hospital features, row after row.
    pub x1: Vec<f32>,
    /// Device features, row after row.
    pub x2: Vec<f32>,
    /// Labels, as indices into [`Dataset::classes`].
    pub y: Vec<u32>,
}

impl Samples {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.y.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }

    /// Appends one row.
    pub fn push(&mut self, x1: &[f32], x2: &[f32], y: u32) {
        self.x1.extend_from_slice(x1);
        self.x2.extend_from_slice(x2);
        self.y.push(y);
    }
}

/// One group: a hospital, its edge and its devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What the group is called in tables.
    pub name: String,
    /// The group's rows, ordered by device and, within a device, as read.
    pub samples: Samples,
    /// Device `n` owns rows `offsets[n]..offsets[n + 1]`; one more entry than devices.
    pub offsets: Vec<u32>,
}

impl Group {
    /// A group with one sample per device.
    pub fn one_sample_per_device(name: String, samples: Samples) -> Self {
        let offsets = (0..=samples.len() as u32).collect();
        Group {
            name,
            samples,
            offsets,
        }
    }

    /// K_m, the number of devices.
    pub fn devices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The rows that device `n` owns.
    pub fn rows(&self, device: u32) -> std::ops::Range<usize> {
        self.offsets[device as usize] as usize..self.offsets[device as usize + 1] as usize
    }
}

/// A data set, split.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The name of the set, as in `data.set`.
    pub name: String,
    /// The shape of one hospital row.
    pub hospital: Shape,
    /// The shape of one device row.
    pub device: Shape,
    /// The names of the classes; a label is an index into them.
    pub classes: Vec<String>,
    /// The training samples, by group.
    pub groups: Vec<Group>,
    /// Held out of training to choose settings and iterations; may be empty.
    pub validation: Samples,
    /// Never looked at by training.
    pub test: Samples,
}

impl Dataset {
    /// K, the number of devices of all groups.
    pub fn devices(&self) -> usize {
        self.groups.iter().map(Group::devices).sum()
    }

    /// The number of training samples of all groups.
    pub fn training_samples(&self) -> usize {
        self.groups.iter().map(|g| g.samples.len()).sum()
    }

    /// The same with all groups merged into one, group after group.
    #[must_use]
    pub fn merged(&self) -> Dataset {
        let mut samples = Samples::default();
        let mut offsets = vec![0];
        for group in &self.groups {
            let before = samples.len() as u32;
            samples.x1.extend_from_slice(&group.samples.x1);
            samples.x2.extend_from_slice(&group.samples.x2);
            samples.y.extend_from_slice(&group.samples.y);
            offsets.extend(group.offsets[1..].iter().map(|end| before + end));
        }
        Dataset {
            groups: vec![Group {
                name: "all groups".into(),
                samples,
                offsets,
            }],
            classes: self.classes.clone(),
            name: self.name.clone(),
            validation: Samples::default(),
            test: Samples::default(),
            ..*self
        }
    }

    /// The number of samples of the device that owns the most.
    pub fn most_samples_of_a_device(&self) -> usize {
        let groups = self.groups.iter();
        let samples = groups.flat_map(|g| (0..g.devices()).map(|n| g.rows(n as u32).len()));
        samples.max().unwrap_or(0)
    }

    /// A fingerprint of every number training sees and of how it is split.
    pub fn fingerprint(&self) -> String {
        fn samples(key: Key, s: &Samples) -> Key {
            let pair = |x: &[f32]| {
                let word = |i: usize| x.get(i).map_or(0, |v| u64::from(v.to_bits()));
                (word(0) << 32) | word(1)
            };
            key.with(s.len() as u64)
                .with_all(s.x1.chunks(2).map(pair))
                .with_all(s.x2.chunks(2).map(pair))
                .with_all(s.y.iter().map(|&y| u64::from(y)))
        }
        let dims = |s: Shape| s.dims().into_iter().map(|d| d as u64);
        let mut key = Key::new(0)
            .with(self.classes.len() as u64)
            .with_all(dims(self.hospital))
            .with_all(dims(self.device));
        for group in &self.groups {
            key =
                samples(key, &group.samples).with_all(group.offsets.iter().map(|&o| u64::from(o)));
        }
        samples(samples(key, &self.validation), &self.test).hex()
    }
}

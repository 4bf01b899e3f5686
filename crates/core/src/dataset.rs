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
    /// The group's rows, ordered by device and, within a device, as read. A party of a deployment holds its own
    /// columns of its own group, a gateway only from the first row of its first device to the last of its last; of
    /// others it knows only how many rows there are.
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

    /// A group of which only sizes are known: how many devices own how many rows, and that no device owns more than
    /// `largest`. It has no samples. Where rows end is made up: first devices own as many as they may, the rest one each.
    ///
    /// ```
    /// use selvedge_core::dataset::Group;
    /// let group = Group::hollow("north".into(), 4, 8, 3);
    /// assert_eq!(group.offsets, [0, 3, 6, 7, 8]);
    /// assert!((group.devices(), group.row_count()) == (4, 8) && group.samples.is_empty());
    /// ```
    pub fn hollow(name: String, devices: usize, rows: usize, largest: usize) -> Self {
        let end = |device: usize| {
            device
                .saturating_mul(largest)
                .min(rows.saturating_sub(devices - device))
        };
        let before = (0..devices).map(|device| end(device) as u32);
        Group {
            name,
            samples: Samples::default(),
            offsets: before.chain([rows as u32]).collect(),
        }
    }

    /// The number of rows, whether they are here or not.
    pub fn row_count(&self) -> usize {
        self.offsets.last().map_or(0, |end| *end as usize)
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

    /// The number of training samples of all groups, whether they are here or not.
    pub fn training_samples(&self) -> usize {
        self.groups.iter().map(Group::row_count).sum()
    }

    /// How many training samples of each class there are, in all groups together. Only those that are here count.
    pub fn label_counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.classes.len()];
        for y in self.groups.iter().flat_map(|g| &g.samples.y) {
            if let Some(count) = counts.get_mut(*y as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// The same with all groups merged into one, group after group.
    #[must_use]
    pub fn merged(&self) -> Dataset {
        let mut samples = Samples::default();
        let mut offsets = vec![0];
        let mut before = 0;
        for group in &self.groups {
            samples.x1.extend_from_slice(&group.samples.x1);
            samples.x2.extend_from_slice(&group.samples.x2);
            samples.y.extend_from_slice(&group.samples.y);
            offsets.extend(group.offsets[1..].iter().map(|end| before + end));
            before += group.row_count() as u32;
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

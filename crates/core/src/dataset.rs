//! What training sees: samples already split by group, by side and by device.
//!
//! Readers and generators (crate `selvedge-data`) fill these types; nothing in them says where the numbers came from.

use crate::fingerprint::{Fingerprint, was_mixed};
pub use crate::outcome::Outcome;
use crate::outcome::{Target, Targets};
use rayon::prelude::*;
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
    /// What is to be learnt about them.
    pub y: Targets,
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

    /// What is wrong with them, if they are to be rows of these shapes with this outcome.
    fn problem(
        &self,
        [hospital, device]: [Shape; 2],
        (outcome, names): (&Outcome, &[String]),
    ) -> Option<String> {
        let rows = self.len();
        let sides = [("x1", &self.x1, hospital), ("x2", &self.x2, device)];
        for (name, x, shape) in sides {
            let wanted = rows.checked_mul(shape.len());
            if wanted != Some(x.len()) {
                let (found, each) = (x.len(), shape.len());
                return Some(format!(
                    "{name} has {found} numbers: expected {rows} × {each}, for {rows} rows of {each} each"
                ));
            }
        }
        outcome.problem_of(names, &self.y)
    }

    /// Appends one row.
    pub fn push<'y>(&mut self, x1: &[f32], x2: &[f32], y: impl Into<Target<'y>>) {
        self.x1.extend_from_slice(x1);
        self.x2.extend_from_slice(x2);
        self.y.push(y.into());
    }
}

/// Where each device's rows begin, and where the last one's end.
///
/// ```
/// use selvedge_core::dataset::Offsets;
/// let listed: Offsets = vec![0, 3, 6, 7, 8].into();
/// let made_up = Offsets::MadeUp { devices: 4, rows: 8, largest: 3 };
/// assert!((0..=4).all(|n| listed.at(n) == made_up.at(n)) && listed.devices() == made_up.devices());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Offsets {
    /// One more entry than devices.
    Listed(Vec<u32>),
    /// For a group of which only sizes are known: the first devices own as many as they may, the rest one each. So the
    /// devices of other groups take no memory, however many there are.
    MadeUp {
        /// K_m
        devices: usize,
        /// Of all devices.
        rows: usize,
        /// No device owns more.
        largest: usize,
    },
}

impl Offsets {
    /// Where the rows of device `n` begin; of one past the last, where all end.
    pub fn at(&self, n: usize) -> u32 {
        match self {
            Offsets::Listed(offsets) => offsets[n],
            Offsets::MadeUp {
                devices,
                rows,
                largest,
            } if n < *devices => n
                .saturating_mul(*largest)
                .min(rows.saturating_sub(devices - n)) as u32,
            Offsets::MadeUp { rows, .. } => *rows as u32,
        }
    }

    /// The number of devices.
    pub fn devices(&self) -> usize {
        match self {
            Offsets::Listed(offsets) => offsets.len().saturating_sub(1),
            Offsets::MadeUp { devices, .. } => *devices,
        }
    }

    /// As a list; empty where it is made up.
    pub fn listed(&self) -> &[u32] {
        match self {
            Offsets::Listed(offsets) => offsets,
            Offsets::MadeUp { .. } => &[],
        }
    }
}

impl From<Vec<u32>> for Offsets {
    fn from(offsets: Vec<u32>) -> Self {
        Offsets::Listed(offsets)
    }
}

/// One group: a hospital, its edge and its devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name of the group in tables.
    pub name: String,
    /// The group's rows, ordered by device and, within a device, as read. A party of a deployment holds its own columns
    /// of its own group, a gateway only from the first row of its first device to the last of its last; of others it
    /// knows only how many rows there are.
    pub samples: Samples,
    /// Whose rows they are.
    pub offsets: Offsets,
}

impl Group {
    /// A group with one sample per device.
    pub fn one_sample_per_device(name: String, samples: Samples) -> Self {
        let offsets: Vec<u32> = (0..=samples.len() as u32).collect();
        Group {
            name,
            samples,
            offsets: offsets.into(),
        }
    }

    /// A group of which only sizes are known: how many devices own how many rows, and that no device owns more than
    /// `largest`. It has no samples, and where rows end is made up.
    ///
    /// ```
    /// use selvedge_core::dataset::Group;
    /// let group = Group::hollow("north".into(), 4, 8, 3);
    /// assert!((group.devices(), group.row_count()) == (4, 8) && group.samples.is_empty());
    /// assert_eq!(group.rows(1), 3..6);
    /// ```
    pub fn hollow(name: String, devices: usize, rows: usize, largest: usize) -> Self {
        Group {
            name,
            samples: Samples::default(),
            offsets: Offsets::MadeUp {
                devices,
                rows,
                largest,
            },
        }
    }

    /// The number of rows, whether they are here or not.
    pub fn row_count(&self) -> usize {
        self.offsets.at(self.devices()) as usize
    }

    /// K_m, the number of devices.
    pub fn devices(&self) -> usize {
        self.offsets.devices()
    }

    /// The rows that device `n` owns.
    pub fn rows(&self, device: u32) -> std::ops::Range<usize> {
        let at = |n: u32| self.offsets.at(n as usize) as usize;
        at(device)..at(device + 1)
    }
}

/// Which groups have the held-out rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Holders {
    /// All in turn.
    #[default]
    InTurn,
    /// The rows of each group: of validation, and of the test.
    Listed(Vec<[Vec<u32>; 2]>),
    /// The rows are elsewhere: how many of each part each group has, as far as that is known.
    Counted(Vec<[usize; 2]>),
}

impl Holders {
    /// Those of these rows of each group: of validation, and of the test.
    pub fn of(rows: Vec<[Vec<u32>; 2]>) -> Self {
        let groups = rows.len() as u32;
        let in_turn = |(group, own): (u32, &[Vec<u32>; 2])| {
            let is_its_turn = |row: &u32| row % groups == group;
            own.iter().flatten().all(is_its_turn)
        };
        match (0..).zip(&rows).all(in_turn) {
            true => Holders::InTurn,
            false => Holders::Listed(rows),
        }
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
    /// What is asked about each sample.
    pub outcome: Outcome,
    /// The names of the classes; a class is an index into them. Or those of the labels; or the name of the quantity or of
    /// the event.
    pub classes: Vec<String>,
    /// The training samples, by group.
    pub groups: Vec<Group>,
    /// Held out of training to choose settings and iterations; may be empty.
    pub validation: Samples,
    /// Never looked at by training.
    pub test: Samples,
    /// Which groups have those two.
    pub holders: Holders,
}

impl Dataset {
    /// What is wrong with it, if all of it is to be here and anything is: the part and the problem.
    pub(crate) fn problem(&self) -> Option<(String, String)> {
        if let Some(problem) = self.outcome.problem() {
            return Some(("outcome".into(), problem));
        }
        let of = |samples: &Samples| {
            samples.problem([self.hospital, self.device], (&self.outcome, &self.classes))
        };
        for (number, group) in self.groups.iter().enumerate() {
            let name = || format!("group {number} (`{}`)", group.name);
            if let Some(problem) = of(&group.samples) {
                return Some((name(), problem));
            }
            let (rows, offsets) = (group.samples.len(), group.offsets.listed());
            let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(rows as u32));
            if !ends || !offsets.is_sorted() {
                let problem = format!("offsets must increase from 0 to its {rows} rows");
                return Some((name(), problem));
            }
        }
        let held_out = [("validation", &self.validation), ("test", &self.test)];
        held_out
            .into_iter()
            .find_map(|(name, samples)| Some((name.into(), of(samples)?)))
    }

    /// The held-out rows of a group: of validation (0) or of the test (1).
    pub fn held_out_rows(&self, part: usize, group: usize) -> Vec<u32> {
        let all = [&self.validation, &self.test][part].len() as u32;
        match &self.holders {
            Holders::InTurn => (group as u32..all).step_by(self.groups.len()).collect(),
            Holders::Listed(rows) => rows[group][part].clone(),
            Holders::Counted(_) => Vec::new(),
        }
    }

    /// The group of each held-out row of a part.
    pub fn holders_of(&self, part: usize) -> Vec<u32> {
        let all = [&self.validation, &self.test][part].len();
        let mut holders = vec![0; all];
        for group in 0..self.groups.len() {
            let rows = self.held_out_rows(part, group);
            rows.iter()
                .for_each(|row| holders[*row as usize] = group as u32);
        }
        holders
    }

    /// How many held-out rows a group has, validation and test, if that is known.
    pub fn held_out_counts(&self, group: usize) -> Option<[usize; 2]> {
        match &self.holders {
            Holders::Counted(counts) => counts.get(group).copied(),
            _ => Some([0, 1].map(|part| self.held_out_rows(part, group).len())),
        }
    }

    /// K, the number of devices of all groups.
    pub fn devices(&self) -> usize {
        self.groups.iter().map(Group::devices).sum()
    }

    /// The number of training samples of all groups, whether they are here or not.
    pub fn training_samples(&self) -> usize {
        self.groups.iter().map(Group::row_count).sum()
    }

    /// The [counts](Outcome::counts) of the outcome over the training samples of all groups together. Only those that are
    /// here count.
    pub fn label_counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.outcome.counts(&self.classes)];
        for group in &self.groups {
            self.outcome.count(&group.samples.y, &mut counts);
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
            samples.y.extend(&group.samples.y);
            offsets.extend((1..=group.devices()).map(|n| before + group.offsets.at(n)));
            before += group.row_count() as u32;
        }
        Dataset {
            groups: vec![Group {
                name: "all groups".into(),
                samples,
                offsets: offsets.into(),
            }],
            outcome: self.outcome.clone(),
            classes: self.classes.clone(),
            name: self.name.clone(),
            validation: Samples::default(),
            test: Samples::default(),
            holders: self.holders.clone(),
            ..*self
        }
    }

    /// The number of samples of the device that owns the most.
    pub fn most_samples_of_a_device(&self) -> usize {
        let most = |group: &Group| match &group.offsets {
            Offsets::Listed(offsets) => {
                let counts = offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
                counts.max().unwrap_or(0)
            }
            // The first owns as many as any.
            Offsets::MadeUp { devices: 0, .. } => 0,
            Offsets::MadeUp { .. } => group.rows(0).len(),
        };
        self.groups.iter().map(most).max().unwrap_or(0)
    }

    /// A fingerprint of every number training sees and of how it is split.
    pub fn fingerprint(&self) -> String {
        let samples = |kind: &str, s: &Samples| {
            Fingerprint::of(kind)
                .numbers(&s.x1)
                .numbers(&s.x2)
                .words(s.y.words())
        };
        let of_group = |group: &Group| {
            let offsets = (0..=group.devices()).map(|n| u64::from(group.offsets.at(n)));
            samples("group", &group.samples).words(offsets).hex()
        };
        let held_out = |s: &Samples| samples("held out", s).hex();
        let groups: Vec<String> = self.groups.par_iter().map(of_group).collect();
        let (validation, test) =
            rayon::join(|| held_out(&self.validation), || held_out(&self.test));
        let dims = |s: Shape| s.dims().into_iter().map(|d| d as u64);
        let kind = match self.outcome.is_class() {
            true => "data set".to_owned(),
            false => format!("data set of {:?}", self.outcome),
        };
        let whole = Fingerprint::of(&kind)
            .words([self.classes.len() as u64])
            .words(dims(self.hospital))
            .words(dims(self.device));
        let parts = groups.iter().chain([&validation, &test]);
        parts.fold(whole, |whole, part| whole.text(part)).hex()
    }

    /// Whether a stated fingerprint is this set's.
    pub fn has_fingerprint(&self, stated: &str) -> bool {
        match was_mixed(stated) {
            true => self.mixed() == stated,
            false => self.fingerprint() == stated,
        }
    }

    /// The fingerprint that 0.2 and earlier stated.
    fn mixed(&self) -> String {
        fn samples(key: Key, s: &Samples) -> Key {
            let pair = |x: &[f32]| {
                let word = |i: usize| x.get(i).map_or(0, |v| u64::from(v.to_bits()));
                (word(0) << 32) | word(1)
            };
            key.with(s.len() as u64)
                .with_all(s.x1.chunks(2).map(pair))
                .with_all(s.x2.chunks(2).map(pair))
                .with_all(s.y.words())
        }
        let dims = |s: Shape| s.dims().into_iter().map(|d| d as u64);
        let mut key = Key::new(0)
            .with(self.classes.len() as u64)
            .with_all(dims(self.hospital))
            .with_all(dims(self.device));
        for group in &self.groups {
            key = samples(key, &group.samples)
                .with_all((0..=group.devices()).map(|n| u64::from(group.offsets.at(n))));
        }
        samples(samples(key, &self.validation), &self.test).hex()
    }
}

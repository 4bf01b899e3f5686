//! `synthetic`: generated patients, no files.
//!
//! Receives the settings and the seed, gives M groups of K devices, with validation and test rows from the mix of all
//! groups on top. [`patient`] says what the patients are like. Every row is made from a key of its own: rows can be
//! made in parallel, and the first thousand devices of a group are the same whether it has a thousand or a million.

mod patient;

use crate::rows::{Dealt, Ids};
use crate::sets::{self, DataSet, Source};
use crate::settings::{check_values, outcome, rows_of, wrong};
use crate::statistics::{Scale, SideStatistics, Statistics};
use crate::{DataError, asked};
use patient::{Hospital, World};
use rayon::prelude::*;
use selvedge_core::dataset::{Dataset, Group, Holders, Samples};
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::{Kind, Targets};
use selvedge_nn::{Shape, random::Key};

pub(crate) static SET: DataSet = DataSet {
    outcomes: &[
        ("class", Kind::Class),
        ("labels", Kind::Labels),
        ("quantity", Kind::Quantity),
        ("survival", Kind::Survival),
    ],
    ..DataSet::new("synthetic", Source::Generated)
};

/// Device offsets are 32-bit.
const MOST_ROWS_PER_GROUP: u128 = 1 << 31;

/// Beyond this a set is a slip of the keyboard, and would only end in a killed process.
const MOST_BYTES: u128 = 64 << 30;

/// Rows that one thread makes at a time.
const ROWS_PER_TASK: usize = 1024;

/// Patients that are measured for standardisation.
const MEASURED_ROWS: usize = 4096;

/// Values that are measured at most, so that very wide rows do not fill the memory.
const MEASURED_VALUES: usize = 1 << 24;

/// First words of the keys: what a stream of numbers is for.
mod word {
    pub(super) const WORLD: u64 = u64::from_be_bytes(*b"synworld");
    pub(super) const MEASURED: u64 = u64::from_be_bytes(*b"synscale");
    pub(super) const TRAINING: u64 = u64::from_be_bytes(*b"syntrain");
    pub(super) const VALIDATION: u64 = u64::from_be_bytes(*b"synvalid");
    pub(super) const TEST: u64 = u64::from_be_bytes(*b"syn.test");
}

/// Whether the set can be generated and held.
#[cfg(feature = "fuzz")]
pub(crate) fn check(settings: &DataSettings) -> Result<(), DataError> {
    Counts::check(settings).map(drop)
}

/// Generates the set. It is standardised already, by patients who are in none of its parts.
pub(crate) fn generate(settings: &DataSettings, seed: u64) -> Result<Dealt, DataError> {
    let counts = Counts::check(settings)?;
    let (_, kind) = outcome(
        settings,
        sets::find(&settings.set).map_or(&SET, |(set, _)| set),
    )?;
    let names = names(kind, settings.classes);
    let generator = Generator::new(settings, (kind, names.len()), seed);
    let groups = (0..settings.groups as u64).into_par_iter().map(|group| {
        let hospital = generator.world.hospital(group);
        let key = generator.key.with(word::TRAINING).with(group);
        let samples = generator.rows(counts.per_group, |row, x, known| {
            generator.patient(&hospital, key.with(row), x, known);
        });
        let offsets = (0..=counts.per_group).step_by(settings.samples_per_device);
        let offsets: Vec<u32> = offsets.map(|offset| offset as u32).collect();
        Group {
            name: format!("group {group}"),
            samples,
            offsets: offsets.into(),
        }
    });
    let mut groups: Vec<Group> = groups.collect();
    let known = groups.iter_mut().map(|group| &mut group.samples.y);
    let hidden = asked::hide_generated(kind, known, settings.hidden, seed)?;
    let training = || groups.iter().map(|group| &group.samples.y);
    let dataset = Dataset {
        name: settings.set.clone(),
        outcome: asked::outcome(
            kind,
            &names[0],
            training,
            (settings.intervals, settings.horizon),
        )?,
        hospital: settings.features.hospital,
        device: settings.features.device,
        classes: names,
        groups,
        validation: generator.mixed_rows(word::VALIDATION, counts.validation),
        test: generator.mixed_rows(word::TEST, counts.test),
        holders: Holders::InTurn,
    };
    Ok(Dealt {
        statistics: Statistics {
            set: settings.set.clone(),
            rows: dataset.training_samples(),
            outcome: dataset.outcome.clone(),
            classes: dataset.classes.clone(),
            hospital: SideStatistics::unscaled(dataset.hospital),
            device: SideStatistics::unscaled(dataset.device),
        },
        groups_are_given: false,
        persons: vec![Vec::new(); settings.groups + 2],
        columns: Default::default(),
        ids: Ids::Numbered,
        notes: hidden.into_iter().collect(),
        dataset,
    })
}

/// The names of the classes, of the labels, of the quantity or of the event.
fn names(kind: Kind, count: usize) -> Vec<String> {
    match kind {
        Kind::Class => (0..count).map(|class| class.to_string()).collect(),
        Kind::Labels => (0..count).map(|label| format!("label {label}")).collect(),
        Kind::Quantity => vec!["quantity".into()],
        Kind::Survival => vec!["event".into()],
    }
}

/// How many rows there are to make.
struct Counts {
    per_group: usize,
    validation: usize,
    test: usize,
}

impl Counts {
    fn check(settings: &DataSettings) -> Result<Self, DataError> {
        let DataSettings {
            groups,
            devices,
            samples_per_device,
            features,
            ..
        } = *settings;
        check_values(settings)?;
        for side in [features.hospital, features.device] {
            if side.dims().contains(&0) {
                return Err(wrong(
                    "features",
                    features,
                    "expected at least 1 on each side",
                ));
            }
        }
        if settings.split != "paper" {
            let expected = "\"synthetic\" is generated group by group: expected \"paper\"";
            return Err(wrong("split", format!("{:?}", settings.split), expected));
        }
        crate::split::no_sizes(settings, "generated groups all have the same size")?;
        Self::check_size(settings)?;

        let per_group = devices * samples_per_device;
        let training = per_group * groups;
        let validation = rows_of(settings.validation, training);
        Ok(Counts {
            per_group,
            validation,
            test: rows_of(settings.test, training + validation),
        })
    }

    /// Refuses what cannot be held; after this, no product of counts overflows.
    fn check_size(settings: &DataSettings) -> Result<(), DataError> {
        let DataSettings {
            groups,
            devices,
            samples_per_device,
            features,
            ..
        } = *settings;
        let rows = (devices as u128).saturating_mul(samples_per_device as u128);
        if rows > MOST_ROWS_PER_GROUP {
            let expected = format!(
                "with samples_per_device = {samples_per_device} a group has {rows} rows; \
                 expected at most {MOST_ROWS_PER_GROUP}"
            );
            return Err(wrong("devices", devices, expected));
        }
        // A row is two sides of 32-bit features, a label and an offset. A feature has a loading, a scale, a calibration
        // and at least two measured values besides, whatever the rows.
        let numbers = |side: Shape| {
            let dims = side.dims().into_iter();
            dims.fold(1, |product, d| u128::saturating_mul(product, d as u128))
        };
        let features = numbers(features.hospital).saturating_add(numbers(features.device));
        let held_out = (1.0 + settings.validation) * (1.0 + settings.test);
        let bytes = rows
            .saturating_mul(groups as u128)
            .saturating_mul(features.saturating_mul(4).saturating_add(8));
        let bytes = ((bytes as f64 * held_out) as u128).saturating_add(features.saturating_mul(48));
        if bytes > MOST_BYTES {
            let expected = format!(
                "{groups} groups of {rows} rows of {features} features take {:.0} GiB; expected at most {} \
                 GiB: fewer groups, devices, samples_per_device or features",
                bytes as f64 / (1u64 << 30) as f64,
                MOST_BYTES >> 30,
            );
            return Err(wrong("groups", groups, expected));
        }
        Ok(())
    }
}

/// The world, and what its features must be scaled by.
struct Generator {
    key: Key,
    world: World,
    groups: u64,
    features: [usize; 2],
    scales: [Vec<Scale>; 2],
    kind: Kind,
    /// Numbers that are known of a row.
    each: usize,
}

impl Generator {
    fn new(settings: &DataSettings, (kind, names): (Kind, usize), seed: u64) -> Self {
        let key = Key::new(seed);
        let features = [settings.features.hospital, settings.features.device].map(Shape::len);
        let world = World::new(
            key.with(word::WORLD),
            features,
            (kind, names),
            settings.noise,
        );
        let mut generator = Generator {
            key,
            world,
            groups: settings.groups as u64,
            features,
            scales: [Vec::new(), Vec::new()],
            kind,
            each: match kind {
                Kind::Class | Kind::Quantity => 1,
                Kind::Labels => names,
                Kind::Survival => 2,
            },
        };
        generator.scales = generator.measure();
        generator
    }

    /// Measures each feature on patients of all groups who are in none of the sets. So a row does not depend on how
    /// many others there are.
    fn measure(&self) -> [Vec<Scale>; 2] {
        let affordable = MEASURED_VALUES / (self.features[0] + self.features[1]);
        let count = MEASURED_ROWS.min(affordable.max(2));
        let key = self.key.with(word::MEASURED);
        let raw = self.rows(count, |row, x, known| {
            let group = u128::from(row) * u128::from(self.groups) / count as u128;
            let hospital = self.world.hospital(group as u64);
            self.world.patient(&hospital, key.with(row), x, known);
        });
        let columns = |values: &[f32], width: usize| {
            let column = |feature| values[feature..].iter().step_by(width).copied();
            (0..width)
                .map(|feature| Scale::of(column(feature)))
                .collect()
        };
        [
            columns(&raw.x1, self.features[0]),
            columns(&raw.x2, self.features[1]),
        ]
    }

    /// A standardised patient.
    fn patient(&self, hospital: &Hospital, key: Key, [x1, x2]: [&mut [f32]; 2], known: &mut [f32]) {
        let sides = [&mut *x1, &mut *x2];
        self.world.patient(hospital, key, sides, known);
        for (side, scales) in [x1, x2].into_iter().zip(&self.scales) {
            for (x, scale) in side.iter_mut().zip(scales) {
                *x = scale.apply(*x);
            }
        }
    }

    /// Patients of random groups.
    fn mixed_rows(&self, purpose: u64, count: usize) -> Samples {
        let key = self.key.with(purpose);
        self.rows(count, |row, x, known| {
            let group = key.with(row).stream().below(self.groups);
            let hospital = self.world.hospital(group);
            self.patient(&hospital, key.with(row).with(group), x, known);
        })
    }

    /// `count` rows, made by `fill` in any order, straight into place.
    fn rows(
        &self,
        count: usize,
        fill: impl Fn(u64, [&mut [f32]; 2], &mut [f32]) + Sync,
    ) -> Samples {
        let [wide1, wide2] = self.features;
        let mut x1 = vec![0.0; count * wide1];
        let mut x2 = vec![0.0; count * wide2];
        let mut y = vec![0.0; count * self.each];
        x1.par_chunks_mut(ROWS_PER_TASK * wide1)
            .zip(x2.par_chunks_mut(ROWS_PER_TASK * wide2))
            .zip(y.par_chunks_mut(ROWS_PER_TASK * self.each))
            .enumerate()
            .for_each(|(task, ((x1, x2), y))| {
                let sides = x1.chunks_mut(wide1).zip(x2.chunks_mut(wide2));
                let each = sides.zip(y.chunks_mut(self.each));
                for (i, ((x1, x2), y)) in each.enumerate() {
                    fill((task * ROWS_PER_TASK + i) as u64, [x1, x2], y);
                }
            });
        Samples {
            x1,
            x2,
            y: match self.kind {
                Kind::Class => y.into_iter().map(|class| class as u32).collect(),
                _ => Targets::Numbers {
                    each: self.each,
                    values: y,
                },
            },
        }
    }
}

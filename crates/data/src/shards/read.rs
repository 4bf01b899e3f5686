//! Puts shards together again, as a simulation does; a party of a deployment reads only its own.

use super::index::{Common, wrong_file};
use super::shard::{Shard, ShardPart, read_offsets};
use super::{DEVICES, EDGE, HOSPITAL, INDEX, folder};
use crate::files::unzip::Problem;
use crate::rows::{Dealt, Ids};
use crate::settings::wrong;
use crate::{DataError, Loaded};
use selvedge_core::dataset::{Dataset, Group, Holders, Samples};
use selvedge_core::experiment::DataSettings;
use selvedge_nn::Shape;
use std::path::{Path, PathBuf};

/// Reads all shards of the folder `data.path`.
pub(crate) fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Loaded, DataError> {
    let folder_of_all = find(settings, data_dir)?;
    let common = Common::read(&folder_of_all)?;
    let Common {
        index,
        statistics,
        shapes,
        ..
    } = &common;
    if settings.groups != index.groups.len() {
        let expected = format!(
            "expected {}, the number of groups in the shards",
            index.groups.len()
        );
        return Err(wrong("groups", settings.groups, expected));
    }
    let asked = (&statistics.outcome, &statistics.classes[..]);
    let (mut groups, mut holders) = (Vec::new(), Vec::new());
    let mut held_out = [(); 2].map(|()| HeldOut::default());
    for part in &mut held_out {
        part.samples.y = asked.0.targets(asked.1);
    }
    for (number, described) in index.groups.iter().enumerate() {
        let folder = folder_of_all.join(folder(number));
        let [hospital_file, devices_file, edge_file] =
            [HOSPITAL, DEVICES, EDGE].map(|name| folder.join(name));
        let hospital = Shard::read(&hospital_file, shapes[0], asked, described)?;
        let devices = Shard::read(&devices_file, shapes[1], asked, described)?;
        for (part, of_hospital) in devices.parts.iter().zip(&hospital.parts) {
            part.matches(of_hospital)
                .map_err(|p| wrong_file(&devices_file, p))?;
        }
        let of_edge = read_offsets(&edge_file, described)?;
        for (file, offsets) in [(&hospital_file, &hospital.offsets), (&edge_file, &of_edge)] {
            if *offsets != devices.offsets {
                return Err(wrong_file(
                    file,
                    format!("its offsets differ from those of {DEVICES}: expected the same"),
                ));
            }
        }
        let [own, validation, test] = hospital.parts;
        let [own_of_devices, device_validation, device_test] = devices.parts;
        holders.push([validation.rows.clone(), test.rows.clone()]);
        held_out[0].add(validation, device_validation);
        held_out[1].add(test, device_test);
        groups.push(Group {
            name: described.name.clone(),
            samples: Samples {
                x1: own.x,
                x2: own_of_devices.x,
                y: own.y,
            },
            offsets: devices.offsets.into(),
        });
    }
    let [validation, test] = held_out;
    let in_order = |rows: HeldOut, count: usize| {
        rows.in_order(count, *shapes)
            .map_err(|problem| common.wrong_index(problem))
    };
    let dataset = Dataset {
        holders: Holders::of(holders),
        name: index.set.clone(),
        hospital: shapes[0],
        device: shapes[1],
        outcome: statistics.outcome.clone(),
        classes: statistics.classes.clone(),
        groups,
        validation: in_order(validation, index.validation)?,
        test: in_order(test, index.test)?,
    };
    let counted = (dataset.label_counts(), dataset.most_samples_of_a_device());
    if counted != (index.labels.clone(), index.largest) {
        return Err(common.wrong_index(format!(
            "labels = {:?} and largest = {}: expected {:?} and {}, as in the shards",
            index.labels, index.largest, counted.0, counted.1
        )));
    }
    let dealt = Dealt {
        dataset,
        statistics: statistics.clone(),
        ids: Ids::Numbered,
        groups_are_given: false,
        persons: vec![Vec::new(); index.groups.len() + 2],
        columns: Default::default(),
        notes: Vec::new(),
    };
    let loaded = dealt.scale();
    match loaded.dataset.has_fingerprint(&index.dataset) {
        true => Ok(loaded),
        false => Err(common.wrong_index(format!(
            "the shards' fingerprint is {}: expected {}; a shard was changed or is from a different split",
            loaded.dataset.fingerprint(),
            index.dataset
        ))),
    }
}

fn find(settings: &DataSettings, data_dir: Option<&Path>) -> Result<PathBuf, DataError> {
    let path = Path::new(&settings.path);
    let below = data_dir
        .map(|dir| dir.join(path))
        .filter(|path| path.join(INDEX).exists());
    let found = below.unwrap_or_else(|| path.to_owned());
    match !settings.path.is_empty() && found.join(INDEX).is_file() {
        true => Ok(found),
        false => Err(wrong(
            "path",
            format!("{:?}", settings.path),
            "expected a folder written by `selvedge data split`, relative to the current folder or to the data folder",
        )),
    }
}

/// Held-out rows of all groups, and their places.
#[derive(Default)]
struct HeldOut {
    places: Vec<u32>,
    samples: Samples,
}

impl HeldOut {
    fn add(&mut self, hospital: ShardPart, devices: ShardPart) {
        self.places.extend(hospital.rows);
        self.samples.x1.extend(hospital.x);
        self.samples.x2.extend(devices.x);
        self.samples.y.extend(&hospital.y);
    }

    /// All of them in order: every place from 0 to `count` must be there once.
    fn in_order(self, count: usize, shapes: [Shape; 2]) -> Result<Samples, Problem> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by_key(|at| self.places[*at]);
        let places = order.iter().map(|at| self.places[*at] as usize);
        if self.places.len() != count || !places.eq(0..count) {
            return Err(format!(
                "the shards have {} held-out rows: expected {count}, each once",
                self.places.len()
            ));
        }
        let [wide1, wide2] = shapes.map(Shape::len);
        let mut samples = Samples {
            y: self.samples.y.none(),
            ..Samples::default()
        };
        for at in order {
            let (x1, x2) = (
                &self.samples.x1[at * wide1..],
                &self.samples.x2[at * wide2..],
            );
            samples.push(&x1[..wide1], &x2[..wide2], self.samples.y.at(at));
        }
        Ok(samples)
    }
}

//! One party of a deployment: it reads its own shard and nobody else's, to the same bits as the whole set.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::{
    Folder, bits, esr_settings, files, key, parties, real_data, small_file, small_sets, text,
};
use selvedge_core::dataset::{Dataset, Group, Samples};
use selvedge_core::experiment::{ClassWeights, DataSettings, Experiment, ModelSettings};
use selvedge_core::selection::Draw;
use selvedge_core::state::State;
use selvedge_core::task::Task;
use selvedge_data::SETS;
use selvedge_data::{
    HeldOut, PartyLoaded, PartyShard, cut, distribute, load_with_notes, read_party,
};
use selvedge_nn::{LayerSpec, Shape};
use std::fs;
use std::path::{Path, PathBuf};

/// Which columns a party has, if it has any.
fn side(party: &PartyShard) -> Option<fn(&Samples) -> &[f32]> {
    match party {
        PartyShard::Hospital(_) => Some(|samples| &samples.x1),
        PartyShard::Gateway { .. } => Some(|samples| &samples.x2),
        PartyShard::Edge(_) | PartyShard::Coordinator => None,
    }
}

/// A party's training rows and offsets are those of the whole; of others it has only sizes.
fn has_its_own(party: &PartyShard, read: &PartyLoaded, whole: &Dataset) {
    assert_eq!(read.dataset.groups.len(), whole.groups.len());
    for (m, (group, truly)) in read.dataset.groups.iter().zip(&whole.groups).enumerate() {
        assert_eq!(group.name, truly.name);
        assert_eq!(group.devices(), truly.devices());
        assert_eq!(group.row_count(), truly.row_count());
        if party.group() != Some(m) {
            assert_eq!(group.samples, Samples::default());
            continue;
        }
        assert_eq!(group.offsets, truly.offsets);
        let Some(side) = side(party) else {
            assert_eq!(group.samples, Samples::default());
            continue;
        };
        let rows = match party {
            PartyShard::Gateway { devices, .. } => {
                let (first, last) = (devices.start, devices.end - 1);
                truly.rows(first).start..truly.rows(last).end
            }
            _ => 0..truly.row_count(),
        };
        let width = side(&truly.samples).len() / truly.row_count();
        let numbers = &side(&truly.samples)[rows.start * width..rows.end * width];
        assert_eq!(bits(side(&group.samples)), bits(numbers));
        assert_eq!(group.samples.y.classes(), &truly.samples.y.classes()[rows]);
        let numbers = group.samples.x1.len() + group.samples.x2.len();
        assert_eq!(numbers, side(&group.samples).len(), "only its own columns");
    }
    assert!(read.dataset.validation.is_empty() && read.dataset.test.is_empty());
}

/// Its held-out rows are those of the whole at their places.
fn held_out_fits(party: &PartyShard, held_out: &HeldOut, whole: &Samples) {
    let HeldOut { x, y, places, .. } = held_out;
    let Some(side) = side(party) else {
        return assert_eq!(*held_out, HeldOut::default());
    };
    let width = side(whole).len() / whole.len().max(1);
    assert_eq!((x.len(), y.len()), (places.len() * width, places.len()));
    for (at, place) in places.iter().map(|place| *place as usize).enumerate() {
        let (own, truly) = (
            &x[at * width..][..width],
            &side(whole)[place * width..][..width],
        );
        assert_eq!(bits(own), bits(truly));
        assert_eq!(y.classes()[at], whole.y.classes()[place]);
    }
}

/// The task that a party builds of what it sees is the task of the whole.
fn task_is_the_same(experiment: &Experiment, read: &PartyLoaded, whole: &Task<'_>, own: usize) {
    let party = Task::of_party(experiment, &read.dataset, &read.labels).unwrap();
    assert_eq!(party.selected, whole.selected);
    assert_eq!(
        party.objective.class_weights(),
        whole.objective.class_weights()
    );
    assert_eq!(party.compression, whole.compression);
    assert_eq!(party.architecture.widths(), whole.architecture.widths());
    assert_eq!(party.segment(), whole.segment());
    assert_eq!(party.loss_rows, whole.loss_rows);
    assert_eq!(party.sizes(), whole.sizes());
    assert_eq!(party.raw_bytes(), whole.raw_bytes());
    assert_eq!(State::initial(&party), State::initial(whole));
    let rows = |task: &Task<'_>| {
        let group = &task.dataset.groups[own];
        let draw = Draw::new(
            experiment.seed,
            own,
            20,
            group.devices(),
            task.selected[own],
        );
        let mut subset = Vec::new();
        task.selection.select(draw, &mut subset);
        let rows: Vec<_> = subset.iter().map(|device| group.rows(*device)).collect();
        (subset, rows)
    };
    assert_eq!(rows(&party), rows(whole));
}

/// Cuts a set, hands every party its folder, and compares what it reads there with the whole.
fn every_party_reads_its_own(settings: &DataSettings, data_dir: Option<&Path>) {
    let folder = Folder::new();
    let out = folder.path().join("shards");
    cut(settings, 5, data_dir, &key(), &out).unwrap();
    let whole = load_with_notes(settings, 5, data_dir).unwrap();
    let mut experiment = Experiment {
        seed: 5,
        data: settings.clone(),
        ..Experiment::default()
    };
    experiment.train.participation = 0.3;
    experiment.train.class_weights = ClassWeights::Balanced;
    experiment.train.loss_samples = 17;
    let layers = |json: String| Some(serde_json::from_str::<Vec<LayerSpec>>(&json).unwrap());
    let tower = match whole.dataset.hospital {
        Shape::Flat(_) => r#"{"linear": {"out": 4}}"#,
        _ => r#"{"lstm": {"hidden": 4}}"#,
    };
    let classes = whole.dataset.classes.len();
    experiment.model = ModelSettings {
        hospital: layers(format!("[{tower}]")),
        device: layers(format!("[{tower}]")),
        combined: layers(format!(r#"[{{"linear": {{"out": {classes}}}}}]"#)),
    };
    let task = Task::new(&experiment, &whole.dataset).unwrap();
    let held_out = [&whole.dataset.validation, &whole.dataset.test];
    let mut places = [Vec::new(), Vec::new()];
    let devices: Vec<_> = whole.dataset.groups.iter().map(Group::devices).collect();
    for (number, party) in parties(&devices).into_iter().enumerate() {
        let own = folder.path().join(format!("party-{number}"));
        distribute(&out, party.clone(), &own).unwrap();
        let mut expected = vec![PathBuf::from("shards.json"), "stats.json".into()];
        expected.extend(party.file());
        expected.sort();
        assert_eq!(files(&own), expected, "{party:?}");
        let read = read_party(&own, party.clone()).unwrap();
        assert_eq!(read.statistics, whole.statistics);
        assert_eq!(read.fingerprint, whole.dataset.fingerprint());
        assert_eq!(read.labels, whole.dataset.label_counts());
        assert_eq!(read.held_out_of_all, held_out.map(Samples::len));
        has_its_own(&party, &read, &whole.dataset);
        for ((own, truly), places) in read.held_out.iter().zip(held_out).zip(&mut places) {
            held_out_fits(&party, own, truly);
            places.extend_from_slice(&own.places);
        }
        task_is_the_same(&experiment, &read, &task, party.group().unwrap_or(0));
        fs::remove_dir_all(own).unwrap();
    }
    // Every held-out row is at one hospital and at the first gateway of its group.
    for (mut places, whole) in places.into_iter().zip(held_out) {
        places.sort_unstable();
        let twice = (0..whole.len() as u32).flat_map(|place| [place; 2]);
        assert!(places.into_iter().eq(twice));
    }
}

#[test]
fn parties_of_small_sets_read_their_own() {
    let esr = Folder::with_esr(text(&small_file()).as_bytes());
    for settings in [esr_settings()].into_iter().chain(small_sets()) {
        every_party_reads_its_own(&settings, Some(esr.path()));
    }
}

#[test]
fn gaps_are_filled_as_in_the_whole() {
    let folder = Folder::new();
    let mut table = String::from("patient,age,sex,hr,spo2,died\n");
    for n in 0..41 {
        let measured = |value: usize, every: usize| match n % every {
            0 => String::new(),
            _ => value.to_string(),
        };
        let (age, spo2) = (measured(30 + n * n % 50, 5), measured(90 + n % 9, 3));
        let (sex, died) = (["f", "m"][n % 2], ["no", "yes"][usize::from(n % 4 == 0)]);
        table += &format!("p{n},{age},{sex},{},{spo2},{died}\n", 60 + n * 7 % 40);
    }
    fs::write(folder.path().join("t.csv"), table).unwrap();
    let experiment = "[data]\nset = \"table\"\npath = \"t.csv\"\ngroups = 3\nsplit = \"iid\"\nvalidation = 0.1\n\
        samples_per_device = 4\n[data.table]\nid = \"patient\"\nlabel = \"died\"\nhospital = [\"age\", \"sex\"]\n\
        device = [\"hr\", \"spo2\"]\ncategorical = [\"sex\"]\n";
    let settings = SETS.parse(experiment, &[]).unwrap().data;
    every_party_reads_its_own(&settings, Some(folder.path()));
}

#[test]
fn parties_of_real_sets_read_their_own() {
    let Some(folder) = real_data("parties_of_real_sets_read_their_own") else {
        return;
    };
    for set in ["esr", "physionet2012"] {
        if !folder.join(set).is_dir() {
            eprintln!("skipped: {set}, which is not in the data folder");
            continue;
        }
        let settings = DataSettings {
            set: set.into(),
            validation: 0.1,
            ..DataSettings::default()
        };
        every_party_reads_its_own(&settings, Some(&folder));
    }
}

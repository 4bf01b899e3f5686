//! Data sets: their files, and the dealing of their rows.

use super::experiments::options;
use super::files::{with_right_checksums, with_right_sums};
use super::{place, text, told};
use crate::files::collection;
use crate::files::lines::Lines;
use crate::mimic3::{self, Lists, Normaliser, Series, Task};
use crate::physionet2012::{self, Manner, Stay, Wanted};
use crate::rows::{Dealt, Part, Purpose, Rows, Side};
use crate::shards::shard::{Shard, offsets_of};
use crate::statistics::Scaling;
use crate::{DataError, SETS, Statistics, esr, medmnist, settings, table};
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::Outcome;
use selvedge_nn::Shape;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// Deals and scales what was read; training must be given numbers.
fn deal_and_scale(rows: Result<Rows, DataError>) {
    let settings = DataSettings {
        split: "iid".into(),
        groups: 1,
        ..DataSettings::default()
    };
    let dealt = told(rows).and_then(|rows| told(rows.deal(&settings, 1)));
    let loaded = dealt.map(Dealt::scale);
    for group in loaded.iter().flat_map(|loaded| &loaded.dataset.groups) {
        let values = group.samples.x1.iter().chain(&group.samples.x2);
        assert!(values.copied().all(f32::is_finite));
    }
}

pub(crate) fn medmnist(bytes: &[u8]) {
    deal_and_scale(medmnist::of_bytes(place(), Cursor::new(bytes), true));
    if let Some(repaired) = with_right_checksums(bytes) {
        deal_and_scale(medmnist::of_bytes(place(), Cursor::new(repaired), false));
    }
}

pub(crate) fn esr(bytes: &[u8]) {
    let settings = DataSettings {
        split: "recording".into(),
        ..DataSettings::default()
    };
    if let Some(lines) = told(Lines::of(place(), Cursor::new(bytes.to_vec()))) {
        deal_and_scale(esr::of_lines(&settings, place(), lines));
    }
}

pub(crate) fn stay(bytes: &[u8]) {
    if let Some(text) = text("set-a/1.txt", bytes) {
        told(Stay::parse(&text, &manner(&[], "", 1)));
        told(Stay::parse(&text, &full()));
    }
}

fn manner(derived: &[&str], vertical: &str, hours: usize) -> Manner {
    let settings = DataSettings {
        set: "physionet2012".into(),
        vertical: vertical.into(),
        derived: derived.iter().map(ToString::to_string).collect(),
        hours,
        ..DataSettings::default()
    };
    Manner::of(&settings).expect("settings of ours")
}

/// All that there can be.
fn full() -> Manner {
    manner(&["mean", "min", "max", "count", "since"], "statics-both", 6)
}

pub(crate) fn outcomes(bytes: &[u8]) {
    if let Some(text) = text("Outcomes-a.txt", bytes) {
        told(physionet2012::read_outcomes(
            &text,
            Wanted::DEATH,
            &mut BTreeMap::new(),
        ));
    }
}

pub(crate) fn physionet2012(bytes: &[u8]) {
    let (mut stays, mut outcomes) = (physionet2012::Stays::default(), BTreeMap::new());
    let archive = with_right_sums(bytes);
    let read = collection::read_archive(
        place(),
        &archive[..],
        &physionet2012::is_wanted,
        &mut |texts| {
            for text in texts {
                match text.name.contains("Outcomes") {
                    true => physionet2012::read_outcomes(&text, Wanted::DEATH, &mut outcomes)?,
                    false => stays.push(Stay::parse(&text, &full())?),
                }
            }
            Ok(())
        },
    );
    if told(read).is_some() {
        deal_and_scale(physionet2012::rows(
            place().to_owned(),
            stays,
            Some(&outcomes),
            &full(),
        ));
    }
}

pub(crate) fn series(bytes: &[u8]) {
    if let Some(text) = text("train/1_episode1_timeseries.csv", bytes) {
        for until in [48.0, f64::INFINITY] {
            let Some(series) = told(Series::parse(&text, until)) else {
                continue;
            };
            for end in [0.5, 48.0, series.last()] {
                let mut numbers = Vec::new();
                series.window(end, &mut numbers);
                assert_eq!(numbers.len(), 48 * 76);
                assert!(numbers.iter().all(|value| value.is_finite()));
            }
        }
    }
}

pub(crate) fn list(bytes: &[u8]) {
    let Some(text) = text("train_listfile.csv", bytes) else {
        return;
    };
    for task in Task::ALL {
        for is_known in [true, false] {
            let mut lists = Lists::new(task, is_known);
            if told(lists.read(&text, "train", None)).is_some()
                && told(lists.settle(place(), !is_known)).is_some()
            {
                lists.thin(7);
            }
        }
    }
}

pub(crate) fn normaliser(bytes: &[u8]) {
    told(Normaliser::parse(place(), bytes));
}

pub(crate) fn mimic3(bytes: &[u8]) {
    mimic3_task(bytes, &[Task::Death]);
}

/// The tasks whose lists have hours.
pub(crate) fn mimic3_hours(bytes: &[u8]) {
    mimic3_task(bytes, &Task::ALL[1..]);
}

fn mimic3_task(bytes: &[u8], tasks: &[Task]) {
    let columns: Vec<usize> = (0..38).collect();
    let archive = with_right_sums(bytes);
    let mut texts = Vec::new();
    let read = collection::read_archive(place(), &archive[..], &mimic3::is_wanted, &mut |some| {
        texts.extend(some);
        Ok(())
    });
    if told(read).is_none() {
        return;
    }
    for task in tasks {
        let lists = mimic3::lists_of_parts(place(), *task, &texts, None);
        let stays = told(lists).and_then(|lists| told(mimic3::Stays::new(lists, 1, false)));
        if let Some(mut stays) = stays
            && told(stays.take(&texts, &columns)).is_some()
        {
            deal_and_scale(stays.rows(place().to_owned(), &columns, None));
        }
    }
}

/// A small set, dealt as the settings say.
pub(crate) fn deal_as_set(bytes: &[u8]) {
    let parsed = options(bytes).map(|options| SETS.parse("", &options));
    let Some(experiment) = parsed.and_then(told) else {
        return;
    };
    if told(settings::check(&experiment.data)).is_none() {
        return;
    }
    let side = |from: u8| {
        let values = (from..from + 24).map(f32::from).collect();
        Side::new(Shape::Flat(1), values, Scaling::Together)
    };
    let classes = experiment.data.classes.clamp(2, 6);
    let rows = Rows {
        classes: (0..classes).map(|class| class.to_string()).collect(),
        y: (0..24).map(|row| row % classes as u32).collect(),
        ids: (0..24).map(|row| row.to_string()).collect(),
        parts: vec![Part::Open; 24],
        ..Rows::new("small", place(), [side(0), side(1)], "pairs")
    };
    if let Some(dealt) = told(rows.deal(&experiment.data, experiment.seed)) {
        let dataset = dealt.dataset;
        let held_out = dataset.validation.len() + dataset.test.len();
        assert!(dataset.training_samples() + held_out <= 24);
        assert!(dataset.groups.iter().all(|group| group.devices() > 0));
    }
}

/// One file or, with a zero between them, two that are joined.
pub(crate) fn table(bytes: &[u8]) {
    const SETTINGS: &str = "[data]\nset = \"table\"\npath = \"0\"\n[data.table]\nid = \"id\"\nlabel = \"y\"\n\
        hospital = [\"a*\", \"sex\"]\ndevice = [\"hr\", \"d*\"]\ncategorical = [\"sex\", \"dose\"]\nblank = [\"NA\"]\n\
        time = \"t\"\nvariable = \"name\"\nvalue = \"v\"\nsteps = 3\nmissing = \"carry\"\nmasks = true\nclip = true\n";
    let files: Vec<&[u8]> = bytes.splitn(2, |byte| *byte == 0).collect();
    for one_sided in ["keep", "leave-out"] {
        let option = format!("data.table.one_sided={one_sided}");
        let Some(experiment) = told(SETS.parse(SETTINGS, &[option])) else {
            unreachable!("the settings are right");
        };
        let paths: Vec<PathBuf> = (0..files.len()).map(|n| n.to_string().into()).collect();
        let open = |path: &Path| -> std::io::Result<Box<dyn table::Bytes>> {
            let number = usize::from(path.as_os_str() == "1");
            Ok(Box::new(Cursor::new(files[number].to_vec())))
        };
        let read = |purpose| {
            table::read_files(&experiment.data, (purpose, [&[]; 2]), paths.clone(), &open)
        };
        deal_and_scale(read(Purpose::Training));
        told(read(Purpose::New { labelled: false }));
    }
}

pub(crate) fn shard(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        let classes = ["a", "b", "c"].map(String::from);
        let survival = Outcome::Survival { ends: vec![1.0] };
        for outcome in [&Outcome::Class, &Outcome::Labels, &survival] {
            told(Shard::of(
                Cursor::new(bytes),
                Shape::Flat(2),
                (outcome, &classes),
            ));
        }
        told(offsets_of(Cursor::new(bytes)));
    };
    read(bytes);
    if let Some(repaired) = with_right_checksums(bytes) {
        read(&repaired);
    }
}

pub(crate) fn statistics(bytes: &[u8]) {
    if let Ok(value) = serde_json::from_slice(bytes) {
        told(Statistics::from_json(value));
    }
    let Some(statistics) = told(serde_json::from_slice::<Statistics>(bytes)) else {
        return;
    };
    statistics.fingerprint();
    for side in [&statistics.hospital, &statistics.device] {
        let mut values = [0.0, -1.5, f32::NAN, f32::MAX];
        side.apply(&mut values);
        assert!(values.iter().all(|value| !value.is_nan()));
    }
}

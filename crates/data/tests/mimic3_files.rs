//! The tasks of mimic3-benchmarks in its layout, with stays that are made up.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::Folder;
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::{Outcome, Targets};
use selvedge_data::{
    DataError, Labels, Loaded, Patients, SETS, Which, load_with_notes, read_patients,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const CHANNELS: [&str; 17] = [
    "Capillary refill rate",
    "Diastolic blood pressure",
    "Fraction inspired oxygen",
    "Glascow coma scale eye opening",
    "Glascow coma scale motor response",
    "Glascow coma scale total",
    "Glascow coma scale verbal response",
    "Glucose",
    "Heart Rate",
    "Height",
    "Mean blood pressure",
    "Oxygen saturation",
    "Respiratory rate",
    "Systolic blood pressure",
    "Temperature",
    "Weight",
    "pH",
];

/// A stay in which a heart rate was measured at these hours.
fn stay(rates: &[(f64, u32)]) -> String {
    let mut text = format!("Hours,{}\n", CHANNELS.join(","));
    for (hours, rate) in rates {
        text += &format!("{hours},{}{rate}{}\n", ",".repeat(8), ",".repeat(8));
    }
    text
}

fn put(folder: &Folder, name: &str, text: impl AsRef<str>) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text.as_ref()).unwrap();
}

/// The state of a normaliser that leaves numbers as they are.
fn unscaled() -> String {
    let [zeros, ones] = ["0.0", "1.0"].map(|number| [number; 76].join(","));
    format!("{{\"continuous_columns\":[],\"means\":[{zeros}],\"stds\":[{ones}]}}")
}

fn settings(text: &str) -> DataSettings {
    let text = format!("[data]\nset = \"mimic3\"\nsplit = \"iid\"\nvalidation = 0.0\n{text}");
    SETS.parse(&text, &[]).unwrap().data
}

#[track_caller]
fn loaded(folder: &Folder, text: &str) -> Loaded {
    load_with_notes(&settings(text), 1, Some(folder.path()))
        .unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refusal(folder: &Folder, text: &str) -> String {
    let refused = load_with_notes(&settings(text), 1, Some(folder.path()));
    refused.map(|_| ()).unwrap_err().to_string()
}

/// Some stays of in-hospital mortality, at `place`.
fn put_mortality(folder: &Folder, place: &str) {
    let mut lists = BTreeMap::from(["train", "val", "test"].map(|part| (part, String::new())));
    for number in 0..30u32 {
        let part = ["train", "train", "val", "train", "test"][number as usize % 5];
        let name = format!(
            "{}_episode{}_timeseries.csv",
            100 + number / 2,
            1 + number % 2
        );
        let mut text = stay(&[(0.0, 60 + number), (f64::from(number) * 1.75, 90)]);
        text += "47.5,1.0,,,4 Spontaneously,,,,,,,,,,,,,7.3\n";
        text += &format!("48.2,{}\n", ",".repeat(16));
        let below = if part == "test" { "test" } else { "train" };
        put(folder, &format!("{place}/{below}/{name}"), text);
        *lists.get_mut(part).unwrap() += &format!("{name},{}\n", u32::from(number % 3 == 0));
    }
    for (part, rows) in lists {
        let text = format!("stay,y_true\n{rows}");
        put(folder, &format!("{place}/{part}_listfile.csv"), text);
    }
}

/// As version 0.2.0 and all before this test have read it.
#[test]
fn mortality_is_read_to_the_same_bits_as_before() {
    const BEFORE: &str = "f016738a5e5d6c59980a66da826e677d32aea1f8f78521500b5ce616ff5d6a4f";
    let folder = Folder::new();
    put_mortality(&folder, "mimic3/in-hospital-mortality");
    let read = |text: &str| {
        let loaded = loaded(&folder, text);
        assert!(loaded.persons.iter().all(Vec::is_empty));
        loaded.dataset.fingerprint().to_string()
    };
    assert_eq!(read("groups = 3"), BEFORE);
    // Other tasks beside it do not matter, nor do their normalisers; nor does an hour that is the same in all rows.
    put(&folder, "mimic3/decomp_normalizer.json", unscaled());
    put_hours(
        &folder,
        "mimic3/length-of-stay",
        &[("1_episode1", "train", &[(5.0, "1.0")])],
    );
    put_hours(
        &folder,
        "mimic3/multitask",
        &[("100_episode1", "train", &[(5.0, "1.0")])],
    );
    assert_eq!(read("groups = 3\noutcome = \"death\""), BEFORE);
    let list = folder
        .path()
        .join("mimic3/in-hospital-mortality/val_listfile.csv");
    let text = fs::read_to_string(&list).unwrap();
    let with_hours = text
        .replace("stay,", "stay,period_length,")
        .replace(".csv,", ".csv,48.0,");
    fs::write(&list, with_hours).unwrap();
    assert_eq!(read("groups = 3"), BEFORE);
}

/// A stay's name, its part, and hours with what is known then.
type Stay<'a> = (&'a str, &'a str, &'a [(f64, &'a str)]);

/// A task at whose hours something is known. The heart rate is 100 in the first half hour, and 100 more than the hour at
/// the end of each hour that is listed.
fn put_hours(folder: &Folder, place: &str, stays: &[Stay<'_>]) {
    let mut lists = BTreeMap::from(["train", "val", "test"].map(|part| (part, String::new())));
    for (stay_name, part, hours) in stays {
        let name = format!("{stay_name}_timeseries.csv");
        let mut rates = vec![(0.5, 100)];
        rates.extend(hours.iter().map(|(hour, _)| (*hour, 100 + *hour as u32)));
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        let below = if *part == "test" { "test" } else { "train" };
        put(folder, &format!("{place}/{below}/{name}"), stay(&rates));
        for (hour, known) in *hours {
            *lists.get_mut(part).unwrap() += &format!("{name},{hour:.6},{known}\n");
        }
    }
    for (part, rows) in lists {
        let text = format!("stay,period_length,y_true\n{rows}");
        put(folder, &format!("{place}/{part}_listfile.csv"), text);
    }
    put(folder, &format!("{place}/normalizer.json"), unscaled());
}

/// The heart rate of each hour of each sample, below 0 where it was not measured then. It is on the device's side.
fn rates(samples: &Samples) -> Vec<Vec<f32>> {
    let rate = |step: &[f32]| match step[59 + 8 - 38] {
        1.0 => step[50 - 38],
        _ => -step[50 - 38],
    };
    let of_sample = |sample: &[f32]| sample.chunks(38).map(rate).collect();
    samples.x2.chunks(48 * 38).map(of_sample).collect()
}

/// So many hours without a measurement, then these.
fn then(hours: usize, rate: i32, rest: &[f32]) -> Vec<f32> {
    let mut all = vec![-rate as f32; hours];
    all.extend_from_slice(rest);
    all
}

fn numbers(y: &Targets) -> Vec<f32> {
    y.numbers().to_vec()
}

const STAYS: &[Stay<'static>] = &[
    (
        "11_episode1",
        "train",
        &[(6.0, "4.500000"), (5.0, "5.500000")],
    ),
    ("11_episode2", "train", &[(7.0, "-0.000001")]),
    ("2_episode1", "train", &[(50.0, "100.25")]),
    ("3_episode1", "val", &[(5.0, "12.0")]),
    ("4_episode1", "test", &[(5.0, "0.5"), (6.0, "1.5")]),
];

#[test]
fn hours_of_a_stay_are_samples_that_look_back() {
    let folder = Folder::new();
    put_hours(&folder, "mimic3/length-of-stay", STAYS);
    let loaded = loaded(&folder, "groups = 1\noutcome = \"stay\"");
    let dataset = &loaded.dataset;
    assert_eq!(dataset.classes, ["hours until the stay ends"]);
    assert!(matches!(dataset.outcome, Outcome::Quantity { .. }));
    let training = &dataset.groups[0].samples;
    assert_eq!(numbers(&training.y), [5.5, 4.5, 0.0, 100.25]);
    assert_eq!(numbers(&dataset.validation.y), [12.0]);
    assert_eq!(numbers(&dataset.test.y), [0.5, 1.5]);
    // Before admission the rate is normal, and what comes after the sample is not known yet.
    let expected = [
        then(43, 86, &[100.0, -100.0, -100.0, -100.0, 105.0]),
        then(42, 86, &[100.0, -100.0, -100.0, -100.0, 105.0, 106.0]),
        then(
            41,
            86,
            &[100.0, -100.0, -100.0, -100.0, -100.0, -100.0, 107.0],
        ),
        then(47, 100, &[150.0]),
    ];
    assert_eq!(rates(training), expected);
    // A device is a patient: the first one has two stays.
    let [a, b, c, other] = loaded.persons[0][..] else {
        panic!("{:?}", loaded.persons);
    };
    assert!(a == b && b == c && c != other);
    assert_eq!(dataset.devices(), 2);
}

#[test]
fn decompensation_is_a_class_at_each_hour() {
    let folder = Folder::new();
    let stays: &[Stay<'_>] = &[
        ("1_episode1", "train", &[(5.0, "0"), (6.0, "1")]),
        ("2_episode1", "train", &[(5.0, "0")]),
        ("3_episode1", "test", &[(9.0, "1")]),
    ];
    put_hours(&folder, "decompensation", stays);
    let loaded = loaded(&folder, "groups = 1\noutcome = \"decompensation\"");
    let dataset = &loaded.dataset;
    assert_eq!(
        dataset.classes,
        ["no death within 24 hours", "death within 24 hours"]
    );
    assert_eq!(dataset.groups[0].samples.y.classes(), [0, 1, 0]);
    assert_eq!(dataset.test.y.classes(), [1]);
    assert_eq!(dataset.devices(), 2);
}

/// A header with so many labels.
fn phenotypes(count: usize) -> String {
    let names: Vec<String> = (0..count)
        .map(|n| format!("Disorder {n}; any (adult)"))
        .collect();
    format!("stay,period_length,{}\n", names.join(","))
}

/// 25 labels, of which one is 1.
fn labels(one: usize) -> String {
    let labels: Vec<&str> = (0..25).map(|n| if n == one { "1" } else { "0" }).collect();
    labels.join(",")
}

fn put_phenotyping(folder: &Folder, place: &str) {
    let header = phenotypes(25);
    let list = |rows: &[(&str, f64, usize)]| {
        let row = |(name, hours, one): &(&str, f64, usize)| {
            format!("{name}_timeseries.csv,{hours:.6},{}\n", labels(*one))
        };
        header.clone() + &rows.iter().map(row).collect::<String>()
    };
    let training = [
        ("1_episode1", 60.5, 3),
        ("1_episode2", 2.0, 24),
        ("2_episode1", 49.0, 0),
    ];
    put(
        folder,
        &format!("{place}/train_listfile.csv"),
        list(&training),
    );
    let test = list(&[("3_episode1", 10.25, 7)]);
    put(folder, &format!("{place}/test_listfile.csv"), test);
    let series: [(&str, &[(f64, u32)]); 4] = [
        ("train/1_episode1", &[(0.5, 70), (20.2, 80), (60.4, 90)]),
        ("train/1_episode2", &[(0.0, 71), (1.0, 72), (1.5, 73)]),
        ("train/2_episode1", &[]),
        ("test/3_episode1", &[(10.2, 74)]),
    ];
    for (name, rates) in series {
        put(
            folder,
            &format!("{place}/{name}_timeseries.csv"),
            stay(rates),
        );
    }
    put(folder, &format!("{place}/ph_normalizer.json"), unscaled());
}

#[test]
fn phenotypes_are_labels_of_the_last_48_hours() {
    let folder = Folder::new();
    put_phenotyping(&folder, "mimic3/phenotyping");
    let text = "groups = 1\noutcome = \"phenotyping\"";
    let loaded = loaded(&folder, text);
    let dataset = &loaded.dataset;
    assert_eq!(
        (dataset.classes.len(), &dataset.outcome),
        (25, &Outcome::Labels)
    );
    assert_eq!(dataset.classes[24], "Disorder 24; any (adult)");
    let parsed = SETS.parse(&format!("[data]\nset = \"mimic3\"\n{text}"), &[]);
    let combined = format!("{:?}", parsed.unwrap().model.combined);
    assert!(combined.contains("25"), "{combined}");
    let training = &dataset.groups[0].samples;
    let one_of = |y: &[f32]| {
        assert_eq!(y.iter().sum::<f32>(), 1.0);
        y.iter().position(|y| *y == 1.0).unwrap()
    };
    let ones: Vec<usize> = training.y.numbers().chunks(25).map(one_of).collect();
    assert_eq!(ones, [3, 24, 0]);
    // 60.5 hours are 61 that have begun: the first is the fourteenth.
    let mut expected = then(7, 70, &[80.0]);
    expected.extend(then(39, 80, &[90.0]));
    let expected = [expected, then(46, 86, &[72.0, 73.0]), then(48, 86, &[])];
    assert_eq!(rates(training), expected);
    assert_eq!(rates(&dataset.test), [then(47, 86, &[74.0])]);
    let persons = &loaded.persons[0];
    assert!(persons[0] == persons[1] && persons[1] != persons[2]);
    assert_eq!(dataset.devices(), 2);
}

#[test]
fn a_patient_is_on_one_side_of_every_split() {
    let folder = Folder::new();
    let names: Vec<String> = (0..36)
        .map(|n| format!("{}_episode{}", n / 2, n % 2))
        .collect();
    let stays: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), "train", &[(5.0, "0"), (6.0, "1")][..]))
        .chain([("99_episode1", "test", &[(5.0, "1")][..])])
        .collect();
    put_hours(&folder, "mimic3/decompensation", &stays);
    // Without a list of its own, validation is dealt from training.
    let list = folder.path().join("mimic3/decompensation/val_listfile.csv");
    fs::remove_file(list).unwrap();
    let text = "groups = 3\nvalidation = 0.34\noutcome = \"decompensation\"";
    for split in ["iid", "ramp", "dirichlet"] {
        let text = text.to_owned() + &format!("\nsplit = \"{split}\"");
        let text = format!("[data]\nset = \"mimic3\"\n{text}");
        let settings = SETS.parse(&text, &[]).unwrap().data;
        let loaded = load_with_notes(&settings, 1, Some(folder.path())).unwrap();
        let mut seen = BTreeSet::new();
        for persons in &loaded.persons {
            let own: BTreeSet<u32> = persons.iter().copied().collect();
            assert!(own.iter().all(|person| seen.insert(*person)), "{split}");
            let test = persons.len() == 1;
            assert!(
                test || persons.len() == 4 * own.len(),
                "{split}: {persons:?}"
            );
        }
        assert!(!loaded.dataset.validation.y.is_empty());
        let patients = seen.len() - 1 - loaded.dataset.validation.len() / 4;
        assert_eq!(loaded.dataset.devices(), patients);
    }
    // Nor may the lists tear one apart.
    put_hours(
        &folder,
        "torn",
        &[
            ("1_episode1", "train", &[(5.0, "0")]),
            ("1_episode2", "test", &[(5.0, "1")]),
        ],
    );
    let message = refusal(
        &folder,
        "groups = 1\npath = \"torn\"\noutcome = \"decompensation\"",
    );
    assert!(message.contains("belong to one patient"), "{message}");
    assert!(
        message.contains("train/1_episode1_timeseries.csv@5"),
        "{message}"
    );
}

#[test]
fn fewer_hours_can_be_kept() {
    let folder = Folder::new();
    let known: Vec<String> = (0..100).map(|hour| format!("{}.5", 200 - hour)).collect();
    let hours: Vec<(f64, &str)> = (5..105)
        .map(f64::from)
        .zip(known.iter().map(String::as_str))
        .collect();
    let names: Vec<String> = (0..20).map(|n| format!("{n}_episode1")).collect();
    let part = |n: usize| if n < 15 { "train" } else { "test" };
    let stays: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, name)| (name.as_str(), part(n), &hours[..]))
        .collect();
    put_hours(&folder, "length-of-stay", &stays);
    let text = "groups = 1\noutcome = \"stay\"";
    assert_eq!(loaded(&folder, text).dataset.training_samples(), 1_500);
    let thinned = loaded(&folder, &format!("{text}\nevery = 10"));
    let note = "200 of 2000 samples are kept, one in 10 hours of each stay (data.every)";
    assert_eq!(thinned.notes, [note]);
    let training = &thinned.dataset.groups[0].samples;
    assert_eq!((training.len(), thinned.dataset.test.len()), (150, 50));
    let mut firsts = BTreeSet::new();
    for (rates, known) in rates(training)
        .chunks(10)
        .zip(training.y.numbers().chunks(10))
    {
        let first = rates[0][47];
        for (at, (rates, known)) in rates.iter().zip(known).enumerate() {
            let hour = rates[47] - 100.0;
            assert_eq!(*known, 205.5 - hour);
            assert_eq!(rates[47], first + 10.0 * at as f32);
        }
        firsts.insert(first as u32);
    }
    assert!(firsts.len() > 3, "all stays begin at {firsts:?}");
    let message = refusal(&folder, "groups = 1\nevery = 10");
    assert!(message.contains("data.every = 10"), "{message}");
}

#[test]
fn what_is_wrong_with_a_list_is_told() {
    let refused = |outcome: &str, header: &str, rows: &str, parts: &[&str]| {
        let folder = Folder::new();
        put_hours(&folder, "mine", STAYS);
        put(
            &folder,
            "mine/train_listfile.csv",
            format!("{header}\n{rows}"),
        );
        let text = format!("groups = 1\npath = \"mine\"\noutcome = \"{outcome}\"");
        let message = refusal(&folder, &text);
        for part in parts.iter().chain(&["mine/train_listfile.csv"]) {
            assert!(message.contains(part), "{part}: {message}");
        }
    };
    let hours = "stay,period_length,y_true";
    let row = "11_episode1_timeseries.csv";
    let many = phenotypes(25);
    let advice =
        "data.outcome = \"stay\" is for length-of-stay, \"decompensation\" for decompensation";
    // Lists of other tasks.
    refused(
        "death",
        many.trim(),
        "",
        &["line 1", "stay,y_true", "\"phenotyping\""],
    );
    refused(
        "death",
        hours,
        &format!("{row},48,1\n{row},49,0\n"),
        &["line 3", "period_length", "49", "length-of-stay"],
    );
    refused(
        "phenotyping",
        hours,
        "",
        &["line 1", "25 phenotypes", advice],
    );
    refused(
        "phenotyping",
        "stay,y_true",
        "",
        &["line 1", "data.outcome = \"death\""],
    );
    refused(
        "stay",
        "stay,y_true",
        "",
        &["line 1", hours, "data.outcome = \"death\""],
    );
    refused(
        "stay",
        many.trim(),
        "",
        &["line 1", hours, "data.outcome = \"phenotyping\""],
    );
    refused(
        "decompensation",
        hours,
        &format!("{row},5,24.5\n"),
        &["line 2", "y_true", "24.5", "data.outcome = \"stay\""],
    );
    refused(
        "stay",
        hours,
        &format!("{row},5,0\n{row},6,1\n"),
        &[
            "line 2",
            "y_true",
            "hours, like 23.5",
            "data.outcome = \"decompensation\"",
        ],
    );
    // Values.
    refused(
        "stay",
        hours,
        &format!("{row},5,-3\n"),
        &["line 2", "y_true", "-3", "hours, 0 or more"],
    );
    refused(
        "stay",
        hours,
        &format!("{row},5,\n"),
        &["line 2", "y_true", "hours, 0 or more"],
    );
    refused(
        "stay",
        hours,
        &format!("{row},0,3.5\n"),
        &["line 2", "period_length", "hours since admission, above 0"],
    );
    refused(
        "stay",
        hours,
        &format!("{row},soon,3.5\n"),
        &["line 2", "period_length", "soon"],
    );
    refused(
        "stay",
        hours,
        "11_episode1.csv,5,3.5\n",
        &[
            "line 2",
            "stay",
            "11_episode1.csv",
            "10114_episode1_timeseries.csv",
        ],
    );
    refused(
        "stay",
        hours,
        &format!("{row},5\n"),
        &["line 2", "2 values: expected 3"],
    );
    refused(
        "phenotyping",
        phenotypes(24).trim(),
        "",
        &["line 1", "the names of 25 phenotypes"],
    );
    let two = format!("{row},60,{}\n", labels(3).replace('1', "2"));
    refused(
        "phenotyping",
        many.trim(),
        &two,
        &["line 2", "Disorder 3; any (adult)", "2", "0 or 1"],
    );
}

#[test]
fn lists_that_contradict_the_folder_are_refused() {
    let refused = |change: &dyn Fn(&Folder), text: &str, parts: &[&str]| {
        let folder = Folder::new();
        put_hours(&folder, "mimic3/length-of-stay", STAYS);
        change(&folder);
        let message = refusal(&folder, &format!("groups = 1\n{text}"));
        for part in parts {
            assert!(message.contains(part), "{part}: {message}");
        }
    };
    let stay = "outcome = \"stay\"";
    let list = "mimic3/length-of-stay/train_listfile.csv";
    let rows = |rows: &str| format!("stay,period_length,y_true\n{rows}");
    let twice = rows("11_episode1_timeseries.csv,5,3.5\n11_episode1_timeseries.csv,5.0,3.5\n");
    refused(
        &|folder| put(folder, list, &twice),
        stay,
        &["11_episode1_timeseries.csv is listed twice at 5 hours"],
    );
    let stranger = rows("12_episode1_timeseries.csv,5,3.5\n");
    refused(
        &|folder| put(folder, list, &stranger),
        stay,
        &["train/12_episode1_timeseries.csv is listed but not there"],
    );
    // Another task's folder, as the usual place and by its path.
    refused(
        &|_| (),
        "",
        &[
            "no train_listfile.csv",
            "in-hospital-mortality",
            "data.outcome = \"stay\" is for length-of-stay",
        ],
    );
    let path = "path = \"mimic3/length-of-stay\"\noutcome = \"decompensation\"";
    refused(
        &|_| (),
        path,
        &[
            "train_listfile.csv: a list of length-of-stay",
            "data.outcome = \"stay\"",
        ],
    );
    // Lists of other labels than the first.
    let other = |folder: &Folder| {
        put_phenotyping(folder, "phenotyping");
        let text = phenotypes(25).replace("Disorder 7;", "Order 7;");
        put(folder, "phenotyping/test_listfile.csv", text);
    };
    refused(
        &other,
        "outcome = \"phenotyping\"",
        &[
            "test_listfile.csv",
            "line 1",
            "column 10",
            "Order 7",
            "Disorder 7",
        ],
    );
}

/// A model of the set in a folder, which reads new stays.
struct Model {
    settings: DataSettings,
    trained: Loaded,
}

impl Model {
    fn of(folder: &Folder, text: &str) -> Self {
        Model {
            settings: settings(text),
            trained: loaded(folder, text),
        }
    }

    fn read(&self, path: &Path, labels: Labels) -> Result<Patients, DataError> {
        let files: Vec<PathBuf> = vec![path.to_owned()];
        read_patients(
            &self.settings,
            &self.trained.inputs(),
            &files,
            labels,
            Which::Test,
        )
    }
}

#[test]
fn new_stays_are_looked_back_upon_at_listed_hours_or_at_the_last() {
    let folder = Folder::new();
    put_hours(&folder, "mimic3/length-of-stay", STAYS);
    let new = Model::of(&folder, "groups = 1\noutcome = \"stay\"");
    let test = &new.trained.dataset.test;
    let whole = folder.path().join("mimic3/length-of-stay");
    let ids = [
        "test/4_episode1_timeseries.csv@5",
        "test/4_episode1_timeseries.csv@6",
    ];
    let known = new.read(&whole, Labels::Needed).unwrap();
    assert_eq!(
        (&known.samples, &known.ids[..]),
        (test, &ids.map(String::from)[..])
    );
    assert_eq!(known.persons.len(), 2);
    assert_eq!(known.persons[0], known.persons[1]);
    let unknown = new.read(&whole, Labels::Ignored).unwrap();
    assert_eq!(
        (&unknown.samples.x2, &unknown.ids),
        (&known.samples.x2, &known.ids)
    );
    assert!(unknown.samples.y.numbers().iter().all(|y| y.is_nan()));
    // A list of hours alone, which names one of two stays; the other one is taken as it is now.
    let rows = stay(&[(0.5, 70), (3.0, 80), (8.25, 90)]);
    put(&folder, "new/1_episode1_timeseries.csv", &rows);
    put(&folder, "new/2_episode1_timeseries.csv", &rows);
    put(
        &folder,
        "new/listfile.csv",
        "stay,period_length\n2_episode1_timeseries.csv,3\n",
    );
    let asked = new
        .read(&folder.path().join("new"), Labels::Ignored)
        .unwrap();
    assert_eq!(
        asked.ids,
        [
            "/1_episode1_timeseries.csv@8.25",
            "/2_episode1_timeseries.csv@3"
        ]
    );
    let expected = [
        then(
            39,
            86,
            &[70.0, -70.0, 80.0, -80.0, -80.0, -80.0, -80.0, -80.0, 90.0],
        ),
        then(45, 86, &[70.0, -70.0, 80.0]),
    ];
    assert_eq!(rates(&asked.samples), expected);
    let single = folder.path().join("new/1_episode1_timeseries.csv");
    let single = new.read(&single, Labels::Ignored).unwrap();
    assert_eq!(rates(&single.samples), expected[..1]);
    // Nobody knows what became of them.
    let message = |path: &str| {
        let read = new.read(&folder.path().join(path), Labels::Needed);
        read.map(|_| ()).unwrap_err().to_string()
    };
    assert!(message("new").contains("the header stay,period_length,y_true"));
    assert!(message("new/1_episode1_timeseries.csv").contains("no listfile.csv"));
    let text = "stay,period_length,y_true\n2_episode1_timeseries.csv,3,1.5\n";
    put(&folder, "new/listfile.csv", text);
    let known = new
        .read(&folder.path().join("new"), Labels::Needed)
        .unwrap();
    assert_eq!(numbers(&known.samples.y), [1.5]);
    assert_eq!(rates(&known.samples), expected[1..]);
    let again = text.to_owned() + "2_episode1_timeseries.csv,3,2.5\n";
    put(&folder, "new/listfile.csv", again);
    assert!(message("new").contains("listed twice at 3 hours, with different outcomes"));
}

#[test]
fn hours_that_are_left_out_of_training_can_be_asked_about() {
    let folder = Folder::new();
    put_hours(&folder, "mimic3/length-of-stay", STAYS);
    let known: Vec<String> = (0..40).map(|hour| format!("{hour}.5")).collect();
    let hours: Vec<(f64, &str)> = (5..45)
        .map(f64::from)
        .zip(known.iter().map(String::as_str))
        .collect();
    let stays = [
        ("1_episode1", "train", &hours[..]),
        ("2_episode1", "test", &hours[..]),
    ];
    put_hours(&folder, "mimic3/length-of-stay", &stays);
    let new = Model::of(&folder, "groups = 1\noutcome = \"stay\"\nevery = 8");
    let whole = folder.path().join("mimic3/length-of-stay");
    let known = new.read(&whole, Labels::Needed).unwrap();
    assert_eq!(&known.samples, &new.trained.dataset.test);
    assert_eq!((known.ids.len(), known.complete), (5, false));
    let asked = new.read(&whole.join("test"), Labels::Ignored).unwrap();
    // Their list lies beside the folder: without one, a stay is one sample.
    assert_eq!(
        asked.ids,
        [
            "test/2_episode1_timeseries.csv@44",
            "test/4_episode1_timeseries.csv@6"
        ]
        .map(|id| id.trim_start_matches("test"))
    );
    let asked = new.read(&whole, Labels::Ignored).unwrap();
    assert_eq!((asked.ids.len(), asked.complete), (41, true));
}

#[test]
fn new_stays_have_the_phenotypes_of_training() {
    let folder = Folder::new();
    put_phenotyping(&folder, "phenotyping");
    let new = Model::of(&folder, "groups = 1\noutcome = \"phenotyping\"");
    let whole = folder.path().join("phenotyping");
    let known = new.read(&whole, Labels::Needed).unwrap();
    assert_eq!(&known.samples, &new.trained.dataset.test);
    assert_eq!(known.ids, ["test/3_episode1_timeseries.csv"]);
    let unknown = new.read(&whole.join("test"), Labels::Ignored).unwrap();
    assert_eq!(unknown.samples.x2, known.samples.x2);
    assert_eq!(unknown.samples.y.numbers().len(), 25);
    let list = phenotypes(25).replace("Disorder 7;", "Order 7;");
    let list = list + &format!("3_episode1_timeseries.csv,10.25,{}\n", labels(7));
    put(&folder, "phenotyping/test/listfile.csv", list);
    let refused = new.read(&whole.join("test"), Labels::Needed);
    let message = refused.map(|_| ()).unwrap_err().to_string();
    assert!(
        message.contains("Order 7") && message.contains("as in training"),
        "{message}"
    );
}

#[test]
fn new_stays_of_mortality_are_their_first_48_hours() {
    let folder = Folder::new();
    put_mortality(&folder, "mimic3/in-hospital-mortality");
    let new = Model::of(&folder, "groups = 1");
    let whole = folder.path().join("mimic3");
    let known = new.read(&whole, Labels::Needed).unwrap();
    assert_eq!(&known.samples, &new.trained.dataset.test);
    let unknown = new.read(&whole, Labels::Ignored).unwrap();
    assert_eq!(unknown.samples.x2, known.samples.x2);
    assert!(known.persons.is_empty() && known.ids[0] == "test/102_episode1_timeseries.csv");
}

//! `mimic3`: in-hospital mortality in the layout of mimic3-benchmarks. 48 hours of 17 channels, as 48 × 76 numbers.
//!
//! The benchmark's discretiser: hour `⌊t − 10⁻⁶⌋` gets the last value of each channel; an hour without one takes the
//! value before, or the channel's normal value where there is none. Five channels are categories, one-hot by their
//! exact text. Behind the values stand 17 masks: what was really measured. Its normaliser scales the twelve other
//! channels, by the numbers of a file if one is there (`*normalizer*.json`), else by what training rows show.
//!
//! The hospital holds columns 0 to 37 and the device 38 to 75, or with `data.vertical = "channel"` the first and the
//! last channels whole, with their masks.

use crate::DataError;
use crate::files::collection::{self, Text, file_of};
#[cfg(feature = "fuzz")]
use crate::fuzz::{self, Target};
use crate::inputs::Inputs;
use crate::rows::{Part, Purpose, Rows, Side, UNLABELLED};
use crate::sets::{DataSet, MORTALITY_TARGETS, Source, Twin, mortality};
use crate::settings::{find_file, vertical};
use crate::statistics::{Scale, Scaling};
use rayon::prelude::*;
use selvedge_core::experiment::{DataSettings, Usual};
use selvedge_nn::Shape;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const ORIGIN: &str = "MIMIC-III is credentialed, and mimic3-benchmarks makes this layout of it: `selvedge data fetch mimic3` says how; \
                      `--set data.set=synthetic-mimic3` runs without files";

const STEPS: usize = 48;

/// A channel: its name, its normal value, and its categories if it has any.
struct Channel {
    name: &'static str,
    normal: &'static str,
    categories: Vec<&'static str>,
}

/// In the order of the benchmark's columns.
static CHANNELS: LazyLock<Vec<Channel>> = LazyLock::new(|| {
    let channel = |line: &'static str| {
        let mut fields = line.split(',');
        let mut next = || fields.next().unwrap_or_default();
        let (name, normal, categories) = (next(), next(), next());
        let categories = categories
            .split('|')
            .filter(|category| !category.is_empty());
        Channel {
            name,
            normal,
            categories: categories.collect(),
        }
    };
    let lines = include_str!("mimic3/channels.csv").lines().skip(1);
    lines.map(channel).collect()
});

impl Channel {
    /// Columns that its values take.
    fn width(&self) -> usize {
        self.categories.len().max(1)
    }

    /// Writes a value to its columns.
    fn write(&self, value: &str, columns: &mut [f32]) -> Result<(), &'static str> {
        if self.categories.is_empty() {
            columns[0] = value
                .trim()
                .parse()
                .ok()
                .filter(|v: &f32| v.is_finite())
                .ok_or("a number")?;
            return Ok(());
        }
        let category = self.categories.iter().position(|c| *c == value);
        let category = category.ok_or("one of the benchmark's categories for this channel")?;
        columns.fill(0.0);
        columns[category] = 1.0;
        Ok(())
    }
}

/// Columns of all values, and with the masks.
const VALUES: usize = 59;
const WIDTH: usize = VALUES + 17;

/// With `data.vertical = "channel"` the hospital holds so many channels.
const HOSPITAL_CHANNELS: usize = 6;

/// Where a channel's columns begin.
fn begins(channel: usize) -> usize {
    CHANNELS[..channel].iter().map(Channel::width).sum()
}

/// The benchmark's names of the columns.
fn names() -> Vec<String> {
    let values = CHANNELS
        .iter()
        .flat_map(|channel| match &channel.categories[..] {
            [] => vec![channel.name.to_owned()],
            categories => categories
                .iter()
                .map(|c| format!("{}->{c}", channel.name))
                .collect(),
        });
    let masks = CHANNELS
        .iter()
        .map(|channel| format!("mask->{}", channel.name));
    values.chain(masks).collect()
}

pub(crate) static SET: DataSet = DataSet {
    verticals: &["half", "channel"],
    has_columns: true,
    usual: |_| Usual {
        rows: Some(21_000),
        ..mortality()
    },
    twins: &[Twin {
        name: "synthetic-mimic3",
        hospital: Shape::Steps(48, 38),
        device: Shape::Steps(48, 38),
        classes: 2,
        devices: 1_468,
    }],
    targets: MORTALITY_TARGETS,
    #[cfg(feature = "fuzz")]
    fuzz: &[
        Target::new("mimic3_stay", fuzz::sets::discretise, "csv"),
        Target::new("mimic3_list", fuzz::sets::list, "csv"),
        Target::new("mimic3_normaliser", fuzz::sets::normaliser, "json").up_to(8 << 10),
        Target::new("mimic3", fuzz::sets::mimic3, "csv").up_to(16 << 10),
    ],
    ..DataSet::new("mimic3", Source::Files { read, read_new })
};

/// Reads the set.
fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Rows, DataError> {
    let hospital_columns = hospital_columns(settings)?;
    let usual = ["mimic3", "in-hospital-mortality", "mimic3-demo"];
    let found = find_file("MIMIC-III", settings, data_dir, &usual, ORIGIN)?;
    let (path, normaliser) = archive_and_normaliser(&found)?;
    let (mut stays, mut lists) = (Stays::default(), Vec::new());
    collection::read(&path, &is_wanted, &mut |texts| {
        take(texts, &hospital_columns, &mut stays, &mut lists)
    })?;
    rows(path, stays, &lists, &hospital_columns, normaliser)
}

/// Reads stays that training has not seen: a task folder or its archive, any folder of them, or single files. Those who
/// are compared with what became of them stand in a list, `listfile.csv` or that of a part.
fn read_new(
    settings: &DataSettings,
    _: &Inputs,
    paths: &[PathBuf],
    purpose: Purpose,
) -> Result<Rows, DataError> {
    let hospital_columns = hospital_columns(settings)?;
    let labelled = purpose == Purpose::New { labelled: true };
    let wanted = |name: &str| is_stay(name) || (labelled && is_list(name));
    let (mut stays, mut lists) = (Stays::default(), Vec::new());
    for path in paths {
        let mut take = |texts| take(texts, &hospital_columns, &mut stays, &mut lists);
        collection::read_new((path, "csv"), &wanted, &is_stay, &mut take)?;
    }
    let first = paths.first().cloned().unwrap_or_default();
    if let Some(twice) = stays.twice {
        return Err(DataError::file(
            first,
            format!("{twice} is in it twice: expected every stay once"),
        ));
    }
    let listed = match labelled {
        true => listed_new(&first, &stays, &lists)?,
        false => {
            let all = stays.places.keys();
            all.map(|key| (key.clone(), (UNLABELLED, part_of(key))))
                .collect()
        }
    };
    rows_of(first, stays, listed, &hospital_columns, None)
}

/// The stays that any list names, wherever their files lie.
fn listed_new(file: &Path, stays: &Stays, lists: &[Text]) -> Result<Listed, DataError> {
    let problem = |problem: String| DataError::file(file, problem);
    if lists.is_empty() {
        return Err(problem(
            "no listfile.csv in it: expected one that says what became of each stay".into(),
        ));
    }
    let by_file: BTreeMap<&str, &String> =
        stays.places.keys().map(|key| (file_of(key), key)).collect();
    let mut listed = Listed::new();
    for list in lists {
        let (folder, part) = match file_of(&list.name) {
            "train_listfile.csv" => ("train", Some(Part::Training)),
            "val_listfile.csv" => ("train", Some(Part::Validation)),
            "test_listfile.csv" => ("test", Some(Part::Test)),
            _ => (folder_of(&list.name), None),
        };
        for (stay, died) in read_list(list)? {
            let beside = stays.places.get_key_value(&format!("{folder}/{stay}"));
            let found = beside.map(|(key, _)| key);
            let Some(key) = found.or_else(|| by_file.get(&stay[..]).copied()) else {
                return Err(problem(format!(
                    "{stay} is listed but not there: expected its file"
                )));
            };
            // Lists in the folders of the parts repeat those beside them, and know less.
            let (before, its_part) = *listed
                .entry(key.clone())
                .or_insert((died, part.unwrap_or(part_of(key))));
            if before != died {
                return Err(problem(format!(
                    "{stay} is listed twice, with different outcomes: expected one"
                )));
            }
            listed.insert(key.clone(), (died, part.unwrap_or(its_part)));
        }
    }
    Ok(listed)
}

fn hospital_columns(settings: &DataSettings) -> Result<Vec<usize>, DataError> {
    Ok(match vertical(settings, &SET)? {
        "channel" => (0..begins(HOSPITAL_CHANNELS))
            .chain(VALUES..VALUES + HOSPITAL_CHANNELS)
            .collect(),
        _ => (0..WIDTH / 2).collect(),
    })
}

/// Takes in some files: stays, and lists.
fn take(
    texts: Vec<Text>,
    hospital_columns: &[usize],
    stays: &mut Stays,
    lists: &mut Vec<Text>,
) -> Result<(), DataError> {
    let parsed: Result<Vec<Parsed>, DataError> = texts
        .par_iter()
        .map(|text| match is_list(&text.name) {
            true => Ok(None),
            false => Ok(Some((key_of(&text.name), discretise(text)?))),
        })
        .collect();
    for (key, values) in parsed?.into_iter().flatten() {
        stays.push(key, &values, hospital_columns);
    }
    lists.extend(texts.into_iter().filter(|text| is_list(&text.name)));
    Ok(())
}

/// The columns that are not the hospital's.
fn others(hospital_columns: &[usize]) -> impl Iterator<Item = usize> {
    (0..WIDTH).filter(|c| !hospital_columns.contains(c))
}

/// All stays as they come: where each is, and their numbers, side by side.
#[derive(Default)]
pub(crate) struct Stays {
    places: BTreeMap<String, u32>,
    twice: Option<String>,
    hospital: Vec<f32>,
    device: Vec<f32>,
}

impl Stays {
    /// Of files with the same name the last one counts; new patients may not have any.
    pub(crate) fn push(&mut self, key: String, values: &[f32], hospital_columns: &[usize]) {
        let place = self.hospital.len() / (STEPS * hospital_columns.len());
        if self.places.insert(key.clone(), place as u32).is_some() {
            self.twice = Some(key);
        }
        for step in values.chunks_exact(WIDTH) {
            let hospital = hospital_columns.iter().map(|c| step[*c]);
            self.hospital.extend(hospital);
            self.device
                .extend(others(hospital_columns).map(|c| step[c]));
        }
    }
}

/// A stay's key and its numbers, or nothing for a list.
type Parsed = Option<(String, Vec<f32>)>;

/// A folder may hold the archive as it was packed, and beside it what the benchmark's normaliser saved.
fn archive_and_normaliser(found: &Path) -> Result<(PathBuf, Option<Normaliser>), DataError> {
    let folder = if found.is_dir() {
        found
    } else {
        found.parent().unwrap_or(found)
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    files.sort();
    let named = |parts: &[&str]| {
        files.iter().find(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            parts.iter().all(|part| name.contains(part))
        })
    };
    let normaliser = match named(&["normalizer", ".json"]) {
        Some(file) => Some(Normaliser::read(file)?),
        None => None,
    };
    let has_lists = folder.join("in-hospital-mortality").is_dir()
        || folder.join("train_listfile.csv").is_file();
    let path = match (found.is_dir() && !has_lists)
        .then(|| named(&[".tar"]))
        .flatten()
    {
        Some(archive) => archive.clone(),
        None => found.to_owned(),
    };
    Ok((path, normaliser))
}

/// What the benchmark's normaliser saved.
#[derive(Deserialize)]
pub(crate) struct Normaliser {
    continuous_columns: Vec<usize>,
    means: Vec<f64>,
    stds: Vec<f64>,
}

impl Normaliser {
    fn read(file: &Path) -> Result<Self, DataError> {
        let bytes = std::fs::read(file).map_err(|source| DataError::io(file, source))?;
        Self::parse(file, &bytes)
    }

    /// Reads and checks what stands in `file`.
    pub(crate) fn parse(file: &Path, bytes: &[u8]) -> Result<Self, DataError> {
        let problem = |problem: String| DataError::file(file, problem);
        let found: Normaliser = serde_json::from_slice(bytes).map_err(|e| {
            problem(format!(
                "not a normaliser's state: {e}; expected continuous_columns, means and stds"
            ))
        })?;
        let finite = |values: &[f64]| values.len() == WIDTH && values.iter().all(|v| v.is_finite());
        let positive = |c: &usize| found.stds.get(*c).is_some_and(|std| *std > 0.0);
        let deviations = found.continuous_columns.iter().all(positive);
        if !finite(&found.means) || !finite(&found.stds) || !deviations {
            return Err(problem(format!(
                "expected {WIDTH} finite means and deviations, those of continuous_columns above 0"
            )));
        }
        Ok(found)
    }
}

/// The folder that a file lies in.
fn folder_of(name: &str) -> &str {
    let path = name.rsplit_once('/').map_or("", |(path, _)| path);
    file_of(path)
}

fn is_list(name: &str) -> bool {
    name.ends_with("listfile.csv")
}

fn is_stay(name: &str) -> bool {
    name.ends_with("_timeseries.csv")
}

/// What the benchmark has a stay for, by its key.
fn part_of(key: &str) -> Part {
    match key.split('/').next() {
        Some("train") => Part::Training,
        Some("test") => Part::Test,
        _ => Part::Open,
    }
}

/// Whether a file of the collection is one of ours.
pub(crate) fn is_wanted(name: &str) -> bool {
    let file = file_of(name);
    let list = [
        "train_listfile.csv",
        "val_listfile.csv",
        "test_listfile.csv",
    ]
    .contains(&file);
    list || (is_stay(file) && (name.contains("train/") || name.contains("test/")))
}

/// `train/<stay>` or `test/<stay>`, by which lists find a stay.
pub(crate) fn key_of(name: &str) -> String {
    format!("{}/{}", folder_of(name), file_of(name))
}

/// One stay as 48 × 76 numbers, before they are scaled.
pub(crate) fn discretise(text: &Text) -> Result<Vec<f32>, DataError> {
    let wrong =
        |line, column: &str, value: &str, expected: &str| text.wrong(line, column, value, expected);
    let csv = text.csv()?;
    let header = csv.columns();
    // The column of the hours, and that of each channel.
    if header[0] != "Hours" {
        return Err(wrong(1, "1", &header[0], "\"Hours\""));
    }
    let mut wanted = vec![0];
    for channel in CHANNELS.iter() {
        let Some(at) = header.iter().position(|name| *name == channel.name) else {
            let problem = format!(
                "no column {:?}: expected Hours and the benchmark's 17 channels",
                channel.name
            );
            return Err(text.wrong_line(1, problem));
        };
        wanted.push(at);
    }
    let mut values = vec![0.0; STEPS * WIDTH];
    let mut seen = vec![false; STEPS * CHANNELS.len()];
    csv.read(&wanted, &mut |line, cells| {
        let line = line as usize;
        let hours = cells[0].text();
        let hours = hours
            .parse()
            .ok()
            .filter(|h: &f64| h.is_finite() && *h >= 0.0)
            .ok_or_else(|| wrong(line, "Hours", hours, "hours since admission, 0 or more"))?;
        if hours > STEPS as f64 + 1e-6 {
            return Ok(());
        }
        // What is a millionth late still belongs to the last hour.
        let step = ((hours - 1e-6) as usize).min(STEPS - 1);
        for (number, (channel, cell)) in CHANNELS.iter().zip(&cells[1..]).enumerate() {
            let field = cell.text();
            if field.is_empty() {
                continue;
            }
            let begin = step * WIDTH + begins(number);
            channel
                .write(field, &mut values[begin..begin + channel.width()])
                .map_err(|expected| wrong(line, channel.name, field, expected))?;
            seen[step * CHANNELS.len() + number] = true;
        }
        Ok(())
    })?;
    fill_gaps(&mut values, &seen);
    Ok(values)
}

/// The value before, or the normal one; and the masks.
fn fill_gaps(values: &mut [f32], seen: &[bool]) {
    for step in 0..STEPS {
        for (number, channel) in CHANNELS.iter().enumerate() {
            let (begin, width) = (begins(number), channel.width());
            let was_seen = seen[step * CHANNELS.len() + number];
            values[step * WIDTH + VALUES + number] = f32::from(u8::from(was_seen));
            if was_seen {
                continue;
            }
            if step == 0 {
                // The channels' own normal values are values of the channels.
                let _ = channel.write(channel.normal, &mut values[begin..begin + width]);
            } else {
                let before = (step - 1) * WIDTH + begin;
                values.copy_within(before..before + width, step * WIDTH + begin);
            }
        }
    }
}

/// The stays that the lists name, as rows.
pub(crate) fn rows(
    path: PathBuf,
    stays: Stays,
    lists: &[Text],
    hospital_columns: &[usize],
    normaliser: Option<Normaliser>,
) -> Result<Rows, DataError> {
    let problem = |problem: String| DataError::file(&path, problem);
    // The last list of a name counts once, wherever it lies.
    let mut listed = Listed::new();
    for (name, part) in [
        ("train", Part::Training),
        ("val", Part::Validation),
        ("test", Part::Test),
    ] {
        let file = format!("{name}_listfile.csv");
        let Some(list) = lists.iter().find(|list| file_of(&list.name) == file) else {
            if part == Part::Validation {
                continue;
            }
            return Err(problem(format!(
                "no {file} in it: expected the task folder of mimic3-benchmarks, in-hospital-mortality"
            )));
        };
        for (stay, died) in read_list(list)? {
            let folder = if part == Part::Test { "test" } else { "train" };
            if listed
                .insert(format!("{folder}/{stay}"), (died, part))
                .is_some()
            {
                return Err(problem(format!(
                    "{stay} is listed twice: expected every stay once"
                )));
            }
        }
    }
    rows_of(path, stays, listed, hospital_columns, normaliser)
}

/// By the key of a stay, who died, and what the stay is for.
type Listed = BTreeMap<String, (u32, Part)>;

/// Some stays as rows.
fn rows_of(
    path: PathBuf,
    stays: Stays,
    listed: Listed,
    hospital_columns: &[usize],
    normaliser: Option<Normaliser>,
) -> Result<Rows, DataError> {
    let problem = |problem: String| DataError::file(&path, problem);
    if listed.is_empty() {
        return Err(problem(
            "no stays in it: expected files like 10114_episode1_timeseries.csv".into(),
        ));
    }
    let device_columns: Vec<usize> = others(hospital_columns).collect();
    let (mut order, mut y, mut parts, mut ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (key, (died, part)) in listed {
        let Some(place) = stays.places.get(&key) else {
            return Err(problem(format!(
                "{key} is listed but not there: expected its file"
            )));
        };
        order.push(*place);
        y.push(died);
        parts.push(part);
        ids.push(key);
    }
    let continuous = |c: usize| {
        c < VALUES
            && CHANNELS
                .iter()
                .enumerate()
                .any(|(n, ch)| ch.categories.is_empty() && begins(n) == c)
    };
    let names = names();
    let given = |state: &Normaliser, c: usize| match state.continuous_columns.contains(&c) {
        true => Scale {
            mean: state.means[c],
            deviation: state.stds[c],
            ..Scale::IDENTITY
        },
        false => Scale::IDENTITY,
    };
    let side = |values, columns: &[usize]| {
        let scaling = match &normaliser {
            Some(state) => Scaling::Given(columns.iter().map(|c| given(state, *c)).collect()),
            None => Scaling::Columns {
                scaled: columns.iter().map(|c| continuous(*c)).collect(),
                clipped: false,
            },
        };
        Side {
            names: columns.iter().map(|c| names[*c].clone()).collect(),
            order: order.clone(),
            ..Side::new(Shape::Steps(STEPS, columns.len()), values, scaling)
        }
    };
    let sides = [
        side(stays.hospital, hospital_columns),
        side(stays.device, &device_columns),
    ];
    Ok(Rows {
        classes: vec!["survived".into(), "died".into()],
        y,
        ids,
        parts,
        ..Rows::new("mimic3", path, sides, "ramp")
    })
}

/// The stays of a list, with who died.
pub(crate) fn read_list(list: &Text) -> Result<Vec<(String, u32)>, DataError> {
    let wrong =
        |line, column: &str, value: &str, expected: &str| list.wrong(line, column, value, expected);
    let csv = list.csv()?;
    let (columns, last) = (csv.columns(), csv.columns().len() - 1);
    if columns[0] != "stay" || columns[last] != "y_true" {
        return Err(wrong(1, "1", &columns.join(","), "the header stay,y_true"));
    }
    let mut rows = Vec::new();
    csv.read(&[0, last], &mut |line, cells| {
        let (line, stay) = (line as usize, cells[0].text());
        let died = match cells[1].text() {
            "0" => 0,
            "1" => 1,
            other => return Err(wrong(line, "y_true", other, "0 or 1")),
        };
        if !stay.ends_with("_timeseries.csv") || stay.contains('/') {
            let expected = "the name of a stay's file, like 10114_episode1_timeseries.csv";
            return Err(wrong(line, "stay", stay, expected));
        }
        rows.push((stay.to_owned(), died));
        Ok(())
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::npy;
    use crate::files::unzip::Archive;
    use std::fs::File;
    use std::io::BufReader;

    #[test]
    fn channels_are_as_wide_as_the_benchmark_says() {
        assert_eq!((begins(17), CHANNELS.len()), (VALUES, WIDTH - VALUES));
        let is_normal = |c: &Channel| c.write(c.normal, &mut vec![0.0; c.width()]).is_ok();
        assert!(CHANNELS.iter().all(is_normal));
    }

    #[test]
    fn the_last_hour_ends_a_millionth_late() {
        let names: Vec<&str> = CHANNELS.iter().map(|channel| channel.name).collect();
        let stay = |hours: &str| Text {
            place: "stay.csv".into(),
            name: "stay.csv".into(),
            text: format!("Hours,{}\n{hours},1.0{}\n", names.join(","), ",".repeat(16)),
        };
        let mask = (STEPS - 1) * WIDTH + VALUES;
        for (hours, measured) in [("48", 1.0), ("48.000001", 1.0), ("48.00001", 0.0)] {
            assert_eq!(discretise(&stay(hours)).unwrap()[mask], measured, "{hours}");
        }
    }

    /// What the benchmark's own code made of the demo, cell by cell.
    #[test]
    fn the_demo_is_what_the_benchmark_makes_of_it() {
        let Some(folder) = std::env::var_os("SELVEDGE_DATA").map(PathBuf::from) else {
            eprintln!("skipped: the_demo_is_what_the_benchmark_makes_of_it needs SELVEDGE_DATA");
            return;
        };
        let settings = DataSettings {
            path: "mimic3-demo".into(),
            ..DataSettings::default()
        };
        let rows = read(&settings, Some(&folder)).unwrap();
        let Scaling::Given(hospital) = &rows.hospital.scaling else {
            panic!("the demo has a normaliser");
        };
        let Scaling::Given(device) = &rows.device.scaling else {
            panic!("the demo has a normaliser");
        };
        let golden = folder.join("mimic3-demo/ihm_demo_discretized_48x76.npz");
        let mut archive = Archive::open(BufReader::new(File::open(golden).unwrap())).unwrap();
        let mut compared = 0;
        for (part, folder) in [("train", "train"), ("val", "train"), ("test", "test")] {
            let name = format!("{part}_name");
            let (header, unpacking) = npy::open(&mut archive, &name).unwrap();
            let names = npy::texts(&header, unpacking, &name).unwrap();
            for (array, scaled) in [("X_raw", false), ("X", true)] {
                let name = format!("{part}_{array}");
                let (header, unpacking) = npy::open(&mut archive, &name).unwrap();
                assert_eq!(header.shape, [names.len(), STEPS, WIDTH]);
                npy::numbers(&header, unpacking, &name, |index, expected| {
                    let (stay, step, column) = (
                        index / (STEPS * WIDTH),
                        index / WIDTH % STEPS,
                        index % WIDTH,
                    );
                    let id = format!("{folder}/{}", names[stay]);
                    let row = rows.ids.iter().position(|other| *other == id).unwrap();
                    let half = WIDTH / 2;
                    let (side, scales, at) = match column < half {
                        true => (&rows.hospital, hospital, column),
                        false => (&rows.device, device, column - half),
                    };
                    let raw = side.row(row)[step * half + at];
                    let found = if scaled { scales[at].apply(raw) } else { raw };
                    let close =
                        (f64::from(found) - expected).abs() <= 1e-5 * expected.abs().max(1.0);
                    assert!(
                        close,
                        "{name} {id} {step} {column}: {found} is not {expected}"
                    );
                    compared += 1;
                    Ok(())
                })
                .unwrap();
            }
        }
        assert_eq!(compared, 2 * (41 + 5 + 11) * STEPS * WIDTH);
    }
}

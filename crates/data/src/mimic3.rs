//! `mimic3`: the tasks of mimic3-benchmarks in its layout. 48 hours of 17 channels, as 48 × 76 numbers ([series]).
//!
//! Which task is learnt says `data.outcome` ([lists]): in-hospital mortality from the first 48 hours, phenotypes from
//! the last 48, and at any hour of a stay, from the 48 before it, how long it goes on or whether the patient dies within
//! a day. Samples of a patient belong together, but those of in-hospital mortality are devices of their own.
//!
//! The benchmark's discretiser: hour `⌊t − 10⁻⁶⌋` gets the last value of each channel; an hour without one takes the
//! value before, or the channel's normal value where there is none. Five channels are categories, one-hot by their
//! exact text. Behind the values stand 17 masks: what was really measured. Its normaliser scales the twelve other
//! channels, by the numbers of a file if one is there (`*normalizer*.json`), else by what training rows show.
//!
//! The hospital holds columns 0 to 37 and the device 38 to 75, or with `data.vertical = "channel"` the first and the
//! last channels whole, with their masks.

mod lists;
mod series;

use crate::DataError;
use crate::asked::Known;
use crate::files::collection::{self, Text, file_of};
#[cfg(feature = "fuzz")]
use crate::fuzz::{self, Target};
use crate::inputs::Inputs;
use crate::rows::{Part, Purpose, Rows, Side, UNLABELLED};
use crate::sets::{DataSet, MORTALITY_TARGETS, Source, Twin, mortality};
use crate::settings::{find_file, memory, vertical, wrong};
use crate::statistics::{Scale, Scaling};
pub(crate) use lists::{Lists, Task};
use lists::{OUTCOMES, PHENOTYPES, Sample};
use rayon::prelude::*;
use selvedge_core::experiment::{DataSettings, Usual};
use selvedge_core::outcome::Kind;
use selvedge_nn::Shape;
use serde::Deserialize;
pub(crate) use series::Series;
use series::{STEPS, VALUES, WIDTH, begins, is_number, names};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const ORIGIN: &str = "MIMIC-III is credentialed, and mimic3-benchmarks makes this layout of it: `selvedge data fetch mimic3` says how; \
                      `--set data.set=synthetic-mimic3` runs without files";

/// With `data.vertical = "channel"` the hospital holds so many channels.
const HOSPITAL_CHANNELS: usize = 6;

pub(crate) static SET: DataSet = DataSet {
    verticals: &["half", "channel"],
    has_columns: true,
    outcomes: OUTCOMES,
    usual: |data| Usual {
        outputs: match Task::of(data) {
            Ok(Task::Phenotyping) => PHENOTYPES,
            _ => 2,
        },
        rows: Some(match Task::of(data) {
            Ok(Task::Phenotyping) => 42_000,
            Ok(Task::Stay | Task::Decompensation) => 3_400_000 / data.every.max(1),
            _ => 21_000,
        }),
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
        Target::new("mimic3_stay", fuzz::sets::series, "csv"),
        Target::new("mimic3_list", fuzz::sets::list, "csv"),
        Target::new("mimic3_normaliser", fuzz::sets::normaliser, "json").up_to(8 << 10),
        Target::new("mimic3", fuzz::sets::mimic3, "csv").up_to(16 << 10),
        Target::new("mimic3_hours", fuzz::sets::mimic3_hours, "csv").up_to(16 << 10),
    ],
    ..DataSet::new("mimic3", Source::Files { read, read_new })
};

/// Whether a stay has samples at many of its hours.
pub(crate) fn has_hours(settings: &DataSettings) -> bool {
    Task::of(settings).is_ok_and(Task::has_hours)
}

/// Reads the set.
fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Rows, DataError> {
    let task = Task::of(settings)?;
    let hospital_columns = hospital_columns(settings)?;
    let found = find_file("MIMIC-III", settings, data_dir, task.places(), ORIGIN)?;
    let (path, normaliser) = archive_and_normaliser(&found, task)?;
    let other = Cell::new(None);
    let is_wanted = |name: &str| {
        if is_part_list(name) && !task.has(name) {
            other.set(task.other(name).or(other.get()));
        }
        is_wanted(name) && task.has(name)
    };
    // A packed archive is read twice: a list may stand behind the stays that it is about.
    let mut texts = Vec::new();
    let is_list = |name: &str| is_list(name) && is_wanted(name);
    collection::read(&path, &is_list, &mut |some| {
        texts.extend(some);
        Ok(())
    })?;
    let lists = lists_of_parts(&path, task, &texts, other.get())?;
    drop(texts);
    let mut stays = Stays::new(lists, settings.every, false)?;
    collection::read(
        &path,
        &|name| is_stay(name) && is_wanted(name),
        &mut |some| stays.take(&some, &hospital_columns),
    )?;
    stays.rows(path, &hospital_columns, normaliser)
}

/// The lists of all parts, in which every sample stands once.
pub(crate) fn lists_of_parts(
    path: &Path,
    task: Task,
    texts: &[Text],
    other: Option<Task>,
) -> Result<Lists, DataError> {
    let mut lists = Lists::new(task, true);
    for (name, part) in PARTS {
        let file = format!("{name}_listfile.csv");
        let Some(list) = texts.iter().find(|list| file_of(&list.name) == file) else {
            if part == Part::Validation {
                continue;
            }
            let advice = other.map_or(String::new(), |other| {
                format!(
                    "; what is in it is {}, and {}",
                    other.folder(),
                    other.advice()
                )
            });
            let folder = task.folder();
            return Err(DataError::file(
                path,
                format!(
                    "no {file} in it: expected the task folder of mimic3-benchmarks, {folder}{advice}"
                ),
            ));
        };
        lists.read(list, folder_of_part(part), Some(part))?;
    }
    lists.settle(path, true)?;
    Ok(lists)
}

/// The lists at the root of a task's folder.
const PARTS: [(&str, Part); 3] = [
    ("train", Part::Training),
    ("val", Part::Validation),
    ("test", Part::Test),
];

fn folder_of_part(part: Part) -> &'static str {
    if part == Part::Test { "test" } else { "train" }
}

/// Reads stays that training has not seen: a task folder or its archive, any folder of them, or single files. Those who
/// are compared with what became of them stand in a list, `listfile.csv` or that of a part. A list says at which hours
/// stays are looked back upon, too; those that no list names are at their last measurement.
fn read_new(
    settings: &DataSettings,
    inputs: &Inputs,
    paths: &[PathBuf],
    purpose: Purpose,
) -> Result<Rows, DataError> {
    let task = Task::of(settings)?;
    let hospital_columns = hospital_columns(settings)?;
    let labelled = purpose == Purpose::New { labelled: true };
    let mut lists = Lists::new(task, labelled);
    let has_lists = labelled || task != Task::Death;
    let mut found = false;
    for path in paths.iter().filter(|_| has_lists) {
        let wanted = |name: &str| is_list(name) && task.has(name);
        let mut take = |texts: Vec<Text>| {
            for list in texts.iter().filter(|text| is_list(&text.name)) {
                let mut parts = PARTS.into_iter();
                let part =
                    parts.find(|(name, _)| file_of(&list.name) == format!("{name}_listfile.csv"));
                let part = part.map(|(_, part)| part);
                let folder = match part {
                    Some(part) => folder_of_part(part),
                    None => folder_of(&list.name),
                };
                lists.read(list, folder, part)?;
                found = true;
            }
            Ok(())
        };
        let is_stay = |name: &str| is_stay(name) && task.has(name);
        collection::read_new((path, "csv"), &wanted, &is_stay, &mut take)?;
    }
    let first = paths.first().cloned().unwrap_or_default();
    if labelled && !found {
        return Err(DataError::file(
            first,
            "no listfile.csv in it: expected one that says what became of each stay",
        ));
    }
    let trained = &inputs.statistics.classes;
    if task == Task::Phenotyping && !labelled {
        lists.call_labels(trained);
    } else if task == Task::Phenotyping && lists.names != *trained {
        let differ = |(a, b): &(&String, &String)| a != b;
        let (found, expected) = lists.names.iter().zip(trained).find(differ).unzip();
        return Err(DataError::file(
            first,
            format!(
                "its lists have the phenotype {:?}: expected {:?}, as in training",
                found.map_or("", String::as_str),
                expected.map_or("", String::as_str)
            ),
        ));
    }
    lists.settle(&first, false)?;
    // Of whom a prediction is asked for, it is given.
    let every = if labelled { settings.every } else { 1 };
    let mut stays = Stays::new(lists, every, !labelled)?;
    for path in paths {
        let is_stay = |name: &str| is_stay(name) && task.has(name);
        let mut take = |texts: Vec<Text>| stays.take(&texts, &hospital_columns);
        collection::read_new((path, "csv"), &is_stay, &is_stay, &mut take)?;
    }
    if let Some(twice) = stays.twice {
        return Err(DataError::file(
            first,
            format!("{twice} is in it twice: expected every stay once"),
        ));
    }
    stays.rows(first, &hospital_columns, None)
}

fn hospital_columns(settings: &DataSettings) -> Result<Vec<usize>, DataError> {
    Ok(match vertical(settings, &SET)? {
        "channel" => (0..begins(HOSPITAL_CHANNELS))
            .chain(VALUES..VALUES + HOSPITAL_CHANNELS)
            .collect(),
        _ => (0..WIDTH / 2).collect(),
    })
}

/// The columns that are not the hospital's.
fn others(hospital_columns: &[usize]) -> impl Iterator<Item = usize> {
    (0..WIDTH).filter(|c| !hospital_columns.contains(c))
}

/// A stay whose numbers are there.
struct Taken {
    /// Where they begin, counted in samples.
    place: u32,
    /// What is said of each.
    samples: Vec<Sample>,
    /// What the stay is for.
    part: Part,
    /// Whether it lies where the list says, and not elsewhere by the same name.
    is_exact: bool,
}

/// Stays as they come, and their numbers, side by side.
pub(crate) struct Stays {
    lists: Lists,
    /// Where listed stays of the same name lie.
    by_file: BTreeMap<String, Vec<String>>,
    /// Whether stays that no list names are taken too.
    takes_all: bool,
    taken: BTreeMap<String, Taken>,
    twice: Option<String>,
    samples: u32,
    every: usize,
    hospital: Vec<f32>,
    device: Vec<f32>,
}

/// Bytes that a sample takes. When rows are dealt, half of them are there twice.
const BYTES: u128 = (STEPS * WIDTH * size_of::<f32>()) as u128;

/// Refuses more samples than there is memory for, and says what would fit.
fn check_memory(samples: usize, every: usize, free: u128) -> Result<(), DataError> {
    let needed = samples as u128 * BYTES * 3 / 2;
    if needed <= free {
        return Ok(());
    }
    let fits = (needed * every as u128).div_ceil(free.max(1));
    let gigabytes = |bytes: u128| format!("{:.1} GB", bytes as f64 / 1e9);
    let expected = format!(
        "{samples} samples of {STEPS} × {WIDTH} numbers need {} of memory, and {} are free: expected at least {fits}, or fewer samples in the lists",
        gigabytes(needed),
        gigabytes(free)
    );
    Err(wrong("every", every, expected))
}

impl Stays {
    /// None yet, of those in the lists: one sample in `every` hours of each, and also of those that no list names if
    /// all are taken.
    pub(crate) fn new(mut lists: Lists, every: usize, takes_all: bool) -> Result<Self, DataError> {
        lists.thin(every);
        let samples = lists.count();
        if lists.task.has_hours() {
            check_memory(samples, every, memory())?;
        }
        let mut by_file: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for key in lists.stays.keys() {
            let file = file_of(key).to_owned();
            by_file.entry(file).or_default().push(key.clone());
        }
        Ok(Stays {
            lists,
            by_file,
            takes_all,
            taken: BTreeMap::new(),
            twice: None,
            samples: 0,
            every,
            hospital: Vec::new(),
            device: Vec::new(),
        })
    }

    /// What lists say of a stay: by the folder that it lies in or, if none names it there, by its name.
    fn listed(&self, text: &Text) -> Result<Option<Taken>, DataError> {
        let key = key_of(&text.name);
        let taken = |part: Option<Part>, samples: Vec<Sample>, is_exact| Taken {
            place: 0,
            samples,
            part: part.unwrap_or(part_of(&key)),
            is_exact,
        };
        if let Some(entry) = self.lists.stays.get(&key) {
            return Ok(Some(taken(entry.part, entry.samples.clone(), true)));
        }
        if let Some(keys) = self.by_file.get(file_of(&key)) {
            let entry = self.lists.together(keys);
            let entry = entry.map_err(|problem| DataError::file(&text.place, problem))?;
            return Ok(entry.map(|entry| taken(entry.part, entry.samples, false)));
        }
        Ok(self.takes_all.then(|| taken(None, Vec::new(), true)))
    }

    /// Takes in some stays.
    pub(crate) fn take(
        &mut self,
        texts: &[Text],
        hospital_columns: &[usize],
    ) -> Result<(), DataError> {
        let parse = |text: &Text| -> Result<_, DataError> {
            let key = key_of(&text.name);
            let listed = match is_list(&text.name) {
                true => None,
                false => self.listed(text)?,
            };
            let Some(mut taken) = listed else {
                return Ok(None);
            };
            let until = match (taken.samples.last(), self.lists.task) {
                (Some(last), _) => last.end,
                (None, Task::Death) => STEPS as f64,
                (None, _) => f64::INFINITY,
            };
            let series = Series::parse(text, until)?;
            if taken.samples.is_empty() {
                let end = if until.is_finite() {
                    until
                } else {
                    series.last()
                };
                taken.samples.push(Sample {
                    end,
                    at: usize::MAX,
                });
            }
            let mut numbers = Vec::with_capacity(taken.samples.len() * STEPS * WIDTH);
            for sample in &taken.samples {
                series.window(sample.end, &mut numbers);
            }
            Ok(Some((key, taken, numbers)))
        };
        let parsed: Result<Vec<_>, DataError> = texts.par_iter().map(parse).collect();
        for (key, mut taken, numbers) in parsed?.into_iter().flatten() {
            (taken.place, self.samples) = (self.samples, self.samples + taken.samples.len() as u32);
            // Of files with the same name the last one counts; new patients may not have any.
            if self.taken.insert(key.clone(), taken).is_some() {
                self.twice = Some(key);
            }
            for step in numbers.chunks_exact(WIDTH) {
                self.hospital
                    .extend(hospital_columns.iter().map(|c| step[*c]));
                self.device
                    .extend(others(hospital_columns).map(|c| step[c]));
            }
        }
        Ok(())
    }
}

/// A folder may hold the archive as it was packed, and beside it what the benchmark's normaliser saved.
fn archive_and_normaliser(
    found: &Path,
    task: Task,
) -> Result<(PathBuf, Option<Normaliser>), DataError> {
    let folder = if found.is_dir() {
        found
    } else {
        found.parent().unwrap_or(found)
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    files.sort();
    // What was saved of another task says so in front.
    let is_others = |name: &str| {
        let mut others = Task::ALL.into_iter().filter(|other| *other != task);
        others.any(|other| other.short().iter().any(|short| name.starts_with(short)))
    };
    let named = |parts: &[&str]| {
        files.iter().find(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            parts.iter().all(|part| name.contains(part)) && !is_others(&name)
        })
    };
    let normaliser = match named(&["normalizer", ".json"]) {
        Some(file) => Some(Normaliser::read(file)?),
        None => None,
    };
    let has_lists =
        folder.join(task.folder()).is_dir() || folder.join("train_listfile.csv").is_file();
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

/// Whether a file of the collection is a list of a whole part.
fn is_part_list(name: &str) -> bool {
    let file = file_of(name).strip_suffix("_listfile.csv");
    PARTS.iter().any(|(part, _)| file == Some(part))
}

/// Whether a file of the collection is one of ours.
pub(crate) fn is_wanted(name: &str) -> bool {
    is_part_list(name) || (is_stay(name) && (name.contains("train/") || name.contains("test/")))
}

/// `train/<stay>` or `test/<stay>`, by which lists find a stay.
pub(crate) fn key_of(name: &str) -> String {
    format!("{}/{}", folder_of(name), file_of(name))
}

/// `10114` of `train/10114_episode1_timeseries.csv`.
fn patient_of(key: &str) -> &str {
    let stay = file_of(key).trim_end_matches("_timeseries.csv");
    stay.rsplit_once("_episode")
        .map_or(stay, |(patient, _)| patient)
}

impl Stays {
    /// The stays that the lists name, as rows.
    pub(crate) fn rows(
        self,
        path: PathBuf,
        hospital_columns: &[usize],
        normaliser: Option<Normaliser>,
    ) -> Result<Rows, DataError> {
        let problem = |problem: String| DataError::file(&path, problem);
        let Stays { lists, taken, .. } = self;
        let task = lists.task;
        let is_there = |key: &String| taken.get(key).is_some_and(|taken| taken.is_exact);
        let elsewhere: BTreeSet<&str> = taken
            .iter()
            .filter(|(_, taken)| !taken.is_exact)
            .map(|(key, _)| file_of(key))
            .collect();
        let mut listed = lists.stays.keys();
        if let Some(key) = listed.find(|key| !is_there(key) && !elsewhere.contains(file_of(key))) {
            return Err(problem(format!(
                "{key} is listed but not there: expected its file"
            )));
        }
        let (mut order, mut parts, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        let (mut values, mut units) = (Vec::new(), Vec::new());
        let mut patients: BTreeMap<&str, u32> = BTreeMap::new();
        let each = task.each();
        for (key, stay) in &taken {
            // Another file of the same name lies where the list says.
            let mut named = self.by_file.get(file_of(key)).into_iter().flatten();
            if !stay.is_exact && named.all(is_there) {
                continue;
            }
            let next = patients.len() as u32;
            let patient = *patients.entry(patient_of(key)).or_insert(next);
            for (place, sample) in (stay.place..).zip(&stay.samples) {
                order.push(place);
                parts.push(stay.part);
                units.push(patient);
                ids.push(match task.has_hours() {
                    true => format!("{key}@{}", sample.end),
                    false => key.clone(),
                });
                let known = lists.values.get(sample.at.saturating_mul(each)..);
                match known.and_then(|known| known.get(..each)) {
                    Some(known) => values.extend_from_slice(known),
                    None => values.extend(std::iter::repeat_n(f32::NAN, each)),
                }
            }
        }
        if order.is_empty() {
            return Err(problem(
                "no stays in it: expected files like 10114_episode1_timeseries.csv".into(),
            ));
        }
        let device_columns: Vec<usize> = others(hospital_columns).collect();
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
                    scaled: columns.iter().map(|c| is_number(*c)).collect(),
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
            side(self.hospital, hospital_columns),
            side(self.device, &device_columns),
        ];
        let classes = match task {
            Task::Phenotyping => lists.names,
            _ => task.names().iter().map(ToString::to_string).collect(),
        };
        let (known, y) = match task.kind() {
            Kind::Class => {
                let class = |y: &f32| if y.is_nan() { UNLABELLED } else { *y as u32 };
                (None, values.iter().map(class).collect())
            }
            kind => {
                let (known, y) = Known::new(kind, &classes, values);
                (Some(known), y)
            }
        };
        let all = lists.left_out + ids.len();
        let thinned = (lists.left_out > 0).then(|| {
            format!(
                "{} of {all} samples are kept, one in {} hours of each stay (data.every)",
                ids.len(),
                self.every
            )
        });
        let mut rows = Rows {
            classes,
            y,
            known,
            ids,
            parts,
            incomplete: thinned.is_some(),
            notes: thinned.into_iter().collect(),
            ..Rows::new("mimic3", path, sides, "ramp")
        };
        // Stays of in-hospital mortality are dealt as they ever were, each alone.
        if task != Task::Death {
            (rows.units, rows.devices_are_units) = (units, true);
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::npy;
    use crate::files::unzip::Archive;
    use std::fs::File;
    use std::io::BufReader;

    /// The benchmark's three million samples need 66 GB.
    #[test]
    fn what_no_machine_holds_is_refused() {
        let free = 16_000_000_000;
        let refused = check_memory(3_000_000, 1, free).unwrap_err().to_string();
        let told = "3000000 samples of 48 × 76 numbers need 65.7 GB of memory, and 16.0 GB are free: expected at least 5";
        assert!(refused.contains(told), "{refused}");
        assert!(check_memory(3_000_000 / 5, 5, free).is_ok());
        assert!(check_memory(3_000_000 / 4, 4, free).is_err());
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

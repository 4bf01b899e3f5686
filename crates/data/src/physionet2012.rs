//! `physionet2012`: PhysioNet/CinC Challenge 2012, sets a and b. 48 hours of 8,000 stays in intensive care; who died in
//! hospital? The open stand-in for MIMIC-III's mortality. How long a stay was and how long a patient lived can be learnt
//! too ([outcomes]).
//!
//! Each stay becomes 48 hourly steps: the last value of the hour, carried forward, and beside it whether the hour had
//! one; `data.hours` makes longer steps, and `data.derived` says more of each. A wearable can measure ten of the
//! channels; the hospital holds the other 27. With `data.vertical = "statics"` it has age, sex, height, unit and weight
//! at admission too, at every step; with `"statics-both"` the device has what a patient knows of them as well.
//! Training is on set a, the test on set b.

mod outcomes;

use crate::DataError;
use crate::derived::{Columns, Derived};
use crate::files::collection::{self, Text, file_of, is_archive};
#[cfg(feature = "fuzz")]
use crate::fuzz::{self, Target};
use crate::inputs::Inputs;
use crate::rows::{Part, Purpose, Rows, Side};
use crate::sets::{DataSet, MORTALITY_TARGETS, Source, Twin, mortality};
use crate::settings::{find_file, vertical, wrong};
use crate::statistics::Scaling;
use outcomes::OUTCOMES;
pub(crate) use outcomes::{Outcomes, Wanted, read_outcomes};
use rayon::prelude::*;
use selvedge_core::experiment::{DataSettings, Usual};
use selvedge_nn::Shape;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const ORIGIN: &str = "`selvedge data fetch physionet2012` gets PhysioNet's Challenge 2012; `--set data.set=synthetic-physionet2012` runs without files";

const HOURS: usize = 48;

/// What a wearable can measure.
static DEVICE: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = "HR RespRate Temp SaO2 SysABP DiasABP MAP NISysABP NIDiasABP NIMAP";
    names.split(' ').collect()
});

/// What is measured at the bedside or in a laboratory.
static HOSPITAL: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = "ALP ALT AST Albumin BUN Bilirubin Cholesterol Creatinine FiO2 GCS Glucose HCO3 HCT K \
    Lactate MechVent Mg Na PaCO2 PaO2 Platelets TroponinI TroponinT Urine WBC Weight pH";
    names.split(' ').collect()
});

/// What is known at admission.
const STATICS: [&str; 5] = ["Age", "Gender", "Height", "ICUType", "Weight"];

/// Those that a patient knows too.
const PERSONAL: [usize; 4] = [0, 1, 2, 4];

/// The units that `ICUType` numbers from 1.
const UNITS: [&str; 4] = [
    "coronary care",
    "cardiac surgery recovery",
    "medical",
    "surgical",
];

/// Who has what is known at admission.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Statics {
    Nobody,
    /// The hospital, with the unit as a number.
    Hospital,
    /// The hospital, with a flag for each unit, and the device without the unit.
    Both,
}

impl Statics {
    /// Their names on each side.
    fn names(self) -> [Vec<String>; 2] {
        let named = |at: &usize| format!("{} at admission", STATICS[*at]);
        let personal = || PERSONAL.iter().map(named).collect::<Vec<_>>();
        let units = UNITS.iter().map(|unit| format!("unit: {unit}"));
        match self {
            Statics::Nobody => [Vec::new(), Vec::new()],
            Statics::Hospital => [
                (0..STATICS.len()).map(|at| named(&at)).collect(),
                Vec::new(),
            ],
            Statics::Both => [personal().into_iter().chain(units).collect(), personal()],
        }
    }

    /// What they are, in the order of their names.
    fn values(self, known: &[f32; STATICS.len()]) -> [Vec<f32>; 2] {
        let personal = || PERSONAL.iter().map(|at| known[*at]).collect::<Vec<f32>>();
        let unit = |number: usize| f32::from(u8::from(known[3] == number as f32));
        let units = (1..=UNITS.len()).map(unit);
        match self {
            Statics::Nobody => [Vec::new(), Vec::new()],
            Statics::Hospital => [known.to_vec(), Vec::new()],
            Statics::Both => [personal().into_iter().chain(units).collect(), personal()],
        }
    }
}

/// How stays are made into rows.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    statics: Statics,
    /// Hours that a step takes.
    hours: usize,
    derived: Vec<Derived>,
    wanted: Wanted,
}

impl Manner {
    pub(crate) fn of(settings: &DataSettings) -> Result<Self, DataError> {
        if !HOURS.is_multiple_of(settings.hours) {
            let expected = format!("expected a divisor of {HOURS}, like 2 or 6");
            return Err(wrong("hours", settings.hours, expected));
        }
        Ok(Manner {
            statics: match vertical(settings, &SET)? {
                "statics" => Statics::Hospital,
                "statics-both" => Statics::Both,
                _ => Statics::Nobody,
            },
            hours: settings.hours,
            derived: Derived::of(settings)?,
            wanted: Wanted::of(settings)?,
        })
    }

    fn steps(&self) -> usize {
        HOURS / self.hours
    }
}

pub(crate) static SET: DataSet = DataSet {
    verticals: &["statics", "statics-both"],
    has_steps: true,
    has_columns: true,
    outcomes: OUTCOMES,
    usual: |data| Usual {
        outputs: Wanted::labels(data),
        rows: Some(8_000),
        ..mortality()
    },
    twins: &[Twin {
        name: "synthetic-physionet2012",
        hospital: Shape::Steps(48, 54),
        device: Shape::Steps(48, 20),
        classes: 2,
        devices: 400,
    }],
    targets: MORTALITY_TARGETS,
    #[cfg(feature = "fuzz")]
    fuzz: &[
        Target::new("physionet_stay", fuzz::sets::stay, "physionet"),
        Target::new("physionet_outcomes", fuzz::sets::outcomes, "physionet"),
        Target::new("physionet2012", fuzz::sets::physionet2012, "physionet").up_to(16 << 10),
    ],
    ..DataSet::new("physionet2012", Source::Files { read, read_new })
};

/// Reads the set.
fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Rows, DataError> {
    let manner = Manner::of(settings)?;
    let usual = ["physionet2012", "physionet2012/physionet2012-ab.tar.gz"];
    let found = find_file("PhysioNet 2012", settings, data_dir, &usual, ORIGIN)?;
    let sources = sources(&found)?;
    let (mut stays, mut outcomes) = (Stays::default(), Outcomes::new());
    for source in &sources {
        collection::read(source, &is_wanted, &mut |texts| {
            take(&texts, &manner, &mut stays, &mut outcomes)
        })?;
    }
    let path = match <[PathBuf; 1]>::try_from(sources) {
        Ok([single]) => single,
        Err(_) => found,
    };
    rows(path, stays, Some(&outcomes), &manner)
}

/// Reads stays that training has not seen: folders or archives of them, whatever the set is called, or single files.
/// Their outcomes lie among them or beside them.
fn read_new(
    settings: &DataSettings,
    _: &Inputs,
    paths: &[PathBuf],
    purpose: Purpose,
) -> Result<Rows, DataError> {
    let manner = Manner::of(settings)?;
    let labelled = purpose == Purpose::New { labelled: true };
    let wanted = |name: &str| is_stay(name) || (labelled && is_outcomes(name));
    let (mut stays, mut outcomes) = (Stays::default(), Outcomes::new());
    for path in paths {
        let mut take = |texts: Vec<Text>| take(&texts, &manner, &mut stays, &mut outcomes);
        collection::read_new((path, "txt"), &wanted, &is_stay, &mut take)?;
    }
    if labelled && outcomes.is_empty() {
        let beside = paths.iter().filter_map(|path| path.parent());
        for folder in beside.collect::<BTreeSet<_>>() {
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            collection::read_top(folder, &is_outcomes, &mut |texts| {
                take(&texts, &manner, &mut Stays::default(), &mut outcomes)
            })?;
        }
    }
    let first = paths.first().cloned().unwrap_or_default();
    let mut rows = rows(first, stays, labelled.then_some(&outcomes), &manner)?;
    // Outcomes of others say nothing about these.
    rows.notes.clear();
    Ok(rows)
}

/// Takes in some files: stays, and lists of outcomes.
fn take(
    texts: &[Text],
    manner: &Manner,
    stays: &mut Stays,
    outcomes: &mut Outcomes,
) -> Result<(), DataError> {
    let parsed: Result<Vec<Option<Stay>>, DataError> = texts
        .par_iter()
        .map(|text| match text.name.contains("Outcomes") {
            true => Ok(None),
            false => Stay::parse(text, manner).map(Some),
        })
        .collect();
    parsed?
        .into_iter()
        .flatten()
        .for_each(|stay| stays.push(stay));
    for text in texts.iter().filter(|text| text.name.contains("Outcomes")) {
        read_outcomes(text, manner.wanted, outcomes)?;
    }
    Ok(())
}

/// What has to be read: an archive or a folder with everything; or a folder as it was downloaded, where each set is a
/// folder or an archive of its own and the outcomes lie beside them.
fn sources(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(|source| DataError::io(path, source))?;
    let name_of = |file: &Path| {
        file.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let mut archives: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|file| is_archive(&name_of(file)))
        .collect();
    archives.sort();
    let of_set = |set: &str| archives.iter().find(|file| name_of(file).starts_with(set));
    let is_unpacked = |set: &str| path.join(set).is_dir();
    let (a, b) = (of_set("set-a."), of_set("set-b."));
    if a.is_none() && b.is_none() {
        let single = archives.first().filter(|_| !is_unpacked("set-a"));
        return Ok(vec![single.map_or(path, PathBuf::as_path).to_owned()]);
    }
    let mut sources = Vec::new();
    for (set, archive) in [("set-a", a), ("set-b", b)] {
        match archive {
            _ if is_unpacked(set) => {}
            Some(archive) => sources.push(archive.clone()),
            None => {
                return Err(DataError::file(
                    path,
                    format!(
                        "no {set} in it: expected {set}.tar.gz or the folder {set}, as of the other set"
                    ),
                ));
            }
        }
    }
    sources.push(path.to_owned());
    Ok(sources)
}

/// Whether a file of the collection is one of ours.
pub(crate) fn is_wanted(name: &str) -> bool {
    let of_sets = name.contains("set-a/") || name.contains("set-b/");
    let file = file_of(name);
    (of_sets && is_stay(name)) || ["Outcomes-a.txt", "Outcomes-b.txt"].contains(&file)
}

/// `132539.txt`
fn is_stay(name: &str) -> bool {
    let id = file_of(name).strip_suffix(".txt");
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
}

/// `Outcomes-a.txt`, or of any other set.
fn is_outcomes(name: &str) -> bool {
    let file = file_of(name);
    file.starts_with("Outcomes") && file.ends_with(".txt")
}

/// All stays as they come: who they are, and their numbers.
#[derive(Default)]
pub(crate) struct Stays {
    /// The id and what it is for.
    who: Vec<(u32, Part)>,
    hospital: Vec<f32>,
    device: Vec<f32>,
}

impl Stays {
    pub(crate) fn push(&mut self, stay: Stay) {
        self.who.push((stay.id, stay.part));
        self.hospital.extend_from_slice(&stay.hospital);
        self.device.extend_from_slice(&stay.device);
    }
}

/// The stays with their outcomes, as rows.
pub(crate) fn rows(
    path: PathBuf,
    stays: Stays,
    outcomes: Option<&Outcomes>,
    manner: &Manner,
) -> Result<Rows, DataError> {
    let wanted = manner.wanted;
    let problem = |problem: String| DataError::file(&path, problem);
    if stays.who.is_empty() {
        return Err(problem(
            "no stays in it: expected <RecordID>.txt; for training below set-a and set-b, with Outcomes-a.txt and Outcomes-b.txt"
                .into(),
        ));
    }
    let mut order: Vec<u32> = (0..stays.who.len() as u32).collect();
    let id = |place: &u32| stays.who[*place as usize].0;
    order.sort_by_key(id);
    if let Some(twice) = order.windows(2).find(|pair| id(&pair[0]) == id(&pair[1])) {
        return Err(problem(format!(
            "the stay {} is in it twice: expected every RecordID once",
            id(&twice[0])
        )));
    }
    let (mut ended, mut parts, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    let all = order.len();
    order.retain(|place| {
        let known = outcomes.and_then(|outcomes| outcomes.get(&stays.who[*place as usize].0));
        wanted.is_known(known)
    });
    let unknown = all - order.len();
    for place in &order {
        let (id, part) = stays.who[*place as usize];
        ended.push(match outcomes.map(|outcomes| outcomes.get(&id)) {
            None => None,
            Some(Some(ended)) => Some(*ended),
            Some(None) => {
                let list = match part {
                    Part::Training => "Outcomes-a.txt",
                    Part::Test => "Outcomes-b.txt",
                    _ => "the outcomes, Outcomes-<set>.txt among the stays or beside their folder",
                };
                return Err(problem(format!(
                    "no outcome for the stay {id}: expected it in {list}"
                )));
            }
        });
        parts.push(part);
        ids.push(id.to_string());
    }
    let (y, known, note) = wanted.known(&ended);
    let mut notes: Vec<String> = note.into_iter().collect();
    if unknown > 0 {
        notes.push(format!(
            "{unknown} of {all} stays have no known length and are left out"
        ));
    }
    match outcomes.map_or(0, |outcomes| outcomes.len().saturating_sub(all)) {
        0 => {}
        without => notes.push(format!(
            "{without} of {} stays that the outcomes list have no file",
            all + without
        )),
    }
    let [of_hospital, of_device] = manner.statics.names();
    let sides = [
        side(
            stays.hospital,
            order.clone(),
            (&HOSPITAL, of_hospital),
            manner,
        ),
        side(stays.device, order, (&DEVICE, of_device), manner),
    ];
    Ok(Rows {
        classes: wanted.names(),
        y,
        known,
        ids,
        parts,
        notes,
        ..Rows::new("physionet2012", path, sides, "ramp")
    })
}

/// A side of so many channels, each with a mask and with what is derived of it, and what is known at admission.
fn side(
    values: Vec<f32>,
    order: Vec<u32>,
    (channels, statics): (&[&str], Vec<String>),
    manner: &Manner,
) -> Side {
    let names = channels.iter().map(ToString::to_string);
    let masks = channels.iter().map(|name| format!("{name} measured"));
    let derived = Columns::names(&manner.derived, channels.iter().copied());
    let names: Vec<String> = names.chain(masks).chain(derived).chain(statics).collect();
    let is_flag = |(at, name): (usize, &String)| {
        (channels.len()..2 * channels.len()).contains(&at) || name.starts_with("unit: ")
    };
    let shape = Shape::Steps(manner.steps(), names.len());
    let scaling = Scaling::Columns {
        scaled: names.iter().enumerate().map(|of| !is_flag(of)).collect(),
        clipped: true,
    };
    Side {
        names,
        order,
        ..Side::new(shape, values, scaling)
    }
}

/// One stay.
pub(crate) struct Stay {
    id: u32,
    part: Part,
    hospital: Vec<f32>,
    device: Vec<f32>,
}

/// The channels of one side, filled step by step.
struct Grid {
    channels: usize,
    width: usize,
    values: Vec<f32>,
    derived: Columns,
}

impl Grid {
    fn new(channels: usize, statics: usize, manner: &Manner) -> Self {
        let first = 2 * channels;
        let width = first + Columns::width(&manner.derived, channels) + statics;
        let mut values = vec![f32::NAN; manner.steps() * width];
        for step in values.chunks_exact_mut(width) {
            step[channels..first].fill(0.0);
        }
        Grid {
            channels,
            width,
            values,
            derived: Columns::new(&manner.derived, channels, first, manner.steps()),
        }
    }

    fn set(&mut self, step: usize, channel: usize, value: f32) {
        let numbers = &mut self.values[step * self.width..][..self.width];
        numbers[channel] = value;
        numbers[self.channels + channel] = 1.0;
        self.derived.note((step, channel), value, numbers);
    }

    /// Writes what is known at admission, and carries values forward to steps that have none.
    fn finish(mut self, statics: &[f32]) -> Vec<f32> {
        let steps = self.values.len() / self.width;
        self.derived.finish(steps, self.width, &mut self.values);
        for step in self.values.chunks_exact_mut(self.width) {
            step[self.width - statics.len()..].copy_from_slice(statics);
        }
        for at in self.width..self.values.len() {
            if self.values[at].is_nan() {
                self.values[at] = self.values[at - self.width];
            }
        }
        self.values
    }
}

impl Stay {
    /// Reads one stay's file.
    pub(crate) fn parse(text: &Text, manner: &Manner) -> Result<Self, DataError> {
        let wrong = |line, column: &str, value: &str, expected: &str| {
            text.wrong(line, column, value, expected)
        };
        let [of_hospital, of_device] = manner.statics.names().map(|names| names.len());
        let mut hospital = Grid::new(HOSPITAL.len(), of_hospital, manner);
        let mut device = Grid::new(DEVICE.len(), of_device, manner);
        let mut at_admission = [f32::NAN; STATICS.len()];
        let mut id = None;
        let csv = text.csv()?;
        if csv.columns() != ["Time", "Parameter", "Value"] {
            let header = csv.columns().join(",");
            return Err(wrong(1, "1", &header, "the header Time,Parameter,Value"));
        }
        csv.read(&[0, 1, 2], &mut |line, cells| {
            let number = line as usize;
            let [time, name, value] = [0, 1, 2].map(|column| cells[column].text());
            let minutes = minutes(time).ok_or_else(|| {
                wrong(
                    number,
                    "Time",
                    time,
                    "a time, hours and minutes like 07:35, up to 48:00",
                )
            })?;
            let written = value;
            let value = match written.parse::<f32>() {
                Ok(value) if value.is_finite() => value,
                _ => return Err(wrong(number, "Value", written, "a number")),
            };
            if name == "RecordID" {
                // An f32 would round a long one to another's.
                let exact: f64 = written.parse().unwrap_or(f64::NAN);
                id = Some(exact as u32).filter(|id| f64::from(*id) == exact);
                return Ok(());
            }
            // Less than nothing is how the set says that nothing was measured.
            if value < 0.0 {
                return Ok(());
            }
            let step = (minutes / 60).min(HOURS - 1) / manner.hours;
            if let Some(at) = STATICS
                .iter()
                .position(|n| *n == name)
                .filter(|_| minutes == 0)
            {
                at_admission[at] = value;
                if name != "Weight" {
                    return Ok(());
                }
            }
            if let Some(channel) = DEVICE.iter().position(|n| *n == name) {
                device.set(step, channel, value);
            } else if let Some(channel) = HOSPITAL.iter().position(|n| *n == name) {
                hospital.set(step, channel, value);
            } else if !name.is_empty() && !STATICS.contains(&name) {
                return Err(wrong(
                    number,
                    "Parameter",
                    name,
                    "one of the challenge's 42 parameters, like HR or Creatinine",
                ));
            }
            Ok(())
        })?;
        let Some(id) = id else {
            return Err(DataError::file(
                &text.place,
                "no RecordID in it: expected the line 00:00,RecordID,<number>",
            ));
        };
        let [of_hospital, of_device] = manner.statics.values(&at_admission);
        Ok(Stay {
            id,
            part: part_of(&text.place.to_string_lossy()),
            hospital: hospital.finish(&of_hospital),
            device: device.finish(&of_device),
        })
    }
}

/// What the challenge has a stay for, by where it lies.
fn part_of(place: &str) -> Part {
    // A folder further up may have any name.
    match (place.rfind("set-a/"), place.rfind("set-b/")) {
        (None, None) => Part::Open,
        (a, b) if a > b => Part::Training,
        _ => Part::Test,
    }
}

/// `07:35` as minutes.
fn minutes(time: &str) -> Option<usize> {
    let (hours, minutes) = time.split_once(':')?;
    let (hours, minutes): (usize, usize) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60 && hours <= 48).then(|| 60 * hours + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_record_ids_and_times_are_taken_for_what_they_are() {
        let stay = |id: &str, time: &str| {
            let text = Text {
                place: "1.txt".into(),
                name: "set-a/1.txt".into(),
                text: format!("Time,Parameter,Value\n00:00,RecordID,{id}\n{time},HR,80\n"),
            };
            Stay::parse(&text, &Manner::of(&DataSettings::default())?).map(|stay| stay.id)
        };
        assert_eq!(stay("16777217", "48:00").unwrap(), 16_777_217);
        assert!(stay("4294967296", "00:00").is_err());
        assert!(stay("1.5", "00:00").is_err());
        let error = stay("1", "307445734561825861:00").unwrap_err().to_string();
        assert!(error.contains("is not a time"), "{error}");
    }
}

//! `table`: any CSV or Parquet file, or several, whose columns `[data.table]` explains.
//!
//! ```text
//! headers ──► Plan (what each column is) ──► Survey (who is there) ──► Grid (numbers to their places) ──► Rows
//! ```
//!
//! Three kinds of files, told apart by their columns: one row per patient; one row per patient and time; one row per
//! patient, time and variable. The first file also has the labels. Everything is read twice: once to know who and what
//! is there, once to put numbers to their places, so that no more memory is taken than the set itself needs.
//!
//! A side whose features are known once is flat. One with time series has steps, the last value of each step counting,
//! and what is known once is repeated at every step. Categories become one number each, 0 or 1.

mod columns;
mod digits;
mod doubts;
mod fill;
mod joining;
mod label;
mod seen;
mod side;
mod source;
mod survey;
mod window;

use crate::DataError;
use crate::files::cell::Cell;
#[cfg(feature = "fuzz")]
use crate::fuzz::{self, Target};
use crate::inputs::{Column, Inputs};
use crate::rows::{Purpose, Rows};
use crate::sets::{DataSet, Source};
use crate::settings::{check_values, wrong};
pub(crate) use columns::Holder as Side;
use columns::{Holder, Plan};
pub(crate) use doubts::doubts;
use fill::{Grid, Places};
use label::Answers;
pub(crate) use label::{kind_of, names_of};
pub(crate) use seen::keep_trained;
use selvedge_core::experiment::{Categorical, DataSettings, Seen, TableSettings, Usual};
use selvedge_core::outcome::Kind;
pub(crate) use side::OneSide;
pub(crate) use source::{Bytes, Open};
use std::fs::File;
use std::path::{Path, PathBuf};
use survey::Survey;

pub(crate) static SET: DataSet = DataSet {
    has_steps: true,
    has_columns: true,
    usual: |data| {
        let usual = Usual {
            learns: true,
            ..Usual::plain(data)
        };
        match data
            .table
            .labels
            .len()
            .max(data.table.label.columns().len())
        {
            0 | 1 => usual,
            outputs => Usual { outputs, ..usual },
        }
    },
    outcomes: &[
        ("class", Kind::Class),
        ("labels", Kind::Labels),
        ("quantity", Kind::Quantity),
        ("survival", Kind::Survival),
    ],
    #[cfg(feature = "fuzz")]
    fuzz: &[Target::new("table", fuzz::sets::table, "table").with_seeds(fuzz::seeds::tables)],
    ..DataSet::new("table", Source::Files { read, read_new })
};

/// Reads the set.
fn read(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Rows, DataError> {
    let paths = find_all(settings, data_dir)?;
    read_files(settings, (Purpose::Training, [&[]; 2]), paths, &open)
}

fn find_all(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Vec<PathBuf>, DataError> {
    check(settings)?;
    let mut paths = vec![find("path", &settings.path, data_dir)?];
    for path in &settings.table.files {
        paths.push(find("table.files", path, data_dir)?);
    }
    Ok(paths)
}

/// What a model must fit.
pub(crate) fn look(settings: &DataSettings, data_dir: Option<&Path>) -> Result<Seen, DataError> {
    let paths = find_all(settings, data_dir)?;
    let training = (Purpose::Training, [&[][..]; 2]);
    let mut plan = Plan::new(settings, None, training, paths, &open)?;
    let survey = Survey::take(&mut plan, &open)?;
    let is_series = |side| plan.features.iter().any(|f| f.holder == side && f.series);
    let [hospital, device] = &survey.known;
    let keeps_all = settings.table.one_sided == "keep";
    let takes_part = |patient: &usize| keeps_all || (hospital[*patient] && device[*patient]);
    Ok(Seen {
        series: [Holder::Hospital, Holder::Device].map(is_series),
        outputs: survey.answers.outputs(settings),
        rows: (0..survey.ids.len()).filter(takes_part).count(),
    })
}

/// Reads patients whom training has not seen, with the columns and labels that the model was trained with.
fn read_new(
    settings: &DataSettings,
    inputs: &Inputs,
    paths: &[PathBuf],
    purpose: Purpose,
) -> Result<Rows, DataError> {
    check_columns(settings)?;
    let columns = [&inputs.hospital.columns[..], &inputs.device.columns];
    let statistics = &inputs.statistics;
    let mut settings = settings.clone();
    settings.outcome = statistics.outcome.kind().name().into();
    let table = &mut settings.table;
    if statistics.outcome.is_class() {
        table.labels = statistics.classes.clone();
    }
    // Where the run does not know its columns the settings name all of them.
    if columns.iter().all(|side| !side.is_empty()) {
        let names = |side: &[Column]| side.iter().map(|column| column.name.clone()).collect();
        (table.hospital, table.device) = (names(columns[0]), names(columns[1]));
        let categories = columns.into_iter().flatten();
        table.categorical = Categorical::Given(
            categories
                .filter_map(|column| Some((column.name.clone(), column.categories.clone()?)))
                .collect(),
        );
    }
    read_files(&settings, (purpose, columns), paths.to_vec(), &open)
}

fn open(path: &Path) -> std::io::Result<Box<dyn Bytes>> {
    // A pipe cannot be read twice.
    match std::fs::metadata(path)?.is_file() {
        true => Ok(Box::new(File::open(path)?)),
        false => Err(std::io::Error::other(
            "this is a folder, a pipe or a device: expected a CSV or Parquet file",
        )),
    }
}

/// A file in the data folder or, like every path on a command line, seen from the current one.
fn find(key: &'static str, path: &str, data_dir: Option<&Path>) -> Result<PathBuf, DataError> {
    let below = data_dir
        .map(|dir| dir.join(path))
        .filter(|path| path.exists());
    let found = below.unwrap_or_else(|| PathBuf::from(path));
    match found.is_file() {
        true => Ok(found),
        false => Err(DataError::Setting {
            key,
            value: format!("{path:?}"),
            expected: match data_dir {
                _ if found.exists() => "this is not a file: expected a CSV or Parquet file".into(),
                Some(dir) => format!(
                    "there is no such file, neither in {} nor in the current folder",
                    dir.display()
                ),
                None => "there is no such file: expected a CSV or Parquet file, relative to the current folder or to --data-dir".into(),
            },
        }),
    }
}

fn check(settings: &DataSettings) -> Result<(), DataError> {
    if settings.path.is_empty() {
        return Err(wrong(
            "path",
            "\"\"",
            "expected the CSV or Parquet file of the table",
        ));
    }
    check_columns(settings)
}

/// What the settings say of columns, whichever files they are in.
pub(crate) fn check_columns(settings: &DataSettings) -> Result<(), DataError> {
    check_values(settings)?;
    let t = &settings.table;
    if t.label.is_empty() {
        return Err(wrong(
            "table.label",
            "\"\"",
            "expected the column to predict",
        ));
    }
    Answers::check(settings)?;
    if t.id.is_empty() && !t.files.is_empty() {
        return Err(wrong(
            "table.id",
            "\"\"",
            "expected the column that joins data.table.files",
        ));
    }
    if t.variable.is_empty() != t.value.is_empty() || (!t.value.is_empty() && t.time.is_empty()) {
        let expected = "expected all of data.table.time, variable and value, or only time";
        return Err(wrong(
            "table.variable",
            format!("{:?}", t.variable),
            expected,
        ));
    }
    let mut labels = t.labels.clone();
    labels.sort_unstable();
    if labels.windows(2).any(|pair| pair[0] == pair[1]) || labels.len() == 1 {
        let expected = "expected at least two different labels";
        return Err(wrong("table.labels", format!("{:?}", t.labels), expected));
    }
    if !settings.vertical.is_empty() {
        let expected =
            "a table is split by data.table.hospital and data.table.device: expected \"\"";
        return Err(wrong(
            "vertical",
            format!("{:?}", settings.vertical),
            expected,
        ));
    }
    Ok(())
}

/// Reads files that `open` opens.
pub(crate) fn read_files(
    settings: &DataSettings,
    what: (Purpose, [&[Column]; 2]),
    paths: Vec<PathBuf>,
    open: Open<'_>,
) -> Result<Rows, DataError> {
    let mut plan = Plan::new(settings, None, what, paths, open)?;
    let mut survey = Survey::take(&mut plan, open)?;
    let unmeasured = plan.expect_variables()?;
    plan.settle()?;
    let mut notes = told_unmeasured(&unmeasured);
    let patients = patients(&plan, &survey, &mut notes)?;
    let places = Places::new(&survey, &patients);
    let mut grids = [
        Grid::new(&plan, Holder::Hospital, patients.len())?,
        Grid::new(&plan, Holder::Device, patients.len())?,
    ];
    let (outside, told) = fill::fill(&plan, open, &places, &mut grids)?;
    notes.extend(told);
    let incomplete = outside > 0 || survey.strangers > 0 || patients.len() < survey.ids.len();
    let take_id = |p: &u32| std::mem::take(&mut survey.ids[*p as usize]);
    let ids: Vec<String> = patients.iter().map(take_id).collect();
    let [hospital, device] = grids;
    notes.extend(survey.answers.told(&plan));
    let (y, known, classes) = survey.answers.of(&patients);
    let given_groups = survey.given_groups(&patients);
    let units = survey.persons(&patients);
    Ok(Rows {
        set: "table".into(),
        hospital: hospital.finish(&plan, &ids)?,
        device: device.finish(&plan, &ids)?,
        classes,
        y,
        known,
        parts: patients.iter().map(|p| survey.parts[*p as usize]).collect(),
        devices_are_units: !units.is_empty(),
        units,
        paper: if given_groups.is_some() {
            "column"
        } else {
            "iid"
        },
        given_groups,
        columns: [Holder::Hospital, Holder::Device].map(|side| plan.columns_of(side)),
        new_categories: std::mem::take(&mut plan.new_categories),
        incomplete,
        notes,
        ids,
        file: plan.files.swap_remove(0).path,
    })
}

/// What a user should know of variables that no row has.
fn told_unmeasured(names: &[String]) -> Vec<String> {
    let told =
        |name: &String| format!("no row has the variable {name:?}: it counts as not measured");
    names.iter().map(told).collect()
}

/// More patients than this share are not lost by chance.
const MANY: f64 = 0.05;

/// Patients without predictions who are named.
const MOST_NAMED: usize = 50;

/// Those who take part, in the order of their ids.
fn patients(
    plan: &Plan<'_>,
    survey: &Survey,
    notes: &mut Vec<String>,
) -> Result<Vec<u32>, DataError> {
    let [hospital, device] = &survey.known;
    let mut patients: Vec<u32> = (0..survey.ids.len() as u32).collect();
    let one_sided = |p: &u32| !(hospital[*p as usize] && device[*p as usize]);
    let lonely = patients.iter().filter(|p| one_sided(p)).count();
    if survey.strangers > 0 {
        let (ids, are, have) = match survey.strangers {
            1 => ("id", "is", "has"),
            _ => ("ids", "are", "have"),
        };
        let lacking = match plan.purpose.is_new() {
            true => format!("{are} not in the first"),
            false => format!("{have} no label"),
        };
        notes.push(format!(
            "{} {ids} of further files {lacking} and {are} left out",
            survey.strangers
        ));
    }
    // Where many are lost, both sides may have the same patients under other names.
    let lost = || {
        let ids = patients.iter().filter(|p| one_sided(p));
        let ids = ids.map(|p| survey.ids[*p as usize].as_str());
        let strangers = survey.some_strangers.iter().map(String::as_str);
        let why = joining::cause(ids, strangers);
        let why = why.map_or(String::new(), |why| {
            let strangers = survey.some_strangers.iter().map(String::as_str);
            format!(
                "; further files have {}, ...: {why}",
                joining::three(strangers)
            )
        });
        let share = lonely as f64 / patients.len() as f64;
        match share > MANY {
            true => format!(" ({:.0} % of all{why})", 100.0 * share),
            false => String::new(),
        }
    };
    let lost = lost();
    let (those, are) = match lonely {
        1 => ("patient is", "is"),
        _ => ("patients are", "are"),
    };
    match plan.settings.one_sided.as_str() {
        _ if lonely == 0 => {}
        "keep" => notes.push(format!(
            "{lonely} {those} known to only one side{lost}; values of the other side are filled in"
        )),
        "refuse" => {
            let first = patients
                .iter()
                .find(|p| one_sided(p))
                .map_or(0, |p| *p as usize);
            return Err(plan.files[0].problem(format!(
                "{lonely} {those} known to only one side, {:?} for instance{lost}: expected both, since data.table.one_sided = \"refuse\"",
                survey.ids[first]
            )));
        }
        _ => {
            // Who asks for predictions has to know who gets none.
            let named = if plan.purpose.is_new() { MOST_NAMED } else { 1 };
            let id = |p: &u32| format!("{:?}", survey.ids[*p as usize]);
            let ids = patients.iter().filter(|p| one_sided(p)).take(named).map(id);
            let ids: Vec<String> = ids.collect();
            let more = match lonely - ids.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            notes.push(format!(
                "{lonely} {those} known to only one side and {are} left out: {}{more}{lost}",
                ids.join(", ")
            ));
            patients.retain(|p| !one_sided(p));
        }
    }
    if patients.is_empty() {
        return Err(plan.files[0].problem(
            "no patient is known to both sides: expected the same ids in all files".into(),
        ));
    }
    // Without ids the order of the file counts, else that of ids, shorter ones first: patient 2 comes before patient 10.
    // New patients stay in the order in which somebody asks for them.
    if !plan.settings.id.is_empty() && !plan.purpose.is_new() {
        let key = |p: &u32| (survey.ids[*p as usize].len(), &survey.ids[*p as usize]);
        patients.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    }
    Ok(patients)
}

/// A cell, or nothing where its text means that nothing was measured.
fn measured<'a>(cell: Cell<'a>, settings: &TableSettings) -> Cell<'a> {
    let is_blank = |text: &str| settings.blank.iter().any(|blank| blank == text);
    match cell {
        Cell::Text(text) if is_blank(text) => Cell::Missing,
        Cell::Number(number) if number.is_nan() && is_blank("NaN") => Cell::Missing,
        Cell::Number(_) | Cell::Integer(_)
            if !settings.blank.is_empty() && is_blank(&cell.to_string()) =>
        {
            Cell::Missing
        }
        cell => cell,
    }
}

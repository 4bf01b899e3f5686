//! `selvedge predict`: what a trained model says of patients whom training has not seen.

use super::{print, print_json};
use crate::Outcome as Ended;
use crate::answers;
use crate::args::{ModelArgs, PredictArgs};
use crate::deploy::predictions::{Chosen, by_class, csv_head, csv_line};
use crate::report::text::{csv_cell, is_formula};
use crate::written::is_predictions;
use anyhow::{Result, bail};
use selvedge_core::assess::Decision;
use selvedge_core::outcome::Outcome;
use selvedge_data::{Labels, Odd, Oddity, Patients, Which, read_patients};
use selvedge_run::deciding::Deciding;
use selvedge_run::format::{count, counted};
use selvedge_run::outputs::{Kind, Output, is_same_place, of_data};
use selvedge_run::trained::Trained;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::BufWriter;
use std::path::PathBuf;

/// Columns of which it is told that they are unlike training; a patient's own notes have all.
const MOST_TOLD: usize = 8;

/// What was said of all patients.
struct Predicted<'a> {
    trained: &'a Trained,
    patients: Patients,
    answers: Vec<f32>,
    decision: Decision,
    chosen: Chosen,
}

pub(crate) fn run(args: &PredictArgs) -> Result<Ended> {
    let (trained, deciding) = open(&args.model)?;
    let [out, arrays] = outputs(args, &trained)?;
    let (patients, notes) = read(&trained, &args.model, &args.input, Labels::Ignored)?;
    if args.strict && !patients.oddities.is_empty() {
        let differ = match odd_patients(&patients).as_str() {
            "1" => "1 sample differs".to_owned(),
            count => format!("{count} samples differ"),
        };
        bail!(
            "{differ} from those of training, as noted above: correct or remove them, or run without --strict"
        );
    }
    if args.strict && !patients.complete {
        bail!(
            "not everything in the files is used, as noted above: correct them, or run without --strict"
        );
    }
    if let Some(arrays) = &arrays {
        arrays.write_with(|file| patients.write_npz(&trained.inputs, BufWriter::new(file)))?;
    }
    let id = |row: usize| format!("{:?}", patients.ids[row]);
    let predicted = Predicted {
        answers: trained.answers(&patients.samples, deciding.calibrated, id)?,
        decision: deciding.decision(),
        chosen: Chosen {
            positive: deciding.positive_name().map(str::to_owned),
            threshold: deciding.threshold(),
        },
        trained: &trained,
        patients,
    };
    let about = deciding.about(&trained);
    if args.json {
        let mut value = predicted.json();
        value["run"] = json!(args.model.chosen.run.display().to_string());
        value["model"] = json!(trained.file.display().to_string());
        value["notes"] = json!(notes);
        deciding.add_to(&trained, &mut value);
        print_json(&value)?;
        return Ok(Ended::Done);
    }
    let formulas = predicted.patients.ids.iter().filter(|id| is_formula(id));
    if let n @ 1.. = formulas.count() {
        crate::note(&format!(
            "{} would be a formula in a spreadsheet and is written with an apostrophe before it; --json has it as it is",
            counted(n as u64, "id")
        ));
    }
    match &out {
        Some(out) => {
            out.write(predicted.csv())?;
            print(&predicted.summary(&about))?;
            print(&format!("Written to {}\n", out.path.display()))?;
        }
        None => {
            for line in &about {
                let mut letters = line.chars();
                let first = letters.next().into_iter().flat_map(char::to_lowercase);
                crate::note(&first.chain(letters).collect::<String>());
            }
            print(&predicted.csv())?;
        }
    }
    Ok(Ended::Done)
}

/// What is written. Nothing that is read or was trained on may be overwritten, nor one output by the other.
fn outputs<'a>(args: &'a PredictArgs, trained: &Trained) -> Result<[Option<Output<'a>>; 2]> {
    let mut files = of_data(&trained.experiment, None);
    files.extend(args.input.clone());
    let output = |option, path: &'a Option<PathBuf>, kind| {
        let path = path.as_ref()?;
        Some(Output { option, path, kind })
    };
    let predictions = Kind::Known("predictions", &is_predictions);
    let outputs = [
        output("--out", &args.out, predictions),
        output("--arrays", &args.arrays, Kind::Arrays),
    ];
    outputs
        .iter()
        .flatten()
        .try_for_each(|output| output.check(&files))?;
    match &outputs {
        [Some(out), Some(arrays)] if is_same_place(out.path, arrays.path) => {
            bail!("--out and --arrays name the same file: expected two different ones")
        }
        _ => Ok(outputs),
    }
}

/// A run's model, and how it decides; warnings are told.
pub(super) fn open(model: &ModelArgs) -> Result<(Trained, Deciding)> {
    let trained = Trained::open(&model.chosen.run, model.chosen.which())?;
    let deciding = Deciding::new(&trained, &model.wishes())?;
    for warning in trained.warnings() {
        crate::note(&warning);
    }
    Ok((trained, deciding))
}

/// Patients in files, and notes on what is unlike training, which are told.
pub(super) fn read(
    trained: &Trained,
    model: &ModelArgs,
    files: &[PathBuf],
    labels: Labels,
) -> Result<(Patients, Vec<String>)> {
    let which = match model.all {
        true => Which::All,
        false => Which::Test,
    };
    let (settings, inputs) = (&trained.experiment.data, &trained.inputs);
    let patients = read_patients(settings, inputs, files, labels, which)?;
    let mut notes = patients.notes.clone();
    notes.extend(told(&patients));
    for note in &notes {
        crate::note(note);
    }
    Ok((patients, notes))
}

impl Predicted<'_> {
    /// Each patient's row, and what is said.
    fn rows(&self) -> impl Iterator<Item = (usize, &[f32])> {
        self.answers
            .chunks_exact(self.trained.outputs())
            .enumerate()
    }

    fn class(&self, said: &[f32]) -> &str {
        &self.trained.classes()[self.decision.class(said)]
    }

    fn csv(&self) -> String {
        let classes = self.trained.classes();
        let mut out = match self.trained.outcome() {
            Outcome::Class => csv_head(classes, &self.chosen),
            other => answers::csv_head((other, classes)),
        } + ",notes\n";
        let notes = notes_by_row(&self.patients);
        for (row, said) in self.rows() {
            let id = self.patients.ids[row].as_str();
            out += &match self.trained.outcome() {
                Outcome::Class => csv_line((id, self.class(said)), said, &self.chosen),
                _ => answers::csv_line(id, said),
            };
            let told = notes.get(&row).map_or(String::new(), |n| n.join("; "));
            out += &format!(",{}\n", csv_cell(&told));
        }
        out
    }

    fn json(&self) -> Value {
        let classes = self.trained.classes();
        let outcome = self.trained.outcome();
        let notes = notes_by_row(&self.patients);
        let patient = |(row, said): (usize, &[f32])| {
            let mut value = match outcome {
                Outcome::Class => json!({
                    "prediction": self.class(said),
                    "probabilities": by_class(classes, said),
                }),
                other => answers::json((other, classes), said),
            };
            value["id"] = json!(self.patients.ids[row]);
            value["notes"] = json!(notes.get(&row).cloned().unwrap_or_default());
            value
        };
        let mut value = json!({
            "classes": classes,
            "samples": self.rows().map(patient).collect::<Vec<_>>(),
        });
        if !outcome.is_class() {
            value["outcome"] = json!(outcome);
        }
        value
    }

    fn summary(&self, about: &[String]) -> String {
        let classes = self.trained.classes();
        let mut out = format!("{}\n", counted(self.patients.ids.len() as u64, "sample"));
        match self.trained.outcome() {
            Outcome::Class => {
                let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
                for (_, said) in self.rows() {
                    *counts.entry(self.decision.class(said)).or_default() += 1;
                }
                for (class, n) in counts {
                    out += &format!("  {:<20}{:>9}\n", classes[class], count(n));
                }
            }
            other => {
                let said = self.rows().map(|(_, said)| said);
                out += &answers::summary((other, classes), said);
            }
        }
        about.iter().for_each(|line| out += &format!("{line}\n"));
        out
    }
}

/// What is unlike training, of each row that has any of it.
fn notes_by_row(patients: &Patients) -> BTreeMap<usize, Vec<String>> {
    let mut notes: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for oddity in &patients.oddities {
        notes
            .entry(oddity.row)
            .or_default()
            .push(of_patient(oddity));
    }
    notes
}

fn of_patient(Oddity { column, odd, .. }: &Oddity) -> String {
    match odd {
        Odd::Beyond {
            value,
            range: [low, high],
        } => {
            format!("{column} = {value} is outside the training range ({low} to {high})")
        }
        Odd::Far {
            value,
            scale: [mean, _],
        } => {
            format!(
                "{column} = {value} is more than 10 standard deviations from the training mean ({mean:.4})"
            )
        }
        Odd::Unseen(value) => format!("{column} = {value} was never measured in training"),
        Odd::Category(category) => format!("{column} = {category:?} is a new category"),
        Odd::Untrained(category) => {
            format!("{column} = {category:?} is a category that no training row had")
        }
        Odd::Unmeasured => format!("{column} was not measured"),
    }
}

fn odd_patients(patients: &Patients) -> String {
    let rows: std::collections::BTreeSet<usize> =
        patients.oddities.iter().map(|oddity| oddity.row).collect();
    count(rows.len() as u64)
}

/// What is unlike training, column by column.
fn told(patients: &Patients) -> Vec<String> {
    let mut columns: BTreeMap<(u8, &str), Vec<&Oddity>> = BTreeMap::new();
    for oddity in &patients.oddities {
        let kind = match oddity.odd {
            Odd::Category(_) => 0,
            Odd::Untrained(_) => 1,
            Odd::Beyond { .. } | Odd::Far { .. } => 2,
            Odd::Unseen(_) => 3,
            Odd::Unmeasured => 4,
        };
        columns
            .entry((kind, &oddity.column))
            .or_default()
            .push(oddity);
    }
    let all = count(patients.ids.len() as u64);
    let tell = |((_, column), oddities): ((u8, &str), Vec<&Oddity>)| {
        let id = &patients.ids[oddities[0].row];
        let n = count(oddities.len() as u64);
        let (have, are) = match oddities.len() {
            1 => ("has", "is"),
            _ => ("have", "are"),
        };
        match &oddities[0].odd {
            Odd::Category(category) => format!(
                "{column:?}: {n} of {all} samples {have} a category not seen in training, such as {id:?} with {category:?}; it counts as not measured"
            ),
            Odd::Untrained(category) => format!(
                "{column:?}: {n} of {all} samples {have} a category that no training row had, such as {id:?} with {category:?}; the model has learnt nothing about it"
            ),
            Odd::Beyond {
                value,
                range: [low, high],
            } => format!(
                "{column:?}: {n} of {all} samples {are} outside the training range of {low} to {high}, such as {id:?} with {value}"
            ),
            Odd::Far {
                value,
                scale: [mean, deviation],
            } => format!(
                "{column:?}: {n} of {all} samples {are} more than 10 standard deviations ({deviation:.4}) from the training mean of {mean:.4}, such as {id:?} with {value}"
            ),
            Odd::Unmeasured => format!(
                "{column:?}: {n} of {all} samples {have} no value, such as {id:?}; in training, all had one"
            ),
            Odd::Unseen(_) => format!(
                "{column:?}: {n} of {all} samples {have} a value, such as {id:?}; in training, none had one"
            ),
        }
    };
    let mut told: Vec<String> = columns.into_iter().map(tell).collect();
    let more = told.len().saturating_sub(MOST_TOLD);
    if more > 0 {
        told.truncate(MOST_TOLD);
        told.push(format!(
            "{more} more columns differ from training; the notes on each sample list all of them"
        ));
    }
    told
}

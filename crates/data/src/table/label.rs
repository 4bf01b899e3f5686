//! What the label columns of a table say: a class, several labels, a quantity, or a time and an event.

use super::columns::{Plan, in_natural_order, list};
use super::doubts::alike;
use crate::DataError;
use crate::asked::Known;
use crate::files::cell::Cell;
use crate::rows::UNLABELLED;
use crate::settings::wrong;
use selvedge_core::experiment::{DataSettings, TableSettings};
use selvedge_core::outcome::Kind;
use std::collections::{BTreeMap, HashMap};

/// More classes than this are no classes.
const MOST_CLASSES: usize = 1_000;

/// So few different labels are classes, whatever they are.
const FEW_CLASSES: usize = 20;

/// More different numbers than this are measured, not codes.
const MANY_CODES: usize = 50;

/// With fewer rows for each number, they are not codes either; with fewer for each text, it is a name or a remark.
const ROWS_OF_A_CLASS: usize = 10;
const ROWS_OF_TEXT: usize = 3;

/// Texts that say yes, and no.
const YES: [&str; 6] = ["1", "1.0", "yes", "y", "true", "t"];
const NO: [&str; 6] = ["0", "0.0", "no", "n", "false", "f"];

/// What is known of one patient.
#[derive(PartialEq)]
pub(super) enum Answer {
    Class(u32),
    Numbers(Vec<f32>),
}

/// What is known of all patients.
#[derive(Default)]
pub(super) struct Answers {
    kind: Kind,
    /// Whether the settings leave open which kind it is.
    open: bool,
    /// The names of the classes or labels, or that of the quantity or of the event.
    names: Vec<String>,
    places: HashMap<String, u32>,
    classes: Vec<u32>,
    numbers: Vec<f32>,
    /// How many numbers there are of each patient.
    each: usize,
}

impl Answers {
    /// Refuses columns that do not fit the outcome.
    pub(super) fn check(settings: &DataSettings) -> Result<(), DataError> {
        let (kind, t) = (kind_of(settings), &settings.table);
        let columns = t.label.columns();
        let mut sorted = columns.to_vec();
        sorted.sort_unstable();
        let refuse = |key, value: String, expected: &str| Err(wrong(key, value, expected));
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) || sorted.iter().any(String::is_empty) {
            let expected = "expected different columns";
            return refuse("table.label", format!("{columns:?}"), expected);
        }
        if columns.len() > 1 && kind != Kind::Labels {
            let expected = "expected one column, or outcome = \"labels\"";
            return refuse("table.label", format!("{columns:?}"), expected);
        }
        if t.event.is_empty() == (kind == Kind::Survival) {
            let expected = match kind {
                Kind::Survival => {
                    "expected the column that says whether the event was at the time in data.table.label, yes or no"
                }
                _ => "only survival has an event: expected outcome = \"survival\", or \"\" here",
            };
            return refuse("table.event", format!("{:?}", t.event), expected);
        }
        if !t.labels.is_empty() && kind != Kind::Class {
            let expected = format!(
                "these are the names of classes, but the outcome is {}: expected []",
                kind.name()
            );
            return refuse("table.labels", format!("{:?}", t.labels), &expected);
        }
        Ok(())
    }

    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let t = plan.settings;
        let kind = kind(plan.outcome, t.label.columns().len(), &t.event);
        let names = names_of(plan.settings, kind);
        Answers {
            kind,
            open: plan.outcome.is_empty() && kind == Kind::Class && t.labels.is_empty(),
            places: names.iter().cloned().zip(0..).collect(),
            each: match kind {
                Kind::Class => 0,
                Kind::Quantity => 1,
                Kind::Labels => names.len(),
                Kind::Survival => 2,
            },
            names,
            ..Answers::default()
        }
    }

    /// What one row says, whose cells are those of the label columns and of the event; of new patients there may be none.
    pub(super) fn read(
        &mut self,
        plan: &Plan<'_>,
        row: u64,
        cells: &[Cell<'_>],
    ) -> Result<Answer, DataError> {
        let (file, t) = (&plan.files[0], plan.settings);
        let mut cells = cells.iter().map(|cell| super::measured(*cell, t));
        if self.kind == Kind::Class {
            return match cells.next() {
                None => Ok(Answer::Class(UNLABELLED)),
                Some(cell) => self.class(plan, row, cell).map(Answer::Class),
            };
        }
        if cells.len() == 0 {
            return Ok(Answer::Numbers(vec![f32::NAN; self.each]));
        }
        let columns = t.label.columns().iter().chain([&t.event]);
        let number = |(at, (cell, column)): (usize, (Cell<'_>, &String))| {
            let is_yes_or_no = self.kind == Kind::Labels || at == 1;
            let unknown = self.kind == Kind::Labels && cell == Cell::Missing;
            let text = cell.to_string();
            let (found, right) = match (is_yes_or_no, self.kind) {
                (true, _) if unknown => (Some(f32::NAN), ""),
                (true, Kind::Labels) => {
                    (yes_or_no(&text), "yes, no or nothing where that is unknown")
                }
                (true, _) => (
                    yes_or_no(&text),
                    "yes if the event was at this time, no if there was none until then",
                ),
                (false, Kind::Survival) => {
                    let time = measured(&text).filter(|time| *time >= 0.0);
                    (
                        time,
                        "the time of the event, or until which there was none: a number of 0 or more",
                    )
                }
                (false, _) => (measured(&text), "a number"),
            };
            found.ok_or_else(|| file.wrong(row, column, text, right))
        };
        let numbers = cells.zip(columns).enumerate().map(number);
        Ok(Answer::Numbers(numbers.collect::<Result<_, _>>()?))
    }

    fn class(&mut self, plan: &Plan<'_>, row: u64, cell: Cell<'_>) -> Result<u32, DataError> {
        let (file, column) = (&plan.files[0], plan.settings.label.first());
        let text = match cell {
            Cell::Missing => return Err(file.wrong(row, column, cell, "a label")),
            cell => cell.to_string(),
        };
        if let Some(class) = self.places.get(&text) {
            return Ok(*class);
        }
        if !plan.settings.labels.is_empty() {
            let names = list(plan.settings.labels.iter().map(String::as_str));
            return Err(file.wrong(row, column, text, format!("one of the labels, {names}")));
        }
        let class = self.names.len() as u32;
        self.places.insert(text.clone(), class);
        self.names.push(text);
        Ok(class)
    }

    /// The next patient's.
    pub(super) fn push(&mut self, answer: Answer) {
        match answer {
            Answer::Class(class) => self.classes.push(class),
            Answer::Numbers(numbers) => self.numbers.extend(numbers),
        }
    }

    /// The first column, and its place, in which a further row of a patient says something else.
    pub(super) fn difference<'p>(
        &self,
        patient: usize,
        answer: &Answer,
        plan: &'p Plan<'_>,
    ) -> Option<(&'p str, usize)> {
        let t = plan.settings;
        match answer {
            Answer::Class(class) => {
                (self.classes[patient] != *class).then_some((t.label.first(), 0))
            }
            Answer::Numbers(numbers) => {
                let known = &self.numbers[patient * self.each..][..self.each];
                let bits = known
                    .iter()
                    .zip(numbers)
                    .map(|(a, b)| (a.to_bits(), b.to_bits()));
                let differs = bits.into_iter().position(|(a, b)| a != b)?;
                let mut columns = t.label.columns().iter().chain([&t.event]);
                columns.nth(differs).map(|name| (name.as_str(), differs))
            }
        }
    }

    /// All rows are read: classes are put in order, or found to be a quantity.
    pub(super) fn finish(&mut self, plan: &Plan<'_>) -> Result<(), DataError> {
        if self.kind != Kind::Class || !plan.settings.labels.is_empty() {
            return Ok(());
        }
        let main = &plan.files[0];
        if self.open && self.is_quantity() {
            let values: Vec<f32> = self
                .names
                .iter()
                .filter_map(|name| measured(name))
                .collect();
            self.numbers = self
                .classes
                .iter()
                .map(|class| values[*class as usize])
                .collect();
            (self.kind, self.each) = (Kind::Quantity, 1);
            self.names = vec![plan.settings.label.first().into()];
            return Ok(());
        }
        self.order();
        self.check_classes(plan)?;
        match self.names.len() {
            0 | 1 => Err(main.problem(format!(
                "all rows have the label {}: expected at least two different ones",
                list(self.names.iter().map(String::as_str))
            ))),
            _ => Ok(()),
        }
    }

    /// Whether what stands in the column is a quantity, and no code of a class.
    fn is_quantity(&self) -> bool {
        let values: Option<Vec<f32>> = self.names.iter().map(|name| measured(name)).collect();
        let Some(values) = values.filter(|values| values.len() > FEW_CLASSES) else {
            return false;
        };
        let many = self.classes.len() < ROWS_OF_A_CLASS * values.len();
        many || values.len() > MANY_CODES || values.iter().any(|x| x.fract() != 0.0)
    }

    /// Refuses a quantity, a name of each row, or two ways to write a class, as a class.
    fn check_classes(&self, plan: &Plan<'_>) -> Result<(), DataError> {
        let (names, rows, main) = (&self.names, self.classes.len(), &plan.files[0]);
        let column = plan.settings.label.first();
        if let Some((a, b)) = alike(names.iter().map(String::as_str)) {
            return Err(main.problem(format!(
                "the column {column:?} has {a:?} and {b:?}, which would be two classes: write them alike or, if they are two, list all in data.table.labels"
            )));
        }
        if names.len() <= FEW_CLASSES {
            return Ok(());
        }
        let (least, most) = (&names[0], &names[names.len() - 1]);
        if self.is_quantity() {
            return Err(main.problem(format!(
                "the column {column:?} has {} different numbers, {least} to {most}, in {rows} rows: that is a quantity, and no class: set data.outcome = \"quantity\"; if each number really is a class, list them in data.table.labels",
                names.len()
            )));
        }
        if names.len() > MOST_CLASSES {
            return Err(main.problem(format!(
                "the column {column:?} has more than {MOST_CLASSES} different values: expected class labels"
            )));
        }
        match rows < ROWS_OF_TEXT * names.len() {
            true => Err(main.problem(format!(
                "the column {column:?} has {} different values in {rows} rows, such as {least:?} and {most:?}: expected class labels that many rows share; if each really is a class, list them in data.table.labels",
                names.len()
            ))),
            false => Ok(()),
        }
    }

    /// Numbers classes in their natural order instead of in that of the file.
    fn order(&mut self) {
        let found = std::mem::take(&mut self.names);
        let names = in_natural_order(found.iter().cloned().collect());
        let places: BTreeMap<&String, u32> = names.iter().zip(0..).collect();
        for class in &mut self.classes {
            *class = places[&found[*class as usize]];
        }
        self.names = names;
    }

    /// How many numbers a model gives for a patient.
    pub(super) fn outputs(&self, settings: &DataSettings) -> usize {
        match self.kind {
            Kind::Class | Kind::Labels => self.names.len(),
            Kind::Quantity => 1,
            Kind::Survival => settings.intervals,
        }
    }

    /// What a user should know.
    pub(super) fn told(&self, plan: &Plan<'_>) -> Option<String> {
        let inferred = self.open && self.kind == Kind::Quantity && !plan.purpose.is_new();
        inferred.then(|| {
            format!(
                "the column {:?} is taken for a quantity, since it has many different numbers; if each is a class, list them in data.table.labels",
                plan.settings.label.first()
            )
        })
    }

    /// What is known of some patients: the class or stratum of each, what else there is, and the names.
    pub(super) fn of(&self, patients: &[u32]) -> (Vec<u32>, Option<Known>, Vec<String>) {
        let names = self.names.clone();
        if self.kind == Kind::Class {
            let y = patients.iter().map(|p| self.classes[*p as usize]).collect();
            return (y, None, names);
        }
        let of = |p: &u32| &self.numbers[*p as usize * self.each..][..self.each];
        let values = patients.iter().flat_map(of).copied().collect();
        let (known, y) = Known::new(self.kind, &names, values);
        (y, Some(known), names)
    }
}

/// The kind of outcome that settings name or, as far as they do not, that their columns mean. A single column may yet be
/// found to be a quantity.
pub(crate) fn kind_of(settings: &DataSettings) -> Kind {
    let t = &settings.table;
    kind(&settings.outcome, t.label.columns().len(), &t.event)
}

/// The names of the classes or labels, or that of the quantity or of the event, as far as settings name them.
pub(crate) fn names_of(settings: &TableSettings, kind: Kind) -> Vec<String> {
    match kind {
        Kind::Class => settings.labels.clone(),
        Kind::Labels | Kind::Quantity => settings.label.columns().to_vec(),
        Kind::Survival => vec![settings.event.clone()],
    }
}

fn kind(outcome: &str, columns: usize, event: &str) -> Kind {
    Kind::named(outcome).unwrap_or(match (columns, event) {
        (0 | 1, "") => Kind::Class,
        (_, "") => Kind::Labels,
        _ => Kind::Survival,
    })
}

fn yes_or_no(text: &str) -> Option<f32> {
    let text = text.trim().to_lowercase();
    let one_of = |words: &[&str]| words.contains(&text.as_str());
    match (one_of(&YES), one_of(&NO)) {
        (true, _) => Some(1.0),
        (_, true) => Some(0.0),
        _ => None,
    }
}

/// A finite number.
fn measured(text: &str) -> Option<f32> {
    text.trim().parse().ok().filter(|x: &f32| x.is_finite())
}

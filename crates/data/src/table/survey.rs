//! The first pass over all files: who is there, with which label, and what is known of them.

use super::columns::{File, Holder, Layout, Plan, in_natural_order};
use super::joining;
use super::label::Answers;
use super::source::{Open, Source};
use crate::DataError;
use crate::files::cell::Cell;
use crate::rows::{GivenGroups, Part, Purpose};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What the files say about their patients besides features.
#[derive(Default)]
pub(super) struct Survey {
    /// Patients by id, in the order of the main file.
    pub(super) numbers: HashMap<String, u32>,
    pub(super) ids: Vec<String>,
    pub(super) answers: Answers,
    groups: Texts,
    patients: Texts,
    pub(super) parts: Vec<Part>,
    /// Whether the hospital, and the device, has anything of a patient.
    pub(super) known: [Vec<bool>; 2],
    /// How many ids only further files have, and some of them.
    pub(super) strangers: usize,
    pub(super) some_strangers: Vec<String>,
    /// Patients with several rows where one is due. Only a side that is read by itself has any: elsewhere they are an
    /// error.
    pub(super) doubled: HashSet<u32>,
}

/// A text for each patient, stored once each.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, u32>,
    of_patient: Vec<u32>,
}

impl Texts {
    fn number(&mut self, text: String) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(text).or_insert(next)
    }

    /// The texts in order and, for each number given so far, its place among them.
    fn in_order(&self) -> (Vec<String>, Vec<u32>) {
        let names = in_natural_order(self.numbers.keys().cloned().collect());
        let mut places = vec![0; names.len()];
        for (place, name) in names.iter().enumerate() {
            places[self.numbers[name] as usize] = place as u32;
        }
        (names, places)
    }
}

/// The main file's columns that say something about a patient.
struct Roles {
    /// Those of the labels, and that of the event.
    label: Vec<usize>,
    group: Option<usize>,
    patient: Option<usize>,
    part: Option<usize>,
}

impl Survey {
    /// Reads all files once.
    pub(super) fn take(plan: &mut Plan<'_>, open: Open<'_>) -> Result<Self, DataError> {
        let mut survey = Survey {
            answers: Answers::new(plan),
            ..Survey::default()
        };
        for number in 0..plan.files.len() {
            survey.read_file(plan, number, open)?;
        }
        if plan.side == Some(Holder::Device) || plan.purpose.is_new() {
            return Ok(survey);
        }
        survey.answers.finish(plan)?;
        Ok(survey)
    }

    fn read_file(
        &mut self,
        plan: &mut Plan<'_>,
        number: usize,
        open: Open<'_>,
    ) -> Result<(), DataError> {
        // Devices have no file that says who is there: whoever is in one of theirs is.
        let of_devices = plan.side == Some(Holder::Device);
        let (file, is_main) = (&plan.files[number], number == 0 || of_devices);
        let roles = match is_main && !of_devices {
            true => Some(Roles::of(file, plan)?),
            false => None,
        };
        // The wanted cells in a fixed order: id, then what this pass is for.
        let mut wanted = Vec::new();
        let mut want = |column: Option<usize>| {
            column.map(|column| {
                wanted.push(column);
                wanted.len() - 1
            })
        };
        let id_at = want(file.id);
        let roles = roles.map(|roles| Roles {
            label: roles
                .label
                .iter()
                .filter_map(|at| want(Some(*at)))
                .collect(),
            group: want(roles.group),
            patient: want(roles.patient),
            part: want(roles.part),
        });
        let variable_at = want(file.variable.filter(|_| file.layout == Layout::Long));
        let value_at = want(file.value.filter(|_| file.layout == Layout::Long));
        let categorical: Vec<(usize, usize)> = file
            .features
            .iter()
            .filter(|(_, feature)| plan.features[*feature].categories.is_some())
            .filter_map(|(column, feature)| Some((want(Some(*column))?, *feature)))
            .collect();
        let holders = file.features.iter().map(|(_, f)| plan.features[*f].holder);
        let holders: BTreeSet<Holder> = holders.collect();
        let flat = file.layout == Layout::Flat;
        let source = Source::open(&file.path, open)?;

        // The row of each patient; none is 0.
        let mut row_of: Vec<u64> = Vec::new();
        let mut strangers: HashSet<String> = HashSet::new();
        source.read(&wanted, &mut |row, cells| {
            let id = id_of(&plan.files[number], row, id_at.map(|at| cells[at]), plan)?;
            let patient = match (self.numbers.get(&id), is_main) {
                (Some(patient), _) => *patient,
                (None, true) => {
                    self.numbers.insert(id.clone(), self.ids.len() as u32);
                    self.ids.push(id.clone());
                    self.known.iter_mut().for_each(|known| known.push(false));
                    self.ids.len() as u32 - 1
                }
                (None, false) => {
                    strangers.insert(id);
                    return Ok(());
                }
            };
            row_of.resize(self.ids.len(), 0);
            let first = std::mem::replace(&mut row_of[patient as usize], row);
            if flat && first > 0 && plan.side.is_some() {
                self.doubled.insert(patient);
                return Ok(());
            }
            if flat && first > 0 {
                let file = &plan.files[number];
                let expected = format!(
                    "unique: {} {first} has it already (data.table.time is for several rows over time, data.table.patient for several rows per patient)",
                    file.counting.word()
                );
                return Err(file.wrong(row, &plan.settings.id, id, expected));
            }
            if let Some(roles) = &roles {
                self.note(plan, roles, patient, row, cells)?;
            }
            for (at, feature) in &categorical {
                let value = super::measured(cells[*at], plan.settings);
                plan.note_category(number, (row, &self.ids[patient as usize]), *feature, value)?;
            }
            if let (Some(variable), Some(value)) = (variable_at, value_at) {
                let name = cells[variable].to_string();
                if let Some(feature) = plan.variable(&name)? {
                    let value = super::measured(cells[value], plan.settings);
                    let who = (row, &self.ids[patient as usize][..]);
                    plan.note_category(number, who, feature, value)?;
                    self.known[plan.features[feature].holder as usize][patient as usize] = true;
                }
            }
            for holder in &holders {
                self.known[*holder as usize][patient as usize] = true;
            }
            Ok(())
        })?;
        let joined = row_of.iter().any(|row| *row > 0);
        // Ids are those of the main file or, of devices, of all.
        let is_empty = match self.ids.is_empty() {
            true => !of_devices || number + 1 == plan.files.len(),
            false => !joined && strangers.is_empty() && !self.can_be_empty(plan),
        };
        if is_empty {
            return Err(plan.files[number].problem("a header but no rows of data".into()));
        }
        if !joined && !strangers.is_empty() {
            return Err(self.not_joined(plan, number, &strangers));
        }
        self.strangers += strangers.len();
        self.some_strangers.extend(strangers);
        Ok(())
    }

    /// Whether a further file may have no rows: where it is one of several of a side, or new patients may lack a side.
    fn can_be_empty(&self, plan: &Plan<'_>) -> bool {
        plan.side.is_some() || plan.purpose.is_new() && plan.settings.one_sided == "keep"
    }

    /// None of a further file's ids is in the main one.
    fn not_joined(&self, plan: &Plan<'_>, number: usize, strangers: &HashSet<String>) -> DataError {
        let own = || self.ids.iter().map(String::as_str);
        let others = || strangers.iter().map(String::as_str);
        plan.files[number].problem(format!(
            "none of its {} different ids ({}: {}, ...) is among the {} of {} ({}, ...): {}",
            strangers.len(),
            plan.settings.id,
            joining::three(others()),
            self.ids.len(),
            plan.files[0].path.display(),
            joining::three(own()),
            joining::cause(own(), others()).unwrap_or("expected the same ids in all files"),
        ))
    }

    /// What a row of the main file says about its patient; where there are several rows, all must say the same.
    fn note(
        &mut self,
        plan: &Plan<'_>,
        roles: &Roles,
        patient: u32,
        row: u64,
        cells: &[Cell<'_>],
    ) -> Result<(), DataError> {
        let (file, t) = (&plan.files[0], plan.settings);
        let said: Vec<Cell<'_>> = roles.label.iter().map(|at| cells[*at]).collect();
        let answer = self.answers.read(plan, row, &said)?;
        let is_new = plan.purpose.is_new();
        let text = |column: &str, cell: Cell<'_>, unknown: &str| match cell {
            // Of new patients it need not be known.
            Cell::Missing if is_new => Ok(unknown.to_owned()),
            Cell::Missing => Err(file.wrong(row, column, "", "a name")),
            cell => Ok(cell.to_string()),
        };
        let group = match roles.group {
            Some(at) => Some(self.groups.number(text(&t.group, cells[at], "unknown")?)),
            None => None,
        };
        let person = match roles.patient {
            Some(at) => {
                let own = format!("{} itself", self.ids[patient as usize]);
                Some(self.patients.number(text(&t.patient, cells[at], &own)?))
            }
            None => None,
        };
        let part = match roles.part {
            Some(at) if is_new && cells[at] == Cell::Missing => Part::Open,
            Some(at) => part(file, row, &t.part, cells[at])?,
            None => Part::Open,
        };
        let index = patient as usize;
        if index == self.parts.len() {
            self.answers.push(answer);
            self.groups.of_patient.extend(group);
            self.patients.of_patient.extend(person);
            self.parts.push(part);
            return Ok(());
        }
        let same =
            |texts: &Texts, now: Option<u32>| now.is_none_or(|n| texts.of_patient[index] == n);
        if let Some((column, at)) = self.answers.difference(index, &answer, plan) {
            let expected = format!("the value in earlier rows of {:?}", self.ids[index]);
            return Err(file.wrong(row, column, said[at], expected));
        }
        for (column, is_same, at) in [
            (&t.group, same(&self.groups, group), roles.group),
            (&t.patient, same(&self.patients, person), roles.patient),
            (&t.part, self.parts[index] == part, roles.part),
        ] {
            if let (false, Some(at)) = (is_same, at) {
                let expected = format!("the value in earlier rows of {:?}", self.ids[index]);
                return Err(file.wrong(row, column, cells[at], expected));
            }
        }
        Ok(())
    }

    /// The groups of some patients, where the file names groups.
    pub(super) fn given_groups(&self, patients: &[u32]) -> Option<GivenGroups> {
        let (names, places) = self.groups.in_order();
        let of = |p: &u32| places[self.groups.of_patient[*p as usize] as usize];
        (!names.is_empty()).then(|| GivenGroups {
            of_row: patients.iter().map(of).collect(),
            names,
        })
    }

    /// The persons behind some patients' rows, where the file names them.
    pub(super) fn persons(&self, patients: &[u32]) -> Vec<u32> {
        let (names, places) = self.patients.in_order();
        if names.is_empty() {
            return Vec::new();
        }
        let of = |p: &u32| places[self.patients.of_patient[*p as usize] as usize];
        patients.iter().map(of).collect()
    }
}

impl Roles {
    fn of(file: &File, plan: &Plan<'_>) -> Result<Self, DataError> {
        let t = plan.settings;
        let optional = |key: &str, name: &str| match name {
            "" => Ok(None),
            // One side is one group's, and who is held out is drawn later.
            _ if plan.side.is_some() => Ok(None),
            // Of new patients it need not be known where they belong.
            _ if plan.purpose.is_new() => Ok(file.column(name)),
            name => file.required(key, name).map(Some),
        };
        Ok(Roles {
            label: match plan.purpose {
                Purpose::New { labelled: false } => Vec::new(),
                _ => {
                    let labels = t.label.columns().iter().map(|name| ("label", name));
                    let event = (!t.event.is_empty()).then_some(("event", &t.event));
                    let all = labels
                        .chain(event)
                        .map(|(key, name)| file.required(key, name));
                    all.collect::<Result<_, _>>()?
                }
            },
            group: optional("group", &t.group)?,
            patient: optional("patient", &t.patient)?,
            part: optional("part", &t.part)?,
        })
    }
}

/// The id of a row: what its column says or, without one, its number.
pub(super) fn id_of(
    file: &File,
    row: u64,
    cell: Option<Cell<'_>>,
    plan: &Plan<'_>,
) -> Result<String, DataError> {
    match cell {
        None => Ok(row.to_string()),
        Some(Cell::Missing) => Err(file.wrong(row, &plan.settings.id, "", "an id")),
        Some(cell) => Ok(cell.to_string()),
    }
}

fn part(file: &File, row: u64, column: &str, cell: Cell<'_>) -> Result<Part, DataError> {
    let text = cell.to_string();
    match text.to_lowercase().as_str() {
        "train" | "training" => Ok(Part::Training),
        "val" | "valid" | "validation" => Ok(Part::Validation),
        "test" => Ok(Part::Test),
        _ => Err(file.wrong(row, column, text, "\"train\", \"validation\" or \"test\"")),
    }
}

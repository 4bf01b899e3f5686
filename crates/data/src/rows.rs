//! The output of a reader: all rows of a data set, both sides, before they are assigned to groups.
//!
//! ```text
//! reader ──► Rows ──► split (who gets which) ──► statistics (of training rows) ──► Dataset
//! ```

use crate::asked::{self, Known};
use crate::inputs::{Column, SideInputs};
use crate::split::{self, Split};
use crate::statistics::{self, Method, Scaling, Statistics};
use crate::{DataError, Loaded, sound, table};
use rayon::prelude::*;
use selvedge_core::dataset::{Dataset, Group, Holders, Samples};
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::{Outcome, Targets};
use selvedge_nn::Shape;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

/// The label of a patient of whom nobody knows it yet.
pub(crate) const UNLABELLED: u32 = u32::MAX;

/// What rows are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A model is to be trained on them.
    Training,
    /// A trained model is to say something of them.
    New {
        /// Whether it is to be compared with what is known of them.
        labelled: bool,
    },
}

impl Purpose {
    /// Whether the rows are of patients whom training has not seen.
    pub(crate) fn is_new(self) -> bool {
        self != Purpose::Training
    }
}

/// By the id of a patient, columns and the categories there.
pub(crate) type NewCategories = HashMap<String, Vec<(String, String)>>;

/// The rows of a set, in an order that does not depend on the order of its files.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The set's name, as in `data.set`.
    pub(crate) set: String,
    /// The file that errors about the set as a whole name.
    pub(crate) file: PathBuf,
    /// What hospitals hold.
    pub(crate) hospital: Side,
    /// What devices hold.
    pub(crate) device: Side,
    /// The names of the classes or labels, or that of the quantity or of the event.
    pub(crate) classes: Vec<String>,
    /// The class of each row or, where the outcome is another, its stratum.
    pub(crate) y: Vec<u32>,
    /// What is known of rows, where that is no class.
    pub(crate) known: Option<Known>,
    /// The patient of each row, as the file names it.
    pub(crate) ids: Vec<String>,
    /// Where the publisher puts each row.
    pub(crate) parts: Vec<Part>,
    /// Rows with the same number stay together: pieces of one recording, samples of one patient. Empty: each stands
    /// alone.
    pub(crate) units: Vec<u32>,
    /// Whether what stays together is one device's, instead of `data.samples_per_device` rows each.
    pub(crate) devices_are_units: bool,
    /// The group that the file names for each row, as an index into the names; for `data.split = "column"`.
    pub(crate) given_groups: Option<GivenGroups>,
    /// The scheme that `data.split = "paper"` stands for.
    pub(crate) paper: &'static str,
    /// The columns of both sides as the file has them, where it names them: a table's.
    pub(crate) columns: [Vec<Column>; 2],
    /// Categories that training has not seen.
    pub(crate) new_categories: NewCategories,
    /// Whether rows or measurements of the files were left out.
    pub(crate) incomplete: bool,
    /// What a user should know about the reading.
    pub(crate) notes: Vec<String>,
}

impl Rows {
    /// Rows that are still to be listed, of patients who stand alone and of whom the file names neither columns nor
    /// groups.
    pub(crate) fn new(
        set: &str,
        file: impl Into<PathBuf>,
        [hospital, device]: [Side; 2],
        paper: &'static str,
    ) -> Self {
        Rows {
            set: set.into(),
            file: file.into(),
            hospital,
            device,
            classes: Vec::new(),
            y: Vec::new(),
            known: None,
            ids: Vec::new(),
            parts: Vec::new(),
            units: Vec::new(),
            devices_are_units: false,
            given_groups: None,
            paper,
            columns: Default::default(),
            new_categories: Default::default(),
            incomplete: false,
            notes: Vec::new(),
        }
    }
}

/// One side of all rows.
#[derive(Debug)]
pub(crate) struct Side {
    /// The shape of one row.
    pub(crate) shape: Shape,
    /// The names of a row's features, or of those of one step, or none where they have none.
    pub(crate) names: Vec<String>,
    /// Row after row; NaN where nothing was measured.
    pub(crate) values: Vec<f32>,
    /// The place of each row among the values; none: in order. So nothing has to be moved when rows are sorted.
    pub(crate) order: Vec<u32>,
    /// How they are brought to one size.
    pub(crate) scaling: Scaling,
    /// Where the reader filled gaps itself: for each column, the share that was not measured.
    pub(crate) gaps: Vec<f64>,
}

/// Groups that a column of the file names.
#[derive(Debug)]
pub(crate) struct GivenGroups {
    /// The group of each row.
    pub(crate) of_row: Vec<u32>,
    /// The names.
    pub(crate) names: Vec<String>,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Open => "anything",
            Part::Training => "training",
            Part::Validation => "validation",
            Part::Test => "testing",
        })
    }
}

/// Where the publisher of a set puts a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nowhere: the experiment's shares decide.
    Open,
    /// To training.
    Training,
    /// To validation.
    Validation,
    /// To the test.
    Test,
}

impl Side {
    /// Rows in order, whose features have no names.
    pub(crate) fn new(shape: Shape, values: Vec<f32>, scaling: Scaling) -> Self {
        Side {
            shape,
            names: Vec::new(),
            values,
            order: Vec::new(),
            scaling,
            gaps: Vec::new(),
        }
    }

    /// The values of a row.
    pub(crate) fn row(&self, row: usize) -> &[f32] {
        let width = self.shape.len();
        let place = self.order.get(row).map_or(row, |place| *place as usize);
        &self.values[place * width..][..width]
    }
}

/// A set that is dealt but not scaled: what shards are cut from.
pub(crate) struct Dealt {
    /// The set with its numbers as they were read, NaN where nothing was measured.
    pub(crate) dataset: Dataset,
    /// What its training rows show.
    pub(crate) statistics: Statistics,
    /// What its rows are called.
    pub(crate) ids: Ids,
    /// Whether a file says so of the test.
    pub(crate) groups_are_given: bool,
    /// The unit of each row of each part, the groups' first; or nothing where each row stands alone.
    pub(crate) persons: Vec<Vec<u32>>,
    /// The columns of both sides, where they are a table's.
    pub(crate) columns: [Vec<Column>; 2],
    /// What a user should know.
    pub(crate) notes: Vec<String>,
}

/// The ids of the rows of each group, of validation and of the test.
pub(crate) enum Ids {
    /// As a file has them.
    Given(Vec<Vec<String>>),
    /// Generated rows have none: their part and their number will do, and take no memory.
    Numbered,
}

impl Ids {
    /// The id of a row of a part: of a group or, behind the groups, of validation or of the test.
    pub(crate) fn get(&self, part: usize, row: usize) -> String {
        match self {
            Ids::Given(ids) => ids[part][row].clone(),
            Ids::Numbered => format!("{part}-{row}"),
        }
    }
}

impl Dealt {
    /// Scales everything.
    pub(crate) fn scale(mut self) -> Loaded {
        let statistics = &self.statistics;
        let training = || self.dataset.groups.iter().map(|group| &group.samples);
        let [of_hospital, of_device] = self.columns;
        let sides = [
            SideInputs::new(of_hospital, &statistics.hospital, training().map(|s| &s.x1)),
            SideInputs::new(of_device, &statistics.device, training().map(|s| &s.x2)),
        ];
        let of_test = self.groups_are_given.then(|| self.dataset.holders_of(1));
        let groups = self.dataset.groups.iter_mut().map(|g| &mut g.samples);
        let held_out = [&mut self.dataset.validation, &mut self.dataset.test];
        let parts: Vec<&mut Samples> = groups.chain(held_out).collect();
        parts.into_par_iter().for_each(|samples| {
            statistics.hospital.apply(&mut samples.x1);
            statistics.device.apply(&mut samples.x2);
        });
        Loaded {
            dataset: self.dataset,
            statistics: self.statistics,
            sides,
            persons: self.persons,
            groups_of_test: of_test,
            notes: self.notes,
        }
    }
}

impl Rows {
    /// Deals and measures.
    pub(crate) fn deal(mut self, settings: &DataSettings, seed: u64) -> Result<Dealt, DataError> {
        let split = split::split_rows(&self, settings, seed)?;
        let untrained = table::keep_trained(&mut self, &split, settings);
        let outcome = match &self.known {
            None => Outcome::Class,
            Some(known) => {
                let training = known.training(&split);
                let curve = (settings.intervals, settings.horizon.or(known.horizon));
                let name = self.classes.first().map_or("", String::as_str);
                asked::outcome(known.kind, name, || std::iter::once(&training), curve)?
            }
        };
        let hidden = match &mut self.known {
            Some(known) => known.hide(&split, settings.hidden, seed)?,
            None => Known::nothing_to_hide(settings.hidden)?,
        };
        let unknown = match &self.known {
            Some(known) => known.notes(&self, &split),
            None => asked::absent_classes(&self, &split).into_iter().collect(),
        };
        let method = Method::of(settings, &self)?;
        let statistics = self.measure(&split, &outcome, method);
        let unsound = sound::check(&self, &split, &statistics)?;
        let held_out = self.held_out(&split);
        let groups_are_given = split
            .test
            .iter()
            .all(|row| self.named_group(&split, *row).is_some());
        let told = split.notes(&self);
        let doubts = table::doubts(&self, &split);
        let Rows {
            set,
            hospital,
            device,
            classes,
            y,
            known,
            mut ids,
            units,
            devices_are_units,
            mut notes,
            columns,
            ..
        } = self;
        notes.extend(told);
        notes.extend(hidden);
        notes.extend(unknown);
        notes.extend(untrained);
        notes.extend(unsound);
        notes.extend(doubts);
        let parts: Vec<&[usize]> = split.parts().collect();
        let targets = known.map_or(Targets::Classes(y), |known| known.targets);
        let of_rows = |rows: &[usize]| {
            let mut some = targets.none();
            rows.iter().for_each(|row| some.push(targets.at(*row)));
            some
        };
        let shapes = [hospital.shape, device.shape];
        // One side after the other, each given back once it is copied: so a set never takes twice its size.
        let copied = |side: Side| -> Vec<Vec<f32>> {
            let of_part = |rows: &&[usize]| {
                let mut values = Vec::with_capacity(rows.len() * side.shape.len());
                for row in *rows {
                    values.extend_from_slice(side.row(*row));
                }
                values
            };
            parts.iter().map(of_part).collect()
        };
        let (x1, x2) = (copied(hospital), copied(device));
        let samples = x1.into_iter().zip(x2).zip(&parts);
        let mut samples: Vec<Samples> = samples
            .map(|((x1, x2), rows)| Samples {
                x1,
                x2,
                y: of_rows(rows),
            })
            .collect();
        let test = samples.pop().unwrap_or_default();
        let validation = samples.pop().unwrap_or_default();
        let groups = samples.into_iter().zip(&split.names).zip(&split.groups);
        let groups = groups.map(|((samples, name), rows)| Group {
            name: name.clone(),
            offsets: match devices_are_units {
                true => unit_offsets(rows, &units),
                false => offsets(samples.len(), settings.samples_per_device),
            }
            .into(),
            samples,
        });
        let dataset = Dataset {
            name: set,
            hospital: shapes[0],
            device: shapes[1],
            outcome,
            classes,
            groups: groups.collect(),
            validation,
            test,
            holders: Holders::of(held_out),
        };
        let mut ids_of = |rows: &&[usize]| -> Vec<String> {
            rows.iter()
                .map(|row| std::mem::take(&mut ids[*row]))
                .collect()
        };
        Ok(Dealt {
            dataset,
            statistics,
            ids: Ids::Given(parts.iter().map(&mut ids_of).collect()),
            groups_are_given,
            persons: parts.iter().map(|rows| units_of(rows, &units)).collect(),
            columns,
            notes,
        })
    }

    /// What the training rows show.
    fn measure(&self, split: &Split, outcome: &Outcome, method: Method) -> Statistics {
        let training = || split.groups.iter().flatten().copied();
        Statistics {
            outcome: outcome.clone(),
            ..statistics::measure(self, method, training)
        }
    }

    /// What rows are told apart by where they are dealt out.
    pub(crate) fn strata(&self) -> &[String] {
        match &self.known {
            None => &self.classes,
            Some(known) => &known.strata,
        }
    }

    /// The group of a row, if the file names one of those that were made.
    fn named_group(&self, split: &Split, row: usize) -> Option<u32> {
        let given = self.given_groups.as_ref()?;
        let name = &given.names[given.of_row[row] as usize];
        split.names.iter().position(|n| n == name).map(|m| m as u32)
    }

    /// Held-out rows belong to the groups that the file names, or to all in turn.
    fn held_out(&self, split: &Split) -> Vec<[Vec<u32>; 2]> {
        let groups = split.groups.len();
        let mut held_out = vec![[Vec::new(), Vec::new()]; groups];
        for (part, rows) in [&split.validation, &split.test].into_iter().enumerate() {
            for (n, row) in rows.iter().enumerate() {
                let named = self.named_group(split, *row).map(|m| m as usize);
                held_out[named.unwrap_or(n % groups)][part].push(n as u32);
            }
        }
        held_out
    }
}

/// Puts `rows` rows together, `each` to a device; the last one may get fewer.
fn offsets(rows: usize, each: usize) -> Vec<u32> {
    (0..rows)
        .step_by(each)
        .chain([rows])
        .map(|offset| offset as u32)
        .collect()
}

/// The units of some rows, if rows have any.
fn units_of(rows: &[usize], units: &[u32]) -> Vec<u32> {
    match units.is_empty() {
        true => Vec::new(),
        false => rows.iter().map(|row| units[*row]).collect(),
    }
}

/// Rows of one unit, which lie next to each other, are one device's.
fn unit_offsets(rows: &[usize], units: &[u32]) -> Vec<u32> {
    let begins = |at: &usize| *at == 0 || units[rows[*at]] != units[rows[*at - 1]];
    (0..rows.len())
        .filter(begins)
        .chain([rows.len()])
        .map(|offset| offset as u32)
        .collect()
}

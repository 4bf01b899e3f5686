//! One side of a table by itself, as the party that holds it has it: enrolment, where nobody has the whole.

use super::columns::{Holder, Plan};
use super::fill::{self, Grid, Places};
use super::source::Open;
use super::survey::Survey;
use super::{check_columns, told_unmeasured};
use crate::DataError;
use crate::derived::is_of_another;
use crate::rows::Purpose;
use selvedge_core::enrol::Rows;
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::Targets;
use selvedge_nn::Shape;
use std::path::PathBuf;

/// The rows of one side, as they were measured. Gaps are filled once it is known who takes part.
#[derive(Debug)]
pub(crate) struct OneSide {
    /// The file that errors about the side as a whole name.
    pub(crate) file: PathBuf,
    /// What the rows are called.
    pub(crate) ids: Vec<String>,
    /// What is known of the rows; the hospital's alone.
    pub(crate) known: Targets,
    /// The names of a row's numbers, or of those of one step.
    pub(crate) names: Vec<String>,
    /// Which of them are scaled.
    pub(crate) scaled: Vec<bool>,
    /// Ids that were left out, since a file with one row for each has several of them.
    pub(crate) doubled: usize,
    /// What a user should know about the reading.
    pub(crate) notes: Vec<String>,
    missing: String,
    grid: Grid,
}

impl OneSide {
    /// Reads the files of one side; the hospital's first has the labels, which those of patients whom a trained model
    /// is asked about need not have.
    pub(crate) fn read(
        purpose: Purpose,
        settings: &DataSettings,
        side: Holder,
        paths: Vec<PathBuf>,
        open: Open<'_>,
    ) -> Result<Self, DataError> {
        check_columns(settings)?;
        let mut plan = Plan::new(settings, Some(side), (purpose, [&[]; 2]), paths, open)?;
        let mut survey = Survey::take(&mut plan, open)?;
        let unmeasured = plan.expect_variables()?;
        plan.settle()?;
        let mut notes = told_unmeasured(&unmeasured);
        if !plan.new_categories.is_empty() {
            notes.push(format!(
                "{} values have categories not seen in training: they count as not measured",
                plan.new_categories.len()
            ));
        }
        if survey.strangers > 0 {
            let (ids, are) = match survey.strangers {
                1 => ("id", "is"),
                _ => ("ids", "are"),
            };
            notes.push(format!(
                "{} {ids} of further files {are} not in the first and {are} left out",
                survey.strangers
            ));
        }
        let known = &survey.known[side as usize];
        let mut patients: Vec<u32> = (0..survey.ids.len() as u32)
            .filter(|p| known[*p as usize] && !survey.doubled.contains(p))
            .collect();
        patients.sort_unstable_by(|a, b| survey.ids[*a as usize].cmp(&survey.ids[*b as usize]));
        let places = Places::new(&survey, &patients);
        // Nothing is written to the other: the plan has none of its features.
        let mut grids = [
            Grid::new(
                &plan,
                Holder::Hospital,
                rows_of(side, Holder::Hospital, &patients),
            )?,
            Grid::new(
                &plan,
                Holder::Device,
                rows_of(side, Holder::Device, &patients),
            )?,
        ];
        notes.extend(fill::fill(&plan, open, &places, &mut grids)?.1);
        let [hospital, device] = grids;
        let mut grid = match side {
            Holder::Hospital => hospital,
            Holder::Device => device,
        };
        grid.written();
        let (names, scaled) = grid.columns(&plan);
        let values = grid.measured().into_iter().zip(&names);
        let mut values = values.filter(|(_, name)| !is_of_another(&names, name));
        if !purpose.is_new() && values.all(|([values, _], _)| values == 0) {
            return Err(plan.files[0].problem(
                "no row has a value in any column of this side: expected some (a model cannot learn from a side without values)".into(),
            ));
        }
        let known = match side {
            Holder::Hospital => {
                let (classes, known, _) = survey.answers.of(&patients);
                known.map_or(classes.into(), |known| known.targets)
            }
            Holder::Device => Targets::default(),
        };
        let doubled = survey.doubled.len();
        let take_id = |p: &u32| std::mem::take(&mut survey.ids[*p as usize]);
        Ok(OneSide {
            ids: patients.iter().map(take_id).collect(),
            known,
            names,
            scaled,
            doubled,
            notes,
            missing: settings.table.missing.clone(),
            grid,
            file: plan.files.swap_remove(0).path,
        })
    }

    /// The shape of a row.
    pub(crate) fn shape(&self) -> Shape {
        self.grid.shape()
    }

    /// Some rows in that order, with their gaps filled.
    pub(crate) fn take(&self, rows: &[u32]) -> Result<Rows, DataError> {
        let mut grid = self.grid.of_rows(rows);
        let measured = grid.measured();
        let id = |row: usize| self.ids[rows[row] as usize].clone();
        grid.fill_gaps(
            &self.missing,
            (&self.names, &self.scaled),
            (&self.file, &id),
        )?;
        Ok(Rows {
            x: grid.into_values(),
            measured,
        })
    }
}

fn rows_of(side: Holder, other: Holder, patients: &[u32]) -> usize {
    match side == other {
        true => patients.len(),
        false => 0,
    }
}

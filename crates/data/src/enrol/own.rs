//! What a hospital or a gateway holds itself: the rows of its own files, by pseudonym.

use super::message::{Columns, Roll};
use super::ring::{self, ColumnSums};
use super::roll::is_roll;
use super::terms::Terms;
use crate::shards::OwnPart;
use crate::table::{OneSide, Open, Side};
use crate::{DataError, PseudonymKey};
use selvedge_nn::Shape;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

/// The rows of a hospital or of a gateway.
#[derive(Debug)]
pub struct OwnSide {
    side: OneSide,
    pub(super) key: PseudonymKey,
    rows: BTreeMap<String, u32>,
}

impl OwnSide {
    /// Reads the files of a hospital; the first has ids and labels.
    ///
    /// # Errors
    /// If a file is missing or not what it should be, or the terms do not explain it.
    pub fn of_hospital(
        terms: &Terms,
        tables: Vec<PathBuf>,
        key: PseudonymKey,
    ) -> Result<Self, DataError> {
        Self::read(terms, Side::Hospital, tables, key, &open)
    }

    /// Reads the files of a gateway, which need no labels.
    ///
    /// # Errors
    /// As [`of_hospital`](Self::of_hospital).
    pub fn of_gateway(
        terms: &Terms,
        tables: Vec<PathBuf>,
        key: PseudonymKey,
    ) -> Result<Self, DataError> {
        Self::read(terms, Side::Device, tables, key, &open)
    }

    pub(crate) fn read(
        terms: &Terms,
        side: Side,
        tables: Vec<PathBuf>,
        key: PseudonymKey,
        open: Open<'_>,
    ) -> Result<Self, DataError> {
        let side = OneSide::read(&terms.data, side, tables, open)?;
        let rows: BTreeMap<String, u32> = side
            .ids
            .iter()
            .map(|id| key.pseudonym(id))
            .zip(0..)
            .collect();
        let wrong = |problem: String| DataError::File {
            file: side.file.clone(),
            problem,
        };
        if rows.len() != side.ids.len() {
            let problem = "two ids have the same pseudonym: expected another key";
            return Err(wrong(problem.into()));
        }
        if rows.len() > u32::MAX as usize || !is_roll(&rows.keys().cloned().collect::<Vec<_>>()) {
            return Err(wrong(format!("{} patients are too many", rows.len())));
        }
        Ok(OwnSide { side, key, rows })
    }

    /// What a user should know about the reading.
    pub fn notes(&self) -> &[String] {
        &self.side.notes
    }

    /// How many patients there are.
    pub fn patients(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn columns(&self) -> Columns {
        Columns {
            shape: self.shape().dims(),
            names: self.side.names.clone(),
            scaled: self.side.scaled.clone(),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        self.side.shape()
    }

    pub(super) fn roll(&self) -> Roll {
        Roll {
            key: self.key.name(),
            columns: self.columns(),
            pseudonyms: self.rows.keys().cloned().collect(),
            doubled: self.side.doubled,
        }
    }

    /// The labels of some patients; nothing if one is unknown here.
    pub(super) fn labels(&self, patients: &[String]) -> Option<Vec<u32>> {
        let label = |p: &String| self.side.labels.get(*self.rows.get(p)? as usize).copied();
        patients.iter().map(label).collect()
    }

    pub(super) fn knows(&self, patients: &[String]) -> bool {
        patients.iter().all(|p| self.rows.contains_key(p))
    }

    /// The rows of some patients who are known here, and what they sum up to.
    pub(super) fn take(
        &self,
        patients: &[String],
        labels: &[u32],
    ) -> Result<(OwnPart, Vec<ColumnSums>), DataError> {
        let row = |p: &String| self.rows.get(p).copied();
        let rows: Vec<u32> = patients.iter().filter_map(row).collect();
        let filled = self.side.take(&rows)?;
        let sums = ring::sum(&filled.values, &self.side.scaled, &filled.measured);
        let part = OwnPart {
            patients: patients.to_vec(),
            x: filled.values,
            y: labels.to_vec(),
            base: 0,
        };
        Ok((part, sums))
    }
}

pub(super) fn open(path: &std::path::Path) -> std::io::Result<Box<dyn crate::table::Bytes>> {
    match path.is_dir() {
        true => Err(std::io::Error::other("a folder: expected a file")),
        false => Ok(Box::new(File::open(path)?)),
    }
}

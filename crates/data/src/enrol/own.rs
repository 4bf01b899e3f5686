//! What a hospital or a gateway holds itself: the rows of its own files, by pseudonym.

use crate::rows::Purpose;
use crate::table::{OneSide, Open, Side};
use crate::{DataError, PseudonymKey};
use selvedge_core::enrol::{Columns, Holdings, Rows, Terms, is_roll};
use selvedge_core::outcome::Targets;
use selvedge_core::protocol::Party;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

/// The rows of a hospital or of a gateway.
#[derive(Debug)]
pub struct OwnSide {
    side: OneSide,
    key: PseudonymKey,
    rows: BTreeMap<String, u32>,
}

impl OwnSide {
    /// Reads the files of a hospital, of which the first has ids and labels, or those of a gateway, which need no
    /// labels.
    ///
    /// # Errors
    /// If a file is missing or malformed, or does not fit the terms.
    pub fn of(
        party: Party,
        terms: &Terms,
        tables: Vec<PathBuf>,
        key: PseudonymKey,
    ) -> Result<Self, DataError> {
        let side = match party {
            Party::Hospital(_) => Side::Hospital,
            _ => Side::Device,
        };
        Self::read(terms, side, tables, key, &open)
    }

    pub(crate) fn read(
        terms: &Terms,
        side: Side,
        tables: Vec<PathBuf>,
        key: PseudonymKey,
        open: Open<'_>,
    ) -> Result<Self, DataError> {
        let side = OneSide::read(Purpose::Training, &terms.data, side, tables, open)?;
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
            let problem = "two ids have the same pseudonym: expected a different key";
            return Err(wrong(problem.into()));
        }
        if rows.len() > u32::MAX as usize || !is_roll(&rows.keys().cloned().collect::<Vec<_>>()) {
            return Err(wrong(format!("too many patients: {}", rows.len())));
        }
        Ok(OwnSide { side, key, rows })
    }

    /// Notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.side.notes
    }

    /// How many patients there are.
    pub fn patients(&self) -> usize {
        self.rows.len()
    }
}

impl Holdings for OwnSide {
    fn key(&self) -> String {
        self.key.name()
    }

    fn secret(&self, purpose: &str, text: &str) -> [u8; 32] {
        self.key.secret(purpose, text)
    }

    fn columns(&self) -> Columns {
        Columns {
            shape: self.side.shape().dims(),
            names: self.side.names.clone(),
            scaled: self.side.scaled.clone(),
        }
    }

    fn pseudonyms(&self) -> Vec<String> {
        self.rows.keys().cloned().collect()
    }

    fn doubled(&self) -> usize {
        self.side.doubled
    }

    fn knows(&self, patients: &[String]) -> bool {
        patients.iter().all(|p| self.rows.contains_key(p))
    }

    fn known(&self, patients: &[String]) -> Option<Targets> {
        let row = |p: &String| self.rows.get(p).copied();
        let rows: Vec<u32> = patients.iter().map(row).collect::<Option<_>>()?;
        // A gateway knows nothing of anybody.
        (self.side.known.len() == self.rows.len()).then(|| self.side.known.of(&rows))
    }

    fn rows(&self, patients: &[String]) -> Result<Rows, String> {
        let row = |p: &String| self.rows.get(p).copied();
        let rows: Vec<u32> = patients.iter().filter_map(row).collect();
        self.side.take(&rows).map_err(|error| error.to_string())
    }
}

pub(super) fn open(path: &std::path::Path) -> std::io::Result<Box<dyn crate::table::Bytes>> {
    match path.is_dir() {
        true => Err(std::io::Error::other("a folder: expected a file")),
        false => Ok(Box::new(File::open(path)?)),
    }
}

//! Patients of a table for whom a trained model's prediction is asked: read as in enrolment, scaled as the participants
//! are.

use super::own::open;
use crate::pseudonym::number;
use crate::rows::Purpose;
use crate::table::{OneSide, Open, Side};
use crate::{DataError, PseudonymKey, SideStatistics, Statistics};
use selvedge_core::enrol::Terms;
use std::path::PathBuf;

/// One side of some patients.
#[derive(Debug)]
pub struct Asked {
    /// Their ids where this was read; not for anybody else.
    pub ids: Vec<String>,
    /// Their names elsewhere.
    pub pseudonyms: Vec<u128>,
    /// A name for the key of the pseudonyms.
    pub key: u128,
    /// Their rows, scaled, one after the other.
    pub x: Vec<f32>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Asked {
    /// Reads the files of a hospital; the first has ids. Labels need not be known.
    ///
    /// # Errors
    /// If a file is missing or malformed, or has other columns than at enrolment.
    pub fn of_hospital(
        terms: &Terms,
        tables: Vec<PathBuf>,
        key: &PseudonymKey,
        statistics: &Statistics,
    ) -> Result<Self, DataError> {
        let side = (Side::Hospital, &statistics.hospital);
        Self::read(terms, side, tables, key, &open)
    }

    /// Reads the files of a gateway.
    ///
    /// # Errors
    /// As [`of_hospital`](Self::of_hospital).
    pub fn of_gateway(
        terms: &Terms,
        tables: Vec<PathBuf>,
        key: &PseudonymKey,
        statistics: &Statistics,
    ) -> Result<Self, DataError> {
        let side = (Side::Device, &statistics.device);
        Self::read(terms, side, tables, key, &open)
    }

    fn read(
        terms: &Terms,
        (side, scales): (Side, &SideStatistics),
        tables: Vec<PathBuf>,
        key: &PseudonymKey,
        open: Open<'_>,
    ) -> Result<Self, DataError> {
        let purpose = Purpose::New { labelled: false };
        let mut side = OneSide::read(purpose, &terms.data, side, tables, open)?;
        check(&side, scales)?;
        let rows: Vec<u32> = (0..side.ids.len() as u32).collect();
        let mut x = side.take(&rows)?.x;
        scales.apply(&mut x);
        let mut notes = std::mem::take(&mut side.notes);
        if side.doubled > 0 {
            let (occur, are) = match side.doubled {
                1 => ("id occurs", "is"),
                _ => ("ids occur", "are"),
            };
            notes.push(format!(
                "{} {occur} twice in a file with one row per id, and {are} left out",
                side.doubled
            ));
        }
        let pseudonym = |id: &String| number(&key.pseudonym(id)).unwrap_or_default();
        Ok(Asked {
            pseudonyms: side.ids.iter().map(pseudonym).collect(),
            key: number(&key.name()).unwrap_or_default(),
            ids: side.ids,
            x,
            notes,
        })
    }
}

/// The columns must be those by which the model was trained, in their order.
fn check(side: &OneSide, scales: &SideStatistics) -> Result<(), DataError> {
    if side.names == scales.names && side.shape().dims() == scales.shape {
        return Ok(());
    }
    let lacks = |there: &[String], of: &[String]| of.iter().find(|n| !there.contains(n)).cloned();
    let problem = match (
        lacks(&side.names, &scales.names),
        lacks(&scales.names, &side.names),
    ) {
        (Some(name), _) => {
            format!("it has no {name:?}: expected the columns used at enrolment")
        }
        (None, Some(name)) => {
            format!("it has {name:?}: expected only the columns used at enrolment")
        }
        (None, None) => format!(
            "a row has the shape {:?}: expected {:?}, as at enrolment",
            side.shape().dims(),
            scales.shape
        ),
    };
    Err(DataError::file(&side.file, problem))
}

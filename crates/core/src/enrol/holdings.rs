//! What a hospital or a gateway knows about its own patients, wherever it is stored.

use super::duty::Trouble;
use super::enrolled::OwnPart;
use super::message::{Columns, Roll};
use super::ring::{self, ColumnSums};
use crate::outcome::Targets;
use selvedge_nn::Shape;

/// The patients of a hospital or of a gateway, by pseudonym.
pub trait Holdings: 'static {
    /// An identifier of the pseudonym key, which reveals nothing about it.
    fn key(&self) -> String;

    /// A secret that whoever has that key can compute, and nobody else.
    fn secret(&self, purpose: &str, text: &str) -> [u8; 32];

    /// What is known of each patient.
    fn columns(&self) -> Columns;

    /// All pseudonyms, each once and in order ([`is_roll`](super::is_roll)).
    fn pseudonyms(&self) -> Vec<String>;

    /// Ids that were left out.
    fn doubled(&self) -> usize;

    /// Whether all of these are known.
    fn knows(&self, patients: &[String]) -> bool;

    /// What is known of some patients; nothing if one of them is unknown.
    fn known(&self, patients: &[String]) -> Option<Targets>;

    /// The rows of some patients who are known.
    ///
    /// # Errors
    /// If they cannot be used; the reason is not passed on to others.
    fn rows(&self, patients: &[String]) -> Result<Rows, String>;
}

/// Rows with their gaps filled.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Row after row, as they were measured; NaN where the mean will be filled in.
    pub x: Vec<f32>,
    /// How many values of each column were measured, before gaps were filled, and of how many patients.
    pub measured: Vec<[u64; 2]>,
}

/// Who is known.
pub(super) fn roll(own: &impl Holdings) -> Roll {
    Roll {
        key: own.key(),
        columns: own.columns(),
        pseudonyms: own.pseudonyms(),
        doubled: own.doubled(),
    }
}

/// The shape of a row.
pub(super) fn shape(own: &impl Holdings) -> Shape {
    own.columns().shape().unwrap_or(Shape::Flat(1))
}

/// The rows of some patients who are known, and what they sum up to.
pub(super) fn take(
    own: &impl Holdings,
    patients: &[String],
    known: Targets,
) -> Result<(OwnPart, Vec<ColumnSums>), Trouble> {
    let Rows { x, measured } = own.rows(patients).map_err(Trouble::Own)?;
    let sums = ring::sum(&x, &own.columns().scaled, &measured);
    let part = OwnPart {
        patients: patients.to_vec(),
        x,
        y: known,
        base: 0,
    };
    Ok((part, sums))
}

//! One value of a table.

use std::fmt;

/// One value of a row, as its file has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Nothing.
    Missing,
    /// A whole number, or a truth as 0 or 1.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Text, which may stand for anything.
    Text(&'a str),
}

impl<'a> Cell<'a> {
    /// Its text, in a table of text; nothing where nothing is.
    pub(crate) fn text(self) -> &'a str {
        match self {
            Cell::Text(text) => text,
            _ => "",
        }
    }
}

/// Whoever is given the rows of a table: a row's number and a cell for each wanted column.
pub(crate) type Take<'a, E> = dyn FnMut(u64, &[Cell<'_>]) -> Result<(), E> + 'a;

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Missing => Ok(()),
            Cell::Integer(value) => write!(f, "{value}"),
            Cell::Number(value) => write!(f, "{value}"),
            Cell::Text(value) => write!(f, "{value}"),
        }
    }
}

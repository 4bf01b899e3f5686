//! Joint predictions, once training is over: a gateway sends ζ2, its hospital answers with probabilities.
//!
//! ```text
//!           Fetch ►                                 Question (passed on) ►
//!  gateway ◄────────── edge                  edge ◄────────────────────────► hospital
//!           ◄ Trained θ2                             ◄ Answer (passed on)
//!           Question ζ2 ►
//!           ◄ Passed
//! ```
//!
//! Raw features stay where they are, and so do ids. A patient who takes part in the run is named by a position in the
//! group's rows, and the edge knows which gateway carries it: a gateway can ask only about its own patients. A patient
//! who does not take part is named by a pseudonym, and known if the hospital has been given a table with that patient.
//! Asking again gives the same answer, so messages may be lost or doubled.

use super::message::Portion;
use super::wire::{Reader, Wire, WireError, cannot_be, listed};
use crate::dataset::Samples;
use crate::message_path::Numbers;
use std::collections::{HashMap, HashSet};

/// The most patients of one question.
pub const MOST_ASKED: usize = 4096;

/// The patients that a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Patients who take part: their places in a part of the group.
    Rows(Portion, Vec<u32>),
    /// Patients who do not.
    New {
        /// An identifier of the pseudonym key.
        key: u128,
        /// Their pseudonyms.
        patients: Vec<u128>,
    },
}

impl About {
    /// The number of patients.
    pub fn len(&self) -> usize {
        match self {
            About::Rows(_, rows) => rows.len(),
            About::New { patients, .. } => patients.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same in questions of so many at most.
    pub(super) fn split(&self, most: usize) -> Vec<About> {
        let most = most.max(1);
        match self {
            About::Rows(part, rows) => {
                let some = |rows: &[u32]| About::Rows(*part, rows.to_vec());
                rows.chunks(most).map(some).collect()
            }
            About::New { key, patients } => {
                let some = |patients: &[u128]| About::New {
                    key: *key,
                    patients: patients.to_vec(),
                };
                patients.chunks(most).map(some).collect()
            }
        }
    }

    /// ζ2 of all of them, if there are as many numbers as there should be, and they are numbers.
    pub(super) fn embedded<'a>(&self, zeta2: &'a Numbers, width: usize) -> Option<&'a [f32]> {
        let some = (1..=MOST_ASKED).contains(&self.len());
        let zeta2 = zeta2.as_dense(self.len() * width)?;
        (some && zeta2.iter().all(|x| x.is_finite())).then_some(zeta2)
    }
}

impl Wire for About {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            About::Rows(part, rows) => {
                out.push(0);
                part.put(out);
                rows.put(out);
            }
            About::New { key, patients } => {
                out.push(1);
                key.put(out);
                patients.put(out);
            }
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        match u8::get(reader)? {
            0 => Ok(About::Rows(Wire::get(reader)?, Wire::get(reader)?)),
            1 => Ok(About::New {
                key: Wire::get(reader)?,
                patients: Wire::get(reader)?,
            }),
            value => Err(cannot_be("the kind of patients asked about", value)),
        }
    }
}

/// Why a question is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The run is not over yet for the party that was asked.
    Training,
    /// It was embedded by a model from another iteration.
    OtherModel,
    /// Somebody else carries one of these patients, or nobody does.
    NotYours,
    /// Pseudonyms are made by another key.
    OtherKey,
    /// It is malformed: too long, or with the wrong number of finite numbers.
    Malformed,
}

listed!(
    Why,
    "a reason",
    [
        Why::Training,
        Why::OtherModel,
        Why::NotYours,
        Why::OtherKey,
        Why::Malformed
    ]
);

/// Patients of a hospital who do not take part in the run.
#[derive(Clone, Debug, Default)]
pub struct Newcomers {
    pub(super) key: u128,
    pub(super) rows: HashMap<u128, u32>,
    pub(super) samples: Samples,
}

impl Newcomers {
    /// Patients by pseudonym, with their rows of x1 one after the other, and an identifier of the pseudonym key. Those
    /// of the `roster` take part in the run, so only their own gateways may ask about them.
    pub fn new(key: u128, patients: &[u128], x1: Vec<f32>, roster: &HashSet<u128>) -> Self {
        let new = patients.iter().copied().zip(0..);
        Newcomers {
            key,
            rows: new.filter(|(p, _)| !roster.contains(p)).collect(),
            samples: Samples {
                x1,
                x2: Vec::new(),
                // Nobody knows them, and nobody asks for a loss.
                y: vec![0; patients.len()].into(),
            },
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

//! Whom a gateway can ask about: those who take part and whose devices it carries, and those of a table.

use crate::args::OwnPart;
use selvedge_core::role::Portion;
use selvedge_data::enrol::Asked;
use selvedge_data::{PartyLoaded, PartyPatients};
use std::collections::HashMap;

/// How the hospital is told whom it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Takes part: a place in a part of the group.
    Row(Portion, u32),
    /// Does not.
    New { key: u128, pseudonym: u128 },
}

/// Somebody to ask about.
#[derive(Clone, Debug)]
pub(super) struct Patient {
    /// What the gateway calls it, for nobody else.
    pub(super) id: String,
    pub(super) who: Who,
    /// Scaled.
    pub(super) x2: Vec<f32>,
}

/// A gateway's own patients who take part.
pub(super) struct Patients<'a> {
    /// Of each part: where its rows begin in the group, their pseudonyms, their numbers.
    parts: [(Portion, u32, &'a [u128], &'a [f32]); 3],
    /// Numbers of a row.
    width: usize,
}

impl<'a> Patients<'a> {
    /// Those of a group that a gateway carries, from its first device on.
    pub(super) fn own(
        loaded: &'a PartyLoaded,
        pseudonyms: &'a PartyPatients,
        (group, first_device): (usize, u32),
    ) -> Self {
        let training = &loaded.dataset.groups[group];
        let [validation, test] = &loaded.held_out;
        let rows = [
            training.offsets.at(first_device as usize),
            validation.from,
            test.from,
        ];
        let x2 = [&training.samples.x2, &validation.x, &test.x];
        let part = |at: usize, part: Portion| (part, rows[at], &pseudonyms[at][..], &x2[at][..]);
        Patients {
            parts: [
                part(0, Portion::Training),
                part(1, Portion::Validation),
                part(2, Portion::Test),
            ],
            width: loaded.dataset.device.len(),
        }
    }

    /// One part of them, or all.
    pub(super) fn of_part(&self, wanted: Option<OwnPart>) -> Vec<Patient> {
        let wanted = wanted.map(|part| match part {
            OwnPart::Training => Portion::Training,
            OwnPart::Validation => Portion::Validation,
            OwnPart::Test => Portion::Test,
        });
        let parts = self.parts.iter();
        let parts = parts.filter(|(part, ..)| wanted.is_none_or(|wanted| wanted == *part));
        let patients = parts.flat_map(|(part, first, pseudonyms, x2)| {
            let rows = (*first..).zip(pseudonyms.iter());
            rows.zip(x2.chunks_exact(self.width))
                .map(|((row, pseudonym), x2)| Patient {
                    id: format!("{pseudonym:032x}"),
                    who: Who::Row(*part, row),
                    x2: x2.to_vec(),
                })
        });
        patients.collect()
    }

    /// Those of a table. Who takes part is asked about as such, with what the table says.
    pub(super) fn of_table(&self, table: Asked) -> Vec<Patient> {
        let mut known = HashMap::new();
        for (part, first, pseudonyms, _) in &self.parts {
            let places = (*first..).map(|row| Who::Row(*part, row));
            known.extend(pseudonyms.iter().copied().zip(places));
        }
        let Asked {
            ids,
            pseudonyms,
            key,
            x,
            ..
        } = table;
        let each = ids.into_iter().zip(pseudonyms);
        each.zip(x.chunks_exact(self.width))
            .map(|((id, pseudonym), x2)| Patient {
                id,
                who: match known.get(&pseudonym) {
                    Some(who) => *who,
                    None => Who::New { key, pseudonym },
                },
                x2: x2.to_vec(),
            })
            .collect()
    }
}

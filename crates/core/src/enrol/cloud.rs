//! The cloud: adds up the sums of all groups, and tells everybody what to scale by and who is there.

use super::duty::{Context, Duty, Follows, Trouble, Words};
use super::index::{Index, IndexGroup, VERSION};
use super::message::{Body, Columns, Common, Totals};
use super::ring::ColumnSums;
use super::{Enrolled, fingerprint};
use crate::protocol::Party;
use crate::statistics::{Scale, SideStatistics, Statistics};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Cloud {
    totals: BTreeMap<Party, Totals>,
}

impl Duty for Cloud {
    fn begin(&mut self, _: &Context) -> Words {
        *self = Cloud::default();
        Vec::new()
    }

    fn heard(&mut self, at: &Context, from: Party, body: Body) -> Follows {
        let Body::Totals(totals) = body else {
            return Err(Trouble::nonsense(from, "a message out of turn"));
        };
        if !totals.is_sound(&at.terms) || self.totals.contains_key(&from) {
            return Err(Trouble::nonsense(from, "invalid sums"));
        }
        self.totals.insert(from, totals);
        if self.totals.len() < 2 * at.terms.groups() {
            return Ok((Vec::new(), None));
        }
        let common = Box::new(self.merge(at)?);
        let mut enrolled = Enrolled::new(at.party, String::new());
        let of_groups = (0..at.terms.groups()).filter_map(|m| self.totals.get(&Party::Edge(m)));
        enrolled.counts = of_groups.map(|totals| totals.counts).collect();
        enrolled.notes = self.lacks(at, &common.index.labels);
        enrolled.adopt(at, Party::Cloud, &common)?;
        let to = (0..at.terms.groups()).flat_map(|m| [Party::Hospital(m), Party::Edge(m)]);
        let said = to.map(|to| (to, Body::Common(common.clone()))).collect();
        Ok((said, Some(enrolled)))
    }

    fn waits(&self, at: &Context) -> Vec<Party> {
        let all = (0..at.terms.groups()).flat_map(|m| [Party::Hospital(m), Party::Edge(m)]);
        all.filter(|party| !self.totals.contains_key(party))
            .collect()
    }
}

impl Cloud {
    /// Which answers no training patient has: of all groups, then of each.
    fn lacks(&self, at: &Context, labels: &[u64]) -> Vec<String> {
        let of_all = at.terms.lacks("any group", (labels, None), None);
        let groups = (0..at.terms.groups()).filter_map(|m| {
            let totals = self.totals.get(&Party::Edge(m))?;
            Some((format!("group {m}"), totals.known()))
        });
        let each = groups.flat_map(|(who, known)| at.terms.lacks(&who, known, Some(labels)));
        of_all.into_iter().chain(each).collect()
    }

    fn merge(&self, at: &Context) -> Result<Common, Trouble> {
        let of = |party: Party| {
            let missing = || Trouble::nonsense(party, "no sums");
            self.totals.get(&party).ok_or_else(missing)
        };
        let groups = at.terms.groups();
        let mut labels = vec![0u64; at.terms.kind.counts(&at.terms.names)];
        let mut learnt = Vec::new();
        let (mut digests, mut bases, mut index_groups) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rows, mut next, mut keys) = (0usize, [0usize; 2], Vec::new());
        for m in 0..groups {
            let (hospital, edge) = (of(Party::Hospital(m))?, of(Party::Edge(m))?);
            let of_patients = |t: &Totals| (t.labels.clone(), t.learnt.clone(), t.counts);
            let same = (&hospital.digest, &hospital.key) == (&edge.digest, &edge.key);
            if !same || of_patients(hospital) != of_patients(edge) {
                return Err(Trouble::Told(format!(
                    "hospital {m} and edge {m} have different rosters"
                )));
            }
            let counts = &edge.counts;
            rows += counts.training;
            labels
                .iter_mut()
                .zip(&edge.labels)
                .for_each(|(n, more)| *n += more);
            learnt.push(edge);
            digests.push(edge.digest.clone());
            bases.push([next[0] as u32, next[1] as u32]);
            next = [next[0] + counts.validation, next[1] + counts.test];
            keys.push(edge.key.clone());
            index_groups.push(IndexGroup {
                name: format!("group {m}"),
                devices: counts.training,
                rows: counts.training,
                held_out: Some([counts.validation, counts.test]),
            });
        }
        if next.iter().any(|n| u32::try_from(*n).is_err()) {
            return Err(Trouble::Told("too many held-out patients".into()));
        }
        let side = |party: fn(usize) -> Party| -> Result<SideStatistics, Trouble> {
            let first = of(party(0))?;
            let mut sums = vec![ColumnSums::default(); first.columns.names.len()];
            for m in 0..groups {
                let totals = of(party(m))?;
                if let Some(difference) = first.columns.difference(&totals.columns) {
                    return Err(Trouble::Told(format!(
                        "groups 0 and {m} have different columns ({} and {}): {difference}",
                        party(0),
                        party(m)
                    )));
                }
                sums.iter_mut()
                    .zip(&totals.sums)
                    .for_each(|(sum, more)| sum.add(more));
            }
            Ok(statistics_of(&first.columns, &sums, rows))
        };
        let statistics = Statistics {
            set: at.terms.data.set.clone(),
            rows,
            outcome: at.terms.outcome(&learnt).map_err(Trouble::Told)?,
            classes: at.terms.names.clone(),
            hospital: side(Party::Hospital)?,
            device: side(Party::Edge)?,
        };
        let index = Index {
            version: VERSION,
            set: statistics.set.clone(),
            groups: index_groups,
            labels,
            largest: 1,
            validation: next[0],
            test: next[1],
            statistics: statistics.fingerprint(),
            dataset: fingerprint(&statistics, &digests),
            pseudonyms: super::short_digest("keys", &keys),
        };
        Ok(Common {
            index,
            statistics: statistics.to_json(),
            digests,
            bases,
        })
    }
}

/// What a side is scaled by.
pub(super) fn statistics_of(columns: &Columns, sums: &[ColumnSums], rows: usize) -> SideStatistics {
    let all = columns.steps() * rows as u64;
    let scale = |(sums, scaled): (&ColumnSums, &bool)| match scaled {
        true => sums.scale(),
        false => Scale::IDENTITY,
    };
    let missing = |sums: &ColumnSums| {
        let measured = sums.measured.count().unwrap_or_default();
        all.saturating_sub(measured) as f64 / all.max(1) as f64
    };
    SideStatistics {
        names: columns.names.clone(),
        shape: columns.shape.clone(),
        scales: sums.iter().zip(&columns.scaled).map(scale).collect(),
        missing: sums.iter().map(missing).collect(),
    }
}

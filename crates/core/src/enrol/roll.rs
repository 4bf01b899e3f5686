//! Who takes part: the patients whom the hospital and exactly one gateway know.

use super::{Terms, hex};
use crate::experiment::DataSettings;
use crate::outcome::Targets;
use selvedge_nn::random::Key;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A group of fewer training patients is refused: its sums would nearly be what was measured.
pub(super) const FEWEST: usize = 10;

/// The most patients that a party may name: the message must fit into memory, on both ends.
const MOST_PATIENTS: usize = 4_000_000;

/// The purpose of the numbers by which held-out patients are drawn.
const HELD_OUT: u64 = 0x0065_6e72_6f6c;

/// How many patients of a group are known to which parties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Known to the hospital and to exactly one gateway: they take part.
    pub taking_part: usize,
    /// Of those, the ones to train on.
    pub training: usize,
    /// The ones for validation.
    pub validation: usize,
    /// The ones for testing.
    pub test: usize,
    /// The number that the experiment asks for in validation; fewer are drawn where gateways have too few.
    pub validation_asked: usize,
    /// Likewise for the test.
    pub test_asked: usize,
    /// Known to the hospital alone.
    pub only_hospital: usize,
    /// Known to one gateway alone.
    pub only_devices: usize,
    /// Known to several gateways, and left out.
    pub at_several_gateways: usize,
    /// Ids that the hospital left out, since they occur several times in a file with one row per id.
    pub doubled_at_hospital: usize,
    /// The same at the gateways.
    pub doubled_at_devices: usize,
}

/// A group's patients in order, by pseudonym: gateway by gateway, and of each those to train on, then those of
/// validation, then those of the test, each in the order of pseudonyms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Roster {
    pub(super) gateways: Vec<[Vec<String>; 3]>,
}

/// What is known of a roster's patients, in its order, in words ([`Terms::known`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Labels {
    pub(super) gateways: Vec<[Vec<u32>; 3]>,
}

/// One part of all gateways: 0 training, 1 validation, 2 the test.
pub(super) fn part_of_all<T: Clone>(gateways: &[[Vec<T>; 3]], part: usize) -> Vec<T> {
    gateways.iter().flat_map(|own| own[part].clone()).collect()
}

/// Whether a list from outside is a valid list of pseudonyms, each once and in order.
pub fn is_roll(pseudonyms: &[String]) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    pseudonyms.len() <= MOST_PATIENTS
        && pseudonyms
            .iter()
            .all(|p| p.len() == 32 && p.bytes().all(digit))
        && pseudonyms.windows(2).all(|pair| pair[0] < pair[1])
}

/// Compares what the hospital and the gateways know: lists of pseudonyms, each once. Gives for each gateway those who
/// take part, in order.
pub(super) fn compare(hospital: &[String], gateways: &[Vec<String>]) -> (Vec<Vec<String>>, Counts) {
    // Bits of who knows a patient: the hospital, and the first and any further gateway.
    let mut known: BTreeMap<&str, (bool, Option<usize>, bool)> = BTreeMap::new();
    for pseudonym in hospital {
        known.entry(pseudonym).or_default().0 = true;
    }
    for (gateway, pseudonyms) in gateways.iter().enumerate() {
        for pseudonym in pseudonyms {
            let (_, first, several) = known.entry(pseudonym).or_default();
            match first {
                None => *first = Some(gateway),
                Some(_) => *several = true,
            }
        }
    }
    let mut shared = vec![Vec::new(); gateways.len()];
    let mut counts = Counts::default();
    for (pseudonym, who) in known {
        match who {
            (_, _, true) => counts.at_several_gateways += 1,
            (true, Some(gateway), _) => {
                counts.taking_part += 1;
                shared[gateway].push(pseudonym.to_owned());
            }
            (true, None, _) => counts.only_hospital += 1,
            (false, _, _) => counts.only_devices += 1,
        }
    }
    (shared, counts)
}

impl Roster {
    /// Draws the held-out patients of group `group`; every gateway keeps at least one to train on.
    pub(super) fn draw(
        shared: Vec<Vec<String>>,
        counts: &mut Counts,
        (settings, seed): (&DataSettings, u64),
        group: usize,
    ) -> Self {
        let rows_of = |share: f64, count: usize| (share * count as f64).round() as usize;
        counts.test_asked = rows_of(settings.test, counts.taking_part);
        let rest = counts.taking_part - counts.test_asked.min(counts.taking_part);
        counts.validation_asked = rows_of(settings.validation, rest);
        let mut left: Vec<usize> = shared.iter().map(Vec::len).collect();
        let mut roster = Roster {
            gateways: vec![Default::default(); shared.len()],
        };
        let all = shared.into_iter().enumerate();
        let mut all: Vec<(usize, String)> = all
            .flat_map(|(gateway, patients)| patients.into_iter().map(move |p| (gateway, p)))
            .collect();
        let mut stream = Key::new(seed).with(HELD_OUT).with(group as u64).stream();
        for (part, asked, drawn) in [
            (2, counts.test_asked, &mut counts.test),
            (1, counts.validation_asked, &mut counts.validation),
        ] {
            while *drawn < asked && !all.is_empty() {
                let at = stream.below(all.len() as u64) as usize;
                let (gateway, patient) = all.swap_remove(at);
                let own = &mut roster.gateways[gateway];
                if left[gateway] == 1 {
                    own[0].push(patient);
                } else {
                    left[gateway] -= 1;
                    *drawn += 1;
                    own[part].push(patient);
                }
            }
        }
        for (gateway, patient) in all {
            roster.gateways[gateway][0].push(patient);
        }
        for part in roster.gateways.iter_mut().flatten() {
            part.sort_unstable();
        }
        counts.training = counts.taking_part - counts.validation - counts.test;
        roster
    }

    /// Training patients of all gateways.
    pub(super) fn training(&self) -> usize {
        self.gateways.iter().map(|own| own[0].len()).sum()
    }

    /// The devices of each gateway: the first, and one past the last.
    pub(super) fn ranges(&self) -> Vec<[u32; 2]> {
        let before = |g: usize| self.before(g, 0);
        let range = |g: usize| [before(g), before(g + 1)];
        (0..self.gateways.len()).map(range).collect()
    }

    /// Where a gateway's patients of validation and of the test begin and end among the group's.
    pub(super) fn held_out(&self, gateway: usize) -> [[u32; 2]; 2] {
        [1, 2].map(|part| [self.before(gateway, part), self.before(gateway + 1, part)])
    }

    /// How many patients of a part the gateways before this one have.
    pub(super) fn before(&self, gateway: usize, part: usize) -> u32 {
        let counts = self.gateways[..gateway].iter().map(|own| own[part].len());
        counts.sum::<usize>() as u32
    }

    /// All its lists, gateway by gateway.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Vec<String>> {
        self.gateways.iter().flatten()
    }

    /// Whether a roster from elsewhere can be one: as many gateways, and nobody twice.
    pub(super) fn is_sound(&self) -> bool {
        let mut all: Vec<&String> = self.parts().flatten().collect();
        all.sort_unstable();
        self.parts().all(|part| is_roll(part)) && all.windows(2).all(|pair| pair[0] != pair[1])
    }
}

impl Labels {
    /// All its lists, as the roster has them.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Vec<u32>> {
        self.gateways.iter().flatten()
    }

    /// What they say of those of a roster who train, if they can.
    pub(super) fn training(&self, roster: &Roster, terms: &Terms) -> Option<Targets> {
        if self.gateways.len() != roster.gateways.len() {
            return None;
        }
        let parts = self.parts().zip(roster.parts());
        let known = parts.map(|(words, part)| terms.known(words, part.len()));
        let known: Vec<Targets> = known.collect::<Option<_>>()?;
        let mut training = terms.kind.targets(&terms.names);
        known.iter().step_by(3).for_each(|own| training.extend(own));
        Some(training)
    }
}

/// The digest of some patients in order, with what is known of them. Other gateways see it and could try out who is there and
/// who is ill, so there is salt in it which they do not know.
pub(super) fn digest_of_part(salt: &str, patients: &[String], words: &[u32]) -> String {
    let mut digest = Sha256::new();
    digest.update(b"part\0");
    digest.update((salt.len() as u64).to_le_bytes());
    digest.update(salt.as_bytes());
    digest.update((patients.len() as u64).to_le_bytes());
    let each = (words.len() / patients.len().max(1)).max(1);
    for (patient, words) in patients.iter().zip(words.chunks(each)) {
        digest.update(patient.as_bytes());
        words
            .iter()
            .for_each(|word| digest.update(word.to_le_bytes()));
    }
    hex(&digest.finalize())
}

/// The digests of a roster's parts.
pub(super) fn digests(roster: &Roster, labels: &Labels, salts: &[String]) -> Vec<String> {
    let parts = roster.parts().zip(labels.parts()).zip(salts);
    parts
        .map(|((p, l), salt)| digest_of_part(salt, p, l))
        .collect()
}

/// The digest of a whole roster, from those of its parts: so who knows one part can check that it is in there.
pub(super) fn digest_of_all(parts: &[String]) -> String {
    let mut digest = Sha256::new();
    digest.update(b"roster\0");
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    hex(&digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pseudonym(number: u64) -> String {
        Key::new(number).hex()
    }

    #[test]
    fn whom_both_sides_know_is_found_as_a_naive_search_finds_them() {
        let mut stream = Key::new(3).stream();
        for round in 0..300 {
            let gateways = 1 + stream.below(4) as usize;
            let people = 1 + stream.below(40);
            let mut list = |share: u64| -> Vec<String> {
                let there = (0..people).filter(|_| stream.below(10) < share);
                let set: BTreeSet<String> = there.map(pseudonym).collect();
                set.into_iter().collect()
            };
            let hospital = list(8);
            let rolls: Vec<Vec<String>> = (0..gateways).map(|_| list(4)).collect();
            let (shared, mut counts) = compare(&hospital, &rolls);
            let (mut part, mut only_h, mut only_d, mut several) = (0, 0, 0, 0);
            for person in (0..people).map(pseudonym) {
                let at: Vec<usize> = (0..gateways)
                    .filter(|g| rolls[*g].contains(&person))
                    .collect();
                match (hospital.contains(&person), &at[..]) {
                    (true, [g]) => {
                        part += 1;
                        assert!(shared[*g].contains(&person));
                    }
                    (true, []) => only_h += 1,
                    (false, [_]) => only_d += 1,
                    (false, []) => {}
                    _ => several += 1,
                }
            }
            let found = (
                counts.taking_part,
                counts.only_hospital,
                counts.only_devices,
                counts.at_several_gateways,
            );
            assert_eq!(found, (part, only_h, only_d, several), "round {round}");
            assert_eq!(shared.iter().map(Vec::len).sum::<usize>(), part);
            let settings = DataSettings {
                test: 0.25,
                validation: 0.2,
                ..DataSettings::default()
            };
            let roster = Roster::draw(shared.clone(), &mut counts, (&settings, 7), 1);
            let mut again = Counts {
                validation: 0,
                test: 0,
                ..counts
            };
            assert_eq!(
                Roster::draw(shared.clone(), &mut again, (&settings, 7), 1),
                roster
            );
            assert_eq!(again, counts);
            assert!(roster.is_sound());
            let mut spare = 0;
            for (own, shared) in roster.gateways.iter().zip(&shared) {
                let mut all = own.concat();
                all.sort_unstable();
                assert_eq!(all, *shared);
                assert_eq!(own[0].is_empty(), shared.is_empty());
                spare += shared.len().saturating_sub(1);
            }
            let held_out = counts.test + counts.validation;
            let asked = counts.test_asked + counts.validation_asked;
            assert_eq!(held_out, asked.min(spare));
            assert_eq!(roster.training() + held_out, part);
            assert_eq!(counts.training, roster.training());
            let ranges = roster.ranges();
            assert_eq!(ranges.last().unwrap()[1] as usize, roster.training());
        }
    }

    #[test]
    fn lists_that_are_no_rolls_are_refused() {
        let right = vec![pseudonym(1), pseudonym(2)];
        let mut sorted = right.clone();
        sorted.sort_unstable();
        assert!(is_roll(&sorted) && is_roll(&[]));
        sorted.reverse();
        assert!(!is_roll(&sorted));
        assert!(!is_roll(&[right[0].clone(), right[0].clone()]));
        for wrong in ["", "a", &"A".repeat(32), &"é".repeat(16), &"g".repeat(32)] {
            assert!(!is_roll(&[wrong.to_owned()]), "{wrong}");
        }
    }

    #[test]
    fn a_digest_knows_patients_order_and_labels() {
        let (a, b) = (pseudonym(1), pseudonym(2));
        let of = |p: &[&String], l: &[u32]| {
            let patients: Vec<String> = p.iter().map(|p| (*p).clone()).collect();
            digest_of_all(&[digest_of_part("salt", &patients, l)])
        };
        let all = [
            of(&[&a, &b], &[0, 1]),
            of(&[&b, &a], &[0, 1]),
            of(&[&a, &b], &[1, 0]),
            of(&[&a], &[0]),
        ];
        // Whoever does not know the salt cannot try out who is there.
        let patients = std::slice::from_ref(&a);
        let salted = |salt: &str| digest_of_part(salt, patients, &[0]);
        assert_ne!(salted("one"), salted("another"));
        let different: BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }
}

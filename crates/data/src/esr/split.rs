//! Who gets which rows: test, validation, and the ten groups.
//!
//! Both splits deal *units*: single rows (`paper`), or whole recordings, all rows of one recording
//! staying together (`recording`). Units of each class are shuffled by the seed; the first go to the
//! test, the next to validation, the rest to the groups, in the counts that [`label_pairs`] gives.
//! Everything handed out is in the order of the ids, and nothing is handed out twice.
//!
//! Pieces of one recording resemble each other, so a random split tests on patients that training
//! has seen. It is what the paper did; `recording` shows what the model can do with new patients.

use super::CLASSES;
use super::table::Table;
use crate::DataError;
use crate::label_pairs::{self, PAIRS, TooFew};
use crate::settings::rows_of;
use selvedge_core::experiment::DataSettings;
use selvedge_nn::random::Key;
use std::collections::BTreeMap;

const SHUFFLE: u64 = u64::from_be_bytes(*b"esrsplit");

/// Rows (as indices into [`Table::rows`]) by where they go.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Split {
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) validation: Vec<usize>,
    pub(super) test: Vec<usize>,
    /// Training rows that no group gets, so that all have equally many units.
    pub(super) left_out: Vec<usize>,
}

/// Rows that must stay together.
struct Unit {
    label: usize,
    rows: Vec<usize>,
}

/// Splits the table as the settings say.
pub(super) fn split(table: &Table, settings: &DataSettings, seed: u64) -> Result<Split, DataError> {
    let (units, noun) = match settings.split.as_str() {
        "recording" => (recordings(table)?, "recordings"),
        _ => (single_rows(table), "rows"),
    };
    let mut parts = Parts::of_classes(&units, settings, seed);
    let available = parts.training.each_ref().map(Vec::len);
    let deal = label_pairs::deal(available).map_err(|TooFew(class)| DataError::File {
        file: table.file.clone(),
        problem: format!(
            "class {} has {} {noun} left for training, of {} in all: too few to give each of the \
             ten groups its two labels; expected about as many as of the other classes (data.test \
             = {}, data.validation = {})",
            class + 1,
            available[class],
            available.iter().sum::<usize>(),
            settings.test,
            settings.validation
        ),
    })?;
    let rows = |mut chosen: Vec<usize>| -> Vec<usize> {
        chosen.sort_unstable();
        chosen
            .into_iter()
            .flat_map(|unit| units[unit].rows.iter().copied())
            .collect()
    };
    let groups = deal.counts.map(|counts| {
        let taken = counts.iter().zip(&mut parts.training);
        rows(
            taken
                .flat_map(|(&count, class)| class.drain(..count))
                .collect(),
        )
    });
    Ok(Split {
        groups: groups.into(),
        validation: rows(parts.validation),
        test: rows(parts.test),
        left_out: rows(parts.training.concat()),
    })
}

/// Units by where they go, before training is dealt to groups.
struct Parts {
    training: [Vec<usize>; CLASSES],
    validation: Vec<usize>,
    test: Vec<usize>,
}

impl Parts {
    fn of_classes(units: &[Unit], settings: &DataSettings, seed: u64) -> Self {
        let (mut validation, mut test) = (Vec::new(), Vec::new());
        let training = std::array::from_fn(|class| {
            let mut members: Vec<usize> = (0..units.len())
                .filter(|&unit| units[unit].label == class)
                .collect();
            Key::new(seed)
                .with(SHUFFLE)
                .with(class as u64)
                .stream()
                .shuffle(&mut members);
            test.extend(members.drain(..rows_of(settings.test, members.len())));
            validation.extend(members.drain(..rows_of(settings.validation, members.len())));
            members
        });
        Parts {
            training,
            validation,
            test,
        }
    }
}

fn single_rows(table: &Table) -> Vec<Unit> {
    let unit = |(index, row): (usize, &super::table::Row)| Unit {
        label: row.label,
        rows: vec![index],
    };
    table.rows.iter().enumerate().map(unit).collect()
}

/// The recordings in the order of their names, the rows of each in the order of time.
fn recordings(table: &Table) -> Result<Vec<Unit>, DataError> {
    let mut by_name: BTreeMap<&str, Unit> = BTreeMap::new();
    for (index, row) in table.rows.iter().enumerate() {
        let Some(name) = row.recording() else {
            let expected = "of the form X<chunk>.<recording>, like X15.Z087, which data.split = \
                            \"recording\" needs";
            return Err(table.wrong_id(row, expected));
        };
        let unit = by_name.entry(name).or_insert(Unit {
            label: row.label,
            rows: Vec::new(),
        });
        if unit.label != row.label {
            let expected = format!(
                "a piece of a recording with one label: this row has {}, another of {name} has {}",
                row.label + 1,
                unit.label + 1
            );
            return Err(table.wrong_id(row, &expected));
        }
        unit.rows.push(index);
    }
    let mut units: Vec<Unit> = by_name.into_values().collect();
    for unit in &mut units {
        // Shorter ids first: X2 comes before X10.
        unit.rows
            .sort_by_key(|&row| (table.rows[row].id.len(), row));
    }
    Ok(units)
}

/// The name of a group: its two labels.
pub(super) fn group_name(group: usize) -> String {
    let [a, b] = PAIRS[group];
    format!("labels {}+{}", a + 1, b + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    fn settings(split: &str, test: f64, validation: f64) -> DataSettings {
        DataSettings {
            split: split.into(),
            test,
            validation,
            ..DataSettings::default()
        }
    }

    /// Five classes of recordings, some of them shorter than others.
    fn made_up(recordings: usize) -> Table {
        let mut ids = Vec::new();
        for recording in 0..5 * recordings {
            for second in 1..=11 + recording % 3 {
                ids.push((format!("X{second}.R{recording:03}"), recording % 5));
            }
        }
        Table::of_ids(ids)
    }

    fn parts(split: &Split) -> impl Iterator<Item = &Vec<usize>> {
        split
            .groups
            .iter()
            .chain([&split.validation, &split.test, &split.left_out])
    }

    fn assert_every_row_once(table: &Table, split: &Split) {
        let mut all: Vec<usize> = parts(split).flatten().copied().collect();
        all.sort_unstable();
        assert!(
            all.iter().copied().eq(0..table.rows.len()),
            "every row once"
        );
    }

    fn check_rows(table: &Table, seed: u64) {
        let split = split(table, &settings("paper", 0.2, 0.1), seed).unwrap();
        assert_every_row_once(table, &split);
        assert!(split.left_out.len() < 10);
        for group in &split.groups {
            assert_eq!(group.len(), split.groups[0].len());
        }
        for part in parts(&split).take(12) {
            assert!(part.is_sorted(), "rows are in the order of ids");
        }
        for class in 0..CLASSES {
            let of_class = |rows: &[usize]| {
                rows.iter()
                    .filter(|&&row| table.rows[row].label == class)
                    .count()
            };
            let all = table.rows.iter().filter(|row| row.label == class).count();
            let test = rows_of(0.2, all);
            assert_eq!(of_class(&split.test), test);
            assert_eq!(of_class(&split.validation), rows_of(0.1, all - test));
        }
    }

    fn check_recordings(table: &Table, seed: u64) {
        let split = split(table, &settings("recording", 0.2, 0.1), seed).unwrap();
        assert_every_row_once(table, &split);
        let mut seen = BTreeSet::new();
        for part in parts(&split) {
            let names: Vec<&str> = part
                .iter()
                .map(|&row| table.rows[row].recording().unwrap())
                .collect();
            let runs = names.chunk_by(|a, b| a == b).count();
            let distinct: BTreeSet<&str> = names.into_iter().collect();
            assert_eq!(
                runs,
                distinct.len(),
                "the rows of a recording are neighbours"
            );
            assert!(
                distinct.iter().all(|name| seen.insert(*name)),
                "a recording in two places"
            );
        }
        for (group, [a, b]) in split.groups.iter().zip(PAIRS) {
            let mut counts = [0; CLASSES];
            group
                .iter()
                .for_each(|&row| counts[table.rows[row].label] += 1);
            let others = (0..CLASSES).filter(|&class| class != a && class != b);
            let most_of_others = others.map(|class| counts[class]).max().unwrap();
            assert!(counts[a].min(counts[b]) > most_of_others, "{counts:?}");
        }
    }

    #[test]
    fn rows_go_to_one_place_each() {
        let table = made_up(20);
        (0..20).for_each(|seed| check_rows(&table, seed));
    }

    #[test]
    fn recordings_stay_together() {
        for recordings in [20, 33, 50] {
            let table = made_up(recordings);
            (0..20).for_each(|seed| check_recordings(&table, seed));
        }
    }

    #[test]
    fn the_seed_decides() {
        let table = made_up(20);
        for name in ["paper", "recording"] {
            let split = |seed| split(&table, &settings(name, 0.2, 0.0), seed).unwrap();
            assert_eq!(split(1), split(1));
            assert_ne!(split(1), split(2));
        }
    }

    #[test]
    fn the_real_table() {
        let Some(folder) = std::env::var_os("SELVEDGE_DATA").map(PathBuf::from) else {
            eprintln!("skipped: the_real_table needs SELVEDGE_DATA, a folder with the ESR file");
            return;
        };
        let table = Table::read(Some(&folder)).unwrap();
        assert_eq!(table.rows.len(), 11_500);
        for seed in 0..3 {
            check_rows(&table, seed);
            check_recordings(&table, seed);
        }
        let split = split(&table, &settings("paper", 0.2, 0.0), 42).unwrap();
        assert_every_row_once(&table, &split);
        assert!(split.left_out.is_empty());
    }
}

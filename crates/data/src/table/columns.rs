//! What each column of each file is: found from the header and the `[data.table]` settings.

use super::source::{Counting, Open, Source};
use crate::DataError;
use crate::derived::Derived;
use crate::files::cell::Cell;
use crate::inputs::Column;
use crate::rows::{NewCategories, Purpose};
use crate::settings::wrong;
use selvedge_core::experiment::{DataSettings, TableSettings, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// More categories than this are no categories.
const MOST_CATEGORIES: usize = 1_000;

const NESTED: &str = "it is nested: expected a column with one value per row";

/// Who holds a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Hospital,
    Device,
}

/// How the rows of a file relate to patients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One row each.
    Flat,
    /// One row for each time.
    Series,
    /// One row for each time and variable.
    Long,
}

/// A file and what its columns are.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) counting: Counting,
    pub(super) layout: Layout,
    pub(super) columns: Vec<String>,
    /// Columns that a table of plain values cannot have.
    nested: Vec<String>,
    pub(super) id: Option<usize>,
    pub(super) time: Option<usize>,
    pub(super) variable: Option<usize>,
    pub(super) value: Option<usize>,
    /// Columns that are features, with the feature.
    pub(super) features: Vec<(usize, usize)>,
}

/// Something that is known of a patient, once or at every step.
#[derive(Debug)]
pub(super) struct Feature {
    pub(super) name: String,
    pub(super) holder: Holder,
    /// Whether it has a value at every step.
    pub(super) series: bool,
    /// Its place among the holder's: the place of what names it in the settings, then that in the file, then the
    /// alphabet.
    rank: (usize, usize),
    pub(super) categories: Option<Categories>,
    /// Its first number in the holder's row or step.
    pub(super) at: usize,
}

/// The categories of a feature.
#[derive(Debug)]
pub(super) struct Categories {
    given: bool,
    found: BTreeSet<String>,
    /// In order.
    pub(super) names: Vec<String>,
}

impl Feature {
    /// Numbers that it takes in a row.
    pub(super) fn width(&self) -> usize {
        self.categories.as_ref().map_or(1, |c| c.names.len())
    }
}

/// Everything known about the columns.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) settings: &'a TableSettings,
    /// What `data.outcome` says.
    pub(super) outcome: &'a str,
    /// The one side that is read; none: both.
    pub(super) side: Option<Holder>,
    /// What steps of a series have beside last values.
    pub(super) derived: Vec<Derived>,
    pub(super) purpose: Purpose,
    /// The columns of both sides that a model was trained with, where it says so.
    known: [&'a [Column]; 2],
    /// Categories that training has not seen.
    pub(super) new_categories: NewCategories,
    pub(super) files: Vec<File>,
    pub(super) features: Vec<Feature>,
    /// Variables of long files, by name.
    pub(super) variables: BTreeMap<String, usize>,
}

impl File {
    /// An error about one value.
    pub(super) fn wrong(
        &self,
        row: u64,
        column: &str,
        value: impl ToString,
        expected: impl Into<String>,
    ) -> DataError {
        let value: String = value.to_string().chars().take(60).collect();
        let (file, column, expected) = (self.path.clone(), column.to_owned(), expected.into());
        match self.counting {
            Counting::Lines => DataError::Value {
                file,
                line: row as usize,
                column,
                value,
                expected,
            },
            Counting::Rows => DataError::Row {
                file,
                row,
                column,
                value,
                expected,
            },
        }
    }

    /// An error about the whole file.
    pub(super) fn problem(&self, problem: String) -> DataError {
        DataError::file(&self.path, problem)
    }

    pub(super) fn column(&self, name: &str) -> Option<usize> {
        let named = |column: &String| !name.is_empty() && column == name;
        self.columns.iter().position(named)
    }

    /// A column that must be there.
    pub(super) fn required(&self, key: &str, name: &str) -> Result<usize, DataError> {
        self.column(name).ok_or_else(|| {
            let names = self.columns.iter().map(String::as_str);
            let hint = match nearest(name, names.clone()) {
                _ if self.nested.iter().any(|n| n == name) => NESTED.into(),
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("it has {}", list(names)),
            };
            self.problem(format!(
                "no column {name:?}, as set by data.table.{key}: {hint}"
            ))
        })
    }
}

/// Some names, and how many more.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let mut names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    match more {
        0 => names.join(", "),
        _ => format!("{} and {more} more", names.join(", ")),
    }
}

impl<'a> Plan<'a> {
    /// Reads all headers. Where one side is read by itself, what belongs to the other is passed over.
    pub(super) fn new(
        data: &'a DataSettings,
        side: Option<Holder>,
        (purpose, known): (Purpose, [&'a [Column]; 2]),
        paths: Vec<PathBuf>,
        open: Open<'_>,
    ) -> Result<Self, DataError> {
        let settings = &data.table;
        let mut plan = Plan {
            settings,
            outcome: &data.outcome,
            side,
            derived: Derived::of(data)?,
            purpose,
            known,
            new_categories: NewCategories::default(),
            files: Vec::new(),
            features: Vec::new(),
            variables: BTreeMap::new(),
        };
        for path in paths {
            let source = Source::open(&path, open)?;
            let mut file = File {
                path,
                counting: source.counting(),
                layout: Layout::Flat,
                columns: source.columns().to_vec(),
                nested: source.nested().to_vec(),
                id: None,
                time: None,
                variable: None,
                value: None,
                features: Vec::new(),
            };
            file.time = file.column(&settings.time);
            file.variable = file.column(&settings.variable);
            file.value = file.column(&settings.value);
            file.layout = match (file.time, file.variable, file.value) {
                (Some(_), Some(_), Some(_)) => Layout::Long,
                (Some(_), _, _) => Layout::Series,
                _ => Layout::Flat,
            };
            if !settings.id.is_empty() || file.layout != Layout::Flat {
                file.id = Some(file.required("id", &settings.id)?);
            }
            plan.files.push(file);
        }
        plan.check_times()?;
        for number in 0..plan.files.len() {
            if plan.files[number].layout != Layout::Long {
                plan.name_features(number)?;
            }
        }
        Ok(plan)
    }

    /// A column that says when, of what or how much must be in some file. Who reads one side has not all files.
    fn check_times(&self) -> Result<(), DataError> {
        let t = self.settings;
        let keys = [
            ("table.time", &t.time),
            ("table.variable", &t.variable),
            ("table.value", &t.value),
        ];
        let is_there = |name: &String| self.files.iter().any(|file| file.column(name).is_some());
        let lost = keys
            .into_iter()
            .find(|(_, name)| !name.is_empty() && !is_there(name));
        let Some((key, name)) = lost.filter(|_| self.side.is_none() && !self.purpose.is_new())
        else {
            return Ok(());
        };
        let columns = || {
            self.files
                .iter()
                .flat_map(|file| file.columns.iter().map(String::as_str))
        };
        let hint = match nearest(name, columns()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {}", list(columns())),
        };
        let expected = format!("no file has such a column: {hint}");
        Err(wrong(key, format!("{name:?}"), expected))
    }

    /// Whether a column says who or when, or what is to be predicted, and so is no feature.
    fn is_special(&self, column: &str) -> bool {
        let t = self.settings;
        let who = [&t.id, &t.event, &t.group, &t.patient, &t.part];
        let when = [&t.time, &t.variable, &t.value];
        let all = who.into_iter().chain(when).chain(t.label.columns());
        all.into_iter().any(|name| name == column)
    }

    /// Finds which columns of a file are features.
    fn name_features(&mut self, number: usize) -> Result<(), DataError> {
        for column in 0..self.files[number].columns.len() {
            let name = self.files[number].columns[column].clone();
            if name.is_empty() || self.is_special(&name) {
                continue;
            }
            let Some((holder, place)) = self.read_holder(&name)? else {
                continue;
            };
            if let Some(other) = self.features.iter().find(|feature| feature.name == name) {
                return Err(self.files[number].problem(format!(
                    "the column {:?} is in another file too: expected it in only one",
                    other.name
                )));
            }
            let series = self.files[number].layout == Layout::Series;
            let feature = self.add_feature(name, holder, (place, column), series);
            self.files[number].features.push((column, feature));
        }
        Ok(())
    }

    fn add_feature(
        &mut self,
        name: String,
        holder: Holder,
        rank: (usize, usize),
        series: bool,
    ) -> usize {
        let categories = self.settings.categorical.of(&name).map(|given| Categories {
            given: !given.is_empty() || self.purpose.is_new(),
            found: BTreeSet::new(),
            names: given.to_vec(),
        });
        self.features.push(Feature {
            name,
            holder,
            series,
            rank,
            categories,
            at: 0,
        });
        self.features.len() - 1
    }

    /// The feature of a variable, if anybody holds it.
    pub(super) fn variable(&mut self, name: &str) -> Result<Option<usize>, DataError> {
        if let Some(feature) = self.variables.get(name) {
            return Ok(Some(*feature));
        }
        let Some((holder, place)) = self.read_holder(name)? else {
            return Ok(None);
        };
        if self.features.iter().any(|feature| feature.name == name) {
            let value = format!("{:?}", self.settings.variable);
            let expected =
                format!("{name:?} is both a variable and a column: expected different names");
            return Err(wrong("table.variable", value, expected));
        }
        let feature = self.add_feature(name.into(), holder, (place, 0), true);
        self.variables.insert(name.into(), feature);
        Ok(Some(feature))
    }

    /// Variables that the settings name, of which these files happen to have no measurement. Others of the same side
    /// may have some, and all must come to the same columns.
    pub(super) fn expect_variables(&mut self) -> Result<Vec<String>, DataError> {
        let has_variables = self.files.iter().any(|file| file.layout == Layout::Long);
        let (hospital, device) = (&self.settings.hospital[..], &self.settings.device[..]);
        let own: [&[String]; 2] = match (self.side, self.purpose) {
            _ if !has_variables => [&[], &[]],
            (Some(Holder::Hospital), _) => [hospital, &[]],
            (Some(Holder::Device), _) => [&[], device],
            (None, Purpose::Training) => [&[], &[]],
            (None, Purpose::New { .. }) => [hospital, device],
        };
        let mut added = Vec::new();
        for name in own.into_iter().flatten().filter(|name| !name.contains('*')) {
            let there = self.features.iter().any(|feature| feature.name == *name);
            let mut others = self.known.into_iter().flatten();
            // What training had once for each patient is no variable: it is missing.
            let is_single = others.any(|column| column.name == *name && !column.series);
            let is_none = there || is_single || self.is_special(name);
            if !is_none && self.variable(name)?.is_some() {
                added.push(name.clone());
            }
        }
        Ok(added)
    }

    /// As [`holder`](Self::holder), if that side is read.
    fn read_holder(&self, name: &str) -> Result<Option<(Holder, usize)>, DataError> {
        let is_read = |holder: Holder| self.side.is_none_or(|side| side == holder);
        Ok(self.holder(name)?.filter(|(holder, _)| is_read(*holder)))
    }

    /// Who holds a column or variable, and the place of what says so. A name is closer than a pattern, a pattern than
    /// `*`.
    fn holder(&self, name: &str) -> Result<Option<(Holder, usize)>, DataError> {
        let best = |patterns: &[String]| {
            let close = |(place, pattern): (usize, &String)| {
                Some((closeness(pattern, name)?, usize::MAX - place))
            };
            patterns.iter().enumerate().filter_map(close).max()
        };
        let (hospital, device) = (best(&self.settings.hospital), best(&self.settings.device));
        match (hospital, device) {
            (Some((a, _)), Some((b, _))) if a == b => Err(wrong(
                "table.device",
                format!("{:?}", self.settings.device),
                format!(
                    "{name:?} would be both at the hospital and on the device: expected it on only one side"
                ),
            )),
            (a, b) => Ok([(a, Holder::Hospital), (b, Holder::Device)]
                .into_iter()
                .filter_map(|(found, holder)| found.map(|found| (found, holder)))
                .max_by_key(|((closeness, _), _)| *closeness)
                .map(|((_, place), holder)| (holder, usize::MAX - place))),
        }
    }

    /// Notes a category, or refuses it.
    pub(super) fn note_category(
        &mut self,
        file: usize,
        (row, id): (u64, &str),
        feature: usize,
        value: Cell<'_>,
    ) -> Result<(), DataError> {
        let feature = &mut self.features[feature];
        let (Some(categories), false) = (&mut feature.categories, value == Cell::Missing) else {
            return Ok(());
        };
        let text = value.to_string();
        if categories.given {
            if categories.names.contains(&text) {
                return Ok(());
            }
            if self.purpose.is_new() {
                let of_patient = self.new_categories.entry(id.to_owned()).or_default();
                let is_known = |(column, _): &(String, String)| *column == feature.name;
                // Of a series the first will do.
                if !of_patient.iter().any(is_known) {
                    of_patient.push((feature.name.clone(), text));
                }
                return Ok(());
            }
            let expected = format!(
                "one of its categories, {}",
                list(categories.names.iter().map(String::as_str))
            );
            return Err(self.files[file].wrong(row, &feature.name, text, expected));
        }
        if !categories.found.contains(&text) {
            categories.found.insert(text);
        }
        if categories.found.len() > MOST_CATEGORIES {
            return Err(self.files[file].problem(format!(
                "the column {:?} has more than {MOST_CATEGORIES} categories: expected fewer, or numbers without data.table.categorical",
                feature.name
            )));
        }
        Ok(())
    }

    /// When all rows have been seen: puts features in order and gives each its place.
    pub(super) fn settle(&mut self) -> Result<(), DataError> {
        for feature in &mut self.features {
            if let Some(categories) = feature.categories.as_mut().filter(|c| !c.given) {
                let found = std::mem::take(&mut categories.found);
                categories.names = in_natural_order(found);
            }
        }
        self.check_for_model()?;
        self.check_names()?;
        let mut order: Vec<usize> = (0..self.features.len()).collect();
        let key = |f: &Feature| (f.holder, f.rank, f.name.clone());
        order.sort_by_cached_key(|at| key(&self.features[*at]));
        let mut next = [0, 0];
        for feature in order {
            let feature = &mut self.features[feature];
            let next = &mut next[feature.holder as usize];
            feature.at = *next;
            *next += feature.width();
        }
        Ok(())
    }

    /// A model needs all of its columns. Those of new patients that are missing are told together.
    fn check_for_model(&self) -> Result<(), DataError> {
        if !self.purpose.is_new() {
            return Ok(());
        }
        let is_there = |pattern: &&String| {
            let mut features = self.features.iter();
            features.any(|feature| closeness(pattern, &feature.name).is_some())
        };
        let of_side = |side: Holder, names: &'a [String]| match self.side {
            Some(only) if only != side => &[],
            _ => names,
        };
        let wanted = of_side(Holder::Hospital, &self.settings.hospital).iter();
        let wanted = wanted.chain(of_side(Holder::Device, &self.settings.device));
        let lacking: Vec<&str> = wanted
            .filter(|name| !is_there(name))
            .map(String::as_str)
            .collect();
        let Some(first) = lacking.first() else {
            return Ok(());
        };
        let columns = || self.files.iter().flat_map(|file| &file.columns);
        let others = columns().map(String::as_str).filter(|name| name != first);
        let hint = match nearest(first, others) {
            Some(near) => format!("did you mean {near:?} by {first:?}?"),
            None => format!("there are {}", list(columns().map(String::as_str))),
        };
        let files: Vec<String> = self
            .files
            .iter()
            .map(|file| file.path.display().to_string())
            .collect();
        Err(DataError::file(
            files.join(", "),
            format!(
                "no {} {}, which the model was trained with: {hint}",
                match lacking.len() {
                    1 => "column",
                    _ => "columns",
                },
                list(lacking.iter().copied())
            ),
        ))
    }

    /// The columns of a side in the order of its numbers, as they must be read for the model that is trained on them.
    pub(super) fn columns_of(&self, holder: Holder) -> Vec<Column> {
        let mut own: Vec<&Feature> = self
            .features
            .iter()
            .filter(|f| f.holder == holder)
            .collect();
        own.sort_by_key(|feature| feature.at);
        let column = |feature: &Feature| Column {
            name: feature.name.clone(),
            categories: feature.categories.as_ref().map(|c| c.names.clone()),
            series: feature.series,
        };
        own.into_iter().map(column).collect()
    }

    /// Every name in the settings must have found something, and each side must have got something.
    fn check_names(&self) -> Result<(), DataError> {
        let t = self.settings;
        let known = || {
            let of_files = self.files.iter().flat_map(|f| f.columns.iter());
            of_files.chain(self.variables.keys()).map(String::as_str)
        };
        let mut categorical = Vec::new();
        for name in t.categorical.names() {
            // Without its holder it would be lost on both sides, so both look for it.
            if self.side.is_none() || self.holder(name)?.is_none_or(|(h, _)| self.side == Some(h)) {
                categorical.push(name.to_owned());
            }
        }
        let is_read = |holder: Holder| self.side.is_none_or(|side| side == holder);
        let of_side = |holder: Holder, names: &'a [String]| match is_read(holder) {
            true => names,
            false => &[],
        };
        for (key, names) in [
            ("table.hospital", of_side(Holder::Hospital, &t.hospital)),
            ("table.device", of_side(Holder::Device, &t.device)),
            ("table.categorical", &categorical),
        ] {
            let lost = |name: &&String| {
                !self
                    .features
                    .iter()
                    .any(|f| closeness(name, &f.name).is_some())
            };
            if let Some(name) = names.iter().find(lost) {
                let nested = self.files.iter().any(|file| file.nested.contains(name));
                let others = known().filter(|column| *column != name.as_str());
                let on_no_side =
                    key == "table.categorical" && known().any(|column| column == name.as_str());
                let hint = match nearest(name, others) {
                    _ if self.is_special(name) => {
                        "it is the id, the label or the like, not a feature".into()
                    }
                    _ if nested => NESTED.into(),
                    _ if on_no_side => {
                        "add the column to data.table.hospital or data.table.device, too".into()
                    }
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("there are {}", list(known())),
                };
                let expected = format!("no feature matches {name:?}: {hint}");
                return Err(wrong(key, format!("{names:?}"), expected));
            }
        }
        for (key, holder) in [
            ("table.hospital", Holder::Hospital),
            ("table.device", Holder::Device),
        ] {
            if is_read(holder) && !self.features.iter().any(|f| f.holder == holder) {
                let expected = format!(
                    "expected the columns of this side, like [\"lab_*\"]; there are {}",
                    list(known())
                );
                return Err(wrong(key, "[]", expected));
            }
        }
        Ok(())
    }
}

/// How closely a pattern names something: not at all, by `*`, by a pattern, by its name.
fn closeness(pattern: &str, name: &str) -> Option<u8> {
    match pattern.split_once('*') {
        _ if pattern == name => Some(3),
        None => None,
        Some(("", "")) => Some(1),
        Some((start, end)) => {
            let long_enough = name.len() >= start.len() + end.len();
            (long_enough && name.starts_with(start) && name.ends_with(end)).then_some(2)
        }
    }
}

/// Numbers by size, other texts by the alphabet.
pub(super) fn in_natural_order(texts: BTreeSet<String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.into_iter().collect();
    let number = |text: &String| text.parse::<f64>().ok().filter(|n| n.is_finite());
    if texts.iter().all(|text| number(text).is_some()) {
        texts.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(a.cmp(b)));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_closer_than_patterns() {
        assert_eq!(closeness("hr", "hr"), Some(3));
        assert_eq!(closeness("lab_*", "lab_k"), Some(2));
        assert_eq!(closeness("*_hr", "max_hr"), Some(2));
        assert_eq!(closeness("a*a", "a"), None);
        assert_eq!(closeness("*", "anything"), Some(1));
        assert_eq!(closeness("hr", "HR"), None);
    }

    #[test]
    fn numbers_come_in_the_order_of_their_size() {
        let set = |texts: &[&str]| texts.iter().map(|t| t.to_string()).collect();
        assert_eq!(in_natural_order(set(&["10", "9", "-1"])), ["-1", "9", "10"]);
        assert_eq!(in_natural_order(set(&["b", "10", "9"])), ["10", "9", "b"]);
    }
}

//! The tasks of mimic3-benchmarks, and their lists of samples.

use crate::DataError;
use crate::files::collection::{Text, file_of};
use crate::rows::Part;
use crate::settings;
use selvedge_core::experiment::DataSettings;
use selvedge_core::outcome::Kind;
use selvedge_nn::random::Key;
use std::collections::BTreeMap;
use std::path::Path;

/// What can be learnt: a task each, in the order of [`Task::ALL`].
pub(super) const OUTCOMES: &[(&str, Kind)] = &[
    ("death", Kind::Class),
    ("phenotyping", Kind::Labels),
    ("stay", Kind::Quantity),
    ("decompensation", Kind::Class),
];

/// Labels of phenotyping.
pub(super) const PHENOTYPES: usize = 25;

/// First word of the keys by which a stay's first sample is drawn.
const EVERY: u64 = u64::from_be_bytes(*b"every th");

/// One of the benchmark's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Death in hospital, from the first 48 hours.
    Death,
    /// What a patient had, from the whole stay.
    Phenotyping,
    /// How long the stay goes on, at each of its hours.
    Stay,
    /// Whether the patient dies within a day, at each of its hours.
    Decompensation,
}

impl Task {
    pub(crate) const ALL: [Task; 4] = [
        Task::Death,
        Task::Phenotyping,
        Task::Stay,
        Task::Decompensation,
    ];

    pub(super) fn of(settings: &DataSettings) -> Result<Self, DataError> {
        let (word, _) = settings::outcome(settings, &super::SET)?;
        let mut all = Task::ALL.into_iter().zip(OUTCOMES);
        let task = all.find(|(_, (name, _))| *name == word);
        Ok(task.map_or(Task::Death, |(task, _)| task))
    }

    /// As in `data.outcome`.
    fn word(self) -> &'static str {
        OUTCOMES[self as usize].0
    }

    pub(super) fn kind(self) -> Kind {
        OUTCOMES[self as usize].1
    }

    /// What the benchmark calls its folder.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Task::Death => "in-hospital-mortality",
            Task::Phenotyping => "phenotyping",
            Task::Stay => "length-of-stay",
            Task::Decompensation => "decompensation",
        }
    }

    /// What it calls the task where it saves a normaliser.
    pub(super) fn short(self) -> &'static [&'static str] {
        match self {
            Task::Death => &["ihm"],
            Task::Phenotyping => &["ph_", "pheno"],
            Task::Stay => &["los"],
            Task::Decompensation => &["decomp"],
        }
    }

    /// Where it is looked for below the data folder.
    pub(super) fn places(self) -> &'static [&'static str] {
        match self {
            // As ever, so that old experiments find what they found.
            Task::Death => &["mimic3", "in-hospital-mortality", "mimic3-demo"],
            Task::Phenotyping => &["mimic3/phenotyping", "phenotyping", "mimic3"],
            Task::Stay => &["mimic3/length-of-stay", "length-of-stay", "mimic3"],
            Task::Decompensation => &["mimic3/decompensation", "decompensation", "mimic3"],
        }
    }

    /// Whether a stay has a sample at many of its hours.
    pub(super) fn has_hours(self) -> bool {
        matches!(self, Task::Stay | Task::Decompensation)
    }

    /// The names of the classes, or that of the quantity; of phenotypes a list has them.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Task::Death => &["survived", "died"],
            Task::Phenotyping => &[],
            Task::Stay => &["hours until the stay ends"],
            Task::Decompensation => &["no death within 24 hours", "death within 24 hours"],
        }
    }

    /// Numbers that are known of a sample.
    pub(super) fn each(self) -> usize {
        match self {
            Task::Phenotyping => PHENOTYPES,
            _ => 1,
        }
    }

    /// The task of whose folder a file is, if a part of its path says so.
    fn of_path<'a>(parts: impl DoubleEndedIterator<Item = &'a str>) -> Option<Result<Task, ()>> {
        parts.rev().find_map(|part| match part {
            "multitask" => Some(Err(())),
            part => Task::ALL.into_iter().find(|t| t.folder() == part).map(Ok),
        })
    }

    /// Whether a file of a collection may be this task's: it is below no folder of another one.
    pub(crate) fn has(self, name: &str) -> bool {
        Task::of_path(name.split('/')).is_none_or(|task| task == Ok(self))
    }

    /// Of which other task a file of a collection is.
    pub(super) fn other(self, name: &str) -> Option<Task> {
        Task::of_path(name.split('/'))?
            .ok()
            .filter(|task| *task != self)
    }

    /// The same of a path, which ends in the collection.
    fn other_by_place(self, place: &Path) -> Option<Task> {
        let parts = place.iter().filter_map(|part| part.to_str());
        let task = Task::of_path(parts)?.ok();
        task.filter(|task| *task != self)
    }

    /// What an experiment would have to say for it.
    pub(super) fn advice(self) -> String {
        format!("data.outcome = {:?} is for {}", self.word(), self.folder())
    }

    /// The task whose lists have such a header.
    fn of_header(columns: &[String]) -> Option<&'static str> {
        let has = |name: &str| columns.iter().any(|column| column == name);
        match (has("period_length"), has("y_true")) {
            (false, true) => Some("data.outcome = \"death\" is for in-hospital-mortality"),
            (true, true) => Some(
                "data.outcome = \"stay\" is for length-of-stay, \"decompensation\" for decompensation",
            ),
            (true, false) => Some("data.outcome = \"phenotyping\" is for phenotyping"),
            (false, false) => None,
        }
    }
}

/// A sample: the time at which a stay is looked back upon, and where its numbers are among the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(super) end: f64,
    pub(super) at: usize,
}

/// What lists say of a stay.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What it is for, if the name of a list says so.
    pub(super) part: Option<Part>,
    /// By their time, once all lists are read.
    pub(super) samples: Vec<Sample>,
}

/// What all lists say.
pub(crate) struct Lists {
    pub(super) task: Task,
    /// Whether what became of stays is read, or only the hours.
    is_known: bool,
    /// The names of labels, if lists have any.
    pub(super) names: Vec<String>,
    /// What is known of samples.
    pub(super) values: Vec<f32>,
    /// By `<folder>/<stay>`.
    pub(super) stays: BTreeMap<String, Entry>,
    /// Samples that thinning has left out.
    pub(super) left_out: usize,
}

impl Lists {
    pub(crate) fn new(task: Task, is_known: bool) -> Self {
        Lists {
            task,
            is_known,
            names: Vec::new(),
            values: Vec::new(),
            stays: BTreeMap::new(),
            left_out: 0,
        }
    }

    /// Calls labels that no list names as a model does.
    pub(super) fn call_labels(&mut self, names: &[String]) {
        self.names = names.to_vec();
        self.names.resize(PHENOTYPES, String::new());
    }

    /// Samples that are listed.
    pub(super) fn count(&self) -> usize {
        self.stays.values().map(|entry| entry.samples.len()).sum()
    }

    /// Reads one more list: of stays that lie in `folder` and are for a part, if its name says which.
    pub(crate) fn read(
        &mut self,
        list: &Text,
        folder: &str,
        part: Option<Part>,
    ) -> Result<(), DataError> {
        let task = self.task;
        let wrong = |line, column: &str, value: &str, expected: &str| {
            list.wrong(line, column, value, expected)
        };
        let csv = list.csv()?;
        let columns = csv.columns().to_vec();
        let wanted = self.columns(list, &columns)?;
        let name = |at: usize| columns[wanted[at]].as_str();
        // What is known in the first row, and whether that of all is written 0 or 1.
        let (mut first, mut binary, mut rows) = ((0, String::new()), true, 0);
        csv.read(&wanted, &mut |line, cells| {
            let (line, stay) = (line as usize, cells[0].text());
            let end = match cells[1].text() {
                _ if wanted[1] == 0 => 48.0,
                text => {
                    let end = text
                        .parse()
                        .ok()
                        .filter(|h: &f64| h.is_finite() && *h > 0.0);
                    let expected = match task {
                        Task::Death => {
                            "48: a list of in-hospital-mortality has no other, those of length-of-stay and decompensation have"
                        }
                        _ => "hours since admission, above 0",
                    };
                    end.filter(|end| task != Task::Death || *end == 48.0)
                        .ok_or_else(|| wrong(line, name(1), text, expected))?
                }
            };
            let known = &cells[2..];
            for (at, cell) in known.iter().enumerate() {
                let text = cell.text();
                binary &= text == "0" || text == "1";
                let (found, expected) = match task {
                    Task::Stay => (hours(text), "hours, 0 or more, like 23.5"),
                    Task::Decompensation => (
                        flag(text),
                        "0 or 1; hours stand in lists of length-of-stay (data.outcome = \"stay\")",
                    ),
                    Task::Death | Task::Phenotyping => (flag(text), "0 or 1"),
                };
                let found = found.ok_or_else(|| wrong(line, name(2 + at), text, expected))?;
                self.values.push(found);
            }
            if !stay.ends_with("_timeseries.csv") || stay.contains('/') {
                let expected = "the name of a stay's file, like 10114_episode1_timeseries.csv";
                return Err(wrong(line, "stay", stay, expected));
            }
            if !self.is_known {
                self.values.extend(vec![f32::NAN; task.each()]);
            }
            if rows == 0 {
                first = (line, known.first().map_or("", |cell| cell.text()).to_owned());
            }
            rows += 1;
            let entry = self.stays.entry(format!("{folder}/{stay}")).or_insert(Entry {
                part,
                samples: Vec::new(),
            });
            // Lists in the folders of the parts repeat those beside them, and know less.
            entry.part = part.or(entry.part);
            let at = self.values.len() / task.each() - 1;
            entry.samples.push(Sample { end, at });
            Ok(())
        })?;
        // The benchmark writes hours with six digits after the point.
        if task == Task::Stay && self.is_known && binary && rows > 1 {
            let expected = "hours, like 23.5: every row of the list has 0 or 1, as those of decompensation have (data.outcome = \"decompensation\")";
            return Err(wrong(first.0, "y_true", &first.1, expected));
        }
        Ok(())
    }

    /// The places of the stay, the hour and what is known; 0 for an hour that stands nowhere.
    fn columns(&mut self, list: &Text, columns: &[String]) -> Result<Vec<usize>, DataError> {
        let (task, last) = (self.task, columns.len() - 1);
        if let Some(other) = task
            .other_by_place(&list.place)
            .filter(|_| task != Task::Death)
        {
            return Err(DataError::file(
                &list.place,
                format!(
                    "a list of {}: expected one of {}; {}",
                    other.folder(),
                    task.folder(),
                    other.advice()
                ),
            ));
        }
        let hours = columns.iter().position(|column| column == "period_length");
        let expected = match (task, self.is_known) {
            (Task::Death, _) => "stay,y_true",
            (_, false) => "stay,period_length",
            (Task::Phenotyping, true) => "stay,period_length and the names of 25 phenotypes",
            (Task::Stay | Task::Decompensation, true) => "stay,period_length,y_true",
        };
        let has_hours = task == Task::Death || hours == Some(1);
        let has_known = match task {
            _ if !self.is_known => true,
            Task::Phenotyping => columns.len() == 2 + PHENOTYPES && columns[last] != "y_true",
            _ => columns[last] == "y_true",
        };
        if columns[0] != "stay" || !has_hours || !has_known {
            let advice = Task::of_header(columns).filter(|advice| !advice.contains(task.word()));
            let advice = advice.map_or(String::new(), |advice| format!("; {advice}"));
            let expected = format!("the header {expected}{advice}");
            return Err(list.wrong(1, "1", &columns.join(","), &expected));
        }
        let known = match task {
            _ if !self.is_known => 0..0,
            Task::Phenotyping => 2..columns.len(),
            _ => last..columns.len(),
        };
        if task == Task::Phenotyping && self.is_known {
            let names = columns[known.clone()].to_vec();
            let differ = |(_, (a, b)): &(usize, (&String, &String))| a != b;
            let mut pairs = self.names.iter().zip(&names).enumerate();
            if let Some((at, (before, name))) = pairs.find(differ) {
                let expected = format!("{before:?}, as in the other lists");
                return Err(list.wrong(1, &(3 + at).to_string(), name, &expected));
            }
            self.names = names;
        }
        Ok([0, hours.unwrap_or(0)].into_iter().chain(known).collect())
    }

    /// Sorts the samples of each stay, and refuses what is listed twice: at all, or with different outcomes.
    pub(crate) fn settle(&mut self, file: &Path, is_strict: bool) -> Result<(), DataError> {
        for (key, entry) in &mut self.stays {
            let what = (file_of(key), self.task, &self.values[..]);
            unique(what, &mut entry.samples, is_strict)
                .map_err(|problem| DataError::file(file, problem))?;
        }
        Ok(())
    }

    /// What all entries of a stay say together.
    pub(super) fn together(&self, keys: &[String]) -> Result<Option<Entry>, String> {
        let mut entries = keys.iter().filter_map(|key| self.stays.get(key));
        let Some(first) = entries.next() else {
            return Ok(None);
        };
        let (mut part, mut samples) = (first.part, first.samples.clone());
        for entry in entries {
            part = part.or(entry.part);
            samples.extend_from_slice(&entry.samples);
        }
        let what = (file_of(&keys[0]), self.task, &self.values[..]);
        unique(what, &mut samples, false)?;
        Ok(Some(Entry { part, samples }))
    }

    /// Keeps one sample in `every` hours of each stay, from an hour that is drawn for it: whoever is listed for longer
    /// has as large a share of what is kept as of all.
    pub(crate) fn thin(&mut self, every: usize) {
        if every == 1 || !self.task.has_hours() {
            return;
        }
        let all = self.count();
        let every = every as u64;
        for (key, entry) in &mut self.stays {
            let words = file_of(key).bytes().map(u64::from);
            let from = Key::new(EVERY).with_all(words).stream().below(every);
            let is_kept = |sample: &Sample| {
                super::series::hours_until(sample.end).unsigned_abs() % every == from
            };
            entry.samples.retain(is_kept);
        }
        self.stays.retain(|_, entry| !entry.samples.is_empty());
        self.left_out = all - self.count();
    }
}

/// Sorts the samples of a stay of a task with these values; of what is listed twice one stays, or says what is wrong.
fn unique(
    (stay, task, values): (&str, Task, &[f32]),
    samples: &mut Vec<Sample>,
    is_strict: bool,
) -> Result<(), String> {
    let (each, has_hours) = (task.each(), task.has_hours());
    samples.sort_by(|a, b| a.end.total_cmp(&b.end));
    let of = |sample: &Sample| {
        let known = &values[sample.at * each..][..each];
        known.iter().map(|y| y.to_bits())
    };
    let same = |a: &Sample, b: &Sample| a.end == b.end || !has_hours;
    let mut pairs = samples.windows(2);
    let twice = pairs
        .find(|pair| same(&pair[0], &pair[1]) && (is_strict || !of(&pair[0]).eq(of(&pair[1]))));
    if let Some(twice) = twice {
        let at = match has_hours {
            true => format!(" at {} hours", twice[0].end),
            false => String::new(),
        };
        let expected = match (is_strict, has_hours) {
            (true, false) => ": expected every stay once",
            (true, true) => ": expected every hour of a stay once",
            (false, _) => ", with different outcomes: expected one",
        };
        return Err(format!("{stay} is listed twice{at}{expected}"));
    }
    samples.dedup_by(|a, b| same(a, b));
    Ok(())
}

/// `0` or `1`.
fn flag(text: &str) -> Option<f32> {
    match text {
        "0" => Some(0.0),
        "1" => Some(1.0),
        _ => None,
    }
}

/// Hours; the benchmark's may be a millionth below 0 at the end of a stay.
fn hours(text: &str) -> Option<f32> {
    let hours: f64 = text.parse().ok()?;
    let is_sound = hours.is_finite() && hours >= -1.5e-6;
    is_sound.then_some(hours.max(0.0) as f32)
}

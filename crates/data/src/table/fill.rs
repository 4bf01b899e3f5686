//! The second pass over all files: every number to its place.

use super::columns::{Feature, File, Holder, Layout, Plan};
use super::digits::Digits;
use super::source::{Open, Source};
use super::survey::{Survey, id_of};
use super::window::{self, Window};
use crate::DataError;
use crate::derived::Columns;
use crate::files::cell::Cell;
use crate::rows::{Purpose, Side};
use crate::settings::{memory, wrong};
use crate::statistics::Scaling;
use selvedge_nn::Shape;
use std::collections::HashMap;
use std::path::Path;

/// Beyond this a set is a slip of the keyboard, and would only end in a killed process.
const MOST_NUMBERS: u128 = 16 << 30;

/// One side of all rows while it is being filled.
#[derive(Debug)]
pub(super) struct Grid {
    holder: Holder,
    /// 0: every row is one step, and not a series.
    steps: usize,
    width: usize,
    /// Where the masks begin, if there are any, and the mask of each feature.
    masks: Option<HashMap<usize, usize>>,
    /// What steps have beside last values, and the channel of each feature that has it.
    derived: Columns,
    channels: HashMap<usize, usize>,
    values: Vec<f32>,
    /// When each number of a series was measured: of several in one step, the last one counts.
    times: Vec<f32>,
}

/// Where the rows of patients are. Ids are many and long, so the survey's are used and not copied.
pub(super) struct Places<'a> {
    numbers: &'a HashMap<String, u32>,
    /// The place of each patient; nothing for those who are left out.
    of_patient: Vec<Option<u32>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(survey: &'a Survey, patients: &[u32]) -> Self {
        let mut of_patient = vec![None; survey.ids.len()];
        for (place, patient) in (0..).zip(patients) {
            of_patient[*patient as usize] = Some(place);
        }
        Places {
            numbers: &survey.numbers,
            of_patient,
        }
    }

    fn get(&self, id: &str) -> Option<u32> {
        self.of_patient[*self.numbers.get(id)? as usize]
    }
}

impl Grid {
    /// A side with nothing measured.
    pub(super) fn new(plan: &Plan<'_>, holder: Holder, rows: usize) -> Result<Self, DataError> {
        let own = || {
            plan.features
                .iter()
                .enumerate()
                .filter(|(_, f)| f.holder == holder)
        };
        let numbers: usize = own().map(|(_, feature)| feature.width()).sum();
        let count = own().count();
        let series = own().any(|(_, feature)| feature.series);
        let masks = plan.settings.masks.then(|| {
            let mut order: Vec<(usize, usize)> = own().map(|(n, f)| (f.at, n)).collect();
            order.sort_unstable();
            let places = order.into_iter().zip(numbers..);
            places
                .map(|((_, feature), place)| (feature, place))
                .collect()
        });
        let mut in_order: Vec<(usize, usize)> = own()
            .filter(|(_, feature)| has_derived(feature))
            .map(|(number, feature)| (feature.at, number))
            .collect();
        in_order.sort_unstable();
        let channels: HashMap<usize, usize> = in_order
            .into_iter()
            .map(|(_, number)| number)
            .zip(0..)
            .collect();
        let first = numbers + if plan.settings.masks { count } else { 0 };
        let width = first + Columns::width(&plan.derived, channels.len());
        let steps = if series { plan.settings.steps } else { 0 };
        let all = width as u128 * steps.max(1) as u128 * rows as u128;
        // With the times of a series a number takes eight bytes, and it is copied once when rows are dealt.
        let affordable = memory() / 8;
        if all > MOST_NUMBERS.min(affordable) {
            let expected = format!(
                "{rows} patients with {width} numbers at each step make {all} numbers: expected at most {}, to fit into memory",
                MOST_NUMBERS.min(affordable)
            );
            return Err(wrong("table.steps", plan.settings.steps, expected));
        }
        let mut values = vec![f32::NAN; all as usize];
        if masks.is_some() {
            for step in values.chunks_exact_mut(width.max(1)) {
                step[numbers..first].fill(0.0);
            }
        }
        let times = if series { all as usize } else { 0 };
        let derived = match channels.is_empty() {
            true => Columns::new(&[], 0, first, 0),
            false => Columns::new(&plan.derived, channels.len(), first, steps * rows),
        };
        Ok(Grid {
            holder,
            steps,
            width,
            masks,
            derived,
            channels,
            values,
            times: vec![f32::NEG_INFINITY; times],
        })
    }

    /// Writes what was measured; `step` is nothing for what is known once and for all.
    fn write(
        &mut self,
        number: usize,
        feature: &Feature,
        row: u32,
        step: Option<(usize, f32)>,
        value: Value,
    ) {
        let every = self.steps.max(1);
        let steps = match step {
            Some((step, _)) => step..step + 1,
            None => 0..every,
        };
        for at in steps {
            let number_of_step = row as usize * every + at;
            let base = number_of_step * self.width;
            let first = base + feature.at;
            if let (Value::Number(value), Some(channel)) = (value, self.channels.get(&number)) {
                let numbers = &mut self.values[base..base + self.width];
                self.derived
                    .note((number_of_step, *channel), value, numbers);
            }
            if let Some((_, time)) = step {
                if time < self.times[first] {
                    continue;
                }
                self.times[first] = time;
            }
            match value {
                Value::Number(number) => self.values[first] = number,
                Value::Category(category) => {
                    let columns = &mut self.values[first..first + feature.width()];
                    columns.fill(0.0);
                    columns[category] = 1.0;
                }
            }
            if let Some(masks) = &self.masks {
                self.values[base + masks[&number]] = 1.0;
            }
        }
    }

    /// What the numbers of a row or step are called, and which of them are scaled.
    pub(super) fn columns(&self, plan: &Plan<'_>) -> (Vec<String>, Vec<bool>) {
        let mut own: Vec<&Feature> = plan
            .features
            .iter()
            .filter(|f| f.holder == self.holder)
            .collect();
        own.sort_by_key(|feature| feature.at);
        let mut names = Vec::with_capacity(self.width);
        let mut scaled = Vec::with_capacity(self.width);
        for feature in &own {
            match &feature.categories {
                None => names.push(feature.name.clone()),
                Some(c) => names.extend(c.names.iter().map(|c| format!("{} = {c}", feature.name))),
            }
            scaled.resize(names.len(), feature.categories.is_none());
        }
        if self.masks.is_some() {
            names.extend(own.iter().map(|f| format!("{} measured", f.name)));
            scaled.resize(names.len(), false);
        }
        let channels = own.iter().filter(|feature| has_derived(feature));
        let channels = channels.map(|feature| feature.name.as_str());
        names.extend(Columns::names(&plan.derived, channels));
        scaled.resize(names.len(), true);
        (names, scaled)
    }

    /// The shape of a row.
    pub(super) fn shape(&self) -> Shape {
        match self.steps {
            0 => Shape::Flat(self.width),
            steps => Shape::Steps(steps, self.width),
        }
    }

    /// When all is written: counts what is counted. The times are of no use any more.
    pub(super) fn written(&mut self) {
        self.times = Vec::new();
        self.derived
            .finish(self.steps.max(1), self.width.max(1), &mut self.values);
    }

    /// Some rows of it, in that order.
    pub(super) fn of_rows(&self, rows: &[u32]) -> Self {
        let wide = self.shape().len();
        let mut values = Vec::with_capacity(rows.len() * wide);
        for row in rows {
            values.extend_from_slice(&self.values[*row as usize * wide..][..wide]);
        }
        Grid {
            holder: self.holder,
            steps: self.steps,
            width: self.width,
            masks: None,
            derived: Columns::new(&[], 0, 0, 0),
            channels: HashMap::new(),
            values,
            times: Vec::new(),
        }
    }

    /// Deals with what was not measured, in one of the ways of `data.table.missing`.
    pub(super) fn fill_gaps(
        &mut self,
        missing: &str,
        (names, scaled): (&[String], &[bool]),
        (file, ids): (&Path, &dyn Fn(usize) -> String),
    ) -> Result<(), DataError> {
        match missing {
            "carry" => self.carry(),
            "zero" => self.zero(scaled),
            "refuse" => self.refuse(file, names, ids)?,
            _ => {}
        }
        Ok(())
    }

    /// Its numbers.
    pub(super) fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// How many values of each column were measured, and of how many patients.
    pub(super) fn measured(&self) -> Vec<[u64; 2]> {
        let mut counts = vec![[0u64; 2]; self.width];
        for row in self.values.chunks_exact(self.width * self.steps.max(1)) {
            for (at, [values, patients]) in counts.iter_mut().enumerate() {
                let column = row[at..].iter().step_by(self.width);
                let there = column.filter(|value| !value.is_nan()).count() as u64;
                *values += there;
                *patients += u64::from(there > 0);
            }
        }
        counts
    }

    /// Deals with what was not measured, and names everything.
    pub(super) fn finish(mut self, plan: &Plan<'_>, ids: &[String]) -> Result<Side, DataError> {
        self.written();
        let (names, scaled) = self.columns(plan);
        // Where gaps stay gaps, training rows tell by themselves.
        let gaps = match plan.settings.missing.as_str() {
            "carry" | "zero" => self.gaps(),
            _ => Vec::new(),
        };
        let id = |row: usize| ids[row].clone();
        self.fill_gaps(
            &plan.settings.missing,
            (&names, &scaled),
            (&plan.files[0].path, &id),
        )?;
        Ok(Side {
            shape: self.shape(),
            names,
            values: self.values,
            order: Vec::new(),
            gaps,
            scaling: Scaling::Columns {
                scaled,
                clipped: plan.settings.clip,
            },
        })
    }

    /// The share of each column that was not measured.
    fn gaps(&self) -> Vec<f64> {
        let all = (self.values.len() / self.width) as u64;
        let share = |[measured, _]: [u64; 2]| (all - measured) as f64 / all.max(1) as f64;
        self.measured().into_iter().map(share).collect()
    }

    fn carry(&mut self) {
        let width = self.width;
        for row in self.values.chunks_exact_mut(width * self.steps.max(1)) {
            for at in width..row.len() {
                if row[at].is_nan() {
                    row[at] = row[at - width];
                }
            }
        }
    }

    fn zero(&mut self, scaled: &[bool]) {
        for step in self.values.chunks_exact_mut(self.width) {
            for (value, _) in step
                .iter_mut()
                .zip(scaled)
                .filter(|(v, s)| v.is_nan() && **s)
            {
                *value = 0.0;
            }
        }
    }

    fn refuse(
        &self,
        file: &Path,
        names: &[String],
        ids: &dyn Fn(usize) -> String,
    ) -> Result<(), DataError> {
        let Some(at) = self.values.iter().position(|value| value.is_nan()) else {
            return Ok(());
        };
        let row = at / (self.width * self.steps.max(1));
        let step = match self.steps {
            0 => String::new(),
            steps => format!(" at step {}", at / self.width % steps),
        };
        Err(DataError::file(
            file,
            format!(
                "{:?} has no {:?}{step}: expected a value everywhere, since data.table.missing = \"refuse\"",
                ids(row),
                names[at % self.width]
            ),
        ))
    }
}

/// Whether steps have more of a feature than its last value.
fn has_derived(feature: &Feature) -> bool {
    feature.series && feature.categories.is_none()
}

#[derive(Clone, Copy)]
enum Value {
    Number(f32),
    Category(usize),
}

/// Reads all files once more. Gives how many measurements are outside of the time that is looked at, and what a user
/// should know.
pub(super) fn fill(
    plan: &Plan<'_>,
    open: Open<'_>,
    places: &Places<'_>,
    grids: &mut [Grid; 2],
) -> Result<(u64, Vec<String>), DataError> {
    let (mut outside, mut notes) = (0, Vec::new());
    let mut digits = vec![Digits::default(); plan.features.len()];
    for file in &plan.files {
        let window = fill_from(plan, file, open, (places, &mut digits), grids)?;
        outside += window.outside;
        notes.extend(window.judge(file, plan.settings)?);
    }
    if outside > 0 {
        let (fall, are) = match outside {
            1 => ("measurement falls", "is"),
            _ => ("measurements fall", "are"),
        };
        let (start, end) = (plan.settings.start, window::end(plan.settings));
        notes.push(format!(
            "{outside} {fall} outside the time window {start} to {end} and {are} ignored"
        ));
    }
    if !plan.purpose.is_new() {
        let columns = plan.features.iter().zip(&digits);
        notes.extend(columns.filter_map(|(feature, digits)| digits.lost(&feature.name)));
    }
    Ok((outside, notes))
}

fn fill_from(
    plan: &Plan<'_>,
    file: &File,
    open: Open<'_>,
    (places, digits): (&Places<'_>, &mut [Digits]),
    grids: &mut [Grid; 2],
) -> Result<Window, DataError> {
    let t = plan.settings;
    let wanted: Vec<usize> = match file.layout {
        Layout::Long => [file.id, file.time, file.variable, file.value]
            .into_iter()
            .flatten()
            .collect(),
        _ => {
            let features = file.features.iter().map(|(column, _)| *column);
            file.id
                .into_iter()
                .chain(file.time)
                .chain(features)
                .collect()
        }
    };
    let (has_id, has_time) = (file.id.is_some(), file.time.is_some());
    let mut window = Window::new();
    let source = Source::open(&file.path, open)?;
    source.read(&wanted, &mut |row, cells| {
        let id = id_of(file, row, has_id.then(|| cells[0]), plan)?;
        let mut rest = &cells[usize::from(has_id)..];
        let mut step = None;
        if has_time {
            let time = time(rest[0]).ok_or_else(|| {
                file.wrong(
                    row,
                    &t.time,
                    rest[0],
                    "a time: a number, or hours and minutes like 7:35",
                )
            })?;
            let at = ((time - t.start) / t.step).floor();
            step = Some((at, time));
            rest = &rest[1..];
        }
        // A wrong value is wrong whoever's it is, so it is read before it is known whether it is used.
        let place = places.get(&id);
        let mut put = |number: usize, column: &str, cell: Cell<'_>| -> Result<(), DataError> {
            let feature = &plan.features[number];
            let cell = super::measured(cell, t);
            let digits = &mut digits[number];
            let Some(value) = value(file, row, column, (feature, plan.purpose, digits), cell)?
            else {
                return Ok(());
            };
            let Some(place) = place else { return Ok(()) };
            let step = match step {
                Some((at, time)) => {
                    let at = (0.0..t.steps as f64).contains(&at).then_some(at as usize);
                    window.note(row, time, at);
                    let Some(at) = at else { return Ok(()) };
                    // Counted from the start, since an f32 has few digits for the time of day.
                    Some((at, (time - t.start) as f32))
                }
                None => None,
            };
            grids[feature.holder as usize].write(number, feature, place, step, value);
            Ok(())
        };
        if file.layout == Layout::Long {
            return match plan.variables.get(&rest[0].to_string()) {
                Some(number) => put(*number, &t.value, rest[1]),
                None => Ok(()),
            };
        }
        for ((column, number), cell) in file.features.iter().zip(rest) {
            put(*number, &file.columns[*column], *cell)?;
        }
        Ok(())
    })?;
    Ok(window)
}

/// What a cell means for a feature; nothing where nothing was measured.
fn value(
    file: &File,
    row: u64,
    column: &str,
    (feature, purpose, digits): (&Feature, Purpose, &mut Digits),
    cell: Cell<'_>,
) -> Result<Option<Value>, DataError> {
    if cell == Cell::Missing {
        return Ok(None);
    }
    if let Some(categories) = &feature.categories {
        let text = cell.to_string();
        let found = categories.names.iter().position(|name| *name == text);
        if found.is_none() && purpose.is_new() {
            // It was noted, and counts as not measured.
            return Ok(None);
        }
        let found = found.ok_or_else(|| file.wrong(row, column, text, "one of its categories"))?;
        return Ok(Some(Value::Category(found)));
    }
    let number = match cell {
        Cell::Integer(value) => Some(value as f64),
        Cell::Number(value) => Some(value),
        Cell::Text(text) => text.parse::<f64>().ok(),
        Cell::Missing => None,
    };
    let expected = match number.map(|number| number as f32) {
        Some(rounded) if rounded.is_finite() => {
            digits.note(number.unwrap_or_default(), rounded);
            return Ok(Some(Value::Number(rounded)));
        }
        Some(number) if number.is_infinite() => "a number of at most 3.4e38",
        _ => {
            "a number: if it means a missing value, add it to data.table.blank; if the column has categories, add it to data.table.categorical"
        }
    };
    Err(file.wrong(row, column, cell, expected))
}

/// A number, or hours and minutes and perhaps seconds as hours.
fn time(cell: Cell<'_>) -> Option<f64> {
    let number = match cell {
        Cell::Integer(value) => value as f64,
        Cell::Number(value) => value,
        Cell::Missing => return None,
        Cell::Text(text) => match text.split_once(':') {
            None => text.parse().ok()?,
            Some((hours, rest)) => {
                let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
                let below_60 = |text: &str| text.parse().ok().filter(|n| (0.0..60.0).contains(n));
                let hours: u32 = hours.parse().ok()?;
                let (minutes, seconds): (f64, f64) = (below_60(minutes)?, below_60(seconds)?);
                f64::from(hours) + minutes / 60.0 + seconds / 3600.0
            }
        },
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_or_hours_and_minutes() {
        assert_eq!(time(Cell::Text("7:30")), Some(7.5));
        assert_eq!(time(Cell::Text("7:30:36")), Some(7.51));
        assert_eq!(time(Cell::Text("47.25")), Some(47.25));
        assert_eq!(time(Cell::Integer(-3)), Some(-3.0));
        for wrong in ["", "x", "7:60", "7:", ":5", "nan", "inf", "-1:30"] {
            assert_eq!(time(Cell::Text(wrong)), None, "{wrong}");
        }
    }
}

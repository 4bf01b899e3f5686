//! The series of a stay as mimic3-benchmarks' discretiser has it: 76 numbers for each hour, of which a sample takes the
//! last 48 before its end.

use crate::DataError;
use crate::files::collection::Text;
use std::sync::LazyLock;

/// Hours that a sample has.
pub(crate) const STEPS: usize = 48;

const CHANNELS_COUNT: usize = 17;

/// Columns of all values, and with the masks.
pub(crate) const VALUES: usize = 59;
pub(crate) const WIDTH: usize = VALUES + CHANNELS_COUNT;

/// What the benchmark takes for rounding.
const EPSILON: f64 = 1e-6;

/// A channel: its name, its normal value, and its categories if it has any.
struct Channel {
    name: &'static str,
    normal: &'static str,
    categories: Vec<&'static str>,
}

/// In the order of the benchmark's columns.
static CHANNELS: LazyLock<Vec<Channel>> = LazyLock::new(|| {
    let channel = |line: &'static str| {
        let mut fields = line.split(',');
        let mut next = || fields.next().unwrap_or_default();
        let (name, normal, categories) = (next(), next(), next());
        let categories = categories
            .split('|')
            .filter(|category| !category.is_empty());
        Channel {
            name,
            normal,
            categories: categories.collect(),
        }
    };
    let lines = include_str!("channels.csv").lines().skip(1);
    lines.map(channel).collect()
});

impl Channel {
    /// Columns that its values take.
    fn width(&self) -> usize {
        self.categories.len().max(1)
    }

    /// A value as a number: its own, or the place of a category.
    fn read(&self, value: &str) -> Result<f32, &'static str> {
        if self.categories.is_empty() {
            let number = value.trim().parse().ok();
            return number.filter(|v: &f32| v.is_finite()).ok_or("a number");
        }
        let category = self.categories.iter().position(|c| *c == value);
        let category = category.ok_or("one of the benchmark's categories for this channel")?;
        Ok(category as f32)
    }

    /// Writes such a number to its columns, which are 0.
    fn write(&self, value: f32, columns: &mut [f32]) {
        match self.categories.is_empty() {
            true => columns[0] = value,
            false => columns[value as usize] = 1.0,
        }
    }
}

/// Where a channel's columns begin.
pub(crate) fn begins(channel: usize) -> usize {
    CHANNELS[..channel].iter().map(Channel::width).sum()
}

/// Whether a column is a number that is scaled: no category and no mask.
pub(crate) fn is_number(column: usize) -> bool {
    let numbers = CHANNELS.iter().enumerate();
    numbers
        .filter(|(_, channel)| channel.categories.is_empty())
        .any(|(number, _)| begins(number) == column)
}

/// The benchmark's names of the columns.
pub(crate) fn names() -> Vec<String> {
    let values = CHANNELS
        .iter()
        .flat_map(|channel| match &channel.categories[..] {
            [] => vec![channel.name.to_owned()],
            categories => categories
                .iter()
                .map(|c| format!("{}->{c}", channel.name))
                .collect(),
        });
    let masks = CHANNELS
        .iter()
        .map(|channel| format!("mask->{}", channel.name));
    values.chain(masks).collect()
}

/// The latest value of each channel, as [`Channel::read`] has it.
type Latest = [f32; CHANNELS_COUNT];

/// A stay's measurements, by the hour.
pub(crate) struct Series {
    events: Vec<Event>,
    hours: Vec<Hour>,
    /// The time of the last row.
    last: f64,
}

/// A measurement.
struct Event {
    time: f64,
    value: f32,
    channel: u8,
}

/// An hour that has some.
struct Hour {
    hour: i64,
    /// Where its events end; they begin where those of the hour before it do.
    end: usize,
    /// What is known after it.
    latest: Latest,
}

/// The hour that a time lies in: what is measured at its end still does.
fn hour_of(time: f64) -> i64 {
    (time - EPSILON) as i64
}

/// Hours that a stay has begun by then.
pub(crate) fn hours_until(time: f64) -> i64 {
    ((time + 1.0 - EPSILON) as i64).max(1)
}

impl Series {
    /// Reads a stay's file; of what was measured later than `until` only the time.
    pub(crate) fn parse(text: &Text, until: f64) -> Result<Self, DataError> {
        let wrong = |line, column: &str, value: &str, expected: &str| {
            text.wrong(line, column, value, expected)
        };
        let csv = text.csv()?;
        let header = csv.columns();
        // The column of the hours, and that of each channel.
        if header[0] != "Hours" {
            return Err(wrong(1, "1", &header[0], "\"Hours\""));
        }
        let mut wanted = vec![0];
        for channel in CHANNELS.iter() {
            let Some(at) = header.iter().position(|name| *name == channel.name) else {
                let problem = format!(
                    "no column {:?}: expected Hours and the benchmark's 17 channels",
                    channel.name
                );
                return Err(text.wrong_line(1, problem));
            };
            wanted.push(at);
        }
        let (mut events, mut last) = (Vec::new(), 0.0f64);
        csv.read(&wanted, &mut |line, cells| {
            let line = line as usize;
            let hours = cells[0].text();
            let time = hours
                .parse()
                .ok()
                .filter(|h: &f64| h.is_finite() && *h >= 0.0)
                .ok_or_else(|| wrong(line, "Hours", hours, "hours since admission, 0 or more"))?;
            if time > until + EPSILON {
                return Ok(());
            }
            last = last.max(time);
            for (number, (channel, cell)) in CHANNELS.iter().zip(&cells[1..]).enumerate() {
                let field = cell.text();
                if field.is_empty() {
                    continue;
                }
                let value = channel
                    .read(field)
                    .map_err(|expected| wrong(line, channel.name, field, expected))?;
                events.push(Event {
                    time,
                    value,
                    channel: number as u8,
                });
            }
            Ok(())
        })?;
        // Within an hour they stay in the order of the file, of which the last counts.
        events.sort_by_key(|event| hour_of(event.time));
        let mut series = Series {
            events,
            hours: Vec::new(),
            last,
        };
        series.carry_on();
        Ok(series)
    }

    /// Finds out what is known after each hour: at first the normal values.
    fn carry_on(&mut self) {
        let mut latest = Latest::default();
        for (value, channel) in latest.iter_mut().zip(CHANNELS.iter()) {
            // The channels' own normal values are values of the channels.
            *value = channel.read(channel.normal).unwrap_or_default();
        }
        // Before all others, so that every hour has one before it.
        self.hours.push(Hour {
            hour: i64::MIN,
            end: 0,
            latest,
        });
        for some in self
            .events
            .chunk_by(|a, b| hour_of(a.time) == hour_of(b.time))
        {
            some.iter()
                .for_each(|event| latest[usize::from(event.channel)] = event.value);
            let before = self.hours.last().map_or(0, |hour| hour.end);
            self.hours.push(Hour {
                hour: hour_of(some[0].time),
                end: before + some.len(),
                latest,
            });
        }
    }

    /// The time of its last row.
    pub(crate) fn last(&self) -> f64 {
        self.last
    }

    /// Appends the last 48 hours before `end` as 48 × 76 numbers, before they are scaled. An hour without a value takes
    /// the one before, however long ago, or the channel's normal value: so do hours before admission.
    pub(crate) fn window(&self, end: f64, numbers: &mut Vec<f32>) {
        let first = hours_until(end).saturating_sub(STEPS as i64);
        let mut at = self.hours.partition_point(|hour| hour.hour < first).max(1);
        let mut latest = self.hours[at - 1].latest;
        for step in 1..=STEPS as i64 {
            // What is a millionth late still belongs to the last hour.
            let late = i64::from(step == STEPS as i64);
            let next = first.saturating_add(step + late);
            let mut seen = [false; CHANNELS_COUNT];
            while let Some(hour) = self.hours.get(at).filter(|hour| hour.hour < next) {
                let events = &self.events[self.hours[at - 1].end..hour.end];
                for event in events.iter().filter(|event| event.time <= end + EPSILON) {
                    let channel = usize::from(event.channel);
                    (latest[channel], seen[channel]) = (event.value, true);
                }
                at += 1;
            }
            let begin = numbers.len();
            numbers.resize(begin + WIDTH, 0.0);
            let (values, masks) = numbers[begin..].split_at_mut(VALUES);
            let mut rest = values;
            for (channel, value) in CHANNELS.iter().zip(latest) {
                let (columns, others) = rest.split_at_mut(channel.width());
                channel.write(value, columns);
                rest = others;
            }
            for (mask, seen) in masks.iter_mut().zip(seen) {
                *mask = f32::from(u8::from(seen));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_as_wide_as_the_benchmark_says() {
        assert_eq!(
            (begins(CHANNELS_COUNT), CHANNELS.len()),
            (VALUES, CHANNELS_COUNT)
        );
        assert!(CHANNELS.iter().all(|c| c.read(c.normal).is_ok()));
    }

    /// A stay in which only the capillary refill rate and the heart rate were measured.
    fn series(rows: &[(&str, &str, &str)]) -> Series {
        let names: Vec<&str> = CHANNELS.iter().map(|channel| channel.name).collect();
        let mut text = format!("Hours,{}\n", names.join(","));
        for (hours, refill, rate) in rows {
            let row = format!("{hours},{refill}{}{rate}{}\n", ",".repeat(8), ",".repeat(8));
            text += &row;
        }
        let (place, name) = ("stay.csv".into(), "stay.csv".into());
        Series::parse(&Text { place, name, text }, f64::INFINITY).unwrap()
    }

    const RATE: usize = 50;

    /// The heart rate in each hour, below 0 where it was not measured then.
    fn rates(series: &Series, end: f64) -> Vec<f32> {
        let mut numbers = Vec::new();
        series.window(end, &mut numbers);
        let rate = |step: &[f32]| match step[VALUES + 8] {
            1.0 => step[RATE],
            _ => -step[RATE],
        };
        numbers.chunks(WIDTH).map(rate).collect()
    }

    #[test]
    fn the_last_hour_ends_a_millionth_late() {
        for (hours, measured) in [("48", 1.0), ("48.000001", 1.0), ("48.00001", 0.0)] {
            let mut numbers = Vec::new();
            series(&[(hours, "1.0", "")]).window(48.0, &mut numbers);
            assert_eq!(numbers[(STEPS - 1) * WIDTH + VALUES], measured, "{hours}");
        }
    }

    #[test]
    fn a_window_ends_with_its_sample_and_begins_before_admission() {
        assert_eq!(begins(8), RATE);
        let stay = series(&[
            ("0.5", "", "70"),
            ("1.0", "", "71"),
            ("1.5", "", "72"),
            ("50", "", "80"),
            ("50.4", "", "81"),
            ("50.6", "", "82"),
        ]);
        // Two hours: the normal rate of 86 before admission.
        let mut expected = vec![-86.0; 46];
        expected.extend([71.0, 72.0]);
        assert_eq!(rates(&stay, 2.0), expected);
        // 49 hours: the first is gone. Another one, and what was measured in the second is still known.
        let mut expected = vec![72.0];
        expected.extend([-72.0; 47]);
        assert_eq!(rates(&stay, 49.0), expected);
        let mut expected = vec![-72.0; 47];
        expected.push(80.0);
        assert_eq!(rates(&stay, 50.0), expected);
        let mut expected = vec![-72.0; 46];
        expected.extend([80.0, 82.0]);
        assert_eq!(rates(&stay, 51.0), expected);
        // In the middle of an hour nothing is known of its other half.
        expected[47] = 81.0;
        assert_eq!(rates(&stay, 50.5), expected);
        assert_eq!(rates(&stay, 1e300), [-82.0; 48]);
    }
}

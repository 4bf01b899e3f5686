//! What a step of a time series has of a channel beside its last value: the mean, the least and the greatest of its
//! measurements, how many there were, and how long ago the last one was (`data.derived`).

use crate::DataError;
use crate::settings::wrong;
use crate::statistics::is_mask;
use selvedge_core::experiment::{DataSettings, one_of};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Derived {
    Mean,
    Min,
    Max,
    Count,
    Since,
}

const WORDS: [&str; 5] = ["mean", "min", "max", "count", "since"];

impl Derived {
    const ALL: [Derived; 5] = [
        Derived::Mean,
        Derived::Min,
        Derived::Max,
        Derived::Count,
        Derived::Since,
    ];

    /// Those that `data.derived` names.
    pub(crate) fn of(settings: &DataSettings) -> Result<Vec<Self>, DataError> {
        let mut wanted = Vec::new();
        for word in &settings.derived {
            let all = format!("{:?}", settings.derived);
            let Some(at) = WORDS.iter().position(|known| known == word) else {
                let expected = format!("{word:?}: {}", one_of(word, &WORDS));
                return Err(wrong("derived", all, expected));
            };
            if wanted.contains(&Self::ALL[at]) {
                return Err(wrong("derived", all, format!("expected {word:?} once")));
            }
            wanted.push(Self::ALL[at]);
        }
        Ok(wanted)
    }

    /// What stands behind the name of the channel.
    fn suffix(self) -> &'static str {
        match self {
            Derived::Mean => " (mean)",
            Derived::Min => " (min)",
            Derived::Max => " (max)",
            Derived::Count => " (count)",
            Derived::Since => " (steps since)",
        }
    }
}

/// The channel whose gaps are those of a derived column too, if the name is of one.
pub(crate) fn channel_of(name: &str) -> Option<&str> {
    let with_gaps = [Derived::Mean, Derived::Min, Derived::Max];
    with_gaps.iter().find_map(|d| name.strip_suffix(d.suffix()))
}

/// Whether a column says more of another one of the side, and is none of its own: whether it was measured, or what is
/// derived of it.
pub(crate) fn is_of_another(names: &[String], name: &str) -> bool {
    let mut bases = Derived::ALL
        .iter()
        .filter_map(|d| name.strip_suffix(d.suffix()));
    is_mask(names, name) || bases.any(|base| names.iter().any(|other| other == base))
}

/// The derived columns of a side while it is being filled: all channels' means, then all their minima, and so on.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    wanted: Vec<Derived>,
    channels: usize,
    /// The first of them in a step.
    first: usize,
    /// How many measurements each channel has in each step.
    counts: Vec<u32>,
}

impl Columns {
    /// For so many steps in all, with nothing measured.
    pub(crate) fn new(wanted: &[Derived], channels: usize, first: usize, steps: usize) -> Self {
        let counts = match wanted.is_empty() {
            true => 0,
            false => channels * steps,
        };
        Columns {
            wanted: wanted.to_vec(),
            channels,
            first,
            counts: vec![0; counts],
        }
    }

    /// How many there are in a step.
    pub(crate) fn width(wanted: &[Derived], channels: usize) -> usize {
        wanted.len() * channels
    }

    /// What they are called.
    pub(crate) fn names<'a>(
        wanted: &'a [Derived],
        channels: impl Iterator<Item = &'a str> + Clone + 'a,
    ) -> impl Iterator<Item = String> + 'a {
        let of_all = move |derived: &'a Derived| {
            let name = |channel: &str| format!("{channel}{}", derived.suffix());
            channels.clone().map(name)
        };
        wanted.iter().flat_map(of_all)
    }

    /// Takes a measurement of a step into account, `step` being its number among all and `numbers` what it has.
    pub(crate) fn note(
        &mut self,
        (step, channel): (usize, usize),
        value: f32,
        numbers: &mut [f32],
    ) {
        if self.wanted.is_empty() {
            return;
        }
        let count = &mut self.counts[step * self.channels + channel];
        *count += 1;
        for (number, derived) in self.wanted.iter().enumerate() {
            let cell = &mut numbers[self.first + number * self.channels + channel];
            let before = *cell;
            *cell = match derived {
                _ if *count == 1 => value,
                Derived::Mean => before + (value - before) / *count as f32,
                Derived::Min => before.min(value),
                Derived::Max => before.max(value),
                Derived::Count | Derived::Since => before,
            };
        }
    }

    /// When all is measured: counts, and the steps since the last measurement. Where there was none so far, they are
    /// counted from before the first step.
    pub(crate) fn finish(&mut self, steps_of_row: usize, width: usize, values: &mut [f32]) {
        for (number, derived) in self.wanted.iter().enumerate() {
            for channel in 0..self.channels {
                let mut since = 0;
                for (step, numbers) in values.chunks_exact_mut(width).enumerate() {
                    let count = self.counts[step * self.channels + channel];
                    if step % steps_of_row == 0 {
                        since = 0;
                    }
                    since = if count > 0 { 0 } else { since + 1 };
                    let cell = &mut numbers[self.first + number * self.channels + channel];
                    match derived {
                        Derived::Count => *cell = count as f32,
                        Derived::Since => *cell = since as f32,
                        Derived::Mean | Derived::Min | Derived::Max => {}
                    }
                }
            }
        }
        self.counts = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_say_what_was_measured_in_them() {
        let wanted = Derived::ALL;
        // Two rows of three steps with two channels, behind one other number.
        let mut columns = Columns::new(&wanted, 2, 1, 6);
        let width = 1 + Columns::width(&wanted, 2);
        let mut values = vec![f32::NAN; 6 * width];
        for (step, value) in [(1, 4.0), (1, 1.0), (1, 7.0), (3, 2.0)] {
            columns.note((step, 1), value, &mut values[step * width..][..width]);
        }
        columns.finish(3, width, &mut values);
        let of = |step: usize, number: usize| values[step * width + 1 + number * 2 + 1];
        let all = |step: usize| [0, 1, 2, 3, 4].map(|number| of(step, number));
        assert_eq!(all(1), [4.0, 1.0, 7.0, 3.0, 0.0]);
        assert_eq!(all(3), [2.0, 2.0, 2.0, 1.0, 0.0]);
        assert!(all(0)[..3].iter().all(|value| value.is_nan()));
        let counts = [0, 1, 2, 3, 4, 5].map(|step| of(step, 3));
        assert_eq!(counts, [0.0, 3.0, 0.0, 1.0, 0.0, 0.0]);
        let since = [0, 1, 2, 3, 4, 5].map(|step| of(step, 4));
        assert_eq!(since, [1.0, 0.0, 1.0, 0.0, 1.0, 2.0]);
        let names: Vec<String> = Columns::names(&wanted, ["a", "b"].into_iter()).collect();
        assert_eq!(names[..3], ["a (mean)", "b (mean)", "a (min)"]);
        assert_eq!(channel_of("b (max)"), Some("b"));
        assert_eq!(channel_of("b (count)"), None);
        let side = ["b", "b (count)", "c (count)"].map(String::from);
        assert!(is_of_another(&side, "b (count)") && !is_of_another(&side, "c (count)"));
    }

    #[test]
    fn words_are_checked() {
        let of = |words: &[&str]| {
            let derived = words.iter().map(ToString::to_string).collect();
            Derived::of(&DataSettings {
                derived,
                ..DataSettings::default()
            })
        };
        assert_eq!(
            of(&["since", "mean"]).unwrap(),
            [Derived::Since, Derived::Mean]
        );
        for (words, part) in [(&["median"][..], "median"), (&["min", "min"], "once")] {
            let error = of(words).unwrap_err().to_string();
            assert!(
                error.contains("data.derived") && error.contains(part),
                "{error}"
            );
        }
    }
}

//! Tables of estimates: parts of the data side by side, and groups one below the other.

use selvedge_core::assess::Estimate;
use selvedge_run::format::count;

/// How wide the columns of a table are.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// That of the titles.
    pub(super) title: usize,
    /// That of one part.
    pub(super) cell: usize,
}

/// `0.8421 [0.826, 0.858]`
fn estimate(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "–".into(),
        Some(Estimate {
            value,
            interval: Some([low, high]),
        }) => format!("{value:.4} [{low:.3}, {high:.3}]"),
        Some(Estimate { value, .. }) => format!("{value:.4}"),
    }
}

/// A line without spaces at its end.
fn line(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

impl Table {
    /// A title, and a cell for each part.
    fn of(self, title: &str, cells: impl Iterator<Item = String>) -> String {
        let Table { title: wide, cell } = self;
        let cells: String = cells.map(|text| format!("{text:<cell$}")).collect();
        line(&format!("{title:<wide$}{cells}"))
    }

    /// The heading: names of parts, and how many samples each has.
    pub(super) fn heading<'a>(self, parts: impl Iterator<Item = (&'a str, usize)>) -> String {
        let cells = parts.map(|(name, samples)| format!("{name} ({})", count(samples as u64)));
        self.of("", cells)
    }

    /// A measure; nothing where no part has it.
    pub(super) fn row<'a>(
        self,
        title: &str,
        parts: impl Iterator<Item = Option<&'a Estimate>> + Clone,
    ) -> String {
        match parts.clone().all(|part| part.is_none()) {
            true => String::new(),
            false => self.of(title, parts.map(estimate)),
        }
    }

    /// Does each group get a good model? Two measures of each, of a part.
    pub(super) fn groups<'a>(
        self,
        part: &str,
        titles: [&str; 2],
        groups: impl Iterator<Item = (&'a str, usize, [Option<&'a Estimate>; 2])> + Clone,
    ) -> String {
        let cell = self.cell;
        let names = groups.clone().map(|(name, ..)| name.chars().count());
        let wide = names.max().unwrap_or(0).max(8) + 2;
        let row = |name: &str, samples: &str, [first, second]: [&str; 2]| {
            line(&format!(
                "{name:<wide$}{samples:>9}   {first:<cell$}{second}"
            ))
        };
        let mut out = format!("\nBy group, on {part}\n{}", row("", "samples", titles));
        for (name, samples, both) in groups {
            let both = both.map(estimate);
            out += &row(name, &count(samples as u64), [&both[0], &both[1]]);
        }
        out
    }
}

/// What brackets mean, and how much they do.
pub(super) fn brackets(confidence: f64, few: &str) -> String {
    format!(
        "In brackets: {} % bootstrap confidence intervals{few}\n",
        (1000.0 * confidence).round() / 10.0
    )
}

/// What was done to the model by the validation samples, where a part is these.
pub(super) fn optimistic<'a>(
    mut parts: impl Iterator<Item = &'a str>,
    by_validation: &[&str],
) -> String {
    match parts.any(|name| name == "validation") && !by_validation.is_empty() {
        true => format!(
            "Validation figures are optimistic: the model was {} on these samples\n",
            by_validation.join(" and ")
        ),
        false => String::new(),
    }
}

/// What was predicted beside what was observed, in groups of samples; numbers in columns of this width.
pub(super) fn calibration(
    (of, part, more): (&str, &str, &str),
    wide: usize,
    groups: impl Iterator<Item = (u64, f64, f64)>,
) -> String {
    let mut out = format!(
        "\nCalibration of {of:?} on {part}{more}\n{:>14}{:>wide$}{:>wide$}\n",
        "samples", "predicted", "observed"
    );
    for (samples, said, observed) in groups {
        let samples = count(samples);
        out += &format!("{samples:>14}{said:>wide$.3}{observed:>wide$.3}\n");
    }
    out
}

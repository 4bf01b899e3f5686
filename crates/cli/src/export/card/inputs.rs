//! What goes in, column by column.

use super::Card;
use super::markdown::{cell, table};
use crate::export::description::listed;
use selvedge_core::experiment::Side;

const HEAD: [&str; 6] = [
    "column",
    "mean",
    "std. deviation",
    "clipped to",
    "range in training",
    "not measured in training",
];

impl Card<'_> {
    pub(super) fn inputs(&self) -> String {
        let of = |side: Side| self.exported.statistics(side).scales.iter();
        let mut scales = of(Side::Hospital).chain(of(Side::Device));
        let clipped = match scales.any(|scale| scale.clip.is_some()) {
            true => "values are clipped, ",
            false => "",
        };
        let logarithm = match self.has_logarithms() {
            true => {
                " Of skewed columns the logarithm is scaled, and its mean and deviation stand here."
            }
            false => "",
        };
        let mut out = format!(
            "## Inputs\n\n\
             Values as measured, float32, NaN where nothing was measured. Every file scales them itself: {clipped}the mean \
             is subtracted, the result is divided by the standard deviation, and missing values count as the mean.{logarithm}\n",
        );
        for side in [Side::Hospital, Side::Device] {
            let (part, statistics) = (self.exported.tower(side), self.exported.statistics(side));
            let shape = listed(&statistics.shape, ", ");
            out += &format!("\n`{}`, float32 [N, {shape}]:\n\n", part.name);
            let mut head = HEAD.to_vec();
            if self.has_logarithms() {
                head.insert(1, "scaled");
            }
            out += &table(&head, self.columns(side));
        }
        out
    }

    /// Whether any column is scaled by its logarithm; only then is it said of each what is scaled.
    fn has_logarithms(&self) -> bool {
        let has = |side: Side| {
            self.exported
                .statistics(side)
                .scales
                .iter()
                .any(|s| s.log.is_some())
        };
        has(Side::Hospital) || has(Side::Device)
    }

    /// A row for each column; for all numbers together, where they have no names and one scale.
    fn columns(&self, side: Side) -> Vec<Vec<String>> {
        let (statistics, seen) = self.exported.side(side);
        let (names, scales) = (&statistics.names, &statistics.scales);
        let rows = names.len().max(scales.len());
        let between = |bounds: Option<[f64; 2]>| match bounds {
            Some([low, high]) => format!("{} to {}", number(low), number(high)),
            None => "–".into(),
        };
        let row = |i: usize| {
            let name = match (names.get(i), rows) {
                (Some(name), _) => cell(name),
                (None, 1) => "all".into(),
                (None, _) => (i + 1).to_string(),
            };
            let scale = scales[i % scales.len()];
            let range = match seen.ranges.len() {
                n if n == rows => seen.ranges[i],
                _ => None,
            };
            let missing = statistics.missing.get(i);
            let scaled = scale.log.map_or_else(
                || "the value".into(),
                |[least, unit]| format!("ln(1 + (x − {}) / {})", number(least), number(unit)),
            );
            let mut cells = vec![
                name,
                number(scale.mean),
                number(scale.deviation),
                between(scale.clip),
                between(range.map(|range| range.map(f64::from))),
                missing.map_or_else(|| "–".into(), |share| format!("{:.1} %", 100.0 * share)),
            ];
            if self.has_logarithms() {
                cells.insert(1, scaled);
            }
            cells
        };
        (0..rows).map(row).collect()
    }
}

/// Four digits, however large or small.
fn number(x: f64) -> String {
    let digits = format!("{x:.3e}");
    match digits.parse::<f64>() {
        Ok(short) if short == 0.0 || (1e-3..1e6).contains(&short.abs()) => short.to_string(),
        _ => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!(number(0.0), "0");
        assert_eq!(number(123.456), "123.5");
        assert_eq!(number(-0.012_345_6), "-0.01235");
        assert_eq!(number(1.5e9), "1.500e9");
        assert_eq!(number(2e-7), "2.000e-7");
    }
}

//! A page of text.

use super::Part;
use super::table::{Table, brackets, calibration, optimistic};
use selvedge_core::assess::MEASURES;
use selvedge_run::format::count;

const TABLE: Table = Table {
    title: 23,
    cell: 25,
};

/// What measures are called in tables.
const TITLES: [&str; MEASURES.len()] = [
    "AUC",
    "average precision",
    "accuracy",
    "precision (macro)",
    "recall (macro)",
    "F1 (macro)",
    "loss",
    "Brier score",
    "sensitivity",
    "specificity",
    "pos. predictive value",
    "neg. predictive value",
];

/// The measures of all classes together, and those of the positive class where there is one.
const OF_ALL: [usize; 7] = [0, 2, 3, 4, 5, 6, 7];
const OF_POSITIVE: [usize; 5] = [AVERAGE_PRECISION, 8, 9, 10, 11];
const AVERAGE_PRECISION: usize = 1;

/// Everything, the last part at length. `by_validation` is what was done to the model by the validation samples.
pub(crate) fn text(
    parts: &[Part],
    classes: &[String],
    confidence: f64,
    by_validation: &[&str],
) -> String {
    let mut out = TABLE.heading(parts.iter().map(|part| (&*part.name, part.samples)));
    let line = |at: usize, title: &str| {
        TABLE.row(title, parts.iter().map(|part| part.estimates[at].as_ref()))
    };
    let positive = parts.iter().find_map(|part| part.positive.as_ref());
    out.extend(OF_ALL.map(|at| line(at, TITLES[at])));
    match positive {
        Some(class) => {
            out += &format!("For the class {class:?}, the positive one:\n");
            out.extend(OF_POSITIVE.map(|at| line(at, TITLES[at])));
        }
        None => out += &line(AVERAGE_PRECISION, "avg precision (macro)"),
    }
    let few = match parts.iter().all(|part| part.samples < 30) {
        true => "; with so few samples they say little",
        false => "",
    };
    out += &brackets(confidence, few);
    let has_none = |part: &Part| {
        let mut found = part.estimates.iter().flatten();
        found.any(|estimate| estimate.interval.is_none())
    };
    if parts.iter().any(has_none) {
        out += "Without brackets: a single patient, or resamples that all give the same, do not say how sure it is\n";
    }
    out += "Macro: the mean over the classes";
    if positive.is_some() {
        out += "; precision and recall of the positive class are its predictive value and its sensitivity";
    }
    out.push('\n');
    out += &optimistic(parts.iter().map(|part| &*part.name), by_validation);
    let Some(last) = parts.last() else {
        return out;
    };
    out += &confusion(last, classes);
    for curves in &last.curves {
        let error = format!(
            ": expected calibration error {:.3}",
            curves.calibration_error
        );
        let bins = curves.reliability.iter();
        let bins = bins.map(|bin| (bin.samples, bin.said, bin.observed));
        out += &calibration((&curves.class, &last.name, &error), 11, bins);
    }
    for part in parts.iter().filter(|part| !part.groups.is_empty()) {
        let groups = part.groups.iter().map(|group| {
            let both = [0, 2].map(|at: usize| group.estimates[at].as_ref());
            (&*group.name, group.samples, both)
        });
        out += &TABLE.groups(&part.name, ["AUC", "accuracy"], groups);
    }
    out
}

fn confusion(part: &Part, classes: &[String]) -> String {
    let wide = classes.iter().map(|c| c.chars().count()).max().unwrap_or(0);
    let wide = wide.max(7) + 2;
    let mut out = format!(
        "\nConfusion matrix on {}: rows are true classes, columns predicted ones\n{:>wide$}",
        part.name, ""
    );
    out.extend(classes.iter().map(|c| format!("{c:>wide$}")));
    out.push('\n');
    for (class, row) in classes.iter().zip(&part.confusion) {
        out += &format!("{class:>wide$}");
        out.extend(row.iter().map(|n| format!("{:>wide$}", count(*n))));
        out.push('\n');
    }
    out
}

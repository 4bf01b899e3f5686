//! A page of text.

use super::{Group, Part};
use selvedge_core::assess::{Estimate, MEASURES};
use selvedge_run::format::count;

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
    let mut out = format!("{:<23}", "");
    for part in parts {
        out += &format!(
            "{:<25}",
            format!("{} ({})", part.name, count(part.samples as u64))
        );
    }
    out = format!("{}\n", out.trim_end());
    let line = |at: usize, title: &str| {
        if parts.iter().all(|part| part.estimates[at].is_none()) {
            return String::new();
        }
        let cells: String = parts
            .iter()
            .map(|part| format!("{:<25}", estimate(part.estimates[at].as_ref())))
            .collect();
        format!("{title:<23}{}\n", cells.trim_end())
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
    out += &format!(
        "In brackets: {} % bootstrap confidence intervals{few}\n",
        (1000.0 * confidence).round() / 10.0
    );
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
    if parts.iter().any(|part| part.name == "validation") && !by_validation.is_empty() {
        out += &format!(
            "Validation figures are optimistic: the model was {} on these samples\n",
            by_validation.join(" and ")
        );
    }
    let Some(last) = parts.last() else {
        return out;
    };
    out += &confusion(last, classes);
    for curves in &last.curves {
        out += &format!(
            "\nCalibration of {:?} on {}: expected calibration error {:.3}\n{:>14}{:>11}{:>11}\n",
            curves.class, last.name, curves.calibration_error, "samples", "predicted", "observed"
        );
        for bin in &curves.reliability {
            out += &format!(
                "{:>14}{:>11.3}{:>11.3}\n",
                count(bin.samples),
                bin.said,
                bin.observed
            );
        }
    }
    for part in parts.iter().filter(|part| !part.groups.is_empty()) {
        out += &groups(part);
    }
    out
}

/// `0.8421 [0.826, 0.858]`
pub(super) fn estimate(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "–".into(),
        Some(Estimate {
            value,
            interval: Some([low, high]),
        }) => format!("{value:.4} [{low:.3}, {high:.3}]"),
        Some(Estimate { value, .. }) => format!("{value:.4}"),
    }
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

/// Does each group get a good model?
fn groups(part: &Part) -> String {
    let wide = part.groups.iter().map(|g| g.name.chars().count()).max();
    let wide = wide.unwrap_or(0).max(8) + 2;
    let mut out = format!(
        "\nBy group, on {}\n{:<wide$}{:>9}   {:<25}{:<25}\n",
        part.name, "", "samples", "AUC", "accuracy"
    );
    out = format!("{}\n", out.trim_end());
    for Group {
        name,
        samples,
        estimates,
        ..
    } in &part.groups
    {
        let row = format!(
            "{name:<wide$}{:>9}   {:<25}{}",
            count(*samples as u64),
            estimate(estimates[0].as_ref()),
            estimate(estimates[2].as_ref())
        );
        out += &format!("{}\n", row.trim_end());
    }
    out
}

//! What is said of a patient where that is no class, as CSV and as JSON: labels, a quantity, a survival curve.

use crate::report::text::csv_cell;
use selvedge_core::outcome::Outcome;
use serde_json::{Map, Value, json};

/// An outcome, and the names of its labels, of the quantity or of the event.
type Asked<'a> = (&'a Outcome, &'a [String]);

/// What the numbers are that a model gives for each patient: `probability_<label>` of yes, `prediction` of a quantity in
/// its own unit, or `survival_<time>`, the probability that there was no event until then.
pub(crate) fn columns(outcome: &Outcome, names: &[String]) -> Vec<String> {
    let probability = |name: &String| format!("probability_{name}");
    match outcome {
        Outcome::Class | Outcome::Labels => names.iter().map(probability).collect(),
        Outcome::Quantity { .. } => vec!["prediction".into()],
        Outcome::Survival { ends } => {
            let until = |end: &f64| format!("survival_{}", *end as f32);
            ends.iter().map(until).collect()
        }
    }
}

/// The headings above [`csv_line`].
pub(crate) fn csv_head((outcome, names): Asked<'_>) -> String {
    let columns = columns(outcome, names);
    let names = columns.iter().map(|name| format!(",{}", csv_cell(name)));
    format!("id{}", names.collect::<String>())
}

/// What is said of a patient. Numbers are written so that reading them gives the same bits.
pub(crate) fn csv_line(id: &str, said: &[f32]) -> String {
    let numbers: String = said.iter().map(|number| format!(",{number}")).collect();
    format!("{}{numbers}", csv_cell(id))
}

/// The same for a script.
pub(crate) fn json((outcome, names): Asked<'_>, said: &[f32]) -> Value {
    match outcome {
        Outcome::Class => Value::Null,
        Outcome::Labels => {
            let each = names.iter().zip(said);
            let each: Map<String, Value> = each.map(|(name, p)| (name.clone(), json!(p))).collect();
            json!({ "prediction": predicted(names, said), "probabilities": each })
        }
        Outcome::Quantity { .. } => json!({ "prediction": said[0] }),
        Outcome::Survival { ends } => {
            let curve = ends.iter().zip(said);
            let curve: Vec<Value> = curve
                .map(|(until, p)| json!({ "until": until, "none": p }))
                .collect();
            json!({ "event": event(said), "until": horizon(ends), "survival": curve })
        }
    }
}

/// What is said of all of them, for a person.
pub(crate) fn summary<'a>(
    (outcome, names): Asked<'_>,
    said: impl Iterator<Item = &'a [f32]>,
) -> String {
    let said: Vec<&[f32]> = said.collect();
    let range = |values: &mut Vec<f32>| {
        values.sort_unstable_by(f32::total_cmp);
        match (values.first(), values.last()) {
            (Some(low), Some(high)) => {
                let middle = values[values.len() / 2];
                format!("{low:.3} to {high:.3}, median {middle:.3}")
            }
            _ => String::new(),
        }
    };
    match outcome {
        Outcome::Class => String::new(),
        Outcome::Labels => {
            let line = |(at, name): (usize, &String)| {
                let with = said.iter().filter(|row| row[at] > 0.5).count();
                format!("  {name:<28}{with:>9}\n")
            };
            names.iter().enumerate().map(line).collect()
        }
        Outcome::Quantity { .. } => {
            let mut values = said.iter().map(|row| row[0]).collect();
            format!("  {}: {}\n", name(names), range(&mut values))
        }
        Outcome::Survival { ends } => {
            let mut values = said.iter().map(|row| event(row)).collect();
            let (event, until) = (name(names), horizon(ends));
            format!(
                "  probability of {event:?} until {until}: {}\n",
                range(&mut values)
            )
        }
    }
}

/// The labels that are more likely than not.
fn predicted<'a>(names: &'a [String], said: &[f32]) -> Vec<&'a str> {
    let likely = names.iter().zip(said).filter(|(_, p)| **p > 0.5);
    likely.map(|(name, _)| name.as_str()).collect()
}

/// The probability of the event until the horizon.
fn event(curve: &[f32]) -> f32 {
    1.0 - curve.last().copied().unwrap_or(1.0)
}

fn name(names: &[String]) -> &str {
    names.first().map_or("", String::as_str)
}

/// As short as what was measured.
fn horizon(ends: &[f64]) -> f32 {
    ends.last().copied().unwrap_or_default() as f32
}

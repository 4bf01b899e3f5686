//! What is known of samples, in numbers: how many there are of each class or with each answer, how a quantity is spread,
//! how many had an event.

use selvedge_core::dataset::{Dataset, Samples};
use selvedge_core::outcome::{Outcome, Target};
use selvedge_run::format::{bar, count};
use serde_json::{Value, json};

/// Classes or labels that have a column each.
const SHOWN: usize = 16;

/// The width of a picture of shares.
const BAR: usize = 24;

/// Of samples: of each class; no, yes and unknown to each label; or nothing to be counted.
fn counts(dataset: &Dataset, samples: &Samples) -> Vec<u64> {
    let (names, y) = (&dataset.classes, &samples.y);
    let mut counts = vec![0; dataset.outcome.counts(names)];
    dataset.outcome.count(y, &mut counts);
    let all = samples.len() as u64;
    match dataset.outcome {
        Outcome::Labels => {
            let of = |both: &[u64]| [both[0], both[1], all - both[0] - both[1]];
            counts.chunks_exact(2).flat_map(of).collect()
        }
        _ => counts,
    }
}

/// Mean, standard deviation, least and greatest of some numbers.
fn spread(values: &[f32]) -> Option<[f64; 4]> {
    let all = || values.iter().map(|x| f64::from(*x));
    let n = values.len() as f64;
    let mean = all().sum::<f64>() / n;
    let squares: f64 = all().map(|x| (x - mean) * (x - mean)).sum();
    let (least, most) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    Some([mean, (squares / n).sqrt(), least, most])
}

/// The times of samples with and without an event, and the longest.
struct Times {
    events: u64,
    censored: u64,
    longest: f64,
}

impl Times {
    fn of(samples: &Samples) -> Self {
        let known = samples.y.numbers().chunks_exact(2);
        let events = known.clone().filter(|known| known[1] > 0.5).count() as u64;
        let longest = known.map(|known| f64::from(known[0])).reduce(f64::max);
        Times {
            events,
            censored: samples.len() as u64 - events,
            longest: longest.unwrap_or_default(),
        }
    }
}

/// The same for a script.
pub(super) fn json(dataset: &Dataset, samples: &Samples) -> Value {
    match dataset.outcome {
        Outcome::Class => json!(counts(dataset, samples)),
        Outcome::Labels => {
            let counts = counts(dataset, samples);
            let each = dataset.classes.iter().zip(counts.chunks_exact(3));
            each.map(|(name, n)| {
                let answers = json!({ "no": n[0], "yes": n[1], "unknown": n[2] });
                (name.clone(), answers)
            })
            .collect()
        }
        Outcome::Quantity { .. } => match spread(samples.y.numbers()) {
            Some([mean, deviation, least, most]) => {
                json!({ "mean": mean, "deviation": deviation, "least": least, "greatest": most })
            }
            None => Value::Null,
        },
        Outcome::Survival { .. } => {
            let times = Times::of(samples);
            json!({ "events": times.events, "censored": times.censored, "longest": times.longest })
        }
    }
}

/// What the cells of a row stand under.
pub(super) fn head(dataset: &Dataset) -> Vec<String> {
    let shown = dataset.classes.iter().take(SHOWN);
    match dataset.outcome {
        Outcome::Class => shown.map(|class| format!("label {class}")).collect(),
        Outcome::Labels => shown.map(|label| format!("{label} yes/no/?")).collect(),
        Outcome::Quantity { .. } => ["mean", "deviation", "least", "greatest"]
            .map(String::from)
            .into(),
        Outcome::Survival { .. } => ["events", "censored", "longest"].map(String::from).into(),
    }
}

/// What is known of some samples, with a picture where shares can be seen.
pub(super) fn cells(dataset: &Dataset, samples: &Samples) -> Vec<String> {
    let counts = counts(dataset, samples);
    match dataset.outcome {
        Outcome::Class => {
            let shown = counts.iter().take(SHOWN).map(|n| count(*n));
            shown.chain([bar(&counts, BAR)]).collect()
        }
        Outcome::Labels => {
            let each = counts.chunks_exact(3).take(SHOWN);
            let cell = |n: &[u64]| format!("{}/{}/{}", count(n[1]), count(n[0]), count(n[2]));
            each.map(cell).collect()
        }
        Outcome::Quantity { .. } => match spread(samples.y.numbers()) {
            Some(numbers) => numbers.map(number).into(),
            None => vec!["–".into(); 4],
        },
        Outcome::Survival { .. } => {
            let times = Times::of(samples);
            let numbers = [count(times.events), count(times.censored)];
            let both = [times.censored, times.events];
            let rest = [number(times.longest), bar(&both, BAR)];
            numbers.into_iter().chain(rest).collect()
        }
    }
}

/// What cells mean, below the table.
pub(super) fn key(dataset: &Dataset, shade: fn(usize) -> char) -> String {
    let names = &dataset.classes;
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("   and {more} more"),
    };
    let first = names.first().map_or("", String::as_str);
    match &dataset.outcome {
        Outcome::Class => {
            let key = names.iter().take(SHOWN).enumerate();
            let key: Vec<String> = key
                .map(|(c, name)| format!("{} {name}", shade(c)))
                .collect();
            format!("{}{more}", key.join("   "))
        }
        Outcome::Labels => format!(
            "samples that are known to have a label, not to, and of which it is unknown{more}"
        ),
        Outcome::Quantity { mean, deviation } => format!(
            "{first}, in its own unit; networks learn (value − {}) / {}",
            number(*mean),
            number(*deviation)
        ),
        Outcome::Survival { ends } => {
            let ends: Vec<String> = ends.iter().map(|end| number(*end)).collect();
            format!(
                "{} without, {} with {first}; intervals end at {}, the last of which is the horizon",
                shade(0),
                shade(1),
                ends.join(", ")
            )
        }
    }
}

/// What is known of one sample.
pub(super) fn of_one(dataset: &Dataset, target: Target<'_>) -> String {
    let names = &dataset.classes;
    let first = names.first().map_or("", String::as_str);
    match (&dataset.outcome, target) {
        (_, Target::Class(class)) => format!("label {}", names[class as usize]),
        (Outcome::Labels, Target::Numbers(known)) => {
            let answer = |y: f32| match y.is_nan() {
                true => "unknown",
                false => ["no", "yes"][usize::from(y > 0.5)],
            };
            let each = names.iter().zip(known).take(SHOWN);
            let each: Vec<String> = each
                .map(|(name, y)| format!("{name} {}", answer(*y)))
                .collect();
            each.join(", ")
        }
        (Outcome::Survival { .. }, Target::Numbers([time, event])) => match *event > 0.5 {
            true => format!("{first} at {time}"),
            false => format!("no {first} until {time}"),
        },
        (_, Target::Numbers(known)) => format!("{first} {}", known[0]),
    }
}

/// Four digits.
fn number(x: f64) -> String {
    match format!("{x:.3e}").parse::<f64>() {
        Ok(short) if short == 0.0 || (1e-3..1e7).contains(&short.abs()) => short.to_string(),
        _ => format!("{x:.3e}"),
    }
}

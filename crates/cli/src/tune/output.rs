//! What `selvedge tune` prints.

use super::trials::Trial;
use super::{Candidate, Tuned, is_steered, predict};
use anyhow::Result;
use selvedge_core::experiment::{Adaptive, Experiment};
use selvedge_core::metrics::Metric;
use selvedge_core::theory::pretraining::Spread;
use selvedge_run::format::{bytes, count, score, seconds, table};
use serde_json::{Value, json};

/// A number of any size.
fn number(x: f64) -> String {
    match x.abs() {
        a if a == 0.0 || (1e-3..1e4).contains(&a) => format!("{x:.4}"),
        _ => format!("{x:.2e}"),
    }
}

fn spread(of: &Spread) -> String {
    format!(
        "{}  ({} to {})",
        number(of.value),
        number(of.least),
        number(of.largest)
    )
}

pub(crate) fn text(name: &str, tuned: &Tuned) -> String {
    [
        estimates(name, tuned),
        strategies(tuned),
        plot(tuned),
        candidates(tuned),
        certainty(tuned),
    ]
    .join("\n")
}

fn estimates(name: &str, tuned: &Tuned) -> String {
    let measured = &tuned.pretraining;
    let cost = measured.ledger.exact() as f64 / tuned.groups as f64;
    let rows = [
        ("F0, the initial loss", number(measured.start())),
        ("ρ, how fast gradients change", spread(&measured.rho())),
        (
            "δ², variance of applied gradients",
            spread(&measured.variance()),
        ),
        (
            "  share between groups",
            format!("{:.0} %", 100.0 * measured.between()),
        ),
        ("‖∇F‖", spread(&measured.gradient())),
    ];
    format!(
        "{name}: measured in {} iterations of pre-training and {} probes, {} per group\n\n{}",
        measured.rates.len(),
        measured.probes.len(),
        bytes(cost),
        left(&rows)
    )
}

/// Two columns, both to the left.
fn left(rows: &[(&str, String)]) -> String {
    let wide = rows.iter().map(|(name, _)| name.chars().count()).max();
    let width = wide.unwrap_or(0);
    let line = |(name, text): &(&str, String)| format!("  {name:<width$}   {text}\n");
    rows.iter().map(line).collect()
}

fn strategies(tuned: &Tuned) -> String {
    let s = &tuned.strategies;
    let lambda = match s.exchanges {
        Some(lambda) => format!("Λ = {lambda}"),
        None => "no Λ".into(),
    };
    let valid = |valid: bool| match valid {
        true => "",
        false => "; ρη > 1/8, so the bound holds for no interval",
    };
    let rows = [
        (
            "1, exchanges in a global interval",
            format!(
                "{lambda} keeps Γ ≤ {}, a tenth above its value at Q = 1",
                number(s.wanted)
            ),
        ),
        (
            "2, P* = Q*",
            format!(
                "{} (Q* {}){}",
                s.corrected.interval,
                number(s.corrected.real),
                valid(s.corrected.is_valid)
            ),
        ),
        (
            "   as printed in the paper",
            format!("{} (Q* {})", s.printed.interval, number(s.printed.real)),
        ),
        (
            "3, η* for these P and Q",
            format!(
                "{}, and {} for those of strategy 2",
                number(s.rate),
                number(s.rate_there)
            ),
        ),
    ];
    format!("Strategies\n\n{}", left(&rows))
}

/// Γ·C of P = Q, for the experiment's η.
fn product(tuned: &Tuned) -> Vec<(u64, f64)> {
    let train = &tuned.candidates[0].experiment.train;
    let constants = tuned.pretraining.constants();
    // C is the same multiple of 1/Q for every Q: its scale is left out.
    let of = |q: u64| {
        let setting = predict::setting(
            q as f64,
            q as f64,
            train.learning_rate,
            train.iterations as f64,
        );
        (q, constants.bound(setting).total() / q as f64)
    };
    [1, 2, 3, 5, 8, 12, 20, 30, 50, 80].map(of).to_vec()
}

fn plot(tuned: &Tuned) -> String {
    const WIDTH: f64 = 48.0;
    let points = product(tuned);
    let least = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let scale = libm::log(most / least).max(f64::MIN_POSITIVE);
    let mut out =
        String::from("Γ·C against P = Q, on a logarithmic scale; bars start at the minimum\n\n");
    for (q, value) in points {
        let bar = "█".repeat((libm::log(value / least) / scale * WIDTH).round() as usize);
        let mark = if value == least { " ◄ minimum" } else { "" };
        out += &format!("  {q:>3}  {:>6.2} ×  {bar}{mark}\n", value / least);
    }
    out
}

fn settings_text(c: &Candidate) -> [String; 3] {
    let train = &c.experiment.train;
    let from = if is_steered(&c.experiment) {
        "from "
    } else {
        ""
    };
    [
        format!("{from}{}", train.global_interval),
        format!("{from}{}", train.local_interval),
        format!("{from}{}", short(train.learning_rate)),
    ]
}

/// Three digits.
fn short(x: f64) -> String {
    match x {
        x if (1e-3..1e4).contains(&x) => format!("{}", (x * 1e4).round() / 1e4),
        x => format!("{x:.1e}"),
    }
}

fn candidates(tuned: &Tuned) -> String {
    let judged = tuned.judged;
    let headings = ["", "P", "Q", "η", "Γ", "bytes", "time"].map(str::to_owned);
    let mut headings = headings.to_vec();
    // Without held-out samples there is none.
    let chief = |trial: &Trial| {
        let (name, value) = trial.chief.first_key_value()?;
        Some((Metric::find(name)?.heading, (*value)?))
    };
    let mut trials = tuned.candidates.iter().filter_map(|c| c.trial.as_ref());
    let measured = trials.find_map(chief).map(|(heading, _)| heading);
    headings.push(format!("loss ({judged})"));
    headings.extend(measured.map(|heading| format!("{heading} ({judged})")));
    headings.push("trial bytes".into());
    if let Some(target) = tuned.target() {
        let on = match Metric::find(target.metric) {
            Some(metric) if metric.tested => judged,
            _ => "training",
        };
        headings.push(format!("until {} {} ({on})", target.metric, target.value));
    }
    let mut rows = vec![headings];
    for c in &tuned.candidates {
        let mut row = vec![c.label.clone()];
        row.extend(settings_text(c));
        let p = &c.prediction;
        match is_steered(&c.experiment) {
            true => row.extend(["–", "–", "–"].map(str::to_owned)),
            false => row.extend([
                format!("{}{}", number(p.bound), if p.is_valid { "" } else { " *" }),
                bytes(p.bytes),
                seconds(p.seconds),
            ]),
        }
        if let Some(t) = &c.trial {
            let loss = match t.diverged {
                true => "diverged".into(),
                false => score(Some(t.loss).filter(|loss| loss.is_finite())),
            };
            row.push(loss);
            row.extend(measured.map(|_| score(chief(t).map(|(_, value)| value))));
            row.push(bytes(t.bytes));
            if tuned.target().is_some() {
                row.push(t.reached.map_or("–".into(), bytes));
            }
        }
        rows.push(row);
    }
    let t = tuned.candidates[0].experiment.train.iterations;
    format!(
        "Predicted for {} iterations or the next multiple of P (bytes per group), then tried until {} per group are sent\n\n{}  * η > 1/(8Pρ): Theorem 1 does not hold there\n",
        count(t),
        bytes(tuned.budget),
        table(&rows)
    )
}

fn certainty(tuned: &Tuned) -> String {
    let (measured, bound) = tuned.pretraining.looseness();
    let loose = bound.total() / measured;
    let allowed = match loose >= 1.0 {
        true => format!("{} times as much", count(loose.min(1e15) as u64)),
        false => "less, so it does not hold there".into(),
    };
    let reached = |c: &Candidate| c.trial.as_ref().is_some_and(|t| t.reached.is_some());
    let unreached = match tuned.target() {
        Some(target) if !tuned.candidates.iter().any(reached) => format!(
            "No trial reached {} {}, so the loss decides.\n",
            target.metric, target.value
        ),
        _ => String::new(),
    };
    let optimistic = match tuned.judged {
        "training" => {
            "They are judged by the training loss, since no samples are held out (data.validation, data.test): it does not\nshow how they do on other samples. "
        }
        "test" => {
            "They are judged on the test samples, since none are held out for validation\n(data.validation): test figures of what is chosen are optimistic. "
        }
        _ => "",
    };
    let chosen = tuned.chosen();
    let train = &chosen.experiment.train;
    let steered = match is_steered(&chosen.experiment) {
        true => format!("train.adaptive = \"{}\", from ", mode(&chosen.experiment)),
        false => String::new(),
    };
    format!(
        "How sure is this? In pre-training the mean of ‖∇F‖² was {}, and the bound allows {}: {allowed}.\nIts advice on Q and η errs on the safe, slow side, so the trials decide. They have one seed each: those within 25 %\nin bytes or 3 % in loss count as equal, and the first of them is chosen. {unreached}{optimistic}Tuning sent {} per group.\n\nChoice    {} ({steered}P = {}, Q = {}, η = {})\n",
        number(measured),
        number(bound.total()),
        bytes(tuned.cost()),
        chosen.label,
        train.global_interval,
        train.local_interval,
        short(train.learning_rate)
    )
}

fn mode(experiment: &Experiment) -> &'static str {
    match experiment.train.adaptive {
        Adaptive::Off => "off",
        Adaptive::Bound => "bound",
        Adaptive::Gain => "gain",
    }
}

pub(crate) fn json(tuned: &Tuned) -> Result<Value> {
    let measured = &tuned.pretraining;
    let (gradient, bound) = measured.looseness();
    let s = &tuned.strategies;
    let of = |c: &Candidate| {
        let train = &c.experiment.train;
        json!({
            "label": c.label,
            "p": train.global_interval,
            "q": train.local_interval,
            "eta": train.learning_rate,
            "adaptive": mode(&c.experiment),
            "predicted": c.prediction,
            "trial": c.trial,
        })
    };
    Ok(json!({
        "estimates": {
            "f0": measured.start(),
            "rho": measured.rho(),
            "variance": measured.variance(),
            "between": measured.between(),
            "gradient": measured.gradient(),
            "bytes": measured.ledger.exact() as f64 / tuned.groups as f64,
            "measured_gradient_squared": gradient,
            "bound_there": bound.total(),
        },
        "strategies": {
            "exchanges": s.exchanges,
            "wanted": s.wanted,
            "corrected": s.corrected,
            "printed": s.printed,
            "eta": s.rate,
            "eta_of_corrected": s.rate_there,
        },
        "product": product(tuned),
        "candidates": tuned.candidates.iter().map(of).collect::<Vec<_>>(),
        "choice": of(tuned.chosen()),
        "budget": tuned.budget,
        "target": tuned.target(),
        "judged_on": tuned.judged,
        "bytes": tuned.cost(),
        "experiment": tuned.written(),
    }))
}

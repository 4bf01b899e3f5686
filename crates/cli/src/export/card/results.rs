//! Metrics and bytes of a run.

use super::markdown::{cell, table};
use super::{Card, percent};
use anyhow::Result;
use selvedge_core::assess::MEASURES;
use selvedge_core::metrics::Metric;
use selvedge_core::outcome::Kind;
use selvedge_run::files::{EVALUATION, read_json};
use selvedge_run::format::{bytes, count, score};
use serde_json::Value;
use std::path::Path;

/// The parts of an evaluation, the one that counts first.
const PARTS: [&str; 3] = ["test", "validation", "train"];

/// What is told of each group.
const OF_GROUPS: [&str; 3] = ["auc", "accuracy", "brier"];

impl Card<'_> {
    /// What `selvedge evaluate` has found, else what training measured itself.
    pub(super) fn metrics(&self, run: &Path) -> Result<String> {
        let found = match self.assessed(run)? {
            Some(assessed) if self.outcome().is_class() => of_assessment(&assessed, self.is_best()),
            Some(assessed) => of_answers(&assessed, self.is_best()),
            None => self.of_training(),
        };
        Ok(format!("## Metrics\n\n{found}"))
    }

    /// `evaluation.json`, if there is one and it is of this very model.
    fn assessed(&self, run: &Path) -> Result<Option<Value>> {
        let path = run.join(EVALUATION);
        if !path.is_file() {
            return Ok(None);
        }
        let value: Value = read_json(&path)?;
        let model = value["model"].as_str().map(Path::new);
        let same = model.and_then(Path::file_name) == Some(self.exported.file);
        Ok(same.then_some(value))
    }

    fn of_training(&self) -> String {
        let Some(e) = self.evaluation() else {
            return "The run was never evaluated. `selvedge evaluate` does so, with confidence intervals.\n"
                .into();
        };
        let row = |m: &Metric| {
            vec![
                m.words.trim_start_matches("test ").to_owned(),
                score(m.of(e)),
            ]
        };
        let kind = self.outcome().kind();
        let rows = Metric::of_kind(kind).map(row);
        let how = match kind {
            Kind::Class => {
                "without confidence intervals, without calibration, AUC from 4,096 score bins"
            }
            Kind::Labels => {
                "without confidence intervals, without calibration, areas from 4,096 score bins, means over the labels"
            }
            Kind::Quantity => "without confidence intervals, errors in the quantity's own unit",
            Kind::Survival => "without confidence intervals, concordance from 1,024 bins of risk",
        };
        format!(
            "At iteration {}, on the test samples, as measured during training: {how}. Run `selvedge evaluate` before the export to have exact metrics with confidence intervals.\n\n{}",
            count(e.t),
            table(&["", "value"], rows)
        )
    }

    pub(super) fn bytes(&self) -> String {
        let (ledger, groups) = (&self.run.ledger, self.run.manifest.sizes.groups.max(1));
        let total: u64 = ledger.iter().map(|line| line.bytes).sum();
        let row = |line: &selvedge_run::ledger::LedgerLine| {
            let words = [&line.link, &line.kind, &line.direction].map(|word| cell(word));
            let numbers = [line.messages, line.bytes].map(count);
            words.into_iter().chain(numbers).collect()
        };
        format!(
            "## Bytes\n\nTraining sent {} bytes of payload in total, {} per group on average.\n\n{}",
            count(total),
            bytes(total as f64 / groups as f64),
            table(
                &["link", "what", "direction", "messages", "bytes"],
                ledger.iter().map(row)
            ),
        )
    }
}

/// Values with their intervals, part by part and group by group.
fn of_assessment(assessed: &Value, is_best: bool) -> String {
    let confidence = percent(assessed["confidence"].as_f64().unwrap_or_default());
    let calibrated = match assessed["calibration"].is_null() {
        true => "are not calibrated",
        false => "are calibrated",
    };
    let decided = match assessed["threshold"]["probability"].as_f64() {
        Some(threshold) => format!(
            "{} if its probability is at least {threshold:.4}",
            cell(
                assessed["threshold"]["positive"]
                    .as_str()
                    .unwrap_or_default()
            )
        ),
        None => "the most likely one".into(),
    };
    let positive = assessed["positive"]["class"].as_str();
    let positive = positive.map_or(String::new(), |class| {
        format!(
            "; average precision, sensitivity, specificity and predictive values are those of the positive class, {}",
            cell(class)
        )
    });
    let parts = PARTS.into_iter().filter(|part| assessed[*part].is_object());
    let parts: Vec<&str> = parts.collect();
    let is_there = |name: &&str| parts.iter().any(|part| assessed[*part][*name].is_number());
    let row = |name: &str| {
        let values = parts.iter().map(|part| estimate(&assessed[*part], name));
        std::iter::once(title(name)).chain(values).collect()
    };
    let samples = parts.iter().map(|part| {
        let samples = assessed[*part]["samples"].as_u64().unwrap_or_default();
        format!("{part}, {} samples", count(samples))
    });
    let head: Vec<String> = std::iter::once(String::new()).chain(samples).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let chosen = match (is_best, calibrated) {
        (true, "are calibrated") => ", and chosen and calibrated on the validation samples",
        (true, _) => ", and chosen on the validation samples",
        (false, "are calibrated") => ", and calibrated on the validation samples",
        (false, _) => "",
    };
    let mut out = format!(
        "From `selvedge evaluate`, with {confidence} bootstrap confidence intervals ({} resamples of the patients). Probabilities {calibrated}; \
         the predicted class is {decided}. Precision, recall and F1 are macro averages, the means over the classes{positive}. The model was fitted to the training \
         samples{chosen}: the test column is the one that counts.\n\n{}",
        count(assessed["resamples"].as_u64().unwrap_or_default()),
        table(&head, MEASURES.into_iter().filter(is_there).map(row))
    );
    let groups = assessed["test"]["groups"].as_array();
    if let Some(groups) = groups.filter(|groups| !groups.is_empty()) {
        out += &format!("\nTest samples by group:\n\n{}", of_groups(groups));
    }
    out
}

/// The same where there is no class: every measure that the last part has.
fn of_answers(assessed: &Value, is_best: bool) -> String {
    let confidence = percent(assessed["confidence"].as_f64().unwrap_or_default());
    let parts: Vec<&str> = PARTS
        .into_iter()
        .filter(|part| assessed[*part].is_object())
        .collect();
    let measures = parts.first().and_then(|part| assessed[*part].as_object());
    let names = measures.into_iter().flatten();
    let names = names.filter(|(name, value)| value.is_number() && *name != "samples");
    let mut names: Vec<&String> = names.map(|(name, _)| name).collect();
    // Those of all together come first, then those of each label or time.
    names.sort_by(|a, b| {
        let place = |name: &str| {
            let time = name
                .split_once(" at ")
                .and_then(|(_, time)| time.parse().ok());
            (name.contains(' '), time.unwrap_or(0.0))
        };
        let ((a_is_part, a_at), (b_is_part, b_at)) = (place(a), place(b));
        a_is_part.cmp(&b_is_part).then(f64::total_cmp(&a_at, &b_at))
    });
    let row = |name: &String| {
        let values = parts.iter().map(|part| estimate(&assessed[*part], name));
        std::iter::once(cell(&title(name))).chain(values).collect()
    };
    let samples = parts.iter().map(|part| {
        let samples = assessed[*part]["samples"].as_u64().unwrap_or_default();
        format!("{part}, {} samples", count(samples))
    });
    let head: Vec<String> = std::iter::once(String::new()).chain(samples).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let chosen = match is_best {
        true => ", and chosen on the validation samples",
        false => "",
    };
    format!(
        "From `selvedge evaluate`, with {confidence} bootstrap confidence intervals ({} resamples of the patients). The model was fitted to \
         the training samples{chosen}: the test column is the one that counts.\n\n{}",
        count(assessed["resamples"].as_u64().unwrap_or_default()),
        table(&head, names.into_iter().map(row))
    )
}

fn of_groups(groups: &[Value]) -> String {
    let row = |group: &Value| {
        let name = cell(group["name"].as_str().unwrap_or_default());
        let samples = count(group["samples"].as_u64().unwrap_or_default());
        let values = OF_GROUPS.iter().map(|measure| estimate(group, measure));
        [name, samples].into_iter().chain(values).collect()
    };
    let titles = OF_GROUPS.map(title);
    let head = ["group", "samples"].into_iter();
    let head: Vec<&str> = head.chain(titles.iter().map(String::as_str)).collect();
    table(&head, groups.iter().map(row))
}

/// `0.812 (0.790 to 0.833)`
fn estimate(of: &Value, measure: &str) -> String {
    let value = score(of[measure].as_f64());
    let bound = |at: usize| of["intervals"][measure][at].as_f64();
    match (bound(0), bound(1)) {
        (Some(low), Some(high)) => format!("{value} ({low:.3} to {high:.3})"),
        _ => value,
    }
}

fn title(measure: &str) -> String {
    match measure {
        "auc" => "AUC".into(),
        "f1" => "F1".into(),
        "brier" => "Brier score".into(),
        "auprc" => "AUPRC".into(),
        "micro_auc" => "micro AUC".into(),
        "micro_auprc" => "micro AUPRC".into(),
        "mae" => "MAE".into(),
        "rmse" => "RMSE".into(),
        "r2" => "R²".into(),
        other => other
            .replace('_', " ")
            .replace("auc of", "AUC of")
            .replace("auprc of", "AUPRC of")
            .replace("brier at", "Brier score at"),
    }
}

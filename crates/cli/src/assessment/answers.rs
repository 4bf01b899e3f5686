//! The same of labels, quantities and survival: measures with intervals, agreement of what was said with what was so,
//! and each group.

use super::table::{Table, brackets, calibration, optimistic};
use crate::report::chart::{Chart, ChartAxis, Line, Place, draw};
use crate::report::plain_page;
use crate::report::text::escape;
use crate::report::ticks::{Scale, Unit};
use selvedge_core::assess::{Agreement, Answered, Bootstrap, Estimate, losses};
use selvedge_core::experiment::LossName;
use selvedge_core::outcome::{Kind, Outcome, Targets};
use selvedge_run::trained::Trained;
use serde_json::{Map, Value, json};

/// What was measured of some patients.
pub(crate) struct AnswersPart {
    pub(crate) name: String,
    samples: usize,
    kind: Kind,
    measures: Vec<String>,
    estimates: Vec<Option<Estimate>>,
    agreement: Vec<Agreement>,
    groups: Vec<(String, usize, Vec<Option<Estimate>>)>,
}

/// Patients with what was said of them and what is known.
pub(crate) struct Said<'a> {
    pub(crate) answers: Vec<f32>,
    pub(crate) targets: &'a Targets,
    /// Rows with the same number are of one patient; empty: each is of another.
    pub(crate) persons: &'a [u32],
    /// The group of each row, and the names; or nobody knows.
    pub(crate) groups: Option<(&'a [u32], &'a [String])>,
}

impl AnswersPart {
    /// Measures.
    pub(crate) fn new(
        name: &str,
        said: &Said<'_>,
        trained: &Trained,
        bootstrap: &Bootstrap,
    ) -> Self {
        let asked = (trained.outcome(), trained.classes());
        let train = &trained.experiment.train;
        let quantile = (train.loss == LossName::Quantile).then_some(train.quantile);
        let estimates = |answers: &[f32], targets: &Targets, persons: &[u32]| {
            let losses = match asked.0 {
                Outcome::Quantity { mean, deviation } => {
                    let scaled = |x: f32| (f64::from(x) - mean) / deviation;
                    let pairs = answers.iter().zip(targets.numbers());
                    let loss = |(a, y): (&f32, &f32)| train.distance().of(scaled(*a), scaled(*y)).0;
                    pairs.map(loss).collect()
                }
                _ => losses(asked, answers, targets),
            };
            let answered = Answered::new(asked, answers, targets, losses, quantile);
            let estimates = answered.estimate(bootstrap, persons);
            (answered.measures(), estimates, answered.agreement())
        };
        let (measures, all, agreement) = estimates(&said.answers, said.targets, said.persons);
        let mut groups = Vec::new();
        if let Some((of_row, names)) = said.groups {
            let wide = trained.outputs();
            for (number, name) in (0..).zip(names) {
                let rows: Vec<u32> = (0..of_row.len() as u32)
                    .filter(|row| of_row[*row as usize] == number)
                    .collect();
                if rows.is_empty() {
                    continue;
                }
                let answers: Vec<f32> = rows
                    .iter()
                    .flat_map(|row| &said.answers[*row as usize * wide..][..wide])
                    .copied()
                    .collect();
                let persons: Vec<u32> = match said.persons.is_empty() {
                    true => Vec::new(),
                    false => rows.iter().map(|row| said.persons[*row as usize]).collect(),
                };
                let (_, own, _) = estimates(&answers, &said.targets.of(&rows), &persons);
                groups.push((name.clone(), rows.len(), own));
            }
        }
        AnswersPart {
            name: name.into(),
            samples: said.targets.len(),
            kind: asked.0.kind(),
            measures,
            estimates: all,
            agreement,
            groups,
        }
    }

    /// All of it.
    pub(crate) fn json(&self) -> Value {
        let mut value = self.estimates(&self.estimates);
        value["samples"] = json!(self.samples);
        value["agreement"] = json!(self.agreement);
        if !self.groups.is_empty() {
            let group = |(name, samples, own): &(String, usize, Vec<Option<Estimate>>)| {
                let mut value = self.estimates(own);
                value["name"] = json!(name);
                value["samples"] = json!(samples);
                value
            };
            value["groups"] = self.groups.iter().map(group).collect();
        }
        value
    }

    fn estimates(&self, estimates: &[Option<Estimate>]) -> Value {
        let (mut values, mut intervals) = (Map::new(), Map::new());
        for (name, estimate) in self.measures.iter().zip(estimates) {
            values.insert(name.clone(), json!(estimate.map(|e| e.value)));
            if let Some(estimate) = estimate {
                intervals.insert(name.clone(), json!(estimate.interval));
            }
        }
        values.insert("intervals".into(), Value::Object(intervals));
        Value::Object(values)
    }

    /// The measure by which groups are compared.
    fn shown_of_groups(&self) -> [usize; 2] {
        match self.kind {
            Kind::Labels => [0, 1],
            Kind::Quantity => [0, 2],
            Kind::Survival | Kind::Class => [0, 1],
        }
    }
}

/// What a measure is called in a table.
fn title(measure: &str) -> String {
    match measure {
        "auc" => "AUC (macro)".into(),
        "auprc" => "AUPRC (macro)".into(),
        "micro_auc" => "AUC (micro)".into(),
        "micro_auprc" => "AUPRC (micro)".into(),
        "mae" => "mean absolute error".into(),
        "rmse" => "root mean sq. error".into(),
        "r2" => "R²".into(),
        "median_absolute_error" => "median absolute error".into(),
        "bias" => "bias (said − so)".into(),
        "share_below" => "share below prediction".into(),
        "brier" => "Brier score".into(),
        other => other
            .replace("auc of", "AUC of")
            .replace("auprc of", "AUPRC of")
            .replace("brier at", "Brier score at"),
    }
}

/// Everything as text, the last part at length.
pub(crate) fn text(parts: &[AnswersPart], confidence: f64, by_validation: &[&str]) -> String {
    let measures = parts.first().map_or(&[][..], |part| &part.measures);
    let titles: Vec<String> = measures.iter().map(|name| title(name)).collect();
    let wide = titles.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let table = Table {
        title: wide.max(21) + 2,
        cell: 27,
    };
    let mut out = table.heading(parts.iter().map(|part| (&*part.name, part.samples)));
    for (at, title) in titles.iter().enumerate() {
        out += &table.row(title, parts.iter().map(|part| part.estimates[at].as_ref()));
    }
    out += &brackets(confidence, "");
    if let Some(part) = parts.first() {
        out += match part.kind {
            Kind::Labels => {
                "Macro: the mean over the labels; micro: all known labels in one list. Unknown labels are left out\n"
            }
            Kind::Survival => {
                "Concordance is Harrell's, up to the horizon; Brier scores make up for those who left earlier (inverse probability of censoring)\n"
            }
            Kind::Quantity | Kind::Class => "",
        };
    }
    out += &optimistic(parts.iter().map(|part| &*part.name), by_validation);
    let Some(last) = parts.last() else {
        return out;
    };
    let more = match last.kind {
        Kind::Survival => ": the event until the horizon, observed by Kaplan and Meier",
        _ => "",
    };
    for of_one in last.agreement.chunk_by(|a, b| a.of == b.of) {
        let groups = of_one.iter();
        let groups = groups.map(|group| (group.samples as u64, group.said, group.observed));
        out += &calibration((&of_one[0].of, &last.name, more), 13, groups);
    }
    for part in parts.iter().filter(|part| !part.groups.is_empty()) {
        let shown = part.shown_of_groups();
        let groups = part.groups.iter().map(|(name, samples, own)| {
            let both = shown.map(|at| own[at].as_ref());
            (&**name, *samples, both)
        });
        out += &table.groups(&part.name, shown.map(|at| &*titles[at]), groups);
    }
    out
}

/// A page with the agreement of the last part to look at, and everything as text.
pub(crate) fn page(name: &str, about: &[String], parts: &[AnswersPart], text: &str) -> String {
    let mut body = format!(
        "<header><p class=\"eyebrow\">Selvedge evaluation</p><h1>{}</h1>",
        escape(name)
    );
    for line in about {
        body += &format!("<p class=\"lead\">{}</p>", escape(line));
    }
    body += "</header>\n";
    if let Some(part) = parts.last().filter(|part| !part.agreement.is_empty()) {
        body += &format!(
            "<div class=\"panel shown\">\n<section><h2>Calibration on {}</h2><p class=\"about\">Samples in ten groups of equal size, from the lowest prediction to the highest. On the diagonal, predicted and observed agree.</p><figure>{}</figure></section>\n</div>\n",
            escape(&part.name),
            diagonal(part)
        );
    }
    body += &format!(
        "<section><h2>Numbers</h2><pre>{}</pre></section>\n",
        escape(text)
    );
    plain_page(name, &body)
}

fn diagonal(part: &AnswersPart) -> String {
    let place = |x: f64, y: f64| Place { x, y, lo: y, hi: y };
    let of_one = part.agreement.chunk_by(|a, b| a.of == b.of);
    let mut lines: Vec<Line> = of_one
        .enumerate()
        .map(|(style, groups)| Line {
            label: groups[0].of.clone(),
            style,
            points: groups.iter().map(|g| place(g.said, g.observed)).collect(),
        })
        .collect();
    let all = || part.agreement.iter().flat_map(|g| [g.said, g.observed]);
    let (low, high) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    );
    lines.push(Line {
        label: "perfect calibration".into(),
        style: lines.len(),
        points: vec![place(low, low), place(high, high)],
    });
    let axis = |title: &str| ChartAxis {
        title: title.into(),
        scale: Scale::Linear,
        unit: Unit::Number,
    };
    draw(&Chart {
        description: "Calibration: what was predicted, and what was observed".into(),
        x: axis("predicted"),
        y: axis("observed"),
        lines,
    })
    .with_legend()
}

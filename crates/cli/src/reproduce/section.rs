//! What a part of a reproduction shows: rows, sentences, claims, charts. Everything that is printed follows from these.

use super::claims::{Comparison, Verdict, compare};
use super::paper::{COMPARED, Compared};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A table or a figure for one data set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) part: String,
    /// What is shown, like `Table II`.
    pub(crate) what: String,
    /// The data set, and what stands in for it.
    pub(crate) set: String,
    /// P = Q, if it is the same in all that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) interval: Option<u64>,
    /// What else the title says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    /// The first row has the headings.
    pub(crate) rows: Vec<Vec<String>>,
    /// Sentences below the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    pub(crate) claims: Vec<Claim>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) figures: Vec<Figure>,
}

/// A chart of a section.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// Its file.
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) svg: String,
}

/// What each seed needs until a target: nothing where it does not get there.
pub(super) type PerSeed = Vec<Option<f64>>;

impl Section {
    pub(super) fn new(part: &str, what: &str, set: String, interval: Option<u64>) -> Self {
        Section {
            part: part.into(),
            what: what.into(),
            set,
            interval,
            until: None,
            rows: Vec::new(),
            notes: Vec::new(),
            claims: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// `Table II · ESR · P = Q = 5`
    pub(crate) fn title(&self) -> String {
        let interval = self.interval.map(|k| format!("P = Q = {k}"));
        let parts = [Some(self.what.clone()), Some(self.set.clone()), interval];
        let parts = parts.into_iter().chain([self.until.clone()]).flatten();
        parts.collect::<Vec<_>>().join(" · ")
    }

    pub(super) fn row(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = String>) {
        let name = std::iter::once(name.into());
        self.rows.push(name.chain(cells).collect());
    }

    pub(super) fn figure(&mut self, name: String, svg: String) {
        self.figures.push(Figure { name, svg });
    }

    /// Claims that the first of two that were compared needs less.
    pub(super) fn claim(&mut self, text: String, paper: impl Into<String>, found: &Comparison) {
        self.claims.push(Claim::new(text, paper, found, true));
    }
}

/// An ordering that the paper claims.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) text: String,
    /// What is compared, and whom HSGD is compared with, where the claim is about HSGD and another algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) between: Option<(String, String)>,
    /// What the paper prints.
    pub(crate) paper: String,
    pub(crate) verdict: Verdict,
    /// The first's cost by the second's, where both get there with every seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
    pub(crate) found: String,
}

impl Claim {
    pub(super) fn new(
        text: String,
        paper: impl Into<String>,
        found: &Comparison,
        claimed_less: bool,
    ) -> Self {
        Claim {
            text,
            between: None,
            paper: paper.into(),
            verdict: found.verdict(claimed_less),
            ratio: found.ratio.filter(|_| !found.by_signs),
            found: found.text(),
        }
    }

    /// About HSGD and one of the others.
    pub(super) fn between(self, what: &str, other: &Compared) -> Self {
        Claim {
            between: Some((what.into(), other.name.into())),
            ..self
        }
    }
}

/// What the paper prints of something: a dash where it was not reached.
pub(super) fn printed(value: f64, unit: fn(f64) -> String) -> String {
    match value.is_finite() {
        true => unit(value),
        false => "–".into(),
    }
}

/// The mean over the seeds that got there, with how many did where that is not all; a dash where none did.
pub(super) fn mean_text(costs: &[Option<f64>], unit: impl Fn(f64) -> String) -> String {
    let there: Vec<f64> = costs.iter().flatten().copied().collect();
    if there.is_empty() {
        return "–".into();
    }
    let mean = unit(there.iter().sum::<f64>() / there.len() as f64);
    match there.len() == costs.len() {
        true => mean,
        false => format!("{mean} ({} of {})", there.len(), costs.len()),
    }
}

/// What the paper prints of each of some that are compared; nothing of ours.
pub(super) fn of_paper(
    compared: &[Compared],
    values: &[f64; 5],
    unit: fn(f64) -> String,
) -> Vec<String> {
    let of = |one: &Compared| match one.is_papers() {
        true => printed(values[one.column], unit),
        false => String::new(),
    };
    compared.iter().map(of).collect()
}

/// HSGD against each of the others, where the paper says who needs less.
pub(super) fn against_hsgd(
    (what, about): (&str, &str),
    costs: &[PerSeed],
    papers: &[f64; 5],
    unit: fn(f64) -> String,
) -> Vec<Claim> {
    let ours = printed(papers[0], unit);
    let claim = |(other, cost): (&Compared, &PerSeed)| {
        let theirs = papers[other.column];
        let (less, sign) = match papers[0].total_cmp(&theirs) {
            Ordering::Less => (true, "<"),
            Ordering::Greater => (false, ">"),
            Ordering::Equal => return None,
        };
        let claim = Claim::new(
            format!("{what}: hsgd {sign} {}", other.name),
            format!("{ours} {sign} {}", printed(theirs, unit)),
            &compare(&costs[0], cost),
            less,
        );
        Some(claim.between(about, other))
    };
    let others = COMPARED.iter().zip(costs).skip(1);
    others.filter_map(claim).collect()
}

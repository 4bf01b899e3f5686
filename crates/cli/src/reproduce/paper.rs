//! What the paper prints: its Tables II to IV, and what its text says of Figures 4 to 9.

use selvedge_core::experiment::Algorithm;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What is compared: the paper's algorithms in the order of its tables, HSGD, JFL, TDCD, C-HSGD, C-TDCD, and then ours,
/// each beside the paper's that it is a change of.
pub(super) const COMPARED: [Compared; 7] = {
    const fn of_paper(column: usize) -> Compared {
        Compared {
            name: Algorithm::PAPER[column].name(),
            column,
            change: None,
        }
    }
    const fn with_feedback(name: &'static str, column: usize) -> Compared {
        Compared {
            name,
            column,
            change: Some("compression.theta0_feedback=true"),
        }
    }
    [
        of_paper(0),
        of_paper(1),
        of_paper(2),
        of_paper(3),
        of_paper(4),
        with_feedback("c-hsgd-ef", 3),
        with_feedback("c-tdcd-ef", 4),
    ]
};

/// One of those that are compared.
#[derive(Clone, Copy)]
pub(super) struct Compared {
    pub(super) name: &'static str,
    /// Where the paper's tables have it, or what it is a change of.
    pub(super) column: usize,
    /// What makes it another one than the paper's.
    change: Option<&'static str>,
}

impl Compared {
    /// Whether it is one of the paper's.
    pub(super) fn is_papers(&self) -> bool {
        self.change.is_none()
    }

    /// The experiment's changes that make it.
    pub(super) fn set(&self) -> Vec<String> {
        let algorithm = Algorithm::PAPER[self.column].name();
        let algorithm = format!("train.algorithm={algorithm}");
        let change = self.change.map(String::from);
        std::iter::once(algorithm).chain(change).collect()
    }
}

/// The names of those that are compared.
pub(super) const NAMES: [&str; COMPARED.len()] = {
    let mut names = [""; COMPARED.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = COMPARED[i].name;
        i += 1;
    }
    names
};

/// The data sets of the paper.
pub(super) static PAPER_SETS: LazyLock<Vec<PaperSet>> = LazyLock::new(|| {
    let paper: Paper = toml::from_str(include_str!("paper.toml")).expect("paper.toml is sound");
    paper.set
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paper {
    set: Vec<PaperSet>,
}

/// A data set of the paper, and what stands for it here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaperSet {
    /// As the paper calls it.
    pub(super) name: String,
    /// Experiments that come with selvedge: the set itself, and one that anybody can get.
    pub(super) experiments: Vec<String>,
    /// Learning rates that every algorithm tries at first.
    pub(super) grid: Vec<f64>,
    /// What is changed in an experiment that comes with selvedge, by its name.
    #[serde(default)]
    pub(super) changes: BTreeMap<String, Vec<String>>,
    /// A combined model of two layers for an experiment, where one is compared too.
    #[serde(default)]
    pub(super) two_layers: BTreeMap<String, String>,
    /// Bytes of raw data, where the set itself is at hand.
    pub(super) raw_bytes: u64,
    pub(super) table2: Vec<Table2Row>,
    pub(super) table3: Table3,
    /// Seconds of computation in an iteration.
    pub(super) table4: [f64; 5],
    /// Where the text says so.
    pub(super) figure4: Option<Figure4>,
    /// Targets of Figures 7 to 9, by experiment.
    pub(super) adaptive: BTreeMap<String, Adaptive>,
}

impl PaperSet {
    /// What an experiment that stands for the set changes of its preset.
    pub(super) fn changes_of(&self, experiment: &str) -> &[String] {
        self.changes.get(experiment).map_or(&[], Vec::as_slice)
    }

    /// `ESR`, `MIMIC-III (physionet2012 stands in)` or `ESR (synthetic-esr stands in)`, given the experiment and the set
    /// that it reads.
    pub(super) fn shown(&self, experiment: &str, set: &str) -> String {
        match self.experiments[0] == experiment {
            _ if set.starts_with("synthetic") => format!("{} ({set} stands in)", self.name),
            true => self.name.clone(),
            false => format!("{} ({experiment} stands in)", self.name),
        }
    }
}

/// How much time HSGD saves against each of the others until this AUC, in per cent.
#[derive(Deserialize)]
pub(super) struct Figure4 {
    pub(super) auc: f64,
    pub(super) saved: [u32; 4],
}

/// What is to be reached in Figures 7 to 9. The paper shows them for MIMIC-III only, and says the AUC of two of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Adaptive {
    /// AUC
    pub(super) figure7: f64,
    /// AUC and training loss.
    pub(super) figure8: (f64, f64),
    /// AUC
    pub(super) figure9: f64,
    /// The validation AUC at which a run may end: beyond all of these targets.
    pub(super) ends_at: f64,
    /// η, if it is not the experiment's.
    pub(super) learning_rate: Option<f64>,
    /// T, in which all settings that get there do.
    pub(super) iterations: u64,
    /// Evaluations come at most so many iterations apart, or P where that is more. A target is reached at one of them:
    /// were they far apart, settings would tie that differ by several per cent, and what is left of a tie is how many
    /// bytes an iteration has, in every seed to the byte.
    pub(super) evaluate_every: u64,
}

/// A line of Table II: bytes of one group until a target; infinite where it was not reached.
#[derive(Deserialize)]
pub(super) struct Table2Row {
    pub(super) metric: String,
    pub(super) target: f64,
    pub(super) bytes: [f64; 5],
}

/// Memory in bytes and FLOPs, accumulated until an AUC.
#[derive(Deserialize)]
pub(super) struct Table3 {
    pub(super) auc: f64,
    pub(super) memory: [f64; 5],
    pub(super) flops: [f64; 5],
}

//! What there is to know of each data set, one row for each: a set's module has its row, and `ALL` in `lib.rs` lists
//! them.

#[cfg(feature = "fuzz")]
use crate::fuzz::Target;
use crate::inputs::Inputs;
use crate::rows::{Purpose, Rows};
use crate::{ALL, DataError, settings, table};
use selvedge_core::experiment::{DataSettings, Features, Sets, Usual};
use selvedge_core::outcome::Kind;
use selvedge_nn::{LayerSpec, RecurrentSpec, Shape};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A data set.
pub(crate) struct DataSet {
    /// As in `data.set`.
    pub(crate) name: &'static str,
    /// Where its rows come from.
    pub(crate) source: Source,
    /// The words that `data.vertical` may have.
    pub(crate) verticals: &'static [&'static str],
    /// The words that `data.outcome` may have, with the kind of outcome that each is; the first is the usual one.
    pub(crate) outcomes: &'static [(&'static str, Kind)],
    /// Whether its sides are made of steps that measurements fall into, of which `data.derived` can say more.
    pub(crate) has_steps: bool,
    /// Whether its columns are scaled one by one, which `data.scaling` has ways for.
    pub(crate) has_columns: bool,
    /// Whether its rows are pieces of recordings, which `data.split = "recording"` keeps together.
    pub(crate) has_recordings: bool,
    /// What an experiment has where it says nothing else: layers, classes, and the paper's seconds of computation
    /// (Table IV).
    pub(crate) usual: fn(&DataSettings) -> Usual,
    /// Generated sets of its shape.
    pub(crate) twins: &'static [Twin],
    /// What a comparison aims at where nobody says it, by names of metrics; none: at what all variants reach.
    pub(crate) targets: &'static [(&'static str, f64)],
    /// How its parsers are fuzzed.
    #[cfg(feature = "fuzz")]
    pub(crate) fuzz: &'static [Target],
}

/// Where rows come from.
pub(crate) enum Source {
    /// From nowhere.
    Generated,
    /// From files of the set's own format.
    Files {
        /// Reads all of it, from below the data folder.
        read: fn(&DataSettings, Option<&Path>) -> Result<Rows, DataError>,
        /// Reads patients whom training has not seen.
        read_new: fn(&DataSettings, &Inputs, &[PathBuf], Purpose) -> Result<Rows, DataError>,
    },
    /// From what was dealt before.
    Shards,
}

/// What the sets of stays aim at, of which few patients died.
pub(crate) const MORTALITY_TARGETS: &[(&str, f64)] = &[
    ("loss", 0.5),
    ("loss", 0.3),
    ("precision", 0.7),
    ("recall", 0.6),
    ("f1", 0.6),
    ("auc", 0.78),
    ("auc", 0.82),
];

/// What experiments with them have where they say nothing else.
pub(crate) fn mortality() -> Usual {
    Usual {
        tower: vec![LayerSpec::Lstm(RecurrentSpec::new(16))],
        combined: Vec::new(),
        outputs: 2,
        learns: true,
        rows: None,
        seconds: 0.05,
        seconds_of_pairs: 0.8,
    }
}

/// Generated patients in the shape of a set from files, so that its experiments run without any.
pub(crate) struct Twin {
    /// As in `data.set`.
    pub(crate) name: &'static str,
    /// What hospitals hold.
    pub(crate) hospital: Shape,
    /// What devices hold.
    pub(crate) device: Shape,
    /// Number of classes.
    pub(crate) classes: usize,
    /// How many training rows a group of ten has.
    pub(crate) devices: usize,
}

impl DataSet {
    /// A set that has nothing of what a set may have besides.
    pub(crate) const fn new(name: &'static str, source: Source) -> Self {
        DataSet {
            name,
            source,
            verticals: &[],
            outcomes: &[("class", Kind::Class)],
            has_steps: false,
            has_columns: false,
            has_recordings: false,
            usual: Usual::plain,
            twins: &[],
            targets: &[],
            #[cfg(feature = "fuzz")]
            fuzz: &[],
        }
    }
}

impl Twin {
    /// What to generate for it. How a set from files is found and dealt has no meaning for it.
    pub(crate) fn settings(&self, set: &DataSet, given: &DataSettings) -> DataSettings {
        let has_labels = settings::outcome(given, set).is_ok_and(|(_, kind)| kind == Kind::Labels);
        let is_told = given.devices != DataSettings::default().devices;
        DataSettings {
            path: String::new(),
            vertical: String::new(),
            derived: Vec::new(),
            hours: 1,
            every: 1,
            scaling: "standard".into(),
            split: "paper".into(),
            devices: if is_told { given.devices } else { self.devices },
            features: Features {
                hospital: self.hospital,
                device: self.device,
            },
            classes: match has_labels {
                true => (set.usual)(given).outputs,
                false => self.classes,
            },
            ..given.clone()
        }
    }
}

/// The set of that name, or the one that it is the twin of.
pub(crate) fn find(name: &str) -> Option<(&'static DataSet, Option<&'static Twin>)> {
    let find = |set: &&'static DataSet| match set.name == name {
        true => Some((*set, None)),
        false => {
            let twin = set.twins.iter().find(|twin| twin.name == name)?;
            Some((*set, Some(twin)))
        }
    };
    ALL.iter().find_map(find)
}

/// All data sets; experiments are read by its methods.
///
/// ```
/// use selvedge_data::SETS;
/// let hsgd = SETS.parse("[data]\nset = \"esr\"", &[])?;
/// let jfl = SETS.with(&hsgd, &["train.algorithm=jfl".into()])?;
/// assert_eq!((hsgd.time.compute_seconds(), jfl.time.compute_seconds()), (0.064, 0.1));
/// # Ok::<(), selvedge_core::experiment::ExperimentError>(())
/// ```
pub static SETS: Sets = Sets {
    names: || &NAMES,
    words: |meaning| {
        let some = ALL.iter().filter(|set| !set.verticals.is_empty());
        let verticals = some.map(|set| format!("{} ({})", set.verticals.join(" | "), set.name));
        let some = ALL.iter().filter(|set| set.outcomes.len() > 1);
        let outcomes = some.map(|set| {
            let words = set.outcomes.iter().map(|(word, _)| *word);
            format!("{} ({})", words.collect::<Vec<_>>().join(" | "), set.name)
        });
        let mut twins = ALL.into_iter().flat_map(|set| set.twins);
        meaning
            .replace("{twin}", twins.next().map_or("", |twin| twin.name))
            .replace(
                "{verticals}",
                &verticals.collect::<Vec<String>>().join(", "),
            )
            .replace("{outcomes}", &outcomes.collect::<Vec<String>>().join(", "))
            .replace("{recordings}", &with_recordings().join(", "))
    },
    usual: |data| {
        let Some((set, twin)) = find(&data.set) else {
            return Usual::plain(data);
        };
        let usual = (set.usual)(data);
        let classes = twin.map_or(usual.outputs, |twin| twin.classes);
        Usual {
            outputs: match kind_of(data).unwrap_or_default() {
                Kind::Class => classes,
                Kind::Labels => usual.outputs,
                Kind::Quantity => 1,
                Kind::Survival => data.intervals,
            },
            // What is generated is to show something, and not to be learnt well.
            learns: usual.learns && twin.is_none(),
            ..usual
        }
    },
};

/// The kind of outcome that settings ask about; nothing where it takes the data to know.
pub fn kind_of(data: &DataSettings) -> Option<Kind> {
    let (set, _) = find(&data.set)?;
    match set.name == table::SET.name {
        true => Some(table::kind_of(data)).filter(|kind| {
            let is_open = data.outcome.is_empty() && data.table.labels.is_empty();
            // A single column may be found to be a quantity.
            !(is_open && kind.is_class())
        }),
        false => Some(settings::outcome(data, set).ok()?.1),
    }
}

/// The names of the sets that have recordings.
pub(crate) fn with_recordings() -> Vec<&'static str> {
    let with = ALL.iter().filter(|set| set.has_recordings);
    with.map(|set| set.name).collect()
}

/// Sets, then twins.
static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut twins: Vec<&str> = ALL
        .iter()
        .flat_map(|set| set.twins)
        .map(|twin| twin.name)
        .collect();
    twins.sort_unstable();
    ALL.iter().map(|set| set.name).chain(twins).collect()
});

/// The default targets of a comparison on a data set or its twin: values of metrics, in the order in which they are
/// shown. Empty where the set has none.
pub fn usual_targets(set: &str) -> &'static [(&'static str, f64)] {
    find(set).map_or(&[], |(set, _)| set.targets)
}

/// The one file of a set that has no more.
pub(crate) fn single<'a>(set: &str, files: &'a [PathBuf]) -> Result<&'a Path, DataError> {
    match files {
        [file] => Ok(file),
        _ => Err(DataError::File {
            file: files.get(1).cloned().unwrap_or_default(),
            problem: format!("a second file: expected only one, since the run uses {set:?}"),
        }),
    }
}

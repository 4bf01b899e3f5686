//! An experiment: everything that decides a run, written as TOML.
//!
//! ```
//! use selvedge_core::experiment::Experiment;
//! let experiment = Experiment::parse("[train]\niterations = 500", &[])?;
//! assert_eq!(experiment.train.iterations, 500);
//!
//! let error = Experiment::parse("[train]\niteratons = 500", &[]).unwrap_err();
//! assert_eq!(error.to_string(), "line 2: unknown key `train.iteratons`: did you mean `train.iterations`?");
//! # Ok::<(), selvedge_core::experiment::ExperimentError>(())
//! ```

mod algorithm;
mod attack;
mod compression;
mod data;
mod defence;
mod derived;
mod keys;
mod learning;
mod optimiser;
mod read;
mod sets;
mod settings;
mod stop;
mod table;
mod values;

pub use algorithm::{Algorithm, Side};
pub use attack::{AttackKind, AttackSettings};
pub use compression::CompressionSettings;
pub use data::{DataSettings, Features, SPLITS};
pub use defence::{DefenceSettings, Rule};
pub use keys::{KEYS, KeyInfo, nearest, one_of};
pub use optimiser::{Averager, Method, OptimiserSettings};
pub use read::ExperimentError;
pub use sets::{Seen, Sets, Usual};
pub use settings::{
    Adaptive, Broadcast, ClassWeights, Compute, Fall, LossName, ModelSettings, TimeSettings,
    TrainSettings,
};
pub use stop::StopSettings;
pub use table::{Categorical, Label, TableSettings};
pub use values::{Range, Refused, Values};

use values::ANY;
pub(crate) use values::{ABOVE_0, SHARE};

use keys::{Table, settings};

settings! {
    /// An experiment.
    Experiment, "" {
        seed: u64 = 42, ANY, "seed of everything random";
        [
            /// Which data, and how it is split.
            data: DataSettings
        ]
        [
            /// The algorithm and its parameters.
            train: TrainSettings
        ]
        [
            /// How gradients become steps.
            #[serde(skip_serializing_if = "OptimiserSettings::is_usual")]
            optimiser: OptimiserSettings
        ]
        [
            /// The three networks.
            model: ModelSettings
        ]
        [
            /// What c-hsgd and c-tdcd do to messages.
            compression: CompressionSettings
        ]
        [
            /// How models are aggregated, and who is left out.
            #[serde(skip_serializing_if = "DefenceSettings::is_usual")]
            defence: DefenceSettings
        ]
        [
            /// Hostile parties, in simulation.
            #[serde(skip_serializing_if = "AttackSettings::is_none")]
            attack: AttackSettings
        ]
        [
            /// Link speeds and computation times of the simulated clock.
            time: TimeSettings
        ]
        [
            /// Targets and budgets that end a run early.
            stop: StopSettings
        ]
    }
}

/// A line `path = value` for every key of a table that does not have its default.
fn identity<T: Table + Default>(settings: &T) -> String {
    let own = settings.entries().into_iter().zip(T::default().entries());
    let set = own.filter(|((_, value), (_, default))| value != default);
    let line = |((key, value), _): ((KeyInfo, Option<toml::Value>), _)| {
        value.map_or(String::new(), |value| format!("{} = {value}\n", key.path))
    };
    set.map(line).collect()
}

impl DataSettings {
    /// What parties must have in common of it, as [`Experiment::identity`] has it.
    pub(crate) fn identity(&self) -> String {
        identity(self)
    }
}

impl Experiment {
    /// The identity of a run: a line `path = value` for every key that does not have its default. A key whose default
    /// follows from other settings, like a model's layers, is always included. So a newly introduced key changes
    /// nothing until it is set.
    pub fn identity(&self) -> String {
        identity(self)
    }

    /// Every key, with what it is set to or with its default; nothing where it has none.
    pub fn settings(&self) -> Vec<(KeyInfo, Option<toml::Value>)> {
        self.entries()
    }

    /// The default of a key, which [`identity`](Self::identity) leaves out; none where it has no default.
    pub fn default_of(path: &str) -> Option<String> {
        let mut all = Experiment::default().entries().into_iter();
        let (_, default) = all.find(|(key, _)| key.path == path)?;
        default.map(|value| value.to_string())
    }
}

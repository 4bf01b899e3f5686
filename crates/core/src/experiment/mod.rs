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
mod compression;
mod data;
mod derived;
mod keys;
mod read;
mod settings;
mod stop;
mod table;
mod values;

pub use algorithm::{Algorithm, Side};
pub use compression::CompressionSettings;
pub use data::{DataSettings, Features};
pub use keys::{KEYS, KeyInfo, nearest, one_of};
pub use read::ExperimentError;
pub use settings::{
    Adaptive, Broadcast, ClassWeights, Compute, ModelSettings, TimeSettings, TrainSettings,
};
pub use stop::StopSettings;
pub use table::{Categorical, TableSettings};
pub use values::{Range, Values};

use serde::{Deserialize, Serialize};

/// An experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Experiment {
    /// Everything random follows from it.
    pub seed: u64,
    /// Which data, and how it is split.
    pub data: DataSettings,
    /// The algorithm and its parameters.
    pub train: TrainSettings,
    /// The three networks.
    pub model: ModelSettings,
    /// What c-hsgd and c-tdcd do to messages.
    pub compression: CompressionSettings,
    /// Link speeds and computation times of the simulated clock.
    pub time: TimeSettings,
    /// Targets and budgets that end a run early.
    pub stop: StopSettings,
}

impl Default for Experiment {
    fn default() -> Self {
        Experiment {
            seed: 42,
            data: DataSettings::default(),
            train: TrainSettings::default(),
            model: ModelSettings::default(),
            compression: CompressionSettings::default(),
            time: TimeSettings::default(),
            stop: StopSettings::default(),
        }
    }
}

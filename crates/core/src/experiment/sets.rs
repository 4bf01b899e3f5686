//! Settings that depend on the data set. The data sets themselves are known to the crate that reads them.

use super::{DataSettings, Experiment, ExperimentError, KeyInfo, Values};
use selvedge_nn::LayerSpec;

/// All data sets. Experiments that may name any of them are read by its methods.
pub struct Sets {
    /// The names that `data.set` may have.
    pub names: fn() -> &'static [&'static str],
    /// Fills in the placeholders of a key's meaning: `{twin}`, `{verticals}`, `{recordings}`, `{outcomes}`.
    pub words: fn(&str) -> String,
    /// The defaults of an experiment with this data.
    pub usual: fn(&DataSettings) -> Usual,
}

/// Defaults that depend on the data set.
pub struct Usual {
    /// Layers of both towers.
    pub tower: Vec<LayerSpec>,
    /// Layers of the combined model before its logits.
    pub combined: Vec<LayerSpec>,
    /// Numbers that a model gives for a sample: classes, labels, one quantity, or intervals.
    pub outputs: usize,
    /// Whether an experiment that leaves out how to train is trained with what learns most data well; else with the
    /// defaults of the keys.
    pub learns: bool,
    /// About how many rows there are, where that does not take a look at files.
    pub rows: Option<usize>,
    /// Seconds of computation in one iteration.
    pub seconds: f64,
    /// The same where each device trains with its hospital as a pair (`jfl`).
    pub seconds_of_pairs: f64,
}

/// What the files of a data set show, for the layers that an experiment leaves out.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Whether the hospital's side, and the device's, is a time series.
    pub series: [bool; 2],
    /// Numbers that a model gives for a sample.
    pub outputs: usize,
    /// Rows, held-out ones included.
    pub rows: usize,
}

impl Usual {
    /// For data of which nothing else is known.
    pub fn plain(data: &DataSettings) -> Usual {
        Usual {
            tower: vec![LayerSpec::Linear { out: 16 }, LayerSpec::Tanh],
            combined: vec![LayerSpec::Linear { out: 16 }, LayerSpec::Relu],
            outputs: data.classes,
            learns: false,
            rows: None,
            seconds: 0.05,
            seconds_of_pairs: 0.05,
        }
    }
}

impl Sets {
    /// Only the generated data set, the one this crate knows.
    pub const GENERATED: Sets = Sets {
        names: || &["synthetic"],
        words: str::to_owned,
        usual: Usual::plain,
    };

    /// The valid values of a key.
    pub fn values(&self, key: &KeyInfo) -> Values {
        match key.values {
            Values::Set => Values::OneOf((self.names)()),
            values => values,
        }
    }

    /// The meaning of a key.
    pub fn meaning(&self, key: &KeyInfo) -> String {
        (self.words)(key.meaning)
    }
}

impl Experiment {
    /// [`Sets::parse`] of an experiment on generated data.
    ///
    /// # Errors
    /// As there.
    pub fn parse(text: &str, overrides: &[String]) -> Result<Self, ExperimentError> {
        Sets::GENERATED.parse(text, overrides)
    }
}

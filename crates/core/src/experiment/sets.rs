//! What follows from the data set. Sets are known by name to who reads them; here they are only asked.

use super::{DataSettings, Experiment, ExperimentError, KeyInfo, Values};
use selvedge_nn::LayerSpec;

/// The data sets that there are. Experiments that may name any of them are read by its methods.
pub struct Sets {
    /// The names that `data.set` may have.
    pub names: fn() -> &'static [&'static str],
    /// Fills in what a key's meaning says of them: `{twin}`, `{verticals}`, `{recordings}`.
    pub words: fn(&str) -> String,
    /// What an experiment with this data has where it says nothing else.
    pub usual: fn(&DataSettings) -> Usual,
}

/// What an experiment has where it says nothing else.
pub struct Usual {
    /// Layers of both towers.
    pub tower: Vec<LayerSpec>,
    /// Layers of the combined model before its logits.
    pub combined: Vec<LayerSpec>,
    /// Number of classes.
    pub classes: usize,
    /// Seconds of computation in one iteration.
    pub seconds: f64,
    /// The same where each device trains with its hospital as a pair (`jfl`).
    pub seconds_of_pairs: f64,
}

impl Usual {
    /// For data of which nothing else is known.
    pub fn plain(data: &DataSettings) -> Usual {
        Usual {
            tower: vec![LayerSpec::Linear { out: 16 }, LayerSpec::Tanh],
            combined: vec![LayerSpec::Linear { out: 16 }, LayerSpec::Relu],
            classes: data.classes,
            seconds: 0.05,
            seconds_of_pairs: 0.05,
        }
    }
}

impl Sets {
    /// The generated set alone: all that core knows.
    pub const GENERATED: Sets = Sets {
        names: || &["synthetic"],
        words: str::to_owned,
        usual: Usual::plain,
    };

    /// What a key may be set to.
    pub fn values(&self, key: &KeyInfo) -> Values {
        match key.values {
            Values::Set => Values::OneOf((self.names)()),
            values => values,
        }
    }

    /// What a key means.
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

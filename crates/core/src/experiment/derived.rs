//! Settings whose defaults follow from others.

use super::{DataSettings, Experiment, ExperimentError, ModelSettings, Seen, Sets, TimeSettings};

/// About how often a run is evaluated.
const EVALUATIONS: u64 = 50;

/// Looks at the files of a data set, where there are any.
pub(super) type Look<'a> = &'a dyn Fn(&DataSettings) -> Option<Seen>;

impl Sets {
    /// Fills in what was left out; `look` is asked what the data is like if that matters.
    pub(super) fn resolve(&self, experiment: &mut Experiment, look: Look<'_>) {
        let usual = (self.usual)(&experiment.data);
        experiment.time.fill(&usual, experiment.train.algorithm);
        if experiment.model.lacks() {
            experiment.model.fit(usual, look(&experiment.data));
        }
        let every = experiment.evaluations_apart(EVALUATIONS);
        if experiment.train.global_interval > 0 {
            experiment.train.evaluate_every.get_or_insert(every);
        }
    }

    /// The same experiment with some keys changed, as `--set` changes them. Derived settings follow the changed ones:
    /// with another algorithm its computation time, with another P the iterations of evaluations.
    ///
    /// ```
    /// use selvedge_core::experiment::{Experiment, Sets};
    /// let long = Experiment::parse("", &[])?;
    /// let short = Sets::GENERATED.with(&long, &["train.iterations=500".into()])?;
    /// assert_eq!((long.train.evaluate_every, short.train.evaluate_every), (Some(40), Some(10)));
    /// # Ok::<(), selvedge_core::experiment::ExperimentError>(())
    /// ```
    ///
    /// # Errors
    /// The first invalid change.
    pub fn with(
        &self,
        experiment: &Experiment,
        changes: &[String],
    ) -> Result<Experiment, ExperimentError> {
        let mut given = experiment.clone();
        let usual = (self.usual)(&experiment.data);
        let mut model = ModelSettings::default();
        model.fill(&usual);
        if given.model == model {
            given.model = ModelSettings::default();
        }
        let mut time = TimeSettings::default();
        time.fill(&usual, experiment.train.algorithm);
        if given.time.compute_seconds == time.compute_seconds {
            given.time.compute_seconds = None;
        }
        if given.has_usual_evaluations() {
            given.train.evaluate_every = None;
        }
        let changed = self.parse(&given.to_toml(), changes);
        changed.map_err(ExperimentError::without_line)
    }
}

impl Experiment {
    /// Whether evaluations are as frequent as by default.
    pub fn has_usual_evaluations(&self) -> bool {
        self.train.evaluate_every == Some(self.evaluations_apart(EVALUATIONS))
    }

    /// Iterations between two evaluations, for about this many in a run: a multiple of P.
    pub fn evaluations_apart(&self, evaluations: u64) -> u64 {
        let p = self.train.global_interval.max(1);
        let wanted = self.train.iterations.div_ceil(evaluations).max(1);
        wanted.div_ceil(p).saturating_mul(p)
    }
}

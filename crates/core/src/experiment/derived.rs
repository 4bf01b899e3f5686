//! Settings whose defaults follow from others.

use super::{DataSettings, Experiment, ExperimentError, ModelSettings, Seen, Sets, TimeSettings};
use super::{OptimiserSettings, learning};

/// About how often a run is evaluated.
const EVALUATIONS: u64 = 50;

/// Looks at the files of a data set, where there are any.
pub(super) type Look<'a> = &'a dyn Fn(&DataSettings) -> Option<Seen>;

impl Sets {
    /// Fills in what was left out; `look` is asked what the data is like if that matters.
    ///
    /// `given` are the keys that somebody has written.
    pub(super) fn resolve(&self, experiment: &mut Experiment, look: Look<'_>, given: &[String]) {
        let mut usual = (self.usual)(&experiment.data);
        experiment.time.fill(&usual, experiment.train.algorithm);
        let is_open = usual.learns && learning::is_open(given);
        let seen = match is_open || experiment.model.lacks() {
            true => look(&experiment.data),
            false => None,
        };
        if is_open {
            let rows = seen.map(|seen| seen.rows).or(usual.rows);
            if let (Some(seen), true) = (seen, experiment.model == ModelSettings::default()) {
                learning::fit(&mut experiment.model, &mut usual, seen);
            }
            experiment.learn(given, rows);
        }
        experiment.model.fit(usual, seen);
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
        // Who remembers something depends on the algorithm.
        let learning = OptimiserSettings::learning(experiment.train.algorithm);
        let is_learning = experiment.optimiser == learning && !learning.is_usual();
        let chooses = |change: &String| change.trim_start().starts_with("optimiser.");
        let is_learning = is_learning && !changes.iter().any(chooses);
        if is_learning {
            given.optimiser = OptimiserSettings::default();
        }
        let changed = self.parse_as(&given.to_toml(), changes, &|_| None, is_learning);
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

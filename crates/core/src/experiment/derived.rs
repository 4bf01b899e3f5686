//! Settings that follow from others where nobody sets them.

use super::{Experiment, ExperimentError, ModelSettings, TimeSettings};

/// About how often a run is evaluated.
const EVALUATIONS: u64 = 50;

impl Experiment {
    /// Fills in what was left out.
    pub(super) fn resolve(&mut self) {
        let (set, classes) = (self.shape_of().to_owned(), self.known_classes());
        self.model.fill(&set, classes);
        self.time.fill(&set, self.train.algorithm);
        let every = self.evaluations_apart(EVALUATIONS);
        if self.train.global_interval > 0 {
            self.train.evaluate_every.get_or_insert(every);
        }
    }

    /// The same experiment with some keys changed, as `--set` changes them. What followed from others follows from the
    /// changed ones: with another algorithm the time of its computation, with another P when evaluations come.
    ///
    /// ```
    /// use selvedge_core::experiment::Experiment;
    /// let hsgd = Experiment::parse("[data]\nset = \"esr\"", &[])?;
    /// let jfl = hsgd.with(&["train.algorithm=jfl".into()])?;
    /// assert_eq!((hsgd.time.compute_seconds(), jfl.time.compute_seconds()), (0.064, 0.1));
    /// # Ok::<(), selvedge_core::experiment::ExperimentError>(())
    /// ```
    ///
    /// # Errors
    /// The first change that cannot be.
    pub fn with(&self, changes: &[String]) -> Result<Self, ExperimentError> {
        let mut given = self.clone();
        let (set, classes) = (self.shape_of().to_owned(), self.known_classes());
        let mut model = ModelSettings::default();
        model.fill(&set, classes);
        if given.model == model {
            given.model = ModelSettings::default();
        }
        let mut time = TimeSettings::default();
        time.fill(&set, self.train.algorithm);
        if given.time.compute_seconds == time.compute_seconds {
            given.time.compute_seconds = None;
        }
        if given.has_usual_evaluations() {
            given.train.evaluate_every = None;
        }
        Experiment::parse(&given.to_toml(), changes).map_err(ExperimentError::without_line)
    }

    /// Whether evaluations come as often as they do where nobody says how often.
    pub fn has_usual_evaluations(&self) -> bool {
        self.train.evaluate_every == Some(self.evaluations_apart(EVALUATIONS))
    }

    /// Iterations between two evaluations, for about so many in a run: a multiple of P.
    pub fn evaluations_apart(&self, evaluations: u64) -> u64 {
        let p = self.train.global_interval.max(1);
        let wanted = self.train.iterations.div_ceil(evaluations).max(1);
        wanted.div_ceil(p).saturating_mul(p)
    }

    /// The set whose shape the data has: a synthetic twin has the defaults of its set.
    fn shape_of(&self) -> &str {
        let set = &self.data.set;
        set.strip_prefix("synthetic-").unwrap_or(set)
    }

    fn known_classes(&self) -> usize {
        match (self.shape_of(), self.data.table.labels.len()) {
            ("esr", _) => 5,
            ("mednist", _) => 6,
            ("organamnist", _) => 11,
            ("mimic3" | "physionet2012", _) => 2,
            ("table", labels) if labels > 0 => labels,
            _ => self.data.classes,
        }
    }
}

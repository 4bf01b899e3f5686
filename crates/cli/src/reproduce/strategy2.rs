//! What strategy 2 would choose for P = Q, given what a short pre-training run measures.

use selvedge_core::adaptive::bound::bill;
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::Experiment;
use selvedge_core::task::Task;
use selvedge_core::theory::bound::Constants;
use selvedge_core::theory::pretraining::pretrain;
use selvedge_core::theory::strategies::{EqualIntervals, Root, equal_intervals};
use std::ops::ControlFlow;

/// Strategy 2's choice and what it follows from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// Δ = F0, the largest ρ and the mean δ² of a short pre-training run, as in the paper.
    pub(super) constants: Constants,
    pub(super) learning_rate: f64,
    pub(super) iterations: u64,
    pub(super) corrected: EqualIntervals,
    /// With the root as the paper prints it.
    pub(super) printed: EqualIntervals,
}

/// The choice for an experiment's η and T, with the constants of a pre-training run. Nothing where these do not exist,
/// as for a loss that is flat.
pub(super) fn strategy2(experiment: &Experiment, dataset: &Dataset) -> Option<Choice> {
    let task = Task::new(experiment, dataset).ok()?;
    let constants = pretrain(&task, |_| ControlFlow::Continue(()))?.constants();
    let Constants {
        drop,
        rho,
        variance,
    } = constants;
    if ![drop, rho, variance]
        .iter()
        .all(|x| x.is_finite() && *x > 0.0)
    {
        return None;
    }
    let bill = bill(&task);
    let (eta, iterations) = (
        experiment.train.learning_rate,
        experiment.train.iterations as f64,
    );
    let with = |root| equal_intervals(&constants, &bill, eta, iterations, root);
    Some(Choice {
        constants,
        learning_rate: eta,
        iterations: experiment.train.iterations,
        corrected: with(Root::Corrected),
        printed: with(Root::Printed),
    })
}

impl Choice {
    /// The choice and where it comes from, in words.
    pub(super) fn sentence(&self) -> String {
        let Constants {
            drop,
            rho,
            variance,
        } = self.constants;
        let whole = |c: &EqualIntervals| format!("P = Q = {} (real Q* {:.3})", c.interval, c.real);
        let valid = match self.corrected.is_valid {
            true => String::new(),
            false => "; ρη > 1/8, so the bound holds for no interval, which leaves 1".to_owned(),
        };
        format!(
            "Strategy 2 with ρ {rho:.3}, δ² {variance:.4}, F0 {drop:.3} from pre-training, η {} and T {}: {} by the corrected root, {} by the printed one{valid}.",
            self.learning_rate,
            selvedge_run::format::count(self.iterations),
            whole(&self.corrected),
            whole(&self.printed)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_data::SETS;

    #[test]
    fn a_choice_follows_from_pre_training() {
        let text = "[data]\nset = \"synthetic\"\n";
        let set = |rate: f64| format!("train.learning_rate={rate}");
        let experiment = SETS.parse(text, &[set(0.1)]).unwrap();
        let loaded = selvedge_data::load_with_notes(&experiment.data, experiment.seed, None);
        let dataset = loaded.unwrap().dataset;
        let choice = strategy2(&experiment, &dataset).unwrap();
        // Two classes, not yet told apart.
        assert!((choice.constants.drop - libm::log(2_f64)).abs() < 0.3);
        let ratio = choice.printed.real / choice.corrected.real;
        assert!((ratio - 0.1_f64.sqrt()).abs() < 1e-9, "{ratio}");
        assert!(choice.sentence().contains("by the corrected root"));
        // Slow enough, the bound holds and the interval is long.
        let slow = SETS.parse(text, &[set(1e-4)]).unwrap();
        let slow = strategy2(&slow, &dataset).unwrap();
        assert!(slow.corrected.is_valid && slow.corrected.interval > choice.corrected.interval);
        // So fast that it holds nowhere.
        let fast = SETS.parse(text, &[set(1e3)]).unwrap();
        let fast = strategy2(&fast, &dataset).unwrap();
        assert_eq!(
            (fast.corrected.interval, fast.corrected.is_valid),
            (1, false)
        );
    }
}

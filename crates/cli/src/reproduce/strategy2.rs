//! What strategy 2 would choose for P = Q, given what a short pre-training run measures.

use super::claims::{Verdict, compare};
use super::trend::{Costs, Shape};
use super::{Claim, PerSeed, Section};
use crate::comparison::targets::Target;
use selvedge_core::adaptive::bound::bill;
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::Experiment;
use selvedge_core::task::Task;
use selvedge_core::theory::bound::Constants;
use selvedge_core::theory::pretraining::pretrain;
use selvedge_core::theory::strategies::{EqualIntervals, Root, equal_intervals};
use std::ops::ControlFlow;

/// As little as the best: at most so many times as much, if no more is shown.
const NEAR_BEST: f64 = 1.1;

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

/// Strategy 2 needs less than P = Q = 1, and as little as the best; all of them with every seed at the target. What an
/// interval would cost that does not get there is not known.
pub(super) fn claim_choice(
    section: &mut Section,
    (chosen, shape): (u64, &Shape),
    costs: &[Costs],
    target: &Target,
) {
    let until = target.name();
    let of = |q: u64| costs.iter().find(|(other, _)| *other == q).map(|(_, c)| c);
    let is_there = |costs: &&PerSeed| costs.iter().all(Option::is_some);
    let Some(ours) = of(chosen) else {
        section.notes.push(format!(
            "Strategy 2's P = Q = {chosen} is longer than those that were tried."
        ));
        return;
    };
    if !is_there(&ours) {
        section.notes.push(format!(
            "With strategy 2's P = Q = {chosen} not every seed reaches {until}: it is compared with nothing."
        ));
        return;
    }
    match of(1).filter(is_there) {
        _ if chosen == 1 => {}
        Some(theirs) => {
            let text = format!("bytes until {until}: strategy 2's P = Q = {chosen} < P = Q = 1");
            section.claim(text, "substantially less", &compare(ours, theirs));
        }
        None => section.notes.push(format!(
            "With P = Q = 1 not every seed reaches {until}: strategy 2's P = Q = {chosen} is not compared with it."
        )),
    }
    let found = compare(ours, &shape.best);
    // Not by signs: every seed gets there with both.
    let is_near = !found.by_signs && found.ratio.is_some_and(|r| r < NEAR_BEST);
    let verdict = match found.verdict(true) {
        Verdict::Open if is_near => Verdict::Holds,
        verdict => verdict,
    };
    section.claims.push(Claim {
        text: format!("bytes until {until}: strategy 2's P = Q = {chosen} ≈ the lowest"),
        between: None,
        paper: "it finds the lowest".into(),
        verdict,
        ratio: found.ratio,
        found: found.text(),
    });
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

    /// Costs of P = Q = 1, 2 and 3, each of five seeds.
    fn claimed(chosen: u64, costs: [Option<f64>; 3]) -> (Vec<(String, Verdict)>, Vec<String>) {
        let scaled = |cost: f64| [0.98, 0.99, 1.0, 1.01, 1.02].map(|by| Some(by * cost));
        let of = |cost: Option<f64>| cost.map_or(vec![None; 5], |c| scaled(c).to_vec());
        let costs: Vec<Costs> = (1..).zip(costs.map(of)).collect();
        let mut section = Section::new("fig8", "Figure 8", "ESR".into(), None);
        let target = Target::new("auc", 0.8);
        claim_choice(&mut section, (chosen, &Shape::of(&costs)), &costs, &target);
        let of_choice = |c: Claim| {
            let what = c.text.split("strategy 2's ").nth(1).unwrap_or_default();
            (what.to_owned(), c.verdict)
        };
        let claims = section.claims.into_iter().map(of_choice).collect();
        (claims, section.notes)
    }

    #[test]
    fn a_choice_is_judged_by_what_reached_the_target() {
        let against = |other: &str| format!("P = Q = 2 {other}");
        let (claims, notes) = claimed(2, [Some(3.0), Some(1.0), Some(2.0)]);
        let both = [
            (against("< P = Q = 1"), Verdict::Holds),
            (against("≈ the lowest"), Verdict::Holds),
        ];
        assert_eq!((claims, notes.len()), (both.to_vec(), 0));

        let (claims, _) = claimed(2, [Some(1.0), Some(3.0), Some(2.0)]);
        assert!(
            claims.iter().all(|(_, v)| *v == Verdict::Reversed),
            "{claims:?}"
        );

        // Less than what never got there is no finding, and more is none either.
        let (claims, notes) = claimed(2, [None, Some(1.0), Some(2.0)]);
        assert_eq!(claims, [(against("≈ the lowest"), Verdict::Holds)]);
        assert!(notes[0].contains("P = Q = 1 not every seed"), "{notes:?}");
        let (claims, notes) = claimed(2, [Some(1.0), None, Some(2.0)]);
        assert!(claims.is_empty() && notes[0].contains("compared with nothing"));

        // P = Q = 1 is not compared with itself.
        let (claims, notes) = claimed(1, [Some(1.0), Some(1.0), Some(2.0)]);
        assert_eq!((claims.len(), notes.len()), (1, 0));
        let (claims, notes) = claimed(9, [Some(1.0), Some(1.0), Some(2.0)]);
        assert!(claims.is_empty() && notes[0].contains("longer than those"));
    }
}

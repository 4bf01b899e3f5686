//! What probes send, how often they come, that they take time, and that what they find limits η.

use crate::common::saved;
use crate::common::{Log, Plan, checked, dataset, for_seeds, run, task, watch};
use crate::{assert_sound, compressed, data, steered};
use selvedge_core::adaptive::Memory;
use selvedge_core::adaptive::bound::{self, Books, Known};
use selvedge_core::experiment::Adaptive;
use selvedge_core::gradient::Federation;
use selvedge_core::ledger::Ledger;
use selvedge_core::state::State;
use selvedge_core::theory::bill::{Bill, Counter};
use selvedge_core::theory::estimate;

fn known(state: &State) -> Option<Known> {
    match &state.progress.controller.as_ref()?.memory {
        Memory::Bound(bound) => bound.known,
        Memory::Gain(_) => None,
    }
}

#[test]
fn a_probe_is_charged_by_its_closed_form() {
    // Four of eight devices; one of nine, which takes a second draw; the only one.
    let data = dataset(7, &Plan::of_groups(&[8, 1, 9]));
    let mut e = steered(Adaptive::Bound, 7, [20, 10, 10], 0.1);
    for (share, second) in [(0.5, [0, 0, 0]), (0.05, [1, 0, 1])] {
        e.train.participation = share;
        let e = checked(&e);
        let task = task(&e, &data);
        let state = State::initial(&task);
        for (m, second) in second.into_iter().enumerate() {
            let bill = Bill {
                selected: task.selected[m] as f64,
                ..bound::bill(&task)
            };
            let w = bill.widths;
            let up = 4 * (w.n0 + w.n1 + w.n2 + 5) as u64;
            let want = |probes: usize| probes as u64 * bill.local(Counter::Exact) as u64 + up;
            let mut ledger = Ledger::default();
            let taken = bound::charge(&task, m, 4, &mut ledger);
            assert_eq!(ledger.exact(), want(4));
            assert!(taken > 0.0);
            let (mut ledger, mut clock) = (Ledger::default(), state.progress.clock.clone());
            let books = Books {
                ledger: &mut ledger,
                clock: &mut clock,
            };
            let found = bound::probe((&task, &[m], 0), &state.theta, books);
            let took =
                estimate::curvature(&Federation(&task), (m, 0), &state.theta, None, 6).probes;
            assert_eq!((found.cost, found.bytes), (ledger.exact(), ledger.exact()));
            assert_eq!(found.cost, want(took + second), "group {m}, α = {share}");
            assert!(clock.seconds() > 0.0, "probes take time");
        }
    }
}

#[test]
fn after_the_first_probes_take_a_twentieth_of_the_bytes_at_most() {
    for_seeds(0..3, |seed| {
        let data = data(seed);
        let e = steered(Adaptive::Bound, seed, [3000, 2, 1], 0.4);
        let run = run(&task(&e, &data));
        assert_sound(&e, &run);
        let first = known(&run.log.states[0]).expect("a probe before the first iteration");
        let (mut last, mut spent, mut probes) = (first, 0, 0);
        for state in &run.log.states {
            let now = known(state).expect("what was found");
            if now.bytes != last.bytes {
                (spent, probes, last) = (spent + now.cost, probes + 1, now);
                let since = now.bytes - first.bytes;
                assert!(20 * spent <= since, "{spent} of {since}");
            }
        }
        assert!(probes > 1, "{probes}");
    });
}

/// What is no number could not be read back from a saved run.
#[test]
fn a_probe_that_finds_no_number_is_not_remembered() {
    let (e, data) = (steered(Adaptive::Bound, 8, [20, 10, 10], 0.1), data(8));
    let task = task(&e, &data);
    let mut state = State::initial(&task);
    let parts = state.theta.parts_mut().into_iter();
    parts.for_each(|part| part.fill(3e38));
    watch(&task, &mut state, &mut Log::default(), None);
    assert!(state.progress.ledger.exact() > 0, "it was tried");
    assert_eq!(known(&state), None);
    assert_eq!(saved(&state).progress, state.progress);
}

/// Beyond η = 1/(8Pρ) the bound promises nothing, however suddenly ρ or P has grown.
#[test]
fn no_rate_is_above_what_the_bound_allows() {
    let (mut decided, mut lowered) = (0, 0);
    for_seeds(0..6, |seed| {
        let data = data(seed);
        for rate in [0.02, 0.4, 40.0, 4000.0] {
            let e = steered(Adaptive::Bound, seed, [600, 20, 10], rate);
            for e in [e.clone(), compressed(e)] {
                let run = run(&task(&e, &data));
                assert_sound(&e, &run);
                for state in &run.log.states {
                    let known = known(state).expect("what a probe has found");
                    let segment = &state.progress.segment;
                    let limit = 1.0 / (8.0 * segment.global_interval as f64 * known.rho);
                    let eta = segment.learning_rate;
                    assert!(eta <= limit * (1.0 + 1e-12), "{eta} above {limit}");
                    decided += 1;
                    lowered += usize::from(eta > limit * (1.0 - 1e-12));
                }
            }
        }
    });
    assert!(decided > 100 && lowered > 10, "{lowered} of {decided}");
}

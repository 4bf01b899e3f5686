//! Without counters, as a test: seeds, what failed before, and chance for a few seconds.

use crate::engine::starting_inputs;
use crate::execute::execute;
use crate::failures::save;
use crate::mutate::Mutator;
use selvedge_data::fuzz::{TARGETS, Target};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Changed inputs of each target.
const CHANGED: usize = 20_000;

#[test]
fn no_input_makes_a_parser_fail() {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(target) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            all_pass(target);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        let failed = threads.into_iter().any(|thread| thread.join().is_err());
        assert!(!failed, "the panics stand above");
    });
}

fn all_pass(target: &Target) {
    let inputs = starting_inputs(target).unwrap();
    for input in &inputs {
        pass(target, input);
    }
    let mut mutator = Mutator::new(target, 1);
    for _ in 0..CHANGED {
        let [one, other] = [(); 2].map(|()| mutator.below(inputs.len()));
        let mut input = inputs[one].clone();
        mutator.change(&mut input, &inputs[other]);
        pass(target, &input);
    }
}

fn pass(target: &Target, input: &[u8]) {
    if let Err(failure) = execute(target, input) {
        save(target.name, &failure.what, input).unwrap();
        panic!("{} failed", target.name);
    }
}

#[test]
fn targets_have_names_of_their_own_and_seeds_that_fit() {
    let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), TARGETS.len());
    for target in TARGETS.iter() {
        let inputs = starting_inputs(target).unwrap();
        assert!(!inputs.is_empty(), "{}", target.name);
        for input in inputs {
            assert!(input.len() <= target.longest, "{}", target.name);
        }
    }
}

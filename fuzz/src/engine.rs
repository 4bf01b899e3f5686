//! The loop: take an input that found something new, change it, run it, keep it if it finds something new too.

use crate::coverage::Coverage;
use crate::execute::{self, Failure};
use crate::failures::{Current, save, stored_inputs};
use crate::mutate::Mutator;
use selvedge_data::fuzz::Target;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// Failures at more places than this are not worth waiting for.
const MOST_FAILURES: usize = 20;

/// When to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    /// After so many executions: the same ones each time.
    Executions(u64),
    /// After so much time.
    Time(Duration),
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) executions: u64,
    pub(crate) seconds: f64,
    /// Inputs that found something new.
    pub(crate) corpus: usize,
    /// Edges that were taken.
    pub(crate) edges: usize,
    /// Failures at different places.
    pub(crate) failures: usize,
}

/// An input that found something new.
struct Kept {
    bytes: Vec<u8>,
    /// How many edges it takes.
    edges: usize,
}

/// The fuzzing of one target.
struct Campaign<'a> {
    target: &'a Target,
    current: Current,
    coverage: Coverage,
    corpus: Vec<Kept>,
    executions: u64,
    /// The places of the failures.
    failures: BTreeSet<String>,
}

/// Fuzzes a target. What is being executed is always in `current`, for whoever finds this process dead.
pub(crate) fn fuzz(
    target: &Target,
    seed: u64,
    budget: Budget,
    current: Current,
) -> io::Result<Report> {
    execute::remember_panics();
    execute::watch();
    let start = Instant::now();
    let mut campaign = Campaign {
        target,
        current,
        coverage: Coverage::new(),
        corpus: Vec::new(),
        executions: 0,
        failures: BTreeSet::new(),
    };
    if campaign.coverage.counters() == 0 {
        return Err(io::Error::other(
            "this program counts nothing: expected one built by tools/fuzz",
        ));
    }
    for input in starting_inputs(target)? {
        campaign.run(input)?;
    }
    let mut mutator = Mutator::new(target, seed);
    while campaign.failures.len() < MOST_FAILURES && !campaign.is_over(budget, start) {
        let input = campaign.next_input(&mut mutator);
        campaign.run(input)?;
    }
    Ok(Report {
        executions: campaign.executions,
        seconds: start.elapsed().as_secs_f64(),
        corpus: campaign.corpus.len(),
        edges: campaign.coverage.edges(),
        failures: campaign.failures.len(),
    })
}

/// Seeds, and inputs in files: others that are valid, and what has failed before.
pub(crate) fn starting_inputs(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let mut inputs = (target.seeds)();
    inputs.extend(stored_inputs(target)?);
    Ok(inputs)
}

impl Campaign<'_> {
    fn is_over(&self, budget: Budget, start: Instant) -> bool {
        match budget {
            Budget::Executions(most) => self.executions >= most,
            Budget::Time(most) => start.elapsed() >= most,
        }
    }

    /// Of two inputs the one that goes further: that takes more edges, or was found later.
    fn next_input(&self, mutator: &mut Mutator<'_>) -> Vec<u8> {
        let count = self.corpus.len();
        if count == 0 {
            return Vec::new();
        }
        let [one, two, other] = [(); 3].map(|()| mutator.below(count));
        let edges = |number: usize| self.corpus[number].edges;
        let chosen = match mutator.below(2) == 0 && edges(one) != edges(two) {
            true if edges(one) > edges(two) => one,
            true => two,
            false => one.max(two),
        };
        let mut input = self.corpus[chosen].bytes.clone();
        mutator.change(&mut input, &self.corpus[other].bytes);
        input
    }

    /// Runs an input, and keeps it if it is new or failed.
    fn run(&mut self, input: Vec<u8>) -> io::Result<()> {
        self.current.is(self.executions, &input)?;
        self.coverage.reset();
        let result = execute::execute(self.target, &input);
        let learned = self.coverage.learn();
        self.executions += 1;
        match result {
            Ok(_) if learned.is_new => self.corpus.push(Kept {
                bytes: input,
                edges: learned.edges,
            }),
            Ok(_) => {}
            Err(Failure { place, what }) => {
                if self.failures.insert(place) {
                    save(self.target.name, &what, &input)?;
                }
            }
        }
        Ok(())
    }
}

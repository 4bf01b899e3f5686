//! What the tests share: data, experiments, recorded runs, and laws that name the seed that breaks them.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

pub mod bills;
pub mod closed_forms;
pub mod draws;
pub mod messages;
pub mod optimisers;
pub mod outcomes;
pub mod reference;
pub mod seams;

use reference::Theta;
use selvedge_core::absence::Absences;
use selvedge_core::dataset::{Dataset, Group, Holders, Outcome, Samples};
use selvedge_core::experiment::{Algorithm, Experiment, ModelSettings, Sets};
use selvedge_core::model::Model;
use selvedge_core::run::{self, Ending};
use selvedge_core::selection::{Draw, Selection};
use selvedge_core::state::{Evaluation, Progress, State};
use selvedge_core::task::Task;
use selvedge_nn::random::{Key, Stream};
use selvedge_nn::{LayerSpec, Shape};
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The seed that `SELVEDGE_SEED` asks to replay.
pub fn replayed() -> Option<u64> {
    let seed = std::env::var("SELVEDGE_SEED").ok()?;
    Some(seed.parse().expect("SELVEDGE_SEED is a whole number"))
}

/// Tries a law on every seed. A failure prints its seed; `SELVEDGE_SEED=<seed>` tries that one alone.
pub fn for_seeds(seeds: Range<u64>, mut law: impl FnMut(u64)) {
    let seeds = replayed().map_or(seeds, |seed| seed..seed + 1);
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| law(seed))) {
            eprintln!("the law fails for seed {seed}: SELVEDGE_SEED={seed} replays it");
            resume_unwind(panic);
        }
    }
}

/// The random numbers of a test.
pub fn stream(seed: u64) -> Stream {
    Key::new(seed).with(0x7e57).stream()
}

/// A whole number in `range`.
pub fn within(stream: &mut Stream, range: Range<u64>) -> u64 {
    range.start + stream.below(range.end - range.start)
}

/// One of several things.
pub fn pick<T: Copy>(stream: &mut Stream, from: &[T]) -> T {
    from[stream.below(from.len() as u64) as usize]
}

/// Layers as an experiment would write them, in JSON.
pub fn layers(json: &str) -> Vec<LayerSpec> {
    serde_json::from_str(json).expect("the test's own layers")
}

/// Layers in the order of θ0, θ1, θ2: linear maps and tanh for two classes.
pub const TANH: [&str; 3] = [
    r#"[{"linear": {"out": 4}}, "tanh", {"linear": {"out": 2}}]"#,
    r#"[{"linear": {"out": 3}}, "tanh"]"#,
    r#"[{"linear": {"out": 2}}, "tanh"]"#,
];

/// An experiment with T, P, Q and the layers of θ0, θ1, θ2, checked like one that was read.
pub fn experiment(seed: u64, [t, p, q]: [u64; 3], model: [&str; 3]) -> Experiment {
    let mut experiment = Experiment {
        seed,
        ..Experiment::default()
    };
    let train = &mut experiment.train;
    (train.iterations, train.global_interval) = (t, p);
    (train.local_interval, train.learning_rate) = (q, 0.4);
    (train.participation, train.evaluate_every) = (0.5, Some(p));
    let [combined, hospital, device] = model.map(|json| Some(layers(json)));
    experiment.model = ModelSettings {
        hospital,
        device,
        combined,
    };
    checked(&experiment)
}

/// The same experiment with another algorithm.
pub fn with_algorithm(experiment: &Experiment, algorithm: Algorithm) -> Experiment {
    let mut other = experiment.clone();
    other.train.algorithm = algorithm;
    checked(&other)
}

/// The experiment, after the checks that one from a file goes through.
pub fn checked(experiment: &Experiment) -> Experiment {
    let value = serde_json::to_value(experiment).expect("an experiment is JSON");
    Sets::GENERATED
        .from_json(&value)
        .expect("a valid experiment")
}

/// What a data set is to look like.
#[derive(Clone, Debug)]
pub struct Plan {
    pub x1: Shape,
    pub x2: Shape,
    pub classes: usize,
    /// For each group, the samples of each of its devices.
    pub devices: Vec<Vec<usize>>,
    pub test: usize,
    pub validation: usize,
}

impl Plan {
    /// Flat features, two classes, one sample per device, groups of these many devices, a small test set.
    pub fn of_groups(devices: &[usize]) -> Self {
        Plan {
            x1: Shape::Flat(3),
            x2: Shape::Flat(2),
            classes: 2,
            devices: devices.iter().map(|k| vec![1; *k]).collect(),
            test: 40,
            validation: 0,
        }
    }
}

/// Samples whose label can be learnt, but not without errors.
fn samples(stream: &mut Stream, plan: &Plan, count: usize) -> Samples {
    let mut samples = Samples::default();
    for _ in 0..count {
        let x1: Vec<f32> = (0..plan.x1.len()).map(|_| stream.normal()).collect();
        let x2: Vec<f32> = (0..plan.x2.len()).map(|_| stream.normal()).collect();
        let signal = x1[0] - x1[1] + 1.5 * x2[0] + 0.5 * stream.normal();
        let class = ((signal / 4.0 + 0.5) * plan.classes as f32).floor();
        samples.push(&x1, &x2, class.clamp(0.0, (plan.classes - 1) as f32) as u32);
    }
    samples
}

/// The data of a plan.
pub fn dataset(seed: u64, plan: &Plan) -> Dataset {
    let mut stream = Key::new(seed).with(0xda7a).stream();
    let mut groups = Vec::new();
    for (m, devices) in plan.devices.iter().enumerate() {
        let mut offsets = vec![0];
        for count in devices {
            offsets.push(offsets[offsets.len() - 1] + *count as u32);
        }
        groups.push(Group {
            name: format!("group {m}"),
            samples: samples(&mut stream, plan, devices.iter().sum()),
            offsets: offsets.into(),
        });
    }
    Dataset {
        name: "test".into(),
        hospital: plan.x1,
        device: plan.x2,
        outcome: Outcome::Class,
        classes: (0..plan.classes).map(|c| format!("class {c}")).collect(),
        groups,
        validation: samples(&mut stream, plan, plan.validation),
        test: samples(&mut stream, plan, plan.test),
        holders: Holders::InTurn,
    }
}

/// The task, whose settings must fit.
pub fn task<'a>(experiment: &'a Experiment, dataset: &'a Dataset) -> Task<'a> {
    Task::new(experiment, dataset).expect("a task that can be done")
}

/// A selection made by a function of the draw.
pub struct Chosen<F>(pub F);

impl<F: Fn(Draw) -> Vec<u32> + Send + Sync> Selection for Chosen<F> {
    fn select(&self, draw: Draw, subset: &mut Vec<u32>) {
        *subset = (self.0)(draw);
    }
}

/// What a party may miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Exchange(u32),
    Upload(u32),
    Global,
}

/// Absences decided by a function of (t, group, phase).
pub struct Missing<F>(pub F);

impl<F: Fn(u64, usize, Phase) -> bool + Send + Sync> Absences for Missing<F> {
    fn exchange(&self, t: u64, group: usize, device: u32) -> bool {
        (self.0)(t, group, Phase::Exchange(device))
    }

    fn upload(&self, t: u64, group: usize, device: u32) -> bool {
        (self.0)(t, group, Phase::Upload(device))
    }

    fn group(&self, t: u64, group: usize) -> bool {
        (self.0)(t, group, Phase::Global)
    }
}

/// Whether a party is absent, by chances for the exchange, the upload and the global aggregation.
pub fn absent(seed: u64, chances: [f32; 3], t: u64, group: usize, phase: Phase) -> bool {
    let (which, device) = match phase {
        Phase::Exchange(n) => (0, n),
        Phase::Upload(n) => (1, n),
        Phase::Global => (2, 0),
    };
    let words = [0xab5e, which, t, group as u64, u64::from(device)];
    let draw = Key::new(seed).with_all(words).stream().uniform();
    draw < chances[which as usize]
}

/// Random absences with these chances for the exchange, the upload and the global aggregation.
pub fn absences(seed: u64, chances: [f32; 3]) -> Box<dyn Absences> {
    Box::new(Missing(move |t, group, phase| {
        absent(seed, chances, t, group, phase)
    }))
}

/// Who took part in one group's interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub subset: Vec<u32>,
    pub exchanged: Vec<bool>,
    pub uploaded: Vec<bool>,
}

/// What the callback saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    pub evaluations: Vec<Evaluation>,
    /// The state at each call.
    pub states: Vec<State>,
    /// For each call but that at t = 0, the groups.
    pub parts: Vec<Vec<Part>>,
}

/// A run that was watched.
#[derive(Clone, Debug)]
pub struct Run {
    pub ending: Ending,
    pub log: Log,
    /// The state when `train` returned.
    pub last: State,
}

impl Run {
    /// The iterations at which it was evaluated.
    pub fn evaluated(&self) -> Vec<u64> {
        self.log.evaluations.iter().map(|e| e.t).collect()
    }
}

/// Trains on, writing down what the callback sees; stops behind the interval that ends at `until`.
pub fn watch(task: &Task<'_>, state: &mut State, log: &mut Log, until: Option<u64>) -> Ending {
    let trained = run::train(task, state, |interval| {
        log.evaluations.extend(interval.evaluation.cloned());
        log.states.push(interval.state.clone());
        if interval.state.progress.t > 0 {
            let part = |g: &selvedge_core::group::Turnout| Part {
                subset: g.subset.clone(),
                exchanged: g.exchanged.clone(),
                uploaded: g.uploaded.clone(),
            };
            log.parts.push(interval.groups.iter().map(part).collect());
        }
        let flow = if until == Some(interval.state.progress.t) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        };
        Ok::<_, Infallible>(flow)
    });
    match trained {
        Ok(ending) => ending,
        Err(never) => match never {},
    }
}

/// Trains from the start to the end.
pub fn run(task: &Task<'_>) -> Run {
    let (mut last, mut log) = (State::initial(task), Log::default());
    let ending = watch(task, &mut last, &mut log, None);
    Run { ending, log, last }
}

/// What a saved run is read back as: progress goes through JSON, models and residuals stay as they are.
pub fn saved(state: &State) -> State {
    let progress = serde_json::to_string(&state.progress).expect("progress is JSON");
    let progress: Progress = serde_json::from_str(&progress).expect("and comes back");
    State {
        progress,
        ..state.clone()
    }
}

/// Trains to the end, saved and read back behind the interval that ends at `at`.
pub fn resumed(task: &Task<'_>, at: u64) -> Run {
    let (mut state, mut log) = (State::initial(task), Log::default());
    watch(task, &mut state, &mut log, Some(at));
    let mut last = saved(&state);
    drop(state);
    let ending = watch(task, &mut last, &mut log, None);
    Run { ending, log, last }
}

/// Every number of a model, bit for bit.
pub fn model_bits(model: &Model) -> Vec<u32> {
    let parts = model.parts();
    parts
        .iter()
        .flat_map(|p| p.iter().map(|x| x.to_bits()))
        .collect()
}

/// Two states are the same, bit for bit.
#[track_caller]
pub fn assert_same_state(a: &State, b: &State, what: &str) {
    let t = a.progress.t;
    assert_eq!(a.progress, b.progress, "{what}: progress at t = {t}");
    let bits = |s: &State| {
        let models = [&s.theta, &s.good].into_iter();
        let models = models.chain(&s.groups).chain(&s.best);
        models.map(model_bits).collect::<Vec<_>>()
    };
    assert!(bits(a) == bits(b), "{what}: models differ at t = {t}");
    let lost = |s: &State| {
        let models = s.residuals.uploads.iter().chain([&s.residuals.cloud]);
        let copies = s.residuals.edges.iter();
        let theta0 = copies.map(|copy| copy.iter().map(|x| x.to_bits()).collect());
        models.map(model_bits).chain(theta0).collect::<Vec<_>>()
    };
    assert!(lost(a) == lost(b), "{what}: residuals differ at t = {t}");
    let remembered = |s: &State| {
        let models = s.memories.groups.iter().chain([&s.memories.cloud]);
        models.map(model_bits).collect::<Vec<_>>()
    };
    let same = remembered(a) == remembered(b);
    assert!(same, "{what}: memories differ at t = {t}");
}

/// Two runs saw and gave the same, bit for bit.
#[track_caller]
pub fn assert_same_run(a: &Run, b: &Run, what: &str) {
    assert_eq!(a.ending, b.ending, "{what}");
    assert_eq!(a.log.states.len(), b.log.states.len(), "{what}");
    for (x, y) in a.log.states.iter().zip(&b.log.states) {
        assert_same_state(x, y, what);
    }
    assert_eq!(a.log.parts, b.log.parts, "{what}");
    assert_eq!(a.log.evaluations, b.log.evaluations, "{what}");
    assert_same_state(&a.last, &b.last, what);
}

/// Euclidean distance.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// Each part of `got` is `want`, to 1e-5 of the way from `start` and a few roundings of the numbers themselves (a part
/// may hardly have moved).
#[track_caller]
pub fn assert_near(got: &Theta, want: &Theta, start: &Theta, what: &str) {
    for (i, ((got, want), start)) in got.iter().zip(want).zip(start).enumerate() {
        let travelled = distance(want, start);
        let size = want.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Not `error > slack`: NaN must fail.
        let (error, slack) = (distance(got, want), 1e-5 * travelled + 4e-7 * size);
        assert!(
            error <= slack,
            "{what}: θ{i} is {error:.3e} away, after a way of {travelled:.3e} (allowed {slack:.1e})"
        );
    }
}

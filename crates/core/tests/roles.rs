//! The four roles, driven in memory: whatever order messages arrive in, doubled, late or lost, and whoever is absent, the
//! model is the loop's, bit for bit. A failure prints the seed that replays it.

mod common;

use common::*;
use selvedge_core::absence::Listed;
use selvedge_core::dataset::{Dataset, Group, Samples};
use selvedge_core::experiment::{Adaptive, Algorithm, Experiment};
use selvedge_core::role::{
    Absence, Cloud, Device, Edge, Event, Hospital, Message, Outbox, Party, Phase,
};
use selvedge_core::task::Task;
use selvedge_nn::random::Stream;
use std::collections::BTreeMap;

/// How unkind the world is.
#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    /// Chances, in percent: that a message is delivered and stays on its way, that it is lost.
    doubled: u64,
    lost: u64,
    /// Chance, in percent, that a deadline comes instead of a message.
    deadline: u64,
}

struct World<'a> {
    cloud: Cloud<'a>,
    hospitals: Vec<Hospital<'a>>,
    edges: Vec<Edge<'a>>,
    devices: BTreeMap<(usize, u32), Device<'a>>,
    /// On their way: from, to.
    messages: Vec<(Party, Party, Message)>,
    phases: Vec<(Party, Phase, u64)>,
    absences: Vec<Absence>,
}

impl<'a> World<'a> {
    /// Every party with its own part of the data and nothing else.
    fn new(task: &'a Task<'a>, dataset: &Dataset) -> Self {
        let (len1, len2) = (dataset.hospital.len(), dataset.device.len());
        let mut devices = BTreeMap::new();
        let mut hospitals = Vec::new();
        for (m, group) in dataset.groups.iter().enumerate() {
            for n in 0..group.devices() as u32 {
                let rows = group.rows(n);
                let x2 = group.samples.x2[rows.start * len2..rows.end * len2].to_vec();
                let y = group.samples.y[rows.clone()].to_vec();
                devices.insert((m, n), Device::new(task, (m, n), rows, x2, y));
            }
            assert_eq!(group.samples.x1.len(), group.samples.len() * len1);
            let own = Group {
                name: group.name.clone(),
                samples: Samples {
                    x2: Vec::new(),
                    ..group.samples.clone()
                },
                offsets: group.offsets.clone(),
            };
            hospitals.push(Hospital::new(task, m, own));
        }
        let mut world = World {
            cloud: Cloud::new(task),
            hospitals,
            edges: (0..dataset.groups.len())
                .map(|m| Edge::new(task, m))
                .collect(),
            devices,
            messages: Vec::new(),
            phases: Vec::new(),
            absences: Vec::new(),
        };
        let mut outbox = Outbox::default();
        world.cloud.start(&mut outbox);
        world.take(Party::Cloud, outbox);
        for m in 0..world.edges.len() {
            let mut outbox = Outbox::default();
            world.edges[m].start(&mut outbox);
            world.take(Party::Edge(m), outbox);
        }
        world
    }

    fn take(&mut self, from: Party, outbox: Outbox) {
        let messages = outbox.messages.into_iter();
        self.messages
            .extend(messages.map(|(to, message)| (from, to, message)));
        self.phases
            .extend(outbox.phases.into_iter().map(|(phase, t)| (from, phase, t)));
        self.absences.extend(outbox.absences);
    }

    fn happen(&mut self, to: Party, event: Event) {
        let mut outbox = Outbox::default();
        match to {
            Party::Cloud => self.cloud.handle(event, &mut outbox),
            Party::Hospital(m) => self.hospitals[m].handle(event, &mut outbox),
            Party::Edge(m) => self.edges[m].handle(event, &mut outbox),
            Party::Device(m, n) => {
                let device = self
                    .devices
                    .get_mut(&(m, n))
                    .expect("a device of this world");
                device.handle(event, &mut outbox);
            }
        }
        self.take(to, outbox);
    }

    fn retry(&mut self) {
        for m in 0..self.edges.len() {
            self.happen(Party::Edge(m), Event::Retry);
            self.happen(Party::Hospital(m), Event::Retry);
        }
        self.happen(Party::Cloud, Event::Retry);
    }

    /// Goes on until the cloud has seen the end, and nobody has anything more to say.
    fn run(&mut self, stream: &mut Stream, weather: Weather) {
        for _ in 0..200_000 {
            if self.cloud.ended() && self.messages.is_empty() {
                return;
            }
            let percent = |stream: &mut Stream| stream.below(100);
            if !self.phases.is_empty() && percent(stream) < weather.deadline {
                let which = stream.below(self.phases.len() as u64) as usize;
                let (party, phase, t) = self.phases.swap_remove(which);
                self.happen(party, Event::Deadline(phase, t));
            } else if self.messages.is_empty() {
                self.retry();
            } else {
                let which = stream.below(self.messages.len() as u64) as usize;
                let (from, to, message) = match percent(stream) < weather.doubled {
                    true => self.messages[which].clone(),
                    false => self.messages.swap_remove(which),
                };
                if percent(stream) >= weather.lost {
                    self.happen(to, Event::Received(from, message));
                }
            }
        }
        panic!(
            "the world stands still at t = {}",
            self.cloud.state().progress.t
        );
    }

    fn listed(&self) -> Listed {
        let mut listed = Listed::default();
        for a in &self.absences {
            match (a.phase, a.device) {
                (Phase::Exchange, Some(n)) => _ = listed.exchanges.insert((a.t, a.group, n)),
                (Phase::Upload, Some(n)) => _ = listed.uploads.insert((a.t, a.group, n)),
                _ => _ = listed.groups.insert((a.t, a.group)),
            }
        }
        listed
    }
}

/// A small experiment of any kind that can be deployed.
fn any_experiment(stream: &mut Stream, seed: u64) -> (Experiment, Dataset) {
    let groups = within(stream, 1..4);
    let mut plan = Plan::of_groups(&[]);
    for _ in 0..groups {
        let devices = within(stream, 1..6);
        let samples = |_| pick(stream, &[1, 1, 1, 2, 3]);
        plan.devices.push((0..devices).map(samples).collect());
    }
    let q = within(stream, 1..4);
    let p = q * within(stream, 1..4);
    let mut e = experiment(seed, [p * within(stream, 1..5), p, q], TANH);
    e.train.participation = pick(stream, &[0.3, 0.6, 1.0]);
    e.train.weight_decay = pick(stream, &[0.0, 0.01]);
    if stream.below(2) == 0 {
        e.train.algorithm = Algorithm::CHsgd;
        let codec =
            |stream: &mut Stream| pick(stream, &["none", "top-k:64", "dither:16"]).to_owned();
        let c = &mut e.compression;
        c.codec = codec(stream);
        c.error_feedback = stream.below(2) == 0;
        c.device_download = codec(stream);
        c.device_upload = codec(stream);
        c.global_download = codec(stream);
        c.global_upload = codec(stream);
    }
    if stream.below(3) == 0 {
        e.train.adaptive = Adaptive::Gain;
    }
    (checked(&e), dataset(seed, &plan))
}

/// Lets the roles train under some weather, and compares with the loop under the absences that they noted.
fn same_as_the_loop(seed: u64, weather: Weather) -> usize {
    let mut stream = stream(seed);
    let (experiment, dataset) = any_experiment(&mut stream, seed);
    let task_of_roles = task(&experiment, &dataset);
    let mut world = World::new(&task_of_roles, &dataset);
    world.run(&mut stream, weather);
    let listed = world.listed();
    let absences = world.absences.len();
    let mut task_of_loop = task(&experiment, &dataset);
    task_of_loop.absences = Box::new(listed);
    let looped = run(&task_of_loop).last;
    let state = world.cloud.state();
    assert_eq!(state.progress.t, looped.progress.t);
    assert_eq!(state.progress.segment, looped.progress.segment);
    assert!(
        model_bits(&state.theta) == model_bits(&looped.theta),
        "the models differ: {weather:?}"
    );
    absences
}

#[test]
fn shuffled_doubled_and_late_messages_change_nothing() {
    for_seeds(0..500, |seed| {
        let weather = Weather {
            doubled: 30,
            ..Weather::default()
        };
        assert_eq!(same_as_the_loop(seed, weather), 0);
    });
}

#[test]
fn lost_messages_are_sent_again() {
    for_seeds(0..150, |seed| {
        let weather = Weather {
            doubled: 10,
            lost: 30,
            deadline: 0,
        };
        assert_eq!(same_as_the_loop(seed, weather), 0);
    });
}

#[test]
fn absences_in_every_phase_are_the_loops() {
    let mut absences = 0;
    for_seeds(0..300, |seed| {
        let weather = Weather {
            doubled: 10,
            lost: 10,
            deadline: 8,
        };
        absences += same_as_the_loop(seed, weather);
    });
    assert!(replayed().is_some() || absences > 500, "{absences}");
}

//! The four roles, driven in memory: whatever order messages arrive in, doubled, late or lost, whoever is absent, and
//! whoever crashes and comes back with its record alone, the run is the loop's, bit for bit. A failure prints the seed
//! that replays it.

mod common;
#[path = "roles/download.rs"]
mod download;
#[path = "roles/forgetful.rs"]
mod forgetful;
#[path = "roles/gone.rs"]
mod gone;
#[path = "roles/pardoned.rs"]
mod pardoned;

use common::messages::{KINDS, broken, changed, message};
use common::optimisers;
use common::outcomes;
use common::seams::{Halfway, Median, Momentum};
use common::*;
use selvedge_core::absence::Listed;
use selvedge_core::calibration::{Calibration, FEWEST_SAMPLES};
use selvedge_core::checks::Reason;
use selvedge_core::dataset::{Dataset, Group, Samples};
use selvedge_core::experiment::{
    Adaptive, Algorithm, AttackKind, AttackSettings, DefenceSettings, Experiment, Rule,
};
use selvedge_core::outcome::Kind;
use selvedge_core::role::{
    Absence, Cloud, Edge, Event, Gateway, HeldOutSamples, Hospital, Message, Numbers, Outbox,
    Party, Phase, Protocol, Quorum, Role, wire,
};
use selvedge_core::run::Ending;
use selvedge_core::scores::predict;
use selvedge_core::state::Evaluation;
use selvedge_core::task::Task;
use selvedge_nn::random::Stream;
use std::collections::BTreeMap;
use std::ops::Range;

/// How unkind the world is.
#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    /// Chances, in percent: that a message is delivered and stays on its way, that it is lost.
    doubled: u64,
    lost: u64,
    /// Chance, in percent, that a deadline comes instead of a message.
    deadline: u64,
    /// Chance, in percent, that a party is killed after it has kept its record, or before it was told anything.
    killed: u64,
    /// Chance, in percent, that somebody says what cannot be.
    nonsense: u64,
}

/// What a party holds: its own rows of its own columns.
struct Home {
    /// For each group: the devices of each gateway.
    gateways: Vec<Vec<Range<u32>>>,
    /// For each group, its held-out rows.
    held_out: Vec<HeldOutSamples>,
}

struct World<'a> {
    task: &'a Task<'a>,
    data: &'a Dataset,
    home: Home,
    roles: BTreeMap<Party, Role<'a>>,
    records: BTreeMap<Party, Vec<u8>>,
    /// On their way: from, to.
    messages: Vec<(Party, Party, Message)>,
    phases: Vec<(Party, Phase, u64)>,
    absences: Vec<Absence>,
    evaluations: BTreeMap<u64, Evaluation>,
    ending: Option<Ending>,
    kills: usize,
    /// How often nobody had anything to say before the end.
    silences: usize,
    /// Who has stopped, and why.
    stops: Vec<(Party, String)>,
    /// Groups that a cloud that begins is to hear again.
    pardoned: Vec<u32>,
    /// A group to which the cloud sends zeros, and from when on.
    zeros: Option<(usize, u64)>,
}

/// θ as zeros, where it is announced.
fn with_zeros(mut message: Message, from: u64) -> Message {
    if let Message::Global {
        t, since, parts, ..
    } = &mut message
        && *t >= from
        && since.is_none()
    {
        for part in parts {
            if let Numbers::Dense(values) = part {
                *part = Numbers::Dense(values.iter().map(|_| 0.0).collect());
            }
        }
    }
    message
}

/// Some rows of samples, with one side alone.
fn some(all: &Samples, width: usize, rows: &[usize], hospital: bool) -> Samples {
    let side = if hospital { &all.x1 } else { &all.x2 };
    let values = rows.iter().flat_map(|row| &side[row * width..][..width]);
    let values: Vec<f32> = values.copied().collect();
    let (x1, x2) = match hospital {
        true => (values, Vec::new()),
        false => (Vec::new(), values),
    };
    let rows: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
    let y = all.y.of(&rows);
    Samples { x1, x2, y }
}

impl<'a> World<'a> {
    fn new(task: &'a Task<'a>, data: &'a Dataset, stream: &mut Stream) -> Self {
        Self::with_records(task, data, stream, BTreeMap::new())
    }

    /// The same, after all parties were killed and have come back with these records.
    fn with_records(
        task: &'a Task<'a>,
        data: &'a Dataset,
        stream: &mut Stream,
        records: BTreeMap<Party, Vec<u8>>,
    ) -> Self {
        let groups = data.groups.len();
        let mut gateways = Vec::new();
        for group in &data.groups {
            let devices = group.devices() as u32;
            let mut ends: Vec<u32> = (1..devices).filter(|_| stream.below(2) == 0).collect();
            ends.push(devices);
            let starts = [0].into_iter().chain(ends.iter().copied());
            gateways.push(starts.zip(&ends).map(|(a, b)| a..*b).collect());
        }
        let mut world = World {
            task,
            data,
            home: Home {
                gateways,
                held_out: vec![HeldOutSamples::default(); groups],
            },
            roles: BTreeMap::new(),
            records,
            messages: Vec::new(),
            phases: Vec::new(),
            absences: Vec::new(),
            evaluations: BTreeMap::new(),
            ending: None,
            kills: 0,
            silences: 0,
            stops: Vec::new(),
            pardoned: Vec::new(),
            zeros: None,
        };
        for m in 0..groups {
            world.begin(Party::Hospital(m));
            world.begin(Party::Edge(m));
            for g in 0..world.home.gateways[m].len() {
                world.begin(Party::Gateway(m, g));
            }
        }
        world.begin(Party::Cloud);
        world
    }

    /// A group's held-out rows: those whose numbers it gets dealt.
    fn held_out(&self, m: usize, hospital: bool) -> HeldOutSamples {
        let (len1, len2) = (self.data.hospital.len(), self.data.device.len());
        let width = if hospital { len1 } else { len2 };
        let groups = self.home.held_out.len();
        [&self.data.validation, &self.data.test].map(|all| {
            let mine: Vec<usize> = (0..all.len()).filter(|row| row % groups == m).collect();
            some(all, width, &mine, hospital)
        })
    }

    /// Which of those each gateway has: some, or none.
    fn shares(&self, m: usize, g: usize) -> [std::ops::Range<u32>; 2] {
        let gateways = self.home.gateways[m].len();
        self.held_out(m, true).map(|all| {
            let end = |g: usize| (all.len() * g / gateways) as u32;
            end(g)..end(g + 1)
        })
    }

    /// Starts a party with its own part of the data, its record, and nothing else.
    fn begin(&mut self, party: Party) {
        let (task, quorum) = (self.task, Quorum::default());
        let (len1, len2) = (self.data.hospital.len(), self.data.device.len());
        let mut role = match party {
            Party::Cloud => Role::Cloud(Box::new(Cloud::new(task, quorum))),
            Party::Edge(m) => {
                let gateways = self.home.gateways[m].clone();
                let held_out = (0..gateways.len()).map(|g| self.shares(m, g)).collect();
                let edge = Edge::new(task, m, gateways, quorum).with_held_out(held_out);
                Role::Edge(Box::new(edge))
            }
            Party::Hospital(m) => {
                let group = &self.data.groups[m];
                let all: Vec<usize> = (0..group.samples.len()).collect();
                let own = Group {
                    name: group.name.clone(),
                    samples: some(&group.samples, len1, &all, true),
                    offsets: group.offsets.clone(),
                };
                let held_out = self.held_out(m, true);
                Role::Hospital(Box::new(Hospital::new(task, m, own, held_out)))
            }
            Party::Gateway(m, g) => {
                let (group, devices) = (&self.data.groups[m], self.home.gateways[m][g].clone());
                let ends = [devices.start, devices.end].map(|n| group.offsets.at(n as usize));
                let rows: Vec<usize> = (ends[0] as usize..ends[1] as usize).collect();
                let own = some(&group.samples, len2, &rows, false);
                let (all, shares) = (self.held_out(m, false), self.shares(m, g));
                let held_out = [0, 1].map(|at| {
                    let rows: Vec<usize> = shares[at].clone().map(|row| row as usize).collect();
                    some(&all[at], len2, &rows, false)
                });
                let from = shares.map(|share| share.start);
                let gateway = Gateway::new(task, (m, g), devices, own, held_out, from);
                Role::Gateway(Box::new(gateway))
            }
        };
        role.pardon(&self.pardoned);
        let mut outbox = Outbox::default();
        let record = self.records.get(&party).map(Vec::as_slice);
        role.begin(record, &mut outbox).expect("its own record");
        self.roles.insert(party, role);
        self.take(party, outbox);
    }

    /// What a hostile party sends instead, if it is one: of an attack that fills in one number.
    fn falsified(&self, from: Party, mut message: Message) -> Message {
        let Some(attack) = &self.task.attack else {
            return message;
        };
        let settings = &self.task.experiment.attack;
        let lie = match settings.kind {
            AttackKind::NotANumber => f32::NAN,
            _ => 1e30,
        };
        let fill = |numbers: &mut Numbers, hostile: bool| {
            if let (Numbers::Dense(values), true) = (&mut *numbers, hostile) {
                *numbers = Numbers::Dense(values.iter().map(|_| lie).collect());
            }
        };
        let is_hostile = |m, device: u32| attack.is_hostile_device(m, device);
        match (from, &mut message) {
            (Party::Gateway(m, _), Message::Zeta2 { t, zeta2 }) if *t >= settings.from => {
                for (device, rows) in zeta2 {
                    rows.iter_mut()
                        .for_each(|row| fill(row, is_hostile(m, *device)));
                }
            }
            (Party::Gateway(m, _), Message::Models { t, theta2 }) => {
                let q = self.task.experiment.train.local_interval;
                for (device, model) in theta2 {
                    fill(model, *t + q >= settings.from && is_hostile(m, *device));
                }
            }
            (
                Party::Hospital(m),
                Message::HospitalModel {
                    t, theta0, theta1, ..
                },
            ) => {
                let hostile = *t >= settings.from && attack.are_hostile(m)[0];
                fill(theta0, hostile);
                fill(theta1, hostile);
            }
            (Party::Edge(m), Message::EdgeModel { t, theta2, .. }) => {
                fill(theta2, *t >= settings.from && attack.are_hostile(m)[1]);
            }
            _ => {}
        }
        message
    }

    fn take(&mut self, from: Party, outbox: Outbox) {
        self.records
            .extend(outbox.record.map(|record| (from, record)));
        self.stops.extend(outbox.stop.map(|why| (from, why)));
        for (to, message) in outbox.messages {
            let message = match self.zeros {
                Some((m, from)) if [Party::Hospital(m), Party::Edge(m)].contains(&to) => {
                    with_zeros(message, from)
                }
                _ => self.falsified(from, message),
            };
            // Everything goes over the wire.
            let bytes = wire::encode(7, &message);
            assert_eq!(wire::decode(8, &bytes), Err(wire::WireError::OtherRun(7)));
            let message = wire::decode(7, &bytes).expect("what was encoded");
            self.messages.push((from, to, message));
        }
        let phases = outbox.phases.into_iter();
        self.phases
            .extend(phases.map(|(phase, t)| (from, phase, t)));
        if let Some(t) = outbox.back {
            let group = |party: &Party| match party {
                Party::Hospital(m) | Party::Edge(m) | Party::Gateway(m, _) => Some(*m),
                Party::Cloud => None,
            };
            let own = |a: &Absence| match (from, a.phase) {
                (Party::Hospital(_), Phase::Exchange) | (Party::Edge(_), Phase::Upload) => {
                    group(&from) == Some(a.group)
                }
                _ => false,
            };
            self.absences.retain(|a| !(own(a) && a.is_behind(t)));
        }
        self.absences.extend(outbox.absences);
        for evaluation in outbox.evaluations {
            let known = self.evaluations.insert(evaluation.t, evaluation.clone());
            assert!(known.is_none_or(|known| known == evaluation));
        }
        self.ending = outbox.ending.or(self.ending.take());
        if outbox.go_on {
            self.happen(from, Event::GoOn, false);
        }
    }

    fn happen(&mut self, to: Party, event: Event, dies: bool) {
        let mut outbox = Outbox::default();
        let role = self.roles.get_mut(&to).expect("a party of this world");
        role.handle(event, &mut outbox);
        if dies {
            self.kills += 1;
            self.records
                .extend(outbox.record.map(|record| (to, record)));
            self.begin(to);
            // It says that it is there to those whom it talks to.
            let neighbours: &[Party] = match to {
                Party::Cloud => &[],
                Party::Hospital(m) => &[Party::Edge(m), Party::Cloud],
                Party::Edge(m) => &[Party::Hospital(m), Party::Cloud],
                Party::Gateway(m, _) => &[Party::Edge(m)],
            };
            for neighbour in neighbours {
                self.happen(*neighbour, Event::Appeared(to), false);
            }
        } else {
            self.take(to, outbox);
        }
    }

    fn retry(&mut self) {
        let all: Vec<Party> = self.roles.keys().copied().collect();
        for party in all {
            self.happen(party, Event::Retry, false);
            if let Party::Gateway(m, _) = party {
                // Who has heard nothing for a while says again that it is there.
                self.happen(Party::Edge(m), Event::Appeared(party), false);
            }
        }
    }

    fn cloud(&self) -> &Cloud<'a> {
        match &self.roles[&Party::Cloud] {
            Role::Cloud(cloud) => cloud,
            _ => unreachable!("the cloud is one"),
        }
    }

    fn is_over(&self) -> bool {
        self.roles.values().all(Role::is_over)
    }

    /// One thing happens.
    fn step(&mut self, stream: &mut Stream, weather: Weather) {
        let percent = |stream: &mut Stream| stream.below(100);
        if !self.phases.is_empty() && percent(stream) < weather.deadline {
            let which = stream.below(self.phases.len() as u64) as usize;
            let (party, phase, t) = self.phases.swap_remove(which);
            self.happen(party, Event::Deadline(phase, t), false);
        } else if self.messages.is_empty() {
            self.silences += 1;
            self.retry();
        } else {
            let which = stream.below(self.messages.len() as u64) as usize;
            if weather.nonsense > 0 && percent(stream) < weather.nonsense {
                let (from, to, right) = &self.messages[which];
                let (from, to, wrong) = (*from, *to, broken(stream, right));
                self.happen(to, Event::Received(from, wrong), false);
                return;
            }
            let (from, to, message) = match percent(stream) < weather.doubled {
                true => self.messages[which].clone(),
                false => self.messages.swap_remove(which),
            };
            if percent(stream) >= weather.lost {
                let dies = percent(stream) < weather.killed;
                self.happen(to, Event::Received(from, message), dies);
            }
        }
    }

    /// Goes on until everybody knows that the run is over.
    fn run(&mut self, stream: &mut Stream, weather: Weather) {
        for _ in 0..200_000 {
            if self.is_over() {
                return;
            }
            self.step(stream, weather);
        }
        let doing: Vec<String> = self
            .roles
            .iter()
            .map(|(party, role)| {
                let doing = role.doing();
                format!(
                    "{party}: t = {}, {}, missing {:?}",
                    doing.t, doing.what, doing.missing
                )
            })
            .collect();
        panic!("the world stands still:\n{}", doing.join("\n"));
    }

    fn listed(&self) -> Listed {
        let mut listed = Listed::default();
        self.absences
            .iter()
            .for_each(|absence| listed.add(*absence));
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
        c.theta0_feedback = stream.below(2) == 0;
        c.device_download = codec(stream);
        c.device_upload = codec(stream);
        c.global_download = codec(stream);
        c.global_upload = codec(stream);
    }
    if stream.below(3) == 0 {
        e.train.adaptive = Adaptive::Gain;
    } else if stream.below(2) == 0 {
        optimisers::any(stream, &mut e);
    }
    if stream.below(2) == 0 {
        let rule = |stream: &mut Stream| {
            use Rule::*;
            pick(
                stream,
                &[Mean, Mean, Clip, Median, Trimmed, GeometricMedian, Krum],
            )
        };
        e.defence = DefenceSettings {
            devices: rule(stream),
            groups: rule(stream),
            device_limit: pick(stream, &[0.0, 1.0, 3.0]),
            embedding_limit: pick(stream, &[0.0, 1.0, 3.0]),
            group_limit: pick(stream, &[0.0, 1.0, 3.0]),
            reversal: pick(stream, &[0.0, 0.5]),
            scores: pick(stream, &[0.0, 1.0]),
            quarantine: pick(stream, &[0, 0, 2]),
            ..DefenceSettings::default()
        };
    }
    let plain = e.train.algorithm == Algorithm::Hsgd && e.train.adaptive == Adaptive::Off;
    if plain && stream.below(3) == 0 {
        e.attack = AttackSettings {
            kind: pick(stream, &[AttackKind::NotANumber, AttackKind::Huge]),
            devices: 0.3,
            hospitals: stream.below(2),
            edges: stream.below(2),
            from: stream.below(6),
            ..AttackSettings::default()
        };
    }
    plan.validation = within(stream, 0..20) as usize;
    e.train.loss_samples = pick(stream, &[0, 0, 3]);
    // Some runs diverge, and some end at a budget or a target.
    e.train.learning_rate = pick(stream, &[0.4, 0.4, 0.4, 1e30]);
    let mut dataset = dataset(seed, &plan);
    outcomes::any(stream, &mut e, &mut dataset);
    (checked(&e), dataset)
}

/// The task; in some worlds with an optimiser that remembers, and with a rule that needs all models at once.
fn task_with_seams<'a>(seed: u64, experiment: &'a Experiment, dataset: &'a Dataset) -> Task<'a> {
    let mut task = task(experiment, dataset);
    if seed % 3 == 1 {
        task.optimisers.hospital = Box::new(Momentum(0.5));
        task.optimisers.edge = Box::new(Momentum(0.25));
        task.optimisers.cloud = Box::new(Momentum(0.125));
    }
    if seed % 5 == 3 {
        task.optimisers.edge = Box::new(Halfway);
        task.optimisers.cloud = Box::new(Halfway);
    }
    if seed % 4 == 2 {
        task.aggregation.edge = Box::new(Median);
        task.aggregation.cloud = Box::new(Median);
    }
    task
}

/// What a world went through.
#[derive(Default)]
struct Story {
    absences: usize,
    kills: usize,
}

/// Lets the roles train under some weather, and compares with the loop under the absences that they noted.
fn same_as_the_loop(seed: u64, weather: Weather) -> Story {
    let mut stream = stream(seed);
    let (mut experiment, dataset) = any_experiment(&mut stream, seed);
    if weather.deadline == 0 {
        // Who is absent is not measured, and may have been what a target is reached by; nor are its bytes counted in
        // time.
        match stream.below(6) {
            0 => {
                let (metric, value) = outcomes::target(&dataset);
                experiment.stop.set_target(metric, value);
            }
            1 => experiment.stop.bytes = Some(1000.0),
            2 if !dataset.validation.is_empty() => {
                experiment.stop.patience = Some(within(&mut stream, 1..12));
            }
            _ => {}
        }
    }
    let task_of_roles = task_with_seams(seed, &experiment, &dataset);
    let mut world = World::new(&task_of_roles, &dataset, &mut stream);
    world.run(&mut stream, weather);
    let mut task_of_loop = task_with_seams(seed, &experiment, &dataset);
    // Who was left out for what it sent is left out by the loop too, of its own accord; but who is away is an input, and
    // so then are all decisions.
    let is_said = |a: &&Absence| {
        let quarantined = a.because(Reason::Quarantined);
        a.reason.is_some() || world.absences.contains(&quarantined)
    };
    let away = world.absences.iter().filter(|a| !is_said(a)).count();
    if away > 0 {
        task_of_loop.absences = Box::new(world.listed());
        task_of_loop.judges = !task_of_loop.absences.are_decided();
    }
    let looped = run(&task_of_loop);
    let state = world.cloud().state();
    assert_eq!(world.ending.as_ref(), Some(&looped.ending), "{weather:?}");
    assert_eq!(state.progress.t, looped.last.progress.t, "{weather:?}");
    assert_eq!(state.progress.segment, looped.last.progress.segment);
    assert!(
        model_bits(&state.theta) == model_bits(&looped.last.theta),
        "the models differ: {weather:?}"
    );
    let last = world.evaluations.values().last();
    let some_left_out = weather.deadline > 0 || last.is_some_and(|last| !last.without.is_empty());
    calibrated_as_by_who_has_all_samples(&task_of_loop, &world, some_left_out);
    if away == 0 {
        let evaluations: Vec<_> = world.evaluations.values().cloned().collect();
        assert_eq!(evaluations, looped.log.evaluations, "{weather:?}");
        assert_eq!(state.progress, looped.last.progress, "{weather:?}");
        assert_eq!(state.best, looped.last.best, "{weather:?}");
    }
    if weather.lost + weather.killed + weather.deadline == 0 {
        assert_eq!(
            world.silences, 0,
            "it went on only since all was sent again"
        );
    }
    Story {
        absences: away,
        kills: world.kills,
    }
}

/// The groups' sums calibrate the models as all samples together do, to the bit, but for those of groups that have very
/// few: they say nothing.
fn calibrated_as_by_who_has_all_samples(task: &Task<'_>, world: &World<'_>, some_left_out: bool) {
    let found = world.cloud().calibrations();
    let kind = task.objective.layout().kind;
    // Quantities and survival curves are left as they are.
    assert_eq!(found.is_some(), matches!(kind, Kind::Class | Kind::Labels));
    let Some(found) = found else { return };
    let state = world.cloud().state();
    let samples = &world.data.validation;
    let groups = 0..world.data.groups.len();
    let rows = groups.map(|m| world.data.held_out_rows(0, m));
    let rows: Vec<u32> = rows
        .filter(|rows| rows.len() >= FEWEST_SAMPLES)
        .flatten()
        .collect();
    assert_eq!(found.best.is_some(), state.best.is_some());
    let each = [
        (Some(&state.theta), Some(&found.model)),
        (state.best.as_ref(), found.best.as_ref()),
    ];
    for (model, found) in each {
        let (Some(model), Some(found)) = (model, found) else {
            continue;
        };
        if found.samples != rows.len() as u64 {
            assert!(some_left_out && found.samples < rows.len() as u64);
            continue;
        }
        let said = predict(task.networks(), model, samples, Some(&rows)).answers;
        let expected = Calibration::fit(&said, &samples.y.of(&rows), task.objective.layout());
        assert_eq!(found.calibration, expected);
    }
}

#[test]
fn shuffled_doubled_and_late_messages_change_nothing() {
    for_seeds(0..500, |seed| {
        let weather = Weather {
            doubled: 30,
            ..Weather::default()
        };
        assert_eq!(same_as_the_loop(seed, weather).absences, 0);
    });
}

#[test]
fn lost_messages_are_sent_again() {
    for_seeds(0..150, |seed| {
        let weather = Weather {
            doubled: 10,
            lost: 30,
            ..Weather::default()
        };
        assert_eq!(same_as_the_loop(seed, weather).absences, 0);
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
            ..Weather::default()
        };
        absences += same_as_the_loop(seed, weather).absences;
    });
    assert!(replayed().is_some() || absences > 500, "{absences}");
}

#[test]
fn killed_parties_come_back_with_their_records_alone() {
    let mut kills = 0;
    for_seeds(0..300, |seed| {
        let weather = Weather {
            doubled: 10,
            lost: 5,
            killed: 4,
            ..Weather::default()
        };
        kills += same_as_the_loop(seed, weather).kills;
    });
    assert!(replayed().is_some() || kills > 500, "{kills}");
}

#[test]
fn killed_parties_and_absences_together() {
    for_seeds(0..300, |seed| {
        let weather = Weather {
            doubled: 10,
            lost: 10,
            deadline: 8,
            killed: 3,
            ..Weather::default()
        };
        same_as_the_loop(seed, weather);
    });
}

#[test]
fn what_cannot_be_changes_nothing() {
    for_seeds(0..300, |seed| {
        let weather = Weather {
            doubled: 10,
            lost: 5,
            killed: 2,
            nonsense: 40,
            ..Weather::default()
        };
        assert_eq!(same_as_the_loop(seed, weather).absences, 0);
    });
}

#[test]
fn whatever_is_said_nobody_breaks_and_records_stay_whole() {
    let mut kills = 0;
    for_seeds(0..400, |seed| {
        let mut stream = stream(seed);
        let (experiment, dataset) = any_experiment(&mut stream, seed);
        let task = task(&experiment, &dataset);
        let mut world = World::new(&task, &dataset, &mut stream);
        let weather = Weather {
            doubled: 20,
            deadline: 5,
            killed: 5,
            nonsense: 10,
            ..Weather::default()
        };
        let mut parties: Vec<Party> = world.roles.keys().copied().collect();
        for _ in 0..200 {
            world.step(&mut stream, weather);
            // Of what is on its way something like it, or anything, from anybody, who need not be there.
            let (from, to, said) = match world.messages.len() {
                0 => continue,
                all => world.messages[stream.below(all as u64) as usize].clone(),
            };
            let said = match stream.below(3) {
                0 => {
                    let kind = stream.below(KINDS);
                    message(&mut stream, kind)
                }
                _ => changed(&mut stream, &said),
            };
            let strangers = [
                Party::Hospital(9),
                Party::Edge(9),
                Party::Gateway(0, 9),
                Party::Gateway(9, 0),
            ];
            let (from, to) = match stream.below(4) {
                0 => (pick(&mut stream, &strangers), to),
                1 => (pick(&mut stream, &parties), to),
                2 => (from, pick(&mut stream, &parties)),
                _ => (from, to),
            };
            let dies = stream.below(10) == 0;
            world.happen(to, Event::Received(from, said), dies);
            // Nonsense is not to be sent on to those who are not there.
            parties.retain(|party| world.roles.contains_key(party));
            let there = |(_, to, _): &(Party, Party, Message)| world.roles.contains_key(to);
            world.messages.retain(there);
            for phase in [
                Phase::Exchange,
                Phase::Upload,
                Phase::Global,
                Phase::Evaluation,
            ] {
                let t = common::messages::whole(&mut stream);
                world.happen(to, Event::Deadline(phase, t), false);
            }
        }
        kills += world.kills;
    });
    assert!(replayed().is_some() || kills > 500, "{kills}");
}

/// What parties of version 0.2.0 have kept in the middle of a run: all later versions go on from it, to the same model.
/// `SELVEDGE_WRITE_FIXTURES=1` writes them anew; they are only to change with the format of records.
#[test]
fn stored_records_are_gone_on_from() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records-0.2.0");
    let mut plan = Plan::of_groups(&[4, 3]);
    plan.validation = 10;
    let mut e = experiment(5, [24, 4, 2], TANH);
    e.train.algorithm = Algorithm::CHsgd;
    e.train.adaptive = Adaptive::Gain;
    let c = &mut e.compression;
    c.codec = "dither:16".into();
    c.theta0 = Some("none".into());
    for codec in [
        &mut c.device_download,
        &mut c.device_upload,
        &mut c.global_download,
        &mut c.global_upload,
    ] {
        *codec = "dither:64".into();
    }
    let (experiment, data) = (checked(&e), dataset(5, &plan));
    let task = task(&experiment, &data);
    let parties = [Party::Cloud]
        .into_iter()
        .chain((0..2).flat_map(|m| [Party::Hospital(m), Party::Edge(m)]));
    let path = |party: Party| folder.join(format!("{party}.record").replace(' ', "-"));
    if std::env::var_os("SELVEDGE_WRITE_FIXTURES").is_some() {
        let mut stream = stream(5);
        let mut world = World::new(&task, &data, &mut stream);
        while world.cloud().state().progress.evaluated < Some(12) {
            world.step(&mut stream, Weather::default());
        }
        std::fs::create_dir_all(&folder).unwrap();
        for (party, record) in &world.records {
            std::fs::write(path(*party), record).unwrap();
        }
    }
    let read = |party| (party, std::fs::read(path(party)).unwrap());
    let (_, cloud) = read(Party::Cloud);
    let metric = b"accuracy";
    assert!(
        cloud.windows(metric.len()).any(|bytes| bytes == metric),
        "a record with an evaluation, whose metrics may become more"
    );
    let records: BTreeMap<Party, Vec<u8>> = parties.map(read).collect();
    let mut stream = stream(6);
    let mut world = World::with_records(&task, &data, &mut stream, records);
    assert!(
        world.cloud().state().progress.t >= 8,
        "in the middle of the run"
    );
    world.run(&mut stream, Weather::default());
    let looped = run(&task);
    assert_eq!(world.ending.as_ref(), Some(&looped.ending));
    assert!(
        model_bits(&world.cloud().state().theta) == model_bits(&looped.last.theta),
        "the model is another one"
    );
}

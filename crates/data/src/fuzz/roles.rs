//! Parties of a deployment: what they say to each other, what they keep, and what they do when either is nonsense.

use super::told;
use crate::SETS;
use rayon::ThreadPoolBuilder;
use selvedge_core::dataset::{Dataset, Group, Holders, Outcome, Samples};
use selvedge_core::experiment::Experiment;
use selvedge_core::role::wire;
use selvedge_core::role::{
    Cloud, Edge, Event, Gateway, HeldOutSamples, Hospital, Message, Outbox, Party, Phase, Protocol,
    Quorum, Role, Unread,
};
use selvedge_core::task::Task;
use selvedge_nn::Shape;
use std::collections::{BTreeMap, VecDeque};
use std::sync::LazyLock;

pub(super) const RUN: u64 = 7;

/// What decodes has one form in bytes.
pub(super) fn message(bytes: &[u8]) {
    let of_run = |run: u64| {
        if let Some(message) = told(wire::decode(run, bytes)) {
            assert!(wire::encode(run, &message) == bytes);
        }
    };
    // Of the run that it claims to be of.
    match bytes.get(3..11).and_then(|run| run.try_into().ok()) {
        Some(run) => of_run(u64::from_le_bytes(run)),
        None => of_run(RUN),
    }
}

/// A byte chooses the task, another the party; the rest is its record. If it is one, the party goes on with it, and
/// what it keeps is a record again.
pub(super) fn record(bytes: &[u8]) {
    let Some((&[task, party], record)) = bytes.split_first_chunk() else {
        return;
    };
    let (task, party) = (&TASKS[task as usize % TASKS.len()], kept(party));
    let mut world = World::new(task);
    world.records.insert(party, record.to_vec());
    if told(world.begin(party)).is_none() {
        return;
    }
    world.records.remove(&party);
    world.bother();
    world.deliver(200);
    world.comes_back();
}

/// A byte chooses the task. Then things happen, each with three bytes that say what and to whom; messages have their
/// length before them. Whatever is said, everybody goes on, and comes back from what it has kept.
pub(super) fn talk(bytes: &[u8]) {
    let Some((task, mut rest)) = bytes.split_first() else {
        return;
    };
    let mut world = World::new(&TASKS[*task as usize % TASKS.len()]);
    world.begin_all();
    for _ in 0..64 {
        let Some((&[what, to, from], more)) = rest.split_first_chunk() else {
            break;
        };
        rest = more;
        match what % 4 {
            0 => {
                let Some(frame) = take_frame(&mut rest) else {
                    break;
                };
                if let Some(message) = told(wire::decode(RUN, &frame)) {
                    world.happen(there(to), Event::Received(anybody(from), message));
                }
            }
            1 => world.deliver(usize::from(to % 32)),
            2 => {
                let party = there(to);
                let t = world.roles[&party]
                    .doing()
                    .t
                    .wrapping_add(u64::from(from % 4));
                for phase in PHASES {
                    world.happen(party, Event::Deadline(phase, t));
                }
            }
            _ => {
                world.happen(there(to), Event::Appeared(anybody(from)));
                world.happen(there(to), Event::Retry);
            }
        }
    }
    world.deliver(50);
    world.comes_back();
}

/// Takes a message, which has its length before it, from the front, and gives it as a frame of the run.
pub(super) fn take_frame(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, more) = rest.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length)).min(more.len());
    let (said, more) = more.split_at(length);
    *rest = more;
    let head = wire::encode(RUN, &Message::End);
    Some([&head[..head.len() - 1], said].concat())
}

/// The other way around.
pub(super) fn push_message(message: &Message, bytes: &mut Vec<u8>) {
    let head = wire::encode(RUN, &Message::End).len() - 1;
    let said = &wire::encode(RUN, message)[head..];
    bytes.extend((said.len() as u16).to_le_bytes());
    bytes.extend_from_slice(said);
}

const PHASES: [Phase; 4] = [
    Phase::Exchange,
    Phase::Upload,
    Phase::Global,
    Phase::Evaluation,
];

/// Who is there, and who is not.
const PARTIES: [Party; 12] = [
    Party::Cloud,
    Party::Hospital(0),
    Party::Hospital(1),
    Party::Edge(0),
    Party::Edge(1),
    Party::Gateway(0, 0),
    Party::Gateway(0, 1),
    Party::Gateway(1, 0),
    Party::Hospital(2),
    Party::Edge(usize::MAX),
    Party::Gateway(0, 2),
    Party::Gateway(2, 0),
];
const THERE: usize = 8;
const KEPT: usize = 5;

/// One who is there.
fn there(byte: u8) -> Party {
    PARTIES[usize::from(byte) % THERE]
}

/// One who is there and keeps records.
fn kept(byte: u8) -> Party {
    PARTIES[usize::from(byte) % KEPT]
}

fn anybody(byte: u8) -> Party {
    PARTIES[usize::from(byte) % PARTIES.len()]
}

/// The byte that stands for a party.
fn number(party: Party) -> u8 {
    let place = PARTIES.iter().position(|known| *known == party);
    place.map_or(0, |place| place as u8)
}

/// All work of a role is done on the thread that calls it: others would be counted neither in time nor in memory, and
/// would go on while edges are counted.
fn on_this_thread() {
    thread_local! {
        static POOL: Option<rayon::ThreadPool> =
            ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok();
    }
    POOL.with(|_| {});
}

/// Settings that take all ways through the roles: as it is, with codecs everywhere, and with somebody who steers.
const SETTINGS: [&str; 3] = [
    "[train]\nalgorithm = \"hsgd\"\nhalve_every = 3\n",
    "[train]\nalgorithm = \"c-hsgd\"\nloss_samples = 2\n[compression]\ncodec = \"dither:16\"\n\
        device_download = \"top-k:64\"\ndevice_upload = \"dither:16\"\nglobal_download = \"top-k:64\"\n\
        global_upload = \"dither:16\"\n",
    "[train]\nalgorithm = \"hsgd\"\nadaptive = \"gain\"\n[stop]\nbytes = 1e5\n",
];

const COMMON: [&str; 8] = [
    "train.iterations=8",
    "train.global_interval=4",
    "train.local_interval=2",
    "train.participation=0.6",
    "train.evaluate_every=4",
    "model.hospital=[{ linear = { out = 1 } }, \"tanh\"]",
    "model.device=[{ linear = { out = 2 } }]",
    "model.combined=[{ linear = { out = 2 } }]",
];

static DATASET: LazyLock<Dataset> = LazyLock::new(|| {
    let samples = |rows: u32| Samples {
        x1: (0..2 * rows).map(|i| i as f32 / 4.0 - 1.0).collect(),
        x2: (0..rows).map(|i| 1.0 - i as f32 / 2.0).collect(),
        y: (0..rows).map(|row| row % 2).collect(),
    };
    let group = |name: &str, offsets: &[u32]| Group {
        name: name.into(),
        samples: samples(offsets[offsets.len() - 1]),
        offsets: offsets.to_vec().into(),
    };
    Dataset {
        name: "small".into(),
        hospital: Shape::Flat(2),
        device: Shape::Flat(1),
        outcome: Outcome::Class,
        classes: vec!["no".into(), "yes".into()],
        groups: vec![group("a", &[0, 1, 3, 4]), group("b", &[0, 2])],
        validation: samples(2),
        test: samples(3),
        // The first group has them all.
        holders: Holders::Listed(vec![
            [(0..2).collect(), (0..3).collect()],
            Default::default(),
        ]),
    }
});

static EXPERIMENTS: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
    let options = COMMON.map(str::to_owned);
    let parse = |settings| {
        SETS.parse(settings, &options)
            .expect("settings that are right")
    };
    SETTINGS.into_iter().map(parse).collect()
});

pub(super) static TASKS: LazyLock<Vec<Task<'static>>> = LazyLock::new(|| {
    let task = |experiment| Task::new(experiment, &DATASET).expect("a task that can be done");
    EXPERIMENTS.iter().map(task).collect()
});

/// All parties of a task, and what is on its way between them.
struct World {
    task: &'static Task<'static>,
    roles: BTreeMap<Party, Role<'static>>,
    records: BTreeMap<Party, Vec<u8>>,
    messages: VecDeque<(Party, Party, Message)>,
}

/// The rows that a party holds of some samples.
fn some(all: &Samples, rows: std::ops::Range<usize>, hospital: bool) -> Samples {
    let part = |x: &[f32], width: usize, wanted: bool| match wanted {
        true => x[rows.start * width..rows.end * width].to_vec(),
        false => Vec::new(),
    };
    Samples {
        x1: part(&all.x1, 2, hospital),
        x2: part(&all.x2, 1, !hospital),
        y: all
            .y
            .of(&rows.clone().map(|row| row as u32).collect::<Vec<_>>()),
    }
}

impl World {
    fn new(task: &'static Task<'static>) -> Self {
        on_this_thread();
        World {
            task,
            roles: BTreeMap::new(),
            records: BTreeMap::new(),
            messages: VecDeque::new(),
        }
    }

    fn begin_all(&mut self) {
        for party in &PARTIES[..THERE] {
            told(self.begin(*party));
        }
    }

    /// Starts a party, with its record if there is one.
    fn begin(&mut self, party: Party) -> Result<(), Unread> {
        let (task, quorum) = (self.task, Quorum::default());
        let mut outbox = Outbox::default();
        // The first group has all held-out rows.
        let held_out = |m: usize, hospital: bool| -> HeldOutSamples {
            [&DATASET.validation, &DATASET.test].map(|all| {
                let rows = if m == 0 { all.len() } else { 0 };
                some(all, 0..rows, hospital)
            })
        };
        // The devices of each gateway.
        let gateways = |m: usize| -> Vec<std::ops::Range<u32>> {
            let of_group: &[[u32; 2]] = match m {
                0 => &[[0, 2], [2, 3]],
                _ => &[[0, 1]],
            };
            of_group.iter().map(|[start, end]| *start..*end).collect()
        };
        let mut role = match party {
            Party::Cloud => Role::Cloud(Box::new(Cloud::new(task, quorum))),
            Party::Hospital(m) => {
                let group = &DATASET.groups[m];
                let own = Group {
                    samples: some(&group.samples, 0..group.samples.len(), true),
                    ..group.clone()
                };
                let mut hospital = Hospital::new(task, m, own, held_out(m, true));
                hospital.add_newcomers(super::askers::newcomers());
                Role::Hospital(Box::new(hospital))
            }
            Party::Edge(m) => Role::Edge(Box::new(Edge::new(task, m, gateways(m), quorum))),
            Party::Gateway(m, g) => {
                let (group, devices) = (&DATASET.groups[m], gateways(m)[g].clone());
                let [start, end] =
                    [devices.start, devices.end].map(|n| group.offsets.at(n as usize) as usize);
                let own = some(&group.samples, start..end, false);
                let held_out = match g {
                    0 => held_out(m, false),
                    _ => HeldOutSamples::default(),
                };
                let gateway = Gateway::new(task, (m, g), devices, own, held_out, [0; 2]);
                Role::Gateway(Box::new(gateway))
            }
        };
        let record = self.records.get(&party);
        role.begin(record.map(Vec::as_slice), &mut outbox)?;
        self.roles.insert(party, role);
        self.take(party, outbox);
        Ok(())
    }

    fn take(&mut self, from: Party, outbox: Outbox) {
        self.records.extend(outbox.record.map(|r| (from, r)));
        let messages = outbox.messages.into_iter();
        self.messages
            .extend(messages.map(|(to, message)| (from, to, message)));
        if outbox.go_on {
            self.happen(from, Event::GoOn);
        }
    }

    fn happen(&mut self, to: Party, event: Event) {
        let mut outbox = Outbox::default();
        if let Some(role) = self.roles.get_mut(&to) {
            role.handle(event, &mut outbox);
        }
        self.take(to, outbox);
    }

    /// Messages arrive, the first ones first.
    fn deliver(&mut self, most: usize) {
        for _ in 0..most {
            let Some((from, to, message)) = self.messages.pop_front() else {
                return;
            };
            // Nobody can have said what cannot be written.
            let bytes = wire::encode(RUN, &message);
            let message = wire::decode(RUN, &bytes).expect("what was encoded");
            self.happen(to, Event::Received(from, message));
        }
    }

    /// Everything happens to everybody, and every message of a right run arrives once more.
    fn bother(&mut self) {
        let all: Vec<Party> = self.roles.keys().copied().collect();
        for party in all {
            let t = self.roles[&party].doing().t;
            for from in PARTIES {
                self.happen(party, Event::Appeared(from));
            }
            self.happen(party, Event::Retry);
            self.happen(party, Event::GoOn);
            let task = TASKS.iter().position(|task| std::ptr::eq(task, self.task));
            let said = task.map_or(&[][..], |task| &RIGHT[task].messages);
            for (from, to, message) in said.iter().filter(|(_, to, _)| *to == party) {
                self.happen(*to, Event::Received(*from, message.clone()));
            }
            for phase in PHASES {
                for t in [t, t.saturating_add(2), t.saturating_add(4)] {
                    self.happen(party, Event::Deadline(phase, t));
                }
            }
        }
    }

    /// Whoever has kept a record comes back with it.
    fn comes_back(&mut self) {
        let records: Vec<Party> = self.records.keys().copied().collect();
        for party in records {
            let back = self.begin(party);
            assert!(back.is_ok(), "{party} does not come back: {back:?}");
        }
        self.deliver(10);
    }
}

/// A run in which all is right.
pub(super) struct Right {
    pub(super) messages: Vec<(Party, Party, Message)>,
    records: Vec<(Party, Vec<u8>)>,
}

pub(super) static RIGHT: LazyLock<Vec<Right>> = LazyLock::new(|| TASKS.iter().map(right).collect());

fn right(task: &'static Task<'static>) -> Right {
    let mut world = World::new(task);
    let mut right = Right {
        messages: Vec::new(),
        records: Vec::new(),
    };
    world.begin_all();
    right.go_on(&mut world);
    // When it is over, somebody asks what was learnt.
    let t = world.roles[&Party::Edge(0)].doing().t;
    world.messages.extend(super::askers::questions(t));
    right.go_on(&mut world);
    right
}

impl Right {
    /// The first message of each kind.
    fn of_each_kind(&self) -> impl Iterator<Item = &(Party, Party, Message)> {
        let mut kinds = Vec::new();
        self.messages.iter().filter(move |(_, _, message)| {
            let kind = std::mem::discriminant(message);
            let is_new = !kinds.contains(&kind);
            kinds.push(kind);
            is_new
        })
    }

    /// Everything that is on its way arrives, and what follows from it.
    fn go_on(&mut self, world: &mut World) {
        while let Some((from, to, message)) = world.messages.front().cloned() {
            self.messages.push((from, to, message));
            world.deliver(1);
            self.records
                .append(&mut world.records.clone().into_iter().collect());
            self.records.sort();
            self.records.dedup();
        }
    }
}

/// One message of each kind, from each run.
pub(super) fn messages() -> Vec<Vec<u8>> {
    let messages = RIGHT.iter().flat_map(Right::of_each_kind);
    let frame = |(_, _, message): &(Party, Party, Message)| wire::encode(RUN, message);
    messages.map(frame).collect()
}

/// The first and the last record of every party that keeps some.
pub(super) fn records() -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    for (task, right) in (0..).zip(RIGHT.iter()) {
        for party in &PARTIES[..KEPT] {
            let of_party = || right.records.iter().filter(|(of, _)| of == party);
            let some = of_party().take(1).chain(of_party().next_back());
            records.extend(some.map(|(_, record)| {
                let mut bytes = vec![task, number(*party)];
                bytes.extend_from_slice(record);
                bytes
            }));
        }
    }
    records
}

/// What is said in a right run, one kind after the other, in between what was said anyway.
pub(super) fn talks() -> Vec<Vec<u8>> {
    let mut talks = Vec::new();
    for (task, right) in (0..).zip(RIGHT.iter()) {
        let mut bytes = vec![task];
        for (from, to, message) in right.of_each_kind() {
            bytes.extend([1, 12, 0, 0, number(*to), number(*from)]);
            push_message(message, &mut bytes);
            bytes.extend([2, number(*to), 0, 3, number(*to), number(*from)]);
        }
        talks.push(bytes);
    }
    talks
}

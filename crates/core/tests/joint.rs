//! Joint predictions, driven in memory: whatever is lost, doubled or late and whoever is killed, what a gateway is told
//! is what the whole model says of the whole row, bit for bit. A failure prints the seed that replays it.

mod common;

use common::*;
use selvedge_core::calibration::Calibration;
use selvedge_core::dataset::{Dataset, Group, Samples};
use selvedge_core::model::Model;
use selvedge_core::role::{
    About, AskError, Asker, Edge, Event, HeldOutSamples, Hospital, MOST_ASKED, Message, Newcomers,
    Numbers, Outbox, Party, Portion, Protocol, Quorum, Role, Why, wire,
};
use selvedge_core::scores::predict;
use selvedge_core::task::Task;
use selvedge_nn::random::Stream;
use std::collections::{BTreeMap, HashSet};

const EDGE: Party = Party::Edge(0);
const HOSPITAL: Party = Party::Hospital(0);
const MINE: Party = Party::Gateway(0, 0);
const OTHER: Party = Party::Gateway(0, 1);

/// A name for the key of the pseudonyms; patients who do not take part are called 1000 and more.
const KEY: u128 = 77;

/// One group of five devices, three of them the first gateway's, with some held-out rows and newcomers.
struct World<'a> {
    task: &'a Task<'a>,
    data: &'a Dataset,
    /// As the cloud has announced it.
    model: Model,
    new: Samples,
    roles: BTreeMap<Party, Role<'a>>,
    records: BTreeMap<Party, Vec<u8>>,
    messages: Vec<(Party, Party, Message)>,
    answered: u64,
    calibration: Calibration,
}

fn data(seed: u64) -> Dataset {
    let mut plan = Plan::of_groups(&[]);
    plan.devices = vec![vec![1, 2, 1, 3, 1]];
    (plan.test, plan.validation) = (7, 4);
    dataset(seed, &plan)
}

/// Rows with the other side taken out.
fn side(all: &Samples, hospital: bool) -> Samples {
    let keep = |x: &Vec<f32>, wanted: bool| if wanted { x.clone() } else { Vec::new() };
    Samples {
        x1: keep(&all.x1, hospital),
        x2: keep(&all.x2, !hospital),
        y: all.y.clone(),
    }
}

impl<'a> World<'a> {
    fn new(task: &'a Task<'a>, data: &'a Dataset, seed: u64) -> Self {
        let mut plan = Plan::of_groups(&[3]);
        (plan.test, plan.validation) = (0, 0);
        let mut world = World {
            task,
            data,
            model: task.architecture.initial(seed + 1),
            new: dataset(seed + 2, &plan).groups[0].samples.clone(),
            roles: BTreeMap::new(),
            records: BTreeMap::new(),
            messages: Vec::new(),
            answered: 0,
            calibration: Calibration {
                scale: 0.5,
                bias: vec![0.25, -0.5],
                each: false,
            },
        };
        world.begin(EDGE);
        world.begin(HOSPITAL);
        world.messages.clear();
        world
    }

    /// Starts a party, with its record if it has one.
    fn begin(&mut self, party: Party) {
        let mut role = match party {
            EDGE => {
                let edge = Edge::new(self.task, 0, vec![0..3, 3..5], Quorum::default());
                let held_out = vec![[0..2, 0..4], [2..4, 4..7]];
                Role::Edge(Box::new(edge.with_held_out(held_out)))
            }
            _ => {
                let own = Group {
                    samples: side(&self.data.groups[0].samples, true),
                    ..self.data.groups[0].clone()
                };
                let held_out: HeldOutSamples =
                    [&self.data.validation, &self.data.test].map(|all| side(all, true));
                let mut hospital = Hospital::new(self.task, 0, own, held_out);
                // 1002 takes part after all.
                let roster = HashSet::from([1002]);
                let x1 = self.new.x1.clone();
                let new = Newcomers::new(KEY, &[1000, 1001, 1002], x1, &roster);
                hospital.add_newcomers(new);
                Role::Hospital(Box::new(hospital))
            }
        };
        let mut outbox = Outbox::default();
        let record = self.records.get(&party).map(Vec::as_slice);
        role.begin(record, &mut outbox).expect("its own record");
        self.roles.insert(party, role);
        self.take(party, outbox);
    }

    /// The cloud says that the run is over.
    fn end(&mut self) {
        for party in [EDGE, HOSPITAL] {
            let dense = |part: &[f32]| Numbers::Dense(part.into());
            let [theta0, theta1, theta2] = self.model.parts().map(dense);
            let message = Message::Global {
                t: self.task.experiment.train.iterations,
                parts: match party {
                    EDGE => vec![theta2],
                    _ => vec![theta0, theta1],
                },
                since: None,
                segment: self.task.segment(),
                anew: false,
                ended: true,
                calibration: (party == HOSPITAL).then(|| self.calibration.clone()),
            };
            self.hears(party, Party::Cloud, message);
        }
        self.messages.clear();
    }

    fn take(&mut self, from: Party, outbox: Outbox) {
        self.records
            .extend(outbox.record.map(|record| (from, record)));
        self.answered += outbox.answered;
        for (to, message) in outbox.messages {
            let bytes = wire::encode(7, &message);
            let message = wire::decode(7, &bytes).expect("what was encoded");
            self.messages.push((from, to, message));
        }
    }

    fn hears(&mut self, to: Party, from: Party, message: Message) {
        let mut outbox = Outbox::default();
        if let Some(role) = self.roles.get_mut(&to) {
            role.handle(Event::Received(from, message), &mut outbox);
        }
        self.take(to, outbox);
    }

    /// What a gateway hears when it says this and nothing is lost.
    fn answers(&mut self, from: Party, message: Message) -> Vec<Message> {
        self.hears(EDGE, from, message);
        let mut heard = Vec::new();
        while !self.messages.is_empty() {
            let (from, to, message) = self.messages.remove(0);
            match to {
                MINE | OTHER => heard.push(message),
                _ => self.hears(to, from, message),
            }
        }
        heard
    }

    /// Everything the first gateway can ask about, with the rows of both sides.
    fn asked(&self) -> Vec<(About, Samples)> {
        let (own, validation, test) = (
            &self.data.groups[0].samples,
            &self.data.validation,
            &self.data.test,
        );
        let new = About::New {
            key: KEY,
            patients: vec![1001, 5, 1002, 1000],
        };
        let row = |all: &Samples, rows: &[u32]| {
            let mut some = Samples::default();
            for row in rows.iter().map(|row| *row as usize) {
                let (x1, x2) = (&all.x1[row * 3..][..3], &all.x2[row * 2..][..2]);
                some.push(x1, x2, all.y.classes()[row]);
            }
            some
        };
        vec![
            (
                About::Rows(Portion::Training, vec![0, 2, 3]),
                row(own, &[0, 2, 3]),
            ),
            (
                About::Rows(Portion::Validation, vec![1]),
                row(validation, &[1]),
            ),
            (
                About::Rows(Portion::Test, vec![3, 0, 1]),
                row(test, &[3, 0, 1]),
            ),
            // Whose lab results are nowhere has any.
            (new, row(&self.new, &[1, 0, 2, 0])),
        ]
    }
}

/// The asker of everything that a world's first gateway can ask about.
fn asker<'a>(world: &World<'a>, first: u64) -> Asker<'a> {
    let asked = world.asked();
    let asked: Vec<_> = asked.into_iter().map(|(about, s)| (about, s.x2)).collect();
    Asker::new(world.task.networks(), (0, 0), first, &asked)
}

/// What the whole model says of whole rows, and nothing of who is unknown.
fn expected(world: &World<'_>) -> Vec<Option<Vec<f32>>> {
    let mut all = Vec::new();
    for (about, samples) in world.asked() {
        let said = predict(world.task.networks(), &world.model, &samples, None);
        let rows = said.answers.chunks_exact(2).map(|row| Some(row.to_vec()));
        let mut rows: Vec<_> = rows.collect();
        if matches!(about, About::New { .. }) {
            (rows[1], rows[2]) = (None, None);
        }
        all.extend(rows);
    }
    all
}

/// Something happens to an asker: whether that is news, and what it says.
fn happens(asker: &mut Asker<'_>, event: Event) -> (bool, Vec<Message>) {
    let mut outbox = Outbox::default();
    asker.handle(event, &mut outbox);
    assert!(outbox.messages.iter().all(|(to, _)| *to == EDGE));
    let said = outbox.messages.into_iter().map(|(_, message)| message);
    (outbox.news, said.collect())
}

fn hears(asker: &mut Asker<'_>, from: Party, message: &Message) -> (bool, Vec<Message>) {
    happens(asker, Event::Received(from, message.clone()))
}

/// Nothing comes of a message.
fn ignores(asker: &mut Asker<'_>, from: Party, message: &Message) -> bool {
    hears(asker, from, message) == (false, Vec::new()) && asker.failure().is_none()
}

/// Goes on until the asker knows everything. In percent: what is lost, what comes twice, who is killed.
fn run(
    world: &mut World<'_>,
    asker: &mut Asker<'_>,
    stream: &mut Stream,
    [lost, doubled, killed]: [u64; 3],
) {
    for _ in 0..10_000 {
        if asker.is_over() {
            return;
        }
        if world.messages.is_empty() {
            for message in happens(asker, Event::Retry).1 {
                world.messages.push((MINE, EDGE, message));
            }
        }
        let which = stream.below(world.messages.len() as u64) as usize;
        let (from, to, message) = match stream.below(100) < doubled {
            true => world.messages[which].clone(),
            false => world.messages.swap_remove(which),
        };
        if stream.below(100) < lost {
            continue;
        }
        if stream.below(100) < killed {
            world.begin(pick(stream, &[EDGE, HOSPITAL]));
        }
        match to {
            MINE => {
                for message in hears(asker, from, &message).1 {
                    world.messages.push((MINE, EDGE, message));
                }
                assert_eq!(asker.failure(), None);
            }
            to => world.hears(to, from, message),
        }
    }
    panic!("it is never answered: waits for {}", asker.waits_for());
}

#[test]
fn what_a_gateway_is_told_is_what_the_whole_model_says() {
    for_seeds(0..60, |seed| {
        let mut stream = stream(seed);
        let (experiment, data) = (experiment(seed, [4, 4, 2], TANH), data(seed));
        let task = task(&experiment, &data);
        let mut world = World::new(&task, &data, seed);
        world.end();
        let first = pick(&mut stream, &[1, u64::MAX - 1, 1 << 40]);
        let (mut asking, weather) = (asker(&world, first), [[0; 3], [20, 20, 10]]);
        run(
            &mut world,
            &mut asking,
            &mut stream,
            weather[(seed % 2) as usize],
        );
        assert_eq!(asking.progress(), (11, 11));
        // Whatever the hospital had to forget, it knows how to correct what the model says.
        assert_eq!(asking.calibration(), Some(&world.calibration));
        let (answers, expected) = (asking.into_answers(), expected(&world));
        let bits = |all: &[Option<Vec<f32>>]| -> Vec<Option<Vec<u32>>> {
            let bits = |row: &Vec<f32>| row.iter().map(|p| p.to_bits()).collect();
            all.iter().map(|row| row.as_ref().map(bits)).collect()
        };
        assert_eq!(bits(&answers), bits(&expected));
        // Nine by the hospital, and as many by the edge that passes them on; more where something came twice.
        assert!(world.answered >= 18 && (seed % 2 == 1 || world.answered == 18));
    });
}

/// A question of the first gateway about one patient of its own.
fn question(t: u64, about: About, zeta2: &[f32]) -> Message {
    Message::Question {
        number: 9,
        t,
        gateway: 1,
        about,
        zeta2: Numbers::Dense(zeta2.into()),
    }
}

#[test]
fn who_may_not_ask_is_refused_and_told_why() {
    let (experiment, data) = (experiment(3, [4, 4, 2], TANH), data(3));
    let task = task(&experiment, &data);
    let mut world = World::new(&task, &data, 3);
    let own = |row: u32| About::Rows(Portion::Training, vec![row]);
    let refused = |heard: Vec<Message>| match &heard[..] {
        [Message::Refused { why, .. }] => *why,
        // It was passed on, and the hospital refuses it.
        [Message::Passed { .. }, Message::Refused { why, .. }] => *why,
        other => panic!("{other:?}"),
    };
    // Not before the run is over, whoever is asked.
    assert_eq!(refused(world.answers(MINE, Message::Fetch)), Why::Training);
    let early = question(4, own(0), &[0.0; 2]);
    assert_eq!(refused(world.answers(MINE, early.clone())), Why::Training);
    world.hears(HOSPITAL, EDGE, early);
    let said = world.messages.pop().expect("a refusal").2;
    assert_eq!(refused(vec![said]), Why::Training);
    world.end();
    // Whatever a gateway says of itself, the edge knows who it is.
    let answers = world.answers(MINE, question(4, own(3), &[0.5; 2]));
    assert!(
        matches!(
            &answers[..],
            [
                Message::Passed { number: 9 },
                Message::Answer { gateway: 0, .. }
            ]
        ),
        "{answers:?}"
    );
    let test = |row: u32| About::Rows(Portion::Test, vec![row]);
    let new = |key: u128| About::New {
        key,
        patients: vec![1000],
    };
    for (from, message, why) in [
        (MINE, question(4, own(4), &[0.5; 2]), Why::NotYours),
        (OTHER, question(4, own(3), &[0.5; 2]), Why::NotYours),
        (OTHER, question(4, test(3), &[0.5; 2]), Why::NotYours),
        (OTHER, question(4, test(7), &[0.5; 2]), Why::NotYours),
        (MINE, question(4, own(u32::MAX), &[0.5; 2]), Why::NotYours),
        (MINE, question(2, own(0), &[0.5; 2]), Why::OtherModel),
        (MINE, question(4, own(0), &[0.5]), Why::Malformed),
        (MINE, question(4, own(0), &[0.5, f32::NAN]), Why::Malformed),
        (
            MINE,
            question(4, About::Rows(Portion::Test, vec![]), &[]),
            Why::Malformed,
        ),
        (
            MINE,
            question(
                4,
                About::Rows(Portion::Test, vec![0; MOST_ASKED + 1]),
                &vec![0.5; 2 * MOST_ASKED + 2],
            ),
            Why::Malformed,
        ),
        (MINE, question(4, new(KEY + 1), &[0.5; 2]), Why::OtherKey),
    ] {
        let heard = world.answers(from, message.clone());
        assert_eq!(refused(heard), why, "{message:?}");
    }
    // The hospital looks for itself: it need not believe its edge.
    for (message, why) in [
        (question(4, own(8), &[0.5; 2]), Why::NotYours),
        (question(3, own(0), &[0.5; 2]), Why::OtherModel),
        (question(4, own(0), &[f32::INFINITY, 0.0]), Why::Malformed),
    ] {
        world.hears(HOSPITAL, EDGE, message);
        let said = world.messages.pop().expect("a refusal").2;
        assert_eq!(refused(vec![said]), why);
    }
    // Nobody else is heard at all, and a gateway that does not exist is told nothing.
    for (to, from) in [
        (EDGE, Party::Gateway(1, 0)),
        (EDGE, Party::Gateway(0, 2)),
        (EDGE, Party::Cloud),
        (HOSPITAL, MINE),
        (HOSPITAL, Party::Cloud),
        (HOSPITAL, Party::Edge(1)),
    ] {
        world.hears(to, from, question(4, new(KEY), &[0.5; 2]));
        world.hears(to, from, Message::Fetch);
        assert!(world.messages.is_empty(), "{from} is answered by {to}");
    }
    let answer = Message::Answer {
        number: 9,
        gateway: 2,
        unknown: Vec::new(),
        probabilities: Numbers::Dense([0.5, 0.5].into()),
        calibration: None,
    };
    world.hears(EDGE, HOSPITAL, answer);
    assert!(world.messages.is_empty());
}

#[test]
fn an_asker_takes_no_answer_that_cannot_be_and_knows_who_is_missing() {
    let (experiment, data) = (experiment(5, [4, 4, 2], TANH), data(5));
    let task = task(&experiment, &data);
    let mut world = World::new(&task, &data, 5);
    world.end();
    let about = About::Rows(Portion::Test, vec![0, 1]);
    let x2 = data.test.x2[..4].to_vec();
    let mut asker = Asker::new(task.networks(), (0, 0), 50, &[(about, x2)]);
    let answer = |number, unknown: &[u32], probabilities: &[f32]| Message::Answer {
        number,
        gateway: 0,
        unknown: unknown.to_vec(),
        probabilities: Numbers::Dense(probabilities.into()),
        calibration: None,
    };
    let again = |asker: &mut Asker<'_>| happens(asker, Event::Retry);
    assert_eq!(again(&mut asker), (false, vec![Message::Fetch]));
    assert_eq!(asker.waits_for(), EDGE);
    // Nothing has been asked, so nothing is an answer, nor refused.
    let refused = |number, why| Message::Refused {
        number,
        gateway: 0,
        why,
    };
    assert!(ignores(&mut asker, EDGE, &answer(50, &[], &[0.5; 4])));
    assert!(ignores(&mut asker, EDGE, &refused(50, Why::NotYours)));
    let short = Message::Trained {
        t: 4,
        theta2: Numbers::Dense([1.0].into()),
    };
    assert!(ignores(&mut asker, EDGE, &short));
    let trained = world.answers(MINE, Message::Fetch).remove(0);
    assert!(ignores(&mut asker, HOSPITAL, &trained));
    let (news, asked) = hears(&mut asker, EDGE, &trained);
    assert!(news && matches!(&asked[..], [Message::Question { number: 50, .. }]));
    assert!(ignores(&mut asker, EDGE, &trained), "it is said already");
    assert_eq!(again(&mut asker), (false, asked));
    // The edge has passed it on; then it is silent too.
    assert!(ignores(&mut asker, EDGE, &Message::Passed { number: 50 }));
    assert_eq!(asker.waits_for(), HOSPITAL);
    for _ in 0..3 {
        again(&mut asker);
    }
    assert_eq!(asker.waits_for(), EDGE);
    for (wrong, probabilities) in [
        (answer(51, &[], &[0.5; 4]), "another question's"),
        (answer(50, &[], &[0.5; 3]), "too few"),
        (answer(50, &[], &[0.5; 6]), "too many"),
        (answer(50, &[0], &[0.5; 4]), "somebody unknown"),
        (answer(50, &[2], &[0.5; 2]), "nobody's place"),
        (answer(50, &[1, 0], &[]), "places in no order"),
        (answer(50, &[0, 0], &[]), "the same place twice"),
        (answer(50, &[0, 1, 2], &[]), "more places than asked"),
        (answer(50, &[], &[0.5, f32::NAN, 0.5, 0.5]), "no number"),
        (answer(50, &[], &[0.5, 1.5, 0.5, 0.5]), "no probability"),
    ] {
        assert!(ignores(&mut asker, EDGE, &wrong), "{probabilities}");
    }
    assert!(hears(&mut asker, EDGE, &answer(50, &[1], &[0.2, 0.8])).0);
    // The first one counts.
    assert!(ignores(&mut asker, EDGE, &answer(50, &[], &[0.5; 4])));
    assert!(asker.is_over());
    assert_eq!(asker.into_answers(), [Some(vec![0.2, 0.8]), None]);

    // Refusals end it, before and behind the model.
    let one = |x2: f32| {
        let about = About::Rows(Portion::Test, vec![0]);
        Asker::new(task.networks(), (0, 0), 1, &[(about, vec![x2; 2])])
    };
    let why = |asker: &Asker<'_>| asker.failure().expect("a refusal");
    let mut asker = one(0.0);
    assert_eq!(
        hears(&mut asker, EDGE, &refused(0, Why::Training)),
        (false, vec![])
    );
    assert!(why(&asker).contains("not over yet"), "{}", why(&asker));
    let mut asker = one(0.0);
    let (news, asked) = hears(&mut asker, EDGE, &trained);
    assert!(news && asked.len() == 1 && asker.failure().is_none());
    assert!(ignores(&mut asker, EDGE, &refused(0, Why::Training)));
    assert_eq!(
        hears(&mut asker, EDGE, &refused(1, Why::NotYours)),
        (false, vec![])
    );
    assert!(
        why(&asker).contains("not this gateway's"),
        "{}",
        why(&asker)
    );
    // A model that has diverged predicts nothing.
    let mut asker = one(1.0);
    let width = task.architecture.device.params();
    let lost = Message::Trained {
        t: 4,
        theta2: Numbers::Dense(vec![f32::NAN; width].into()),
    };
    assert_eq!(hears(&mut asker, EDGE, &lost), (true, vec![]));
    assert_eq!(asker.failure(), Some(AskError::NotFinite.to_string()));
}

#[test]
fn many_patients_go_in_few_questions() {
    let (experiment, data) = (experiment(6, [4, 4, 2], TANH), data(6));
    let task = task(&experiment, &data);
    let mut world = World::new(&task, &data, 6);
    world.end();
    let patients: Vec<u128> = (0..10_000u128).collect();
    let x2 = vec![0.25; 2 * patients.len()];
    let about = About::New { key: KEY, patients };
    let mut asker = Asker::new(task.networks(), (0, 0), 1, &[(about, x2)]);
    let trained = world.answers(MINE, Message::Fetch).remove(0);
    let (news, mut said) = hears(&mut asker, EDGE, &trained);
    assert!(news && said.len() <= 8, "{} at once", said.len());
    let mut questions = 0;
    while !asker.is_over() {
        questions += 1;
        for heard in world.answers(MINE, said.remove(0)) {
            said.extend(hears(&mut asker, EDGE, &heard).1);
            assert_eq!(asker.failure(), None);
            assert!(said.len() <= 8, "{} at once", said.len());
        }
    }
    let answers = asker.into_answers();
    let known: Vec<usize> = (0..answers.len())
        .filter(|n| answers[*n].is_some())
        .collect();
    assert_eq!((questions, known), (10, vec![1000, 1001]));
}

//! A party that is gone for good costs a few deadlines, and not one in each phase of each interval.

use super::*;
use std::collections::BTreeSet;

/// A world in which nothing is lost but what goes to the dead, and in which deadlines pass only when all is said.
struct Calm<'a> {
    world: World<'a>,
    dead: BTreeSet<Party>,
    deadlines: usize,
}

impl Calm<'_> {
    fn step(&mut self) {
        if self.world.messages.is_empty() {
            match self.world.phases.is_empty() {
                true => self.world.retry(),
                false => {
                    let (party, phase, t) = self.world.phases.remove(0);
                    let absent = self.world.absences.len();
                    self.world.happen(party, Event::Deadline(phase, t), false);
                    // One that is over already decides nothing.
                    self.deadlines += usize::from(self.world.absences.len() > absent);
                }
            }
            return self.bury();
        }
        let (from, to, message) = self.world.messages.remove(0);
        self.world.happen(to, Event::Received(from, message), false);
        self.bury();
    }

    /// The dead say nothing, and hear nothing.
    fn bury(&mut self) {
        let lives = |party: &Party| !self.dead.contains(party);
        self.world
            .messages
            .retain(|(from, to, _)| lives(from) && lives(to));
    }

    fn t(&self) -> u64 {
        self.world.cloud().state().progress.t
    }
}

fn gone_at_a_third(gone: &[Party], silenced: bool) {
    let plan = Plan {
        validation: 6,
        ..Plan::of_groups(&[6, 6, 6])
    };
    let mut e = experiment(3, [120, 4, 2], TANH);
    e.train.participation = 1.0;
    let (experiment, data) = (checked(&e), dataset(3, &plan));
    let own = task(&experiment, &data);
    let mut world = World::new(&own, &data, &mut stream(3));
    world.phases.clear();
    assert!(world.home.gateways[1].len() > 1, "one alone is no group");
    let mut calm = Calm {
        world,
        dead: BTreeSet::new(),
        deadlines: 0,
    };
    while calm.t() < 40 {
        calm.step();
    }
    assert_eq!((calm.deadlines, calm.world.absences.len()), (0, 0));
    calm.dead.extend(gone);
    if silenced {
        let parties: Vec<Party> = calm.world.roles.keys().copied().collect();
        for (party, gone) in parties
            .iter()
            .flat_map(|p| gone.iter().map(move |g| (*p, *g)))
        {
            for phase in Phase::ALL {
                calm.world
                    .happen(party, Event::Silenced(phase, gone), false);
            }
        }
    }
    while calm.t() < 80 {
        calm.step();
    }
    // Three in a row of each phase that waits for them: an exchange or an upload, an aggregation, an evaluation; of who is
    // silenced, those of an evaluation that another party waits for.
    let most = if silenced { 4 } else { 9 };
    assert!((1..=most).contains(&calm.deadlines), "{}", calm.deadlines);
    assert!(
        calm.world.absences.len() > 12,
        "{}",
        calm.world.absences.len()
    );
    let said = |calm: &Calm<'_>| -> BTreeSet<Party> {
        let roles = calm.world.roles.values();
        roles.flat_map(|role| role.doing().gone).collect()
    };
    assert!(said(&calm).is_superset(&calm.dead), "{:?}", said(&calm));
    // They are back: heard from, waited for, and in all that comes.
    calm.dead.clear();
    for party in gone {
        calm.world.begin(*party);
        let neighbours = match *party {
            Party::Gateway(m, _) => vec![Party::Edge(m)],
            Party::Edge(m) => vec![Party::Hospital(m), Party::Cloud],
            _ => unreachable!("only these die here"),
        };
        for neighbour in neighbours {
            calm.world.happen(neighbour, Event::Appeared(*party), false);
        }
    }
    while calm.t() < 100 {
        calm.step();
    }
    let before = calm.world.absences.len();
    while !calm.world.is_over() {
        calm.step();
    }
    assert_eq!(calm.world.absences.len(), before, "nobody is absent again");
    assert_eq!(said(&calm), BTreeSet::new());
    let mut looped = task(&experiment, &data);
    looped.absences = Box::new(calm.world.listed());
    let looped = run(&looped);
    let theta = &calm.world.cloud().state().theta;
    assert!(model_bits(theta) == model_bits(&looped.last.theta));
}

#[test]
fn a_gateway_that_is_gone_costs_a_few_deadlines_and_may_come_back() {
    gone_at_a_third(&[Party::Gateway(1, 0)], false);
    gone_at_a_third(&[Party::Gateway(1, 0)], true);
}

#[test]
fn a_group_that_is_gone_costs_a_few_deadlines_and_may_come_back() {
    gone_at_a_third(&[Party::Edge(2)], false);
    gone_at_a_third(&[Party::Edge(2)], true);
}

/// An edge decides for its gateways when the run is over. It says so by its model, and a gateway whose run was cut short
/// says that it was.
#[test]
fn a_gateway_ends_by_its_edges_word_alone_and_tells_an_early_end() {
    let data = dataset(3, &Plan::of_groups(&[6]));
    let mut e = experiment(3, [20, 4, 2], TANH);
    let ends = |e: &Experiment, t: u64| {
        let experiment = checked(e);
        let task = task(&experiment, &data);
        let mut world = World::new(&task, &data, &mut stream(3));
        let gateway = world.roles.get_mut(&Party::Gateway(0, 0)).unwrap();
        let hears = |gateway: &mut Role<'_>, message| {
            let mut outbox = Outbox::default();
            gateway.handle(Event::Received(Party::Edge(0), message), &mut outbox);
            outbox.messages
        };
        let asked = hears(gateway, Message::End);
        assert_eq!(asked, [(Party::Edge(0), Message::Fetch)]);
        assert!(!gateway.is_over() && gateway.failure().is_none());
        let theta2 = selvedge_core::role::Numbers::Dense(vec![0.0].into());
        let answer = hears(gateway, Message::Trained { t, theta2 });
        assert_eq!(answer, [(Party::Edge(0), Message::Done)]);
        assert!(gateway.is_over());
        gateway.failure()
    };
    assert_eq!(ends(&e, 20), None);
    let why = ends(&e, 12).expect("nothing ends this run early");
    assert!(
        why.contains("edge 0") && why.contains("t = 12 of 20"),
        "{why}"
    );
    e.stop.bytes = Some(1e9);
    assert_eq!(ends(&e, 12), None, "a budget may");
    // An edge that has not ended does not say that it has.
    let experiment = checked(&e);
    let task = task(&experiment, &data);
    let mut world = World::new(&task, &data, &mut stream(3));
    world.messages.clear();
    let gateway = Party::Gateway(0, 0);
    world.happen(
        gateway,
        Event::Received(Party::Edge(0), Message::End),
        false,
    );
    world.happen(
        Party::Edge(0),
        Event::Received(gateway, Message::Fetch),
        false,
    );
    let answers: Vec<Message> = world.messages.drain(..).map(|(_, _, m)| m).collect();
    assert!(
        matches!(answers[..], [Message::Fetch, Message::Refused { .. }]),
        "{answers:?}"
    );
}

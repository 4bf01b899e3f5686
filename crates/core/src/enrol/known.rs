//! What is known of patients, as parties say it to each other; and what of it is summed up, so that all learn the same.

use super::Terms;
use super::message::Totals;
use super::ring::{self, ColumnSums};
use super::roll::FEWEST;
use crate::outcome::{Kind, Outcome, Targets};
use serde::{Deserialize, Serialize};

/// Into so many steps the time up to the horizon is cut before it is known how events are spread over it.
const STEPS: usize = 1000;

/// What is summed up of a group's training patients, beside counts, where the outcome needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Learnt {
    /// Of a quantity.
    Quantity(Box<ColumnSums>),
    /// Of survival.
    Survival {
        /// Steps of time, and how many had the event up to the end of each and after the one before: never fewer than
        /// [`FEWEST`], since few would nearly be patients.
        events: Vec<(u32, u64)>,
        /// Whether somebody was seen until the horizon.
        seen: bool,
    },
}

/// As words: a class, or the bits of each number.
pub(super) fn words(known: &Targets) -> Vec<u32> {
    known.words().map(|word| word as u32).collect()
}

/// Where a step ends.
fn end_of(step: usize, horizon: f64) -> f64 {
    match step + 1 {
        STEPS => horizon,
        steps => horizon * (steps as f64 / STEPS as f64),
    }
}

impl Terms {
    /// What words say of so many patients, if they can.
    pub(super) fn known(&self, words: &[u32], patients: usize) -> Option<Targets> {
        let (each, known) = match self.kind.each(&self.names) {
            None => (1, Targets::Classes(words.to_vec())),
            Some(each) => {
                let values = words.iter().map(|bits| f32::from_bits(*bits)).collect();
                (each, Targets::Numbers { each, values })
            }
        };
        let sound = Some(words.len()) == patients.checked_mul(each);
        let sound = sound && self.kind.problem_of(&self.names, &known).is_none();
        sound.then_some(known)
    }

    /// How often each answer is known.
    pub(super) fn count(&self, known: &Targets) -> Vec<u64> {
        let mut counts = vec![0; self.kind.counts(&self.names)];
        self.kind.count(known, &mut counts);
        counts
    }

    /// When survival curves end; whoever enrols for them has set it.
    fn horizon(&self) -> f64 {
        self.data.horizon.unwrap_or(1.0)
    }

    /// What is summed up of what is known of training patients.
    pub(super) fn learn(&self, known: &Targets) -> Option<Learnt> {
        let values = known.numbers();
        match self.kind {
            Kind::Class | Kind::Labels => None,
            Kind::Quantity => {
                let count = values.len() as u64;
                let sums = ring::sum(values, &[true], &[[count; 2]]);
                sums.into_iter()
                    .next()
                    .map(|sums| Learnt::Quantity(Box::new(sums)))
            }
            Kind::Survival => {
                let horizon = self.horizon();
                let mut steps = vec![0u64; STEPS];
                let patients = || values.chunks_exact(2).map(|known| (known[0], known[1]));
                let all: Vec<f64> = (0..STEPS).map(|step| end_of(step, horizon)).collect();
                for (time, _) in patients().filter(|(_, event)| *event > 0.5) {
                    let step = all.partition_point(|end| *end < f64::from(time));
                    // What comes after the horizon has not happened.
                    steps
                        .get_mut(step)
                        .into_iter()
                        .for_each(|count| *count += 1);
                }
                Some(Learnt::Survival {
                    events: in_tens(&steps),
                    seen: patients().any(|(time, _)| f64::from(time) >= horizon),
                })
            }
        }
    }

    /// The outcome, by what all groups have summed up.
    pub(super) fn outcome(&self, groups: &[&Totals]) -> Result<Outcome, String> {
        let name = self.names.first().map_or("", String::as_str);
        let learnt = || groups.iter().filter_map(|totals| totals.learnt.as_ref());
        let outcome = match self.kind {
            Kind::Class => Outcome::Class,
            Kind::Labels => Outcome::Labels,
            Kind::Quantity => {
                let mut all = ColumnSums::default();
                for learnt in learnt() {
                    if let Learnt::Quantity(sums) = learnt {
                        all.add(sums);
                    }
                }
                let scale = all.scale();
                if scale.clip.is_some() {
                    return Err(format!(
                        "{name:?} is the same number for all training patients, so there is nothing to learn: expected a quantity that varies"
                    ));
                }
                Outcome::Quantity {
                    mean: scale.mean,
                    deviation: scale.deviation,
                }
            }
            Kind::Survival => {
                let mut steps = vec![0u64; STEPS];
                let mut is_seen = false;
                for learnt in learnt() {
                    if let Learnt::Survival { events, seen } = learnt {
                        is_seen |= *seen;
                        for (step, count) in events {
                            steps[*step as usize] += count;
                        }
                    }
                }
                let events: u64 = groups
                    .iter()
                    .filter_map(|totals| totals.labels.get(1))
                    .sum();
                if events == 0 {
                    return Err(format!(
                        "no training patient has the event {name:?}, so there is nothing to learn: expected some"
                    ));
                }
                let horizon = self.horizon();
                if !is_seen {
                    return Err(format!(
                        "data.horizon = {horizon}: no training patient was seen for so long: expected an earlier time"
                    ));
                }
                ends(&steps, horizon, self.data.intervals)
            }
        };
        outcome.problem().map_or(Ok(outcome), Err)
    }

    /// Whether an outcome can be that of these terms.
    pub(super) fn fits(&self, outcome: &Outcome) -> bool {
        let curve = match outcome {
            Outcome::Survival { ends } => {
                ends.len() == self.data.intervals && ends.last() == Some(&self.horizon())
            }
            _ => true,
        };
        outcome.kind() == self.kind && curve
    }

    /// What people should know of a group, or of all groups, where no training patient has some answer. What nobody of all
    /// has is not said of a group.
    pub(super) fn lacks(
        &self,
        who: &str,
        (counts, learnt): (&[u64], Option<&Learnt>),
        all: Option<&[u64]>,
    ) -> Vec<String> {
        let lacks = |place: usize| {
            let elsewhere = all.is_none_or(|all| all.get(place).is_some_and(|n| *n > 0));
            counts.get(place) == Some(&0) && elsewhere
        };
        let names = self.names.iter().enumerate();
        match self.kind {
            Kind::Class => names
                .filter(|(class, _)| lacks(*class))
                .map(|(_, name)| format!("no training patient of {who} has the label {name:?}"))
                .collect(),
            Kind::Labels if counts.iter().all(|count| *count == 0) => {
                vec![format!(
                    "no label is known of any training patient of {who}"
                )]
            }
            Kind::Labels => names
                .flat_map(|(label, name)| {
                    let with = ["without", "with"].into_iter().enumerate();
                    let with = with.filter(|(answer, _)| lacks(2 * label + answer));
                    let told = |(_, with)| {
                        format!("no training patient of {who} is known to be {with} {name:?}")
                    };
                    with.map(told).collect::<Vec<_>>()
                })
                .collect(),
            Kind::Quantity => Vec::new(),
            Kind::Survival if lacks(1) => {
                vec![format!("no training patient of {who} has the event")]
            }
            Kind::Survival => match learnt {
                Some(Learnt::Survival { events, .. }) if events.is_empty() => vec![format!(
                    "fewer than {FEWEST} training patients of {who} have the event by the horizon: intervals end where it suits the others"
                )],
                _ => Vec::new(),
            },
        }
    }
}

impl Learnt {
    /// Whether sums from elsewhere can be these, of so many patients, of whom so many had the event.
    pub(super) fn is_sound(&self, kind: Kind, patients: u64, counts: &[u64]) -> bool {
        match self {
            Learnt::Quantity(sums) => {
                let count = sums.measured.count();
                kind == Kind::Quantity && sums.is_sound(patients) && count == Some(patients)
            }
            Learnt::Survival { events, .. } => {
                let rising = events.windows(2).all(|pair| pair[0].0 < pair[1].0);
                let within = events.iter().all(|(step, _)| (*step as usize) < STEPS);
                let many = events.iter().all(|(_, count)| *count >= FEWEST as u64);
                let sum = events
                    .iter()
                    .try_fold(0u64, |n, (_, more)| n.checked_add(*more));
                let all = counts.get(1).copied().unwrap_or_default();
                kind == Kind::Survival
                    && rising
                    && within
                    && many
                    && sum.is_some_and(|sum| sum <= all)
            }
        }
    }
}

/// Events step by step, put together until they are [`FEWEST`] or more; what is left at the end is with the last.
fn in_tens(steps: &[u64]) -> Vec<(u32, u64)> {
    let (mut told, mut open): (Vec<(u32, u64)>, u64) = (Vec::new(), 0);
    for (step, count) in steps.iter().enumerate() {
        open += count;
        if open >= FEWEST as u64 {
            told.push((step as u32, open));
            open = 0;
        }
    }
    if let Some((_, last)) = told.last_mut() {
        *last += open;
    }
    told
}

/// Intervals with about as many events each: each but the last ends with the step by which its share has been.
fn ends(steps: &[u64], horizon: f64, intervals: usize) -> Outcome {
    let all: u64 = steps.iter().sum();
    let inner = (1..intervals).map(|k| {
        let share = u128::from(all) * k as u128;
        let mut by_then = 0u128;
        let step = steps.iter().position(|count| {
            by_then += u128::from(*count);
            // Of no events nobody knows where they are.
            by_then > 0 && by_then * intervals as u128 >= share
        });
        step.map_or(0.0, |step| end_of(step, horizon))
    });
    Outcome::survival(inner, horizon, intervals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enrol::Counts;
    use crate::enrol::message::Columns;
    use crate::experiment::DataSettings;
    use selvedge_nn::random::Key;

    const HORIZON: f64 = 300.0;

    fn terms_of(kind: Kind, intervals: usize) -> Terms {
        let data = DataSettings {
            intervals,
            horizon: Some(HORIZON),
            ..DataSettings::default()
        };
        Terms::new(&data, 1, kind, vec!["what".into()])
    }

    /// What a group would say of these patients.
    fn totals(terms: &Terms, known: &Targets) -> Totals {
        let columns = Columns {
            shape: vec![1],
            names: vec!["x".into()],
            scaled: vec![true],
        };
        Totals {
            columns,
            sums: vec![ColumnSums::default()],
            labels: terms.count(known),
            learnt: terms.learn(known),
            key: "0".repeat(32),
            digest: "0".repeat(64),
            counts: Counts {
                training: known.len(),
                ..Counts::default()
            },
        }
    }

    /// Patients of whom many have the event early, some late or not at all.
    fn patients(seed: u64, count: usize) -> Targets {
        let mut stream = Key::new(seed).stream();
        let one = |_| {
            let time = 400.0 * stream.uniform().powi(3);
            [time, f32::from(u8::from(stream.uniform() < 0.7))]
        };
        let values = (0..count).flat_map(one).collect();
        Targets::Numbers { each: 2, values }
    }

    fn found(terms: &Terms, groups: &[Targets]) -> Outcome {
        let totals: Vec<Totals> = groups.iter().map(|own| totals(terms, own)).collect();
        assert!(totals.iter().all(|totals| totals.is_sound(terms)));
        terms.outcome(&totals.iter().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn intervals_have_about_as_many_events_whoever_holds_them_in_whatever_order() {
        for (seed, intervals) in [(1, 4), (2, 12), (3, 1)] {
            let terms = terms_of(Kind::Survival, intervals);
            let mut groups: Vec<Targets> = (0..3).map(|m| patients(10 * seed + m, 800)).collect();
            let outcome = found(&terms, &groups);
            let Outcome::Survival { ends } = &outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!((ends.len(), ends.last()), (intervals, Some(&HORIZON)));
            let pairs = || groups.iter().flat_map(|own| own.numbers().chunks_exact(2));
            let events = pairs()
                .filter(|known| known[1] > 0.5)
                .map(|known| f64::from(known[0]));
            let events: Vec<f64> = events.filter(|time| *time <= HORIZON).collect();
            for (k, end) in ends.iter().enumerate() {
                let by_then = events.iter().filter(|time| **time <= *end).count() as f64;
                let share = events.len() as f64 * (k + 1) as f64 / intervals as f64;
                // Ten of each group are told as one, and those of a step.
                assert!(
                    (by_then - share).abs() <= 60.0,
                    "{k}: {by_then} and {share}"
                );
            }
            // Another order of groups and of patients tells the same.
            groups.reverse();
            for own in &mut groups {
                let backwards: Vec<u32> = (0..own.len() as u32).rev().collect();
                *own = own.of(&backwards);
            }
            assert_eq!(found(&terms, &groups), outcome);
        }
    }

    #[test]
    fn few_events_are_not_told_and_intervals_are_then_equally_long() {
        let terms = terms_of(Kind::Survival, 3);
        let early = |count: usize| Targets::Numbers {
            each: 2,
            values: (0..count)
                .flat_map(|n| [n as f32, 1.0])
                .chain([300.0, 0.0])
                .collect(),
        };
        let told = |known: &Targets| match terms.learn(known) {
            Some(Learnt::Survival { events, .. }) => events,
            learnt => panic!("{learnt:?}"),
        };
        assert_eq!(told(&early(9)), []);
        assert_eq!(told(&early(10)), [(29, 10)]);
        assert_eq!(told(&early(19)), [(29, 19)]);
        assert_eq!(told(&early(20)), [(29, 10), (63, 10)]);
        let evenly = Outcome::Survival {
            ends: vec![100.0, 200.0, 300.0],
        };
        assert_eq!(found(&terms, &[early(9), early(9)]), evenly);
        let halves = Outcome::Survival {
            ends: vec![150.0, 300.0],
        };
        let two = terms_of(Kind::Survival, 2);
        assert_eq!(found(&two, &[early(9)]), halves);
        let by_events = Outcome::Survival {
            ends: vec![9.0, 19.2, 300.0],
        };
        assert_eq!(found(&terms, &[early(30)]), by_events);
    }

    #[test]
    fn a_quantity_is_scaled_as_by_who_has_all_and_words_are_what_they_say() {
        let terms = terms_of(Kind::Quantity, 12);
        let values = |seed: u64| -> Vec<f32> {
            let mut stream = Key::new(seed).stream();
            (0..200).map(|_| 1e6 + stream.normal()).collect()
        };
        let own = |seed| Targets::Numbers {
            each: 1,
            values: values(seed),
        };
        let all = [values(1), values(2)].concat();
        let whole = crate::statistics::Scale::of(all.iter().copied());
        let Outcome::Quantity { mean, deviation } = found(&terms, &[own(1), own(2)]) else {
            panic!("no quantity")
        };
        assert!((mean - whole.mean).abs() < 1e-9 * mean);
        assert!((deviation - whole.deviation).abs() < 1e-9);
        let known = own(1);
        assert_eq!(terms.known(&words(&known), 200), Some(known.clone()));
        assert_eq!(terms.known(&words(&known), 199), None);
        assert_eq!(terms.known(&[f32::NAN.to_bits()], 1), None);
    }

    #[test]
    fn sums_that_cannot_be_are_refused() {
        let terms = terms_of(Kind::Survival, 3);
        let right = totals(&terms, &patients(5, 100));
        assert!(right.is_sound(&terms));
        let event = |events: Vec<(u32, u64)>| {
            let mut wrong = right.clone();
            wrong.learnt = Some(Learnt::Survival { events, seen: true });
            wrong.is_sound(&terms)
        };
        assert!(event(vec![(3, 10), (4, 12)]));
        assert!(!event(vec![(4, 10), (3, 12)]) && !event(vec![(3, 10), (3, 12)]));
        assert!(!event(vec![(1000, 10)]) && !event(vec![(3, 9)]));
        assert!(!event(vec![(3, 101)]) && !event(vec![(3, u64::MAX), (4, 10)]));
        let mut wrong = right.clone();
        wrong.learnt = None;
        assert!(!wrong.is_sound(&terms));
        wrong.learnt = Some(Learnt::Quantity(Box::default()));
        assert!(!wrong.is_sound(&terms));
    }
}

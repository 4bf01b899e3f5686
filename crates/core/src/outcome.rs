//! The outcome: what is asked about each sample, and what is known of it.
//!
//! | outcome | what a sample has | what a model gives |
//! | --- | --- | --- |
//! | class | one class of several | the probability of each |
//! | labels | yes, no or unknown for each of several | the probability of each yes |
//! | quantity | a number | the number expected, in the same unit |
//! | survival | a time, and whether the event was then | for each interval, the probability that it was not by its end |

use serde::{Deserialize, Serialize};

/// The kinds of outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One class of several.
    #[default]
    Class,
    /// Several questions with the answers yes and no, of which some may be unknown.
    Labels,
    /// A number.
    Quantity,
    /// The time until an event, or until a patient was last known to have had none.
    Survival,
}

impl Kind {
    /// Their names, in the order of the kinds.
    pub const NAMES: [&str; 4] = ["class", "labels", "quantity", "survival"];

    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Class, Kind::Labels, Kind::Quantity, Kind::Survival];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Kind> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it is the usual one, which stands in no file.
    pub fn is_class(&self) -> bool {
        *self == Kind::Class
    }

    /// What the numbers are that a model gives for a sample, if there are so many.
    pub fn outputs(self, count: usize) -> &'static str {
        match (self, count) {
            (Kind::Class, 1) => "class",
            (Kind::Class, _) => "classes",
            (Kind::Labels, 1) => "label",
            (Kind::Labels, _) => "labels",
            (Kind::Quantity, _) => "quantity",
            (Kind::Survival, 1) => "interval",
            (Kind::Survival, _) => "intervals",
        }
    }

    /// How many counts tell how often each answer is among samples.
    pub fn counts(self, names: &[String]) -> usize {
        match self {
            Kind::Class => names.len(),
            Kind::Labels => 2 * names.len(),
            Kind::Quantity => 1,
            Kind::Survival => 2,
        }
    }

    /// Counts answers: samples of each class; no and yes for each label; all; or without and with the event.
    pub fn count(self, targets: &Targets, counts: &mut [u64]) {
        let mut add = |place: usize| {
            if let Some(count) = counts.get_mut(place) {
                *count += 1;
            }
        };
        for row in 0..targets.len() {
            match (self, targets.at(row)) {
                (_, Target::Class(class)) => add(class as usize),
                (Kind::Labels, Target::Numbers(answers)) => {
                    let known = answers.iter().enumerate().filter(|(_, y)| !y.is_nan());
                    known.for_each(|(k, yes)| add(2 * k + usize::from(*yes > 0.5)));
                }
                (Kind::Survival, Target::Numbers(known)) => {
                    add(usize::from(known[1] > 0.5));
                }
                (_, Target::Numbers(_)) => add(0),
            }
        }
    }

    /// How many numbers are known of a sample; none of a class, which is not one.
    pub(crate) fn each(self, names: &[String]) -> Option<usize> {
        match self {
            Kind::Class => None,
            Kind::Labels => Some(names.len()),
            Kind::Quantity => Some(1),
            Kind::Survival => Some(2),
        }
    }

    /// No samples yet.
    pub fn targets(self, names: &[String]) -> Targets {
        match self.each(names) {
            None => Targets::Classes(Vec::new()),
            Some(each) => Targets::Numbers {
                each,
                values: Vec::new(),
            },
        }
    }

    /// What is wrong with what is said to be known of samples, if anything is.
    pub fn problem_of(self, names: &[String], targets: &Targets) -> Option<String> {
        let kind = self.name();
        let (each, values) = match (targets, self.each(names)) {
            (Targets::Classes(classes), None) => {
                let count = names.len();
                let mut labels = classes.iter().enumerate();
                let (row, label) = labels.find(|(_, label)| **label as usize >= count)?;
                return Some(format!(
                    "row {row} has the label {label}: expected one below {count}, the number of classes"
                ));
            }
            // Nothing is known of no rows, whatever it is.
            (other, _) if other.is_empty() => return None,
            (Targets::Numbers { each, values }, Some(wanted)) if *each == wanted => (*each, values),
            _ => {
                return Some(format!(
                    "what is known of its rows is not of the kind {kind}"
                ));
            }
        };
        let mut rows = values.chunks_exact(each).enumerate();
        let (row, right) = rows.find_map(|(row, known)| {
            let right = self.right(known)?;
            Some((row, right))
        })?;
        let known = &values[row * each..][..each];
        Some(format!("row {row} has {known:?}: expected {right}"))
    }

    /// What would be right in place of what is known of a sample, if that is wrong.
    fn right(self, known: &[f32]) -> Option<&'static str> {
        match self {
            Kind::Class => None,
            Kind::Labels => {
                let sound = |y: &f32| *y == 0.0 || *y == 1.0 || y.is_nan();
                (!known.iter().all(sound)).then_some("1 for yes, 0 for no, NaN for unknown")
            }
            Kind::Quantity => (!known[0].is_finite()).then_some("a finite number"),
            Kind::Survival => {
                let sound = known[0] >= 0.0 && known[0].is_finite();
                let event = known[1] == 0.0 || known[1] == 1.0;
                (!sound || !event).then_some(
                    "a time of 0 or more, and 1 for an event at that time or 0 for none until then",
                )
            }
        }
    }
}

/// The kind of outcome, with what has to be known of the training rows to learn it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "Unchecked")]
pub enum Outcome {
    /// A class; [`Dataset::classes`](crate::dataset::Dataset::classes) names all.
    #[default]
    Class,
    /// Labels; `classes` names them.
    Labels,
    /// A number that has this mean and this standard deviation over the training rows: networks learn how many
    /// deviations it is from the mean. `classes` names it.
    Quantity {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// A time until an event; `classes` names it. Intervals end at these times, in the time's unit, and the last one's end
    /// is the horizon: what comes later has not happened as far as the model is concerned.
    Survival {
        /// Where intervals end, rising from above 0.
        ends: Vec<f64>,
    },
}

/// An outcome as it stands in a file.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unchecked {
    Class,
    Labels,
    Quantity { mean: f64, deviation: f64 },
    Survival { ends: Vec<f64> },
}

impl TryFrom<Unchecked> for Outcome {
    type Error = String;

    fn try_from(given: Unchecked) -> Result<Self, String> {
        let outcome = match given {
            Unchecked::Class => Outcome::Class,
            Unchecked::Labels => Outcome::Labels,
            Unchecked::Quantity { mean, deviation } => Outcome::Quantity { mean, deviation },
            Unchecked::Survival { ends } => Outcome::Survival { ends },
        };
        outcome.problem().map_or(Ok(outcome), Err)
    }
}

/// The most intervals of a survival curve.
pub const MOST_INTERVALS: usize = 200;

impl Outcome {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Outcome::Class => Kind::Class,
            Outcome::Labels => Kind::Labels,
            Outcome::Quantity { .. } => Kind::Quantity,
            Outcome::Survival { .. } => Kind::Survival,
        }
    }

    /// Whether it is the usual one, which stands in no file.
    pub fn is_class(&self) -> bool {
        self.kind().is_class()
    }

    /// How many numbers a model gives for a sample, where these are the names of classes or labels.
    pub fn outputs(&self, names: &[String]) -> usize {
        match self {
            Outcome::Class | Outcome::Labels => names.len(),
            Outcome::Quantity { .. } => 1,
            Outcome::Survival { ends } => ends.len(),
        }
    }

    /// Survival in so many intervals up to a horizon, of which all but the last end at these times; evenly apart, where
    /// several would end at one time.
    pub fn survival(inner: impl Iterator<Item = f64>, horizon: f64, intervals: usize) -> Outcome {
        let by_events: Vec<f64> = inner.chain([horizon]).collect();
        let rising = by_events.windows(2).all(|pair| pair[0] < pair[1]) && by_events[0] > 0.0;
        let evenly = |k: usize| horizon * k as f64 / intervals as f64;
        Outcome::Survival {
            ends: match rising {
                true => by_events,
                false => (1..=intervals).map(evenly).collect(),
            },
        }
    }

    /// How many counts tell how often each answer is among samples ([`Kind::counts`]).
    pub fn counts(&self, names: &[String]) -> usize {
        self.kind().counts(names)
    }

    /// Counts answers ([`Kind::count`]).
    pub fn count(&self, targets: &Targets, counts: &mut [u64]) {
        self.kind().count(targets, counts);
    }

    /// No samples yet.
    pub fn targets(&self, names: &[String]) -> Targets {
        self.kind().targets(names)
    }

    /// What is wrong with what is said to be known of samples, if anything is.
    pub fn problem_of(&self, names: &[String], targets: &Targets) -> Option<String> {
        self.kind().problem_of(names, targets)
    }

    /// What is wrong with it, if anything is.
    pub fn problem(&self) -> Option<String> {
        match self {
            Outcome::Quantity { mean, deviation }
                if !mean.is_finite() || !deviation.is_normal() || *deviation < 0.0 =>
            {
                Some(format!(
                    "a quantity with mean {mean} and deviation {deviation}: expected finite numbers, the deviation above 0"
                ))
            }
            Outcome::Survival { ends } => {
                let rising = ends.windows(2).all(|pair| pair[0] < pair[1]);
                let finite = ends.iter().all(|end| end.is_finite() && *end > 0.0);
                let some = (1..=MOST_INTERVALS).contains(&ends.len());
                (!rising || !finite || !some).then(|| {
                    format!(
                        "intervals that end at {ends:?}: expected 1 to {MOST_INTERVALS} rising times above 0"
                    )
                })
            }
            _ => None,
        }
    }
}

/// In how many whole intervals nothing happened, and whether it did in the next, of who has this time and event. Without
/// an event only whole intervals are known; who was still there at the last end has survived all.
///
/// ```
/// use selvedge_core::outcome::interval;
/// let ends = [10.0, 20.0];
/// assert_eq!(interval(&ends, [10.0, 1.0]), (0, true));
/// assert_eq!(interval(&ends, [10.5, 1.0]), (1, true));
/// assert_eq!(interval(&ends, [10.0, 0.0]), (1, false));
/// assert_eq!(interval(&ends, [9.0, 0.0]), (0, false));
/// assert_eq!(interval(&ends, [25.0, 1.0]), (2, false));
/// ```
pub fn interval(ends: &[f64], [time, event]: [f32; 2]) -> (usize, bool) {
    let time = f64::from(time);
    let passed = match event > 0.5 {
        // What happens at an end is in the interval that ends there.
        true => ends.partition_point(|end| *end < time),
        false => ends.partition_point(|end| *end <= time),
    };
    (passed, event > 0.5 && passed < ends.len())
}

/// What is known of one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target<'a> {
    /// Its class.
    Class(u32),
    /// For each label 1, 0 or, where it is unknown, NaN; its quantity; or a time and whether an event was then.
    Numbers(&'a [f32]),
}

impl From<u32> for Target<'_> {
    fn from(class: u32) -> Self {
        Target::Class(class)
    }
}

impl<'a> From<&'a [f32]> for Target<'a> {
    fn from(numbers: &'a [f32]) -> Self {
        Target::Numbers(numbers)
    }
}

/// What is known of samples, row after row.
#[derive(Clone, Debug)]
pub enum Targets {
    /// Their classes, as indices into [`Dataset::classes`](crate::dataset::Dataset::classes).
    Classes(Vec<u32>),
    /// So many numbers of each sample.
    Numbers {
        /// How many.
        each: usize,
        /// Row after row.
        values: Vec<f32>,
    },
}

/// To the bit: unknown labels are equal.
impl PartialEq for Targets {
    fn eq(&self, other: &Self) -> bool {
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        match (self, other) {
            (Targets::Classes(a), Targets::Classes(b)) => a == b,
            (Targets::Numbers { each: a, values: x }, Targets::Numbers { each: b, values: y }) => {
                a == b && bits(x) == bits(y)
            }
            _ => false,
        }
    }
}

impl Default for Targets {
    fn default() -> Self {
        Targets::Classes(Vec::new())
    }
}

impl From<Vec<u32>> for Targets {
    fn from(classes: Vec<u32>) -> Self {
        Targets::Classes(classes)
    }
}

impl FromIterator<u32> for Targets {
    fn from_iter<I: IntoIterator<Item = u32>>(classes: I) -> Self {
        Targets::Classes(classes.into_iter().collect())
    }
}

impl Targets {
    /// The number of samples.
    pub fn len(&self) -> usize {
        match self {
            Targets::Classes(classes) => classes.len(),
            Targets::Numbers { each, values } => values.len() / each.max(&1),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of the sample in a row.
    pub fn at(&self, row: usize) -> Target<'_> {
        match self {
            Targets::Classes(classes) => Target::Class(classes[row]),
            Targets::Numbers { each, values } => Target::Numbers(&values[row * each..][..*each]),
        }
    }

    /// Appends what is known of one sample. The first says what kind all are of; one of another kind is a mistake of the
    /// caller's.
    pub fn push(&mut self, target: Target<'_>) {
        match (&mut *self, target) {
            (Targets::Classes(classes), Target::Class(class)) => classes.push(class),
            (Targets::Numbers { each, values }, Target::Numbers(numbers)) => {
                debug_assert_eq!(*each, numbers.len());
                values.extend_from_slice(numbers);
            }
            (ours, Target::Numbers(numbers)) => {
                debug_assert!(ours.is_empty());
                *ours = Targets::Numbers {
                    each: numbers.len(),
                    values: numbers.to_vec(),
                };
            }
            (ours, Target::Class(class)) => {
                debug_assert!(ours.is_empty());
                *ours = Targets::Classes(vec![class]);
            }
        }
    }

    /// Appends what is known of others.
    pub fn extend(&mut self, others: &Targets) {
        for row in 0..others.len() {
            self.push(others.at(row));
        }
    }

    /// What is known of the samples in some rows.
    #[must_use]
    pub fn of(&self, rows: &[u32]) -> Targets {
        let mut some = self.none();
        rows.iter()
            .for_each(|row| some.push(self.at(*row as usize)));
        some
    }

    /// Of the same kind, and of no samples.
    #[must_use]
    pub fn none(&self) -> Targets {
        match self {
            Targets::Classes(_) => Targets::default(),
            Targets::Numbers { each, .. } => Targets::Numbers {
                each: *each,
                values: Vec::new(),
            },
        }
    }

    /// The classes; none of another kind of outcome.
    pub fn classes(&self) -> &[u32] {
        match self {
            Targets::Classes(classes) => classes,
            Targets::Numbers { .. } => &[],
        }
    }

    /// The numbers, row after row; none of classes.
    pub fn numbers(&self) -> &[f32] {
        match self {
            Targets::Classes(_) => &[],
            Targets::Numbers { values, .. } => values,
        }
    }

    /// As words, for fingerprints.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let classes = self.classes().iter().map(|class| u64::from(*class));
        let numbers = self.numbers().iter().map(|x| u64::from(x.to_bits()));
        classes.chain(numbers)
    }
}

//! The made-up world that synthetic patients come from.
//!
//! ```text
//!     group's centre ──► condition a (shows in the laboratory), b (shows on sensors)     frailty
//!
//!     lab values x1  = gain · skew(loadings · (a, frailty) + noise) + offset     hospital's calibration
//!     vital signs x2 = loadings · (b, frailty) + noise
//!     label          = the class whose direction fits (a, b, a₁b₁, a₂b₂) best, with noise
//! ```
//!
//! - Neither side suffices: the label needs `a`, `b` and their products, and a product tells nothing
//!   to who knows one factor only.
//! - Groups differ: each has a centre of its own in the space of conditions, hence other labels are
//!   frequent there (label skew) and the products look like plain effects there; and each hospital's
//!   laboratory is calibrated in its own way (covariate shift). What decides the label is the same
//!   everywhere, so learning from all groups pays.
//! - Frailty moves the features of both sides but not the label: a nuisance to be ignored.
//!
//! Every number is named by a key, so any row can be made alone and in any order. Only arithmetic whose rounding is
//! defined is used (no platform exponentials), so rows are the same everywhere.

use selvedge_core::outcome::Kind;
use selvedge_nn::random::{Key, Stream};

/// Facets of the condition that each side sees.
const FACETS: usize = 2;

/// A side's features mix its facets and the patient's frailty.
const MIXED: usize = FACETS + 1;

/// What the label looks at: `a`, `b` and `a·b`.
const EFFECTS: usize = 3 * FACETS;

/// How far groups lie apart, as a part of the unit variance of every facet.
const BETWEEN_GROUPS: f32 = 0.36;

/// Deviation of a hospital's calibration, per laboratory value: of its gain and of its offset.
const CALIBRATION: f32 = 0.3;

/// The variance of the label's score that comes from each side, and from both together.
const FROM_ONE_SIDE: f32 = 0.32;
const FROM_BOTH: f32 = 1.0 - 2.0 * FROM_ONE_SIDE;

/// How much of the measurements' noise the label gets. A patient's outcome is never certain, but less blurred than one
/// measurement; with this, good models reach a test AUC of about 0.9 at `noise` 0.5.
const LABEL_NOISE: f64 = 0.5;

/// Words that keep the streams of one seed apart.
mod word {
    pub(super) const LABORATORY: u64 = 1;
    pub(super) const SENSORS: u64 = 2;
    pub(super) const CLASSES: u64 = 3;
    pub(super) const HOSPITAL: u64 = 4;
}

/// What holds for all groups: how conditions show in features, and what decides the label.
pub(super) struct World {
    key: Key,
    laboratory: Vec<[f32; MIXED]>,
    sensors: Vec<[f32; MIXED]>,
    directions: Vec<[f32; EFFECTS]>,
    measurement_noise: f32,
    label_noise: f32,
    kind: Kind,
}

/// What is particular to one group: its patients' mean condition, its laboratory's calibration.
pub(super) struct Hospital {
    centre: [f32; 2 * FACETS],
    calibration: Vec<Calibration>,
}

struct Calibration {
    gain: f32,
    offset: f32,
}

impl World {
    /// The world of one key. `noise` 1 makes every measurement half signal, half noise; 0 hides nothing.
    pub(super) fn new(
        key: Key,
        features: [usize; 2],
        (kind, outputs): (Kind, usize),
        noise: f64,
    ) -> Self {
        // Of one outcome there is one direction, and it has no opposite.
        let classes = outputs.max(2);
        let loadings = |word, count| {
            let mut stream = key.with(word).stream();
            (0..count).map(|_| unit_vector(&mut stream)).collect()
        };
        // Two classes are opposites and lie farther apart than many classes, which are nearly at right angles to each
        // other. The noise follows, so that it hides as much of either.
        let farther = (classes as f64 / (classes as f64 - 1.0)).sqrt();
        World {
            key,
            laboratory: loadings(word::LABORATORY, features[0]),
            sensors: loadings(word::SENSORS, features[1]),
            directions: directions(key.with(word::CLASSES), classes),
            measurement_noise: noise as f32,
            label_noise: (LABEL_NOISE * noise * farther) as f32,
            kind,
        }
    }

    /// The hospital of one group.
    pub(super) fn hospital(&self, group: u64) -> Hospital {
        let mut stream = self.key.with(word::HOSPITAL).with(group).stream();
        let spread = BETWEEN_GROUPS.sqrt();
        let centre = std::array::from_fn(|_| spread * stream.normal());
        let calibration = self.laboratory.iter().map(|_| Calibration {
            // Never negative: a laboratory may be badly calibrated, not upside down.
            gain: (1.0 + CALIBRATION * stream.normal()).max(0.1),
            offset: CALIBRATION * stream.normal(),
        });
        Hospital {
            centre,
            calibration: calibration.collect(),
        }
    }

    /// Makes one patient of a hospital: fills both sides' features, and what is known of the outcome.
    pub(super) fn patient(
        &self,
        hospital: &Hospital,
        key: Key,
        [x1, x2]: [&mut [f32]; 2],
        known: &mut [f32],
    ) {
        let mut stream = key.stream();
        let within = (1.0 - BETWEEN_GROUPS).sqrt();
        let condition = hospital
            .centre
            .map(|centre| centre + within * stream.normal());
        let frailty = stream.normal();
        let (a, b) = condition.split_at(FACETS);
        let scores = self.scores(a, b, &mut stream);

        for ((x, loading), calibration) in x1
            .iter_mut()
            .zip(&self.laboratory)
            .zip(&hospital.calibration)
        {
            let level = mix(loading, a, frailty) + self.measurement_noise * stream.normal();
            *x = calibration.gain * skew(level) + calibration.offset;
        }
        for (x, loading) in x2.iter_mut().zip(&self.sensors) {
            *x = mix(loading, b, frailty) + self.measurement_noise * stream.normal();
        }
        self.outcome(&scores, &mut stream, known);
    }

    /// What is known of a patient with these scores: the class with the highest; labels with a positive one; a quantity;
    /// or a time, with the score as the logarithm of the hazard, of patients who are seen for some time each.
    fn outcome(&self, scores: &[f32], stream: &mut Stream, known: &mut [f32]) {
        match self.kind {
            Kind::Class => {
                let mut best = (f32::NEG_INFINITY, 0);
                for (class, score) in scores.iter().enumerate() {
                    if *score > best.0 {
                        best = (*score, class);
                    }
                }
                known[0] = best.1 as f32;
            }
            Kind::Labels => {
                for (known, score) in known.iter_mut().zip(scores) {
                    *known = f32::from(u8::from(*score > 0.0));
                }
            }
            Kind::Quantity => known[0] = 100.0 + 15.0 * scores[0],
            Kind::Survival => {
                let hazard = libm::exp(f64::from(scores[0]));
                let event = -libm::log(1.0 - f64::from(stream.uniform())) / hazard;
                let seen = 3.0 * f64::from(stream.uniform());
                known[0] = (100.0 * event.min(seen)) as f32;
                known[1] = f32::from(u8::from(event <= seen));
            }
        }
    }

    /// How much of each class, label or outcome a patient has.
    fn scores(&self, a: &[f32], b: &[f32], stream: &mut Stream) -> Vec<f32> {
        let mut effects = [0.0; EFFECTS];
        for facet in 0..FACETS {
            effects[facet] = a[facet];
            effects[FACETS + facet] = b[facet];
            effects[2 * FACETS + facet] = a[facet] * b[facet];
        }
        let score = |direction: &[f32; EFFECTS]| {
            dot(direction, &effects) + self.label_noise * stream.normal()
        };
        self.directions.iter().map(score).collect()
    }
}

/// One direction per class, each with the same share of `a`, `b` and `a·b`, so that no seed gives a set that one side
/// could classify alone. Two classes are opposites.
fn directions(key: Key, classes: usize) -> Vec<[f32; EFFECTS]> {
    let mut directions: Vec<[f32; EFFECTS]> = (0..classes as u64)
        .map(|class| {
            let mut stream = key.with(class).stream();
            let mut direction = [0.0; EFFECTS];
            for (part, share) in
                direction
                    .chunks_mut(FACETS)
                    .zip([FROM_ONE_SIDE, FROM_ONE_SIDE, FROM_BOTH])
            {
                let unit: [f32; FACETS] = unit_vector(&mut stream);
                part.copy_from_slice(&unit.map(|u| share.sqrt() * u));
            }
            direction
        })
        .collect();
    if let [first, second] = &mut directions[..] {
        *second = first.map(|d| -d);
    }
    directions
}

/// A random direction of length 1.
fn unit_vector<const N: usize>(stream: &mut Stream) -> [f32; N] {
    loop {
        let vector: [f32; N] = std::array::from_fn(|_| stream.normal());
        let length = dot(&vector, &vector).sqrt();
        if length > 1e-3 {
            return vector.map(|v| v / length);
        }
    }
}

fn mix(loading: &[f32; MIXED], facets: &[f32], frailty: f32) -> f32 {
    dot(&loading[..FACETS], facets) + loading[FACETS] * frailty
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Laboratory values are positive and have a long tail to the right: exp(asinh(level)).
fn skew(level: f32) -> f32 {
    level + (1.0 + level * level).sqrt()
}

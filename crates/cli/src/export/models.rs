//! The four graphs: each tower, the combined model, and all of it.
//!
//! ```text
//! hospital, as measured ─ scale ─ layers ─► zeta1 ┐
//!                                                 ├ layers ─► logits ─ softmax ─► probabilities ─ calibration ─► calibrated
//! device, as measured ─── scale ─ layers ─► zeta2 ┘
//! ```
//!
//! Labels have a logistic function each in place of softmax; a quantity is given in its own unit, as `prediction`, and a
//! survival curve as `survival`.

use super::Exported;
use super::onnx::Attribute::Number;
use super::onnx::{DOUBLE, FLOAT, Graph, Numbers};
use anyhow::Result;
use selvedge_core::calibration::{Calibration, LEAST};
use selvedge_core::experiment::Side;
use selvedge_core::outcome::Outcome;
use selvedge_data::{Scale, SideStatistics};

/// A tower with its scaling: from what was measured to an embedding.
pub(super) fn add_tower(graph: &mut Graph, exported: &Exported<'_>, side: Side) -> Result<String> {
    let part = exported.tower(side);
    let statistics = exported.statistics(side);
    let measured = graph.input(part.name, &statistics.shape);
    if exported.architecture.blind_to == Some(side) {
        let width = part.network.output().len();
        return Ok(zeros(graph, part.name, width, &measured));
    }
    let scaled = scaled(graph, part.name, statistics, &measured);
    part.add(graph, scaled)
}

/// Zeros, as many rows as `like` has: an embedding that says nothing.
fn zeros(graph: &mut Graph, of: &str, width: usize, like: &str) -> String {
    let first = [("start", Number(0)), ("end", Number(1))];
    let samples = graph.add(of, "Shape", &[like], &first);
    let width = Numbers::Integers(vec![width as i64]);
    let width = graph.weights(&format!("{of}.width"), &[1], width);
    let shape = graph.add(of, "Concat", &[&samples, &width], &[("axis", Number(0))]);
    graph.add(of, "ConstantOfShape", &[&shape], &[])
}

/// What was measured, scaled as training rows were: in double precision, and 0 where nothing was measured.
fn scaled(graph: &mut Graph, of: &str, statistics: &SideStatistics, measured: &str) -> String {
    let scales = Scales::of(statistics);
    let missing = graph.add(of, "IsNaN", &[measured], &[]);
    let zero = graph.weights(&format!("{of}.zero"), &[], Numbers::Floats(vec![0.0]));
    let mut value = graph.add(of, "Where", &[&missing, &zero, measured], &[]);
    if scales.change_nothing() {
        return value;
    }
    value = graph.add(of, "Cast", &[&value], &[("to", Number(DOUBLE))]);
    value = scales.add(graph, of, value);
    value = graph.add(of, "Cast", &[&value], &[("to", Number(FLOAT))]);
    graph.add(of, "Where", &[&missing, &zero, &value], &[])
}

/// Scales in a shape that fits the numbers of a row.
struct Scales {
    shape: Vec<usize>,
    all: Vec<Scale>,
}

impl Scales {
    /// One for all numbers, one for each of the last dimension, or else one for each number: they follow each other
    /// over a row again and again.
    fn of(statistics: &SideStatistics) -> Self {
        let scales = &statistics.scales;
        let numbers: usize = statistics.shape.iter().product();
        let fits = scales.len() == 1 || statistics.shape.last() == Some(&scales.len());
        let (shape, count) = match fits {
            true => (vec![scales.len()], scales.len()),
            false => (statistics.shape.clone(), numbers),
        };
        Scales {
            shape,
            all: scales.iter().copied().cycle().take(count).collect(),
        }
    }

    fn change_nothing(&self) -> bool {
        self.all.iter().all(|scale| *scale == Scale::IDENTITY)
    }

    /// An operator with a number of each scale.
    fn with(
        &self,
        (graph, of): (&mut Graph, &str),
        (operator, value): (&'static str, &str),
        name: &str,
        number: impl Fn(&Scale) -> f64,
    ) -> String {
        let numbers = Numbers::Doubles(self.all.iter().map(number).collect());
        let numbers = graph.weights(&format!("{of}.{name}"), &self.shape, numbers);
        graph.add(of, operator, &[value, &numbers], &[])
    }

    /// Clips, takes logarithms and scales.
    fn add(&self, graph: &mut Graph, of: &str, mut value: String) -> String {
        if self.all.iter().any(|scale| scale.clip.is_some()) {
            let bound =
                |at: usize, none: f64| move |s: &Scale| s.clip.map_or(none, |clip| clip[at]);
            let (least, greatest) = (bound(0, f64::NEG_INFINITY), bound(1, f64::INFINITY));
            value = self.with((graph, of), ("Max", &value), "least", least);
            value = self.with((graph, of), ("Min", &value), "greatest", greatest);
        }
        if self.all.iter().any(|scale| scale.log.is_some()) {
            // All columns get a logarithm; those that are not scaled by it take nothing of it.
            let number = |at: usize| move |s: &Scale| s.log.unwrap_or([0.0, 1.0])[at];
            let share = |s: &Scale| f64::from(u8::from(s.log.is_some()));
            let mut log = self.with((graph, of), ("Sub", &value), "log.least", number(0));
            log = self.with((graph, of), ("Max", &log), "log.zero", |_| 0.0);
            log = self.with((graph, of), ("Div", &log), "log.unit", number(1));
            log = self.with((graph, of), ("Add", &log), "log.one", |_| 1.0);
            log = graph.add(of, "Log", &[&log], &[]);
            log = self.with((graph, of), ("Mul", &log), "log.share", share);
            value = self.with((graph, of), ("Mul", &value), "log.rest", |s| 1.0 - share(s));
            value = graph.add(of, "Add", &[&value, &log], &[]);
        }
        value = self.with((graph, of), ("Sub", &value), "mean", |s| s.mean);
        self.with((graph, of), ("Div", &value), "deviation", |s| s.deviation)
    }
}

/// The combined model, from both embeddings to the outputs of the graph.
pub(super) fn add_combined(
    graph: &mut Graph,
    exported: &Exported<'_>,
    [zeta1, zeta2]: [&str; 2],
) -> Result<()> {
    let part = exported.combined();
    let (of, width) = (part.name, part.network.output().len());
    let both = graph.add(of, "Concat", &[zeta1, zeta2], &[("axis", Number(1))]);
    let logits = part.add(graph, both)?;
    graph.output("logits", width, &logits);
    let outcome = exported.trained.outcome();
    let answers = match outcome {
        Outcome::Class => graph.add(of, "Softmax", &[&logits], &[("axis", Number(1))]),
        Outcome::Labels => graph.add(of, "Sigmoid", &[&logits], &[]),
        Outcome::Quantity { mean, deviation } => quantity(graph, of, [*mean, *deviation], &logits),
        Outcome::Survival { .. } => survival(graph, of, &logits),
    };
    graph.output(exported.answers(), width, &answers);
    if let Some(calibration) = exported.calibration {
        let calibrated = calibrated(graph, of, calibration, &answers);
        graph.output("calibrated", width, &calibrated);
    }
    Ok(())
}

/// A number of a graph's own, in double precision.
fn double(graph: &mut Graph, name: &str, number: f64) -> String {
    graph.weights(name, &[], Numbers::Doubles(vec![number]))
}

/// mean + deviation · z, in double precision.
fn quantity(graph: &mut Graph, of: &str, [mean, deviation]: [f64; 2], logits: &str) -> String {
    let mean = double(graph, &format!("{of}.mean"), mean);
    let deviation = double(graph, &format!("{of}.deviation"), deviation);
    let mut value = graph.add(of, "Cast", &[logits], &[("to", Number(DOUBLE))]);
    value = graph.add(of, "Mul", &[&value, &deviation], &[]);
    value = graph.add(of, "Add", &[&value, &mean], &[]);
    graph.add(of, "Cast", &[&value], &[("to", Number(FLOAT))])
}

/// The running product of σ(−z), as a sum of −softplus(z): it stays finite, and has no logarithm of 0.
fn survival(graph: &mut Graph, of: &str, logits: &str) -> String {
    let along = Numbers::Integers(vec![1]);
    let axis = graph.weights(&format!("{of}.axis"), &[], along);
    let mut value = graph.add(of, "Softplus", &[logits], &[]);
    value = graph.add(of, "Cast", &[&value], &[("to", Number(DOUBLE))]);
    value = graph.add(of, "CumSum", &[&value, &axis], &[]);
    value = graph.add(of, "Neg", &[&value], &[]);
    value = graph.add(of, "Exp", &[&value], &[]);
    graph.add(of, "Cast", &[&value], &[("to", Number(FLOAT))])
}

/// softmax(scale · ln p + bias), or of labels σ(scale · logit p + bias), in double precision.
fn calibrated(
    graph: &mut Graph,
    of: &str,
    calibration: &Calibration,
    probabilities: &str,
) -> String {
    let mut doubles = |name: &str, shape: &[usize], all: Vec<f64>| {
        graph.weights(&format!("{of}.{name}"), shape, Numbers::Doubles(all))
    };
    let scale = doubles("calibration.scale", &[], vec![calibration.scale]);
    let least = doubles("calibration.least", &[], vec![LEAST]);
    let bias = calibration.bias.clone();
    let bias = doubles("calibration.bias", &[bias.len()], bias);
    let log = |graph: &mut Graph, of_what: &str| {
        let value = graph.add(of, "Cast", &[of_what], &[("to", Number(DOUBLE))]);
        let value = graph.add(of, "Max", &[&value, &least], &[]);
        graph.add(of, "Log", &[&value], &[])
    };
    let mut value = log(graph, probabilities);
    if calibration.each {
        let one = Numbers::Floats(vec![1.0]);
        let one = graph.weights(&format!("{of}.calibration.one"), &[], one);
        let others = graph.add(of, "Sub", &[&one, probabilities], &[]);
        let others = log(graph, &others);
        value = graph.add(of, "Sub", &[&value, &others], &[]);
    }
    value = graph.add(of, "Mul", &[&value, &scale], &[]);
    value = graph.add(of, "Add", &[&value, &bias], &[]);
    value = match calibration.each {
        true => graph.add(of, "Sigmoid", &[&value], &[]),
        false => graph.add(of, "Softmax", &[&value], &[("axis", Number(1))]),
    };
    graph.add(of, "Cast", &[&value], &[("to", Number(FLOAT))])
}

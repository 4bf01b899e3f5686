//! The metrics of a run as curves of at most a thousand points, however many lines there are.
//!
//! A curve is a row of buckets, each of the same number of evaluations, that remember their lowest and their highest
//! point. Once there are too many, neighbours become one. So no extreme is ever lost, memory is bounded, and an
//! evaluation that comes costs the same whenever it comes.

use selvedge_core::metrics::{METRICS, Metric};
use selvedge_core::outcome::Kind;
use selvedge_core::state::Evaluation;
use selvedge_run::files::METRICS as FILE;
use selvedge_run::follow::Reader;
use selvedge_run::metrics;
use serde_json::{Value, json};

/// Buckets of a curve; each gives two points at most.
const MOST_BUCKETS: usize = 480;

/// Damaged lines that are told one by one.
const MOST_PROBLEMS: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    t: u64,
    bytes: f64,
    seconds: f64,
    y: f64,
}

/// Neighbouring evaluations.
#[derive(Clone, Copy)]
struct Bucket {
    low: Point,
    high: Point,
    /// The middle of them all, and how many they are.
    mean: Mean,
}

#[derive(Clone, Copy)]
struct Mean {
    /// Iterations, bytes, seconds and the value.
    at: [f64; 4],
    count: f64,
}

impl Mean {
    fn of(point: Point) -> Self {
        Mean {
            at: [point.t as f64, point.bytes, point.seconds, point.y],
            count: 1.0,
        }
    }

    fn with(self, other: Mean) -> Self {
        let count = self.count + other.count;
        let mean = |i: usize| self.at[i] + (other.at[i] - self.at[i]) * (other.count / count);
        Mean {
            at: [0, 1, 2, 3].map(mean),
            count,
        }
    }
}

impl Bucket {
    fn of(point: Point) -> Self {
        Bucket {
            low: point,
            high: point,
            mean: Mean::of(point),
        }
    }

    fn with(self, other: Bucket) -> Self {
        Bucket {
            low: if other.low.y < self.low.y {
                other.low
            } else {
                self.low
            },
            high: if other.high.y > self.high.y {
                other.high
            } else {
                self.high
            },
            mean: self.mean.with(other.mean),
        }
    }
}

/// One metric over a run.
#[derive(Default)]
pub(super) struct Curve {
    buckets: Vec<Bucket>,
    /// Points of a bucket; 0 stands for 1.
    width: usize,
    /// Points in the last bucket.
    filled: usize,
    first: Option<Point>,
    last: Option<Point>,
}

impl Curve {
    pub(super) fn push(&mut self, point: Point) {
        self.first.get_or_insert(point);
        self.last = Some(point);
        let has_room = self.filled < self.width.max(1);
        if let Some(bucket) = self.buckets.last_mut().filter(|_| has_room) {
            self.filled += 1;
            *bucket = bucket.with(Bucket::of(point));
            return;
        }
        if self.buckets.len() == MOST_BUCKETS {
            self.halve();
        }
        self.filled = 1;
        self.buckets.push(Bucket::of(point));
    }

    /// Makes one bucket of two neighbours; all are full, and their number is even.
    fn halve(&mut self) {
        let pairs = self.buckets.chunks_exact(2);
        self.buckets = pairs.map(|pair| pair[0].with(pair[1])).collect();
        self.width = 2 * self.width.max(1);
    }

    /// By rising t, each once: the first, the last, and the extremes of every bucket.
    pub(super) fn points(&self) -> Vec<Point> {
        let extremes = self
            .buckets
            .iter()
            .flat_map(|bucket| [bucket.low, bucket.high]);
        let mut points: Vec<Point> = extremes.chain(self.first).chain(self.last).collect();
        points.sort_by_key(|point| point.t);
        points.dedup_by_key(|point| point.t);
        points
    }

    fn json(&self) -> Value {
        let points: Vec<[f64; 4]> = self.points().into_iter().map(|p| Mean::of(p).at).collect();
        let mut json = columns(&points);
        if self.width > 1 {
            let means: Vec<[f64; 4]> = self.buckets.iter().map(|bucket| bucket.mean.at).collect();
            json["mean"] = columns(&means);
        }
        json
    }
}

fn columns(points: &[[f64; 4]]) -> Value {
    let whole = |i: usize| {
        points
            .iter()
            .map(|p| (p[i].round() as u64).into())
            .collect::<Vec<Value>>()
    };
    let seen = |i: usize| points.iter().map(|p| short(p[i])).collect::<Vec<Value>>();
    json!({ "iterations": whole(0), "bytes": whole(1), "seconds": seen(2), "y": seen(3) })
}

/// A number with as many digits as anybody can see.
fn short(x: f64) -> Value {
    format!("{x:.5e}").parse::<f64>().unwrap_or(x).into()
}

/// All metrics of a run.
#[derive(Default)]
pub(super) struct Curves {
    /// As [`METRICS`].
    curves: [Curve; METRICS.len()],
    pub(super) lines: u64,
    pub(super) last: Option<Evaluation>,
    /// The one that the validation samples choose, with its score.
    best: Option<(f64, Evaluation)>,
    problems: Vec<String>,
    damaged: u64,
}

impl Curves {
    fn add(&mut self, evaluation: Evaluation) {
        for (metric, curve) in METRICS.iter().zip(&mut self.curves) {
            if let Some(y) = metric.of(&evaluation) {
                curve.push(Point {
                    t: evaluation.t,
                    bytes: evaluation.bytes_exact,
                    seconds: evaluation.seconds,
                    y,
                });
            }
        }
        let score = evaluation.validation.map(|on| on.score());
        if let Some(score) = score
            && self
                .best
                .as_ref()
                .is_none_or(|(highest, _)| score > *highest)
        {
            self.best = Some((score, evaluation.clone()));
        }
        self.last = Some(evaluation);
    }

    fn problem(&mut self, number: u64, why: &str) {
        self.damaged += 1;
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(format!(
                "{FILE}, line {number} is damaged: {why}; it is skipped"
            ));
        }
    }

    /// What is wrong with the file.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = self.problems.clone();
        let untold = self.damaged - self.problems.len() as u64;
        if untold > 0 {
            problems.push(format!("{FILE}: {untold} more lines are damaged"));
        }
        problems
    }

    pub(super) fn json(&self) -> Value {
        let curve = |(metric, curve): (&Metric, &Curve)| (metric.name.to_owned(), curve.json());
        let with_points = METRICS
            .iter()
            .zip(&self.curves)
            .filter(|(_, curve)| curve.first.is_some());
        let curves: serde_json::Map<String, Value> = with_points.map(curve).collect();
        json!({
            "lines": self.lines,
            "curves": curves,
            "last": self.last.as_ref().map(results),
            "best": self.best.as_ref().map(|(_, evaluation)| results(evaluation)),
            "problems": self.problems(),
        })
    }
}

/// An evaluation as tables show it.
pub(super) fn results(evaluation: &Evaluation) -> Value {
    let mut all = json!({
        "t": evaluation.t, "p": evaluation.p, "q": evaluation.q, "eta": evaluation.eta,
        "bytes": evaluation.bytes_exact, "bytes_paper": evaluation.bytes_paper, "seconds": evaluation.seconds,
    });
    for metric in METRICS {
        // Those of classes are told even where they have no value; others belong to other outcomes.
        let value = metric.of(evaluation);
        if value.is_some() || metric.is_of(Kind::Class) {
            all[metric.name] = value.into();
        }
    }
    all
}

impl Reader for Curves {
    fn begin_anew(&mut self) {
        *self = Curves::default();
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        self.lines = number;
        match metrics::parse(line, self.last.as_ref().map(|e| e.t)) {
            Err(why) => self.problem(number, &why),
            Ok(evaluation) => self.add(evaluation),
        }
    }

    fn too_long(&mut self, number: u64) {
        self.lines = number;
        self.problem(number, "it is longer than 4 MB");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_nn::random::Key;

    fn point(t: u64, y: f64) -> Point {
        Point {
            t,
            bytes: 10.0 * t as f64,
            seconds: 0.5 * t as f64,
            y,
        }
    }

    #[test]
    fn few_points_are_kept_as_they_are() {
        let mut curve = Curve::default();
        let points: Vec<Point> = (0..MOST_BUCKETS as u64)
            .map(|t| point(t, libm::sin(t as f64)))
            .collect();
        points.iter().for_each(|p| curve.push(*p));
        assert_eq!(curve.points(), points);
    }

    #[test]
    fn many_points_keep_their_extremes_their_ends_and_their_order() {
        let mut random = Key::new(1).stream();
        for n in [481, 959, 960, 961, 1441, 10_000, 100_000] {
            let mut curve = Curve::default();
            let spikes: Vec<u64> = (0..8).map(|_| random.below(n)).collect();
            let y = |t: u64| match spikes.iter().position(|s| *s == t) {
                Some(i) => [100.0, -100.0][i % 2] - i as f64,
                None => libm::sin(t as f64 / 50.0),
            };
            (0..n).for_each(|t| curve.push(point(t, y(t))));
            let points = curve.points();
            assert!(
                points.len() <= 2 * MOST_BUCKETS + 2,
                "{n}: {}",
                points.len()
            );
            assert!(points.len() >= MOST_BUCKETS / 2, "{n}: {}", points.len());
            assert!(points.is_sorted_by(|a, b| a.t < b.t));
            assert!(
                points.iter().all(|p| *p == point(p.t, y(p.t))),
                "no point is made up"
            );
            assert_eq!((points[0].t, points[points.len() - 1].t), (0, n - 1));
            let means = curve
                .buckets
                .iter()
                .map(|b| b.mean.at[3] * b.mean.count)
                .sum::<f64>();
            let of_all = (0..n).map(y).sum::<f64>();
            assert!(
                (means - of_all).abs() < 1e-6 * n as f64,
                "{n}: {means}, {of_all}"
            );
            for extreme in [f64::max, f64::min] {
                let of_all = (0..n).map(y).reduce(extreme);
                assert_eq!(points.iter().map(|p| p.y).reduce(extreme), of_all, "{n}");
            }
        }
    }

    const LINE: &str = r#"{"t":T,"p":10,"q":5,"eta":0.1,"loss_train":0.5,"loss_test":0.6,"auc":0.7,"precision":0.2,"recall":0.5,"f1":0.3,"accuracy":0.4,"bytes_paper":1.0,"bytes_exact":2.0,"seconds":3.0,"loss_validation":0.6,"auc_validation":A,"f1_validation":0.3,"accuracy_validation":0.5}"#;

    fn line(t: u64, auc: f64) -> Vec<u8> {
        LINE.replace('T', &t.to_string())
            .replace('A', &auc.to_string())
            .into_bytes()
    }

    #[test]
    fn damaged_lines_are_told_with_their_number_and_left_out() {
        let mut curves = Curves::default();
        curves.line(1, &line(0, 0.5));
        curves.line(2, b"{\"t\":1");
        curves.line(3, &line(20, 0.8));
        curves.line(4, &line(10, 0.9));
        curves.too_long(5);
        curves.line(6, &line(30, 0.7));
        let problems = curves.problems();
        assert_eq!(problems.len(), 3);
        assert!(
            problems[0].starts_with("metrics.jsonl, line 2 is damaged: "),
            "{problems:?}"
        );
        assert!(
            problems[1].contains("line 4")
                && problems[1].contains("iteration 10 comes after iteration 20")
        );
        assert!(problems[2].contains("line 5"));
        let json = curves.json();
        assert_eq!(json["curves"]["auc"]["iterations"], json!([0, 20, 30]));
        assert_eq!(json["best"]["t"], 20, "as the validation samples choose");
        assert_eq!(json["last"]["t"], 30);
        (0..50).for_each(|i| curves.line(7 + i, b"x"));
        assert_eq!(curves.problems().len(), MOST_PROBLEMS + 1);
        assert!(curves.problems()[MOST_PROBLEMS].contains("43 more lines"));
        curves.begin_anew();
        assert!(curves.problems().is_empty() && curves.json()["curves"]["auc"].is_null());
    }
}

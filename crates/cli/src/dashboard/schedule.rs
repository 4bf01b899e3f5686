//! P, Q and η over a run, why they changed, and which intervals follow from them.

use selvedge_core::adaptive::Change;
use selvedge_core::experiment::{Algorithm, Experiment, Fall};
use selvedge_core::schedule::{self, Segment};
use selvedge_run::files::SEGMENTS;
use selvedge_run::follow::Reader;
use selvedge_run::segments;
use serde_json::{Value, json};

/// Changes that are shown one by one, the last ones; all of them can be downloaded.
const MOST_TOLD: usize = 200;

/// Steps that are drawn.
const MOST_DRAWN: usize = 1000;

/// Stretches in which a learning rate that always changes is drawn.
const STRETCHES: u64 = 64;

/// Halvings of η that are shown; after them not much is left of it.
const MOST_HALVINGS: u64 = 64;

/// The lines of `segments.jsonl`.
#[derive(Default)]
pub(super) struct Changes {
    changes: Vec<Change>,
    pub(super) problem: Option<String>,
}

impl Reader for Changes {
    fn begin_anew(&mut self) {
        *self = Changes::default();
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        match segments::parse(line, self.changes.last().map(|last| last.t)) {
            Ok(change) => self.changes.push(change),
            Err(why) => self.damaged(number, &why),
        }
    }

    fn too_long(&mut self, number: u64) {
        self.damaged(number, "it is longer than 4 MB");
    }
}

impl Changes {
    fn damaged(&mut self, number: u64, why: &str) {
        let problem = || format!("{SEGMENTS}, line {number} is damaged: {why}; it is skipped");
        self.problem.get_or_insert_with(problem);
    }

    /// The last iteration that the file knows of.
    pub(super) fn last(&self) -> u64 {
        self.changes.last().map_or(0, |change| change.t)
    }
}

/// An interval: from a draw of devices to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The global aggregation at its start or before.
    pub(super) aggregated: u64,
}

/// When things happen in a run.
pub(super) struct Schedule {
    /// By rising t; never none, and the first at 0.
    segments: Vec<Change>,
    /// Where η is halved, if nobody steers.
    halvings: Vec<Change>,
    /// How η goes between them, if it does not stay: drawn, not told.
    course: Vec<Change>,
    iterations: u64,
    /// Whether devices are drawn every P, for all exchanges until the next global aggregation; else every Q.
    draws_every_p: bool,
}

impl Schedule {
    /// As far as the run has come.
    pub(super) fn new(experiment: &Experiment, changes: &Changes, t: u64) -> Self {
        let train = &experiment.train;
        let first = Segment::first(train);
        let mut segments = changes.changes.clone();
        if segments.first().is_none_or(|segment| segment.t > 0) {
            segments.insert(0, Change::new(&first, "the experiment's P, Q and η".into()));
        }
        let schedule = schedule::Schedule::of(train);
        let at = |t: u64| Change {
            t,
            eta: schedule.rate(&first, t),
            ..segments[0].clone()
        };
        let always = train.warm_up > 0 || train.schedule == Fall::Cosine;
        let stretch = (train.iterations / STRETCHES).max(1);
        let until = if always {
            t.min(train.iterations) + 1
        } else {
            0
        };
        let course = (0..until).step_by(stretch as usize).map(at).collect();
        let halving = |number: u64, every: u64| Change {
            t: number * every,
            eta: schedule.rate(&first, number * every),
            reason: format!("η is halved every {every} iterations"),
            ..segments[0].clone()
        };
        let halvings = match first.halve_every {
            Some(every) if train.adaptive.is_off() => {
                let times = (t.min(train.iterations) / every).min(MOST_HALVINGS);
                (1..=times).map(|number| halving(number, every)).collect()
            }
            _ => Vec::new(),
        };
        Schedule {
            halvings,
            course,
            segments,
            iterations: train.iterations,
            draws_every_p: train.algorithm == Algorithm::Jfl,
        }
    }

    /// The interval that `t` is in, if the run has one there.
    pub(super) fn interval(&self, t: u64) -> Option<Interval> {
        let after = self.segments.partition_point(|segment| segment.t <= t);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        if t >= self.iterations || segment.q == 0 || segment.p == 0 {
            return None;
        }
        let floor = |width: u64| segment.t + (t - segment.t) / width * width;
        let next = self
            .segments
            .get(after)
            .map_or(self.iterations, |next| next.t);
        let width = match self.draws_every_p {
            true => segment.p,
            false => segment.q,
        };
        let start = floor(width);
        Some(Interval {
            start,
            end: start.saturating_add(width).min(next).min(self.iterations),
            aggregated: floor(segment.p),
        })
    }

    /// The interval that a run which has come to `t` is in, or was in last.
    pub(super) fn latest(&self, t: u64) -> Option<Interval> {
        self.interval(t)
            .or_else(|| self.interval(self.iterations.checked_sub(1)?))
    }

    pub(super) fn json(&self) -> Value {
        let all: Vec<&Change> = self.segments.iter().chain(&self.halvings).collect();
        let untold = all.len().saturating_sub(MOST_TOLD);
        let told = all[untold..].to_vec();
        let mut all = match self.course.is_empty() {
            true => all,
            false => self.halvings.iter().chain(&self.course).collect(),
        };
        all.sort_by_key(|change| change.t);
        let every = all.len().div_ceil(MOST_DRAWN).max(1);
        let drawn = all.iter().step_by(every);
        json!({
            "steps": drawn.map(|c| json!([c.t, c.p, c.q, c.eta])).collect::<Vec<_>>(),
            "drawn_every": every,
            "changes": told,
            "untold": untold,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_data::SETS;

    fn experiment(text: &str) -> Experiment {
        let text = format!("[train]\niterations = 100\n{text}");
        SETS.parse(&text, &[]).unwrap()
    }

    fn interval(start: u64, end: u64, aggregated: u64) -> Option<Interval> {
        Some(Interval {
            start,
            end,
            aggregated,
        })
    }

    #[test]
    fn a_run_that_nobody_steers_has_equal_intervals_and_halvings() {
        let experiment = experiment(
            "global_interval = 20\nlocal_interval = 5\nlearning_rate = 0.4\nhalve_every = 30",
        );
        let schedule = Schedule::new(&experiment, &Changes::default(), 70);
        assert_eq!(schedule.interval(0), interval(0, 5, 0));
        assert_eq!(schedule.interval(37), interval(35, 40, 20));
        assert_eq!(schedule.interval(100), None);
        assert_eq!(schedule.latest(100), interval(95, 100, 80));
        assert_eq!(
            schedule.json()["steps"],
            json!([[0, 20, 5, 0.4], [30, 20, 5, 0.2], [60, 20, 5, 0.1]])
        );
    }

    #[test]
    fn a_learning_rate_that_always_changes_is_drawn_so() {
        let experiment = experiment("learning_rate = 0.4\nwarm_up = 10\nschedule = \"cosine\"");
        let all = Schedule::new(&experiment, &Changes::default(), 100).json();
        let drawn = all["steps"].as_array().unwrap();
        let at = |t: usize| drawn[t][3].as_f64().unwrap();
        assert_eq!(
            [at(0), at(9), at(10), at(55), at(100)],
            [0.04, 0.4, 0.4, 0.2, 0.0]
        );
        assert_eq!(all["changes"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn an_interval_is_as_wide_as_what_is_drawn_for() {
        for algorithm in Algorithm::ALL {
            let text = "global_interval = 20\nlocal_interval = 5\nalgorithm";
            let experiment = experiment(&format!("{text} = \"{algorithm}\""));
            let schedule = Schedule::new(&experiment, &Changes::default(), 0);
            let expected = match algorithm {
                Algorithm::Jfl => interval(20, 40, 20),
                Algorithm::Centralised | Algorithm::FedAvg => interval(37, 38, 20),
                _ => interval(35, 40, 20),
            };
            assert_eq!(schedule.interval(37), expected, "{algorithm}");
        }
    }

    #[test]
    fn a_run_that_is_steered_has_those_of_its_segments() {
        let mut changes = Changes::default();
        changes.line(1, br#"{"t":0,"p":5,"q":5,"eta":0.1,"reason":"a"}"#);
        changes.line(2, br#"{"t":10,"p":4,"q":2,"eta":0.2,"reason":"b"}"#);
        changes.line(3, br#"{"t":9,"p":4,"q":2,"eta":0.2,"reason":"before"}"#);
        changes.line(4, br#"{"t":20,"p":0,"q":2,"eta":0.2,"reason":"never"}"#);
        changes.line(5, br#"{"t":14,"p":90,"q":90,"eta":0.2,"reason":"c"}"#);
        assert!(
            changes
                .problem
                .as_ref()
                .is_some_and(|why| why.contains("line 3"))
        );
        assert_eq!(changes.last(), 14);
        let schedule = Schedule::new(&experiment("adaptive = \"gain\""), &changes, 20);
        assert_eq!(schedule.interval(9), interval(5, 10, 5));
        assert_eq!(schedule.interval(13), interval(12, 14, 10));
        assert_eq!(schedule.interval(50), interval(14, 100, 14));
        assert_eq!(schedule.json()["changes"][1]["reason"], "b");
    }
}

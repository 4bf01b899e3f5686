//! The messages of a run.

use super::joint::{About, Why};
use crate::adaptive::Report;
use crate::calibration::{Calibration, Sums};
use crate::ledger::Ledger;
use crate::message_path::Numbers;
use crate::schedule::Segment;
use crate::scores::Scores;

/// What a group has sent and how long it has worked, as its edge counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Since the run began.
    pub ledger: Ledger,
    /// Simulated seconds since the last global aggregation.
    pub seconds: f64,
}

impl Counted {
    /// Time beyond this is none: the sum of any number of them would not be a number.
    const MOST_SECONDS: f64 = 1e280;

    /// Whether an edge can have counted this.
    pub(super) fn is_sound(&self) -> bool {
        (0.0..=Self::MOST_SECONDS).contains(&self.seconds)
    }
}

/// Which samples of a group are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Portion {
    /// Its training rows.
    Training,
    /// Its validation rows.
    Validation,
    /// Its test rows.
    Test,
}

/// A device's rows, with its number.
pub(super) type OfDevice = (u32, Vec<Numbers>);

/// A message. `t` is the iteration at which the interval or the aggregation it belongs to begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Edge → gateway: these devices are to take part, with this θ2 and these steps.
    Invite {
        /// The interval.
        t: u64,
        /// Q and η.
        segment: Segment,
        /// `θ2[m]`
        theta2: Numbers,
        /// Of this gateway.
        devices: Vec<u32>,
    },
    /// Gateway → edge: ζ2 of each device's samples.
    Zeta2 {
        /// The interval.
        t: u64,
        /// A row for each sample.
        zeta2: Vec<OfDevice>,
    },
    /// Edge → hospital: ζ2 of those who are there.
    Batch {
        /// The interval.
        t: u64,
        /// By position of the subset: the rows of a device, nothing if it is absent.
        zeta2: Vec<Option<Vec<Numbers>>>,
    },
    /// Hospital → edge: θ0, and ζ1 of those who are there.
    Frozen {
        /// The interval.
        t: u64,
        /// θ0; nothing if nobody is there.
        theta0: Option<Numbers>,
        /// By position of the subset.
        zeta1: Vec<Option<Vec<Numbers>>>,
    },
    /// Edge → gateway: θ0, and each device's own ζ1.
    Lesson {
        /// The interval.
        t: u64,
        /// θ0
        theta0: Numbers,
        /// A row for each sample.
        zeta1: Vec<OfDevice>,
    },
    /// Gateway → edge: models of devices after their steps, or the differences to what they were sent.
    Models {
        /// The interval.
        t: u64,
        /// `θ2[m][n]`
        theta2: Vec<(u32, Numbers)>,
    },
    /// Hospital → cloud, at a global aggregation.
    HospitalModel {
        /// The aggregation.
        t: u64,
        /// `θ0[m]`, or the difference to the last θ0.
        theta0: Numbers,
        /// `θ1[m]`, likewise.
        theta1: Numbers,
        /// For the controller.
        report: Option<Report>,
    },
    /// Edge → cloud, at a global aggregation.
    EdgeModel {
        /// The aggregation.
        t: u64,
        /// `θ2[m]`, or the difference to the last θ2.
        theta2: Numbers,
        /// What its group has sent so far.
        counted: Counted,
    },
    /// Cloud → hospital and edge: the parts of θ that it needs, and what comes next.
    Global {
        /// The aggregation.
        t: u64,
        /// θ0 and θ1 for the hospital, θ2 for the edge.
        parts: Vec<Numbers>,
        /// The aggregation whose θ they are differences to; nothing if they are whole.
        since: Option<u64>,
        /// P, Q and η from here on.
        segment: Segment,
        /// Whether the group must drop its residuals: its models are not in θ, or θ is an earlier model.
        anew: bool,
        /// Whether the run is over.
        ended: bool,
        /// For hospitals, once it is: how probabilities of this θ are corrected.
        calibration: Option<Calibration>,
    },
    /// Cloud → hospital and edge: evaluate this model. It changes nothing in them.
    Evaluate {
        /// Which model: answers name it.
        number: u64,
        /// θ0 and θ1 for the hospital, θ2 for the edge.
        parts: Vec<Numbers>,
    },
    /// Edge → gateway: embed what you hold by this θ2.
    Embed {
        /// Which model.
        number: u64,
        /// θ2
        theta2: Numbers,
    },
    /// Gateway → edge → hospital: ζ2 of some samples.
    Embedded {
        /// Which model.
        number: u64,
        /// Which samples.
        part: Portion,
        /// Their places in that part of the group.
        rows: Vec<u32>,
        /// A row for each, one after the other.
        zeta2: Numbers,
    },
    /// Hospital → cloud: the scores of a model on the group's samples. Counts and sums, nothing about a single sample.
    Evaluated {
        /// Which model.
        number: u64,
        /// The scores.
        scores: Box<Scores>,
    },
    /// Cloud → hospital: what would these corrections do to what the model says of the group's validation samples?
    Calibrate {
        /// Which model.
        number: u64,
        /// The corrections.
        corrections: Vec<Calibration>,
    },
    /// Hospital → cloud: sums over the group's validation samples, nothing about a single one.
    Calibrated {
        /// Which model.
        number: u64,
        /// Of which corrections.
        corrections: Vec<Calibration>,
        /// The sums of each; nothing if it has not measured that model, or has forgotten it.
        sums: Option<Vec<Sums>>,
    },
    /// Where a hospital and an edge are, from either to the other or to the cloud. With both, it is a complaint: they are
    /// not at the same iteration, so one of them has lost its record; or, if they are, one of them cannot follow what
    /// was announced.
    Astray {
        /// Where the edge is.
        edge: Option<u64>,
        /// Where the hospital is.
        hospital: Option<u64>,
        /// The last aggregation that the sender knows.
        global: u64,
    },
    /// Cloud → hospital and edge, if they are no further than that: go back to the last aggregation, and on from there.
    Return {
        /// Who is further has gone on already.
        from: u64,
        /// The aggregation.
        t: u64,
        /// The parts of θ that it needs.
        parts: Vec<Numbers>,
        /// P, Q and η from there on.
        segment: Segment,
        /// What the group had sent by then, as its edge had counted.
        ledger: Ledger,
    },
    /// Edge → gateway: the run is over.
    End,
    /// The answer to an end: the sender knows, and may exit.
    Done,
    /// Gateway → edge, once the run is over: which θ2 was trained?
    Fetch,
    /// Edge → gateway: this one.
    Trained {
        /// When it was aggregated.
        t: u64,
        /// θ2
        theta2: Numbers,
    },
    /// Gateway → edge → hospital: what does the model predict for these patients?
    Question {
        /// Which question: answers name it.
        number: u64,
        /// When the model that made ζ2 was aggregated.
        t: u64,
        /// The gateway that asks; the edge fills it in.
        gateway: u32,
        /// The patients.
        about: About,
        /// A row for each, one after the other.
        zeta2: Numbers,
    },
    /// Edge → gateway: the hospital has been asked.
    Passed {
        /// Which question.
        number: u64,
    },
    /// Hospital → edge → gateway: probabilities of the classes.
    Answer {
        /// Which question.
        number: u64,
        /// The gateway that asked.
        gateway: u32,
        /// Unknown patients: positions in the question, in order.
        unknown: Vec<u32>,
        /// A row for each of the others, one after the other: what the model says.
        probabilities: Numbers,
        /// How that is corrected, if the run has found out.
        calibration: Option<Calibration>,
    },
    /// Edge or hospital → gateway: there is no answer.
    Refused {
        /// Which question; 0 if none can be asked.
        number: u64,
        /// The gateway that asked.
        gateway: u32,
        /// Why.
        why: Why,
    },
}

impl Message {
    /// Its name, for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::Invite { .. } => "invite",
            Message::Zeta2 { .. } => "zeta2",
            Message::Batch { .. } => "batch",
            Message::Frozen { .. } => "frozen",
            Message::Lesson { .. } => "lesson",
            Message::Models { .. } => "models",
            Message::HospitalModel { .. } => "hospital model",
            Message::EdgeModel { .. } => "edge model",
            Message::Global { .. } => "global",
            Message::Evaluate { .. } => "evaluate",
            Message::Embed { .. } => "embed",
            Message::Embedded { .. } => "embedded",
            Message::Evaluated { .. } => "evaluated",
            Message::Calibrate { .. } => "calibrate",
            Message::Calibrated { .. } => "calibrated",
            Message::Astray { .. } => "astray",
            Message::Return { .. } => "return",
            Message::End => "end",
            Message::Done => "done",
            Message::Fetch => "fetch",
            Message::Trained { .. } => "trained",
            Message::Question { .. } => "question",
            Message::Passed { .. } => "passed",
            Message::Answer { .. } => "answer",
            Message::Refused { .. } => "refused",
        }
    }

    /// A return: how far who takes it may be, what it is told, which is what is announced to who begins anew, and what
    /// its group had sent.
    pub(super) fn returned(self) -> Option<(u64, Message, Ledger)> {
        let Message::Return {
            from,
            t,
            parts,
            segment,
            ledger,
        } = self
        else {
            return None;
        };
        let global = Message::Global {
            t,
            parts,
            since: None,
            segment,
            anew: true,
            ended: false,
            calibration: None,
        };
        Some((from, global, ledger))
    }

    /// Whether it serves to use a model, not to train one.
    pub fn is_of_prediction(&self) -> bool {
        matches!(
            self,
            Message::Fetch
                | Message::Trained { .. }
                | Message::Question { .. }
                | Message::Passed { .. }
                | Message::Answer { .. }
                | Message::Refused { .. }
        )
    }

    /// Whether it serves to evaluate a model, not to train one.
    pub fn is_of_evaluation(&self) -> bool {
        matches!(
            self,
            Message::Evaluate { .. }
                | Message::Embed { .. }
                | Message::Embedded { .. }
                | Message::Evaluated { .. }
                | Message::Calibrate { .. }
                | Message::Calibrated { .. }
        )
    }
}

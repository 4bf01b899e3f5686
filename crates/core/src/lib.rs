//! HSGD and all it needs: no async, no clock, no files, no sockets.
//!
//! ```text
//! experiment ─┐
//! dataset ────┤
//!             ▼
//!           task ──►  run::train ──► state (θ, ledger, clock), evaluations
//!                      │ exchange      ζ2 up, θ0 and ζ1 down
//!                      │ local_steps   hospital on θ0, θ1; devices on θ2
//!                      │ aggregate     edge: mean of θ2; cloud: mean of θ
//! ```
//!
//! [`hsgd`] is the paper's Algorithm 1. The three modules it is made of work on one party at a time, so that parties in
//! different processes call the same code as the loop.
//!
//! ```
//! use selvedge_core::{dataset::*, experiment::Experiment, run, state::State, task::Task};
//! use selvedge_nn::Shape;
//! use std::ops::ControlFlow;
//!
//! // Two groups of three devices; the label is whether hospital and device agree in sign.
//! let group = |name: &str| {
//!     let rows = [(1.0, 1.0, 1), (1.0, -1.0, 0), (-1.0, -1.0, 1)];
//!     let mut samples = Samples::default();
//!     rows.iter().for_each(|(x1, x2, y)| samples.push(&[*x1], &[*x2], *y));
//!     Group::one_sample_per_device(name.into(), samples)
//! };
//! let dataset = Dataset {
//!     name: "example".into(),
//!     hospital: Shape::Flat(1),
//!     device: Shape::Flat(1),
//!     outcome: Outcome::Class,
//!     classes: vec!["differ".into(), "agree".into()],
//!     groups: vec![group("a"), group("b")],
//!     validation: Samples::default(),
//!     test: group("test").samples,
//!     holders: Holders::InTurn,
//! };
//! let experiment = Experiment::parse("[train]\niterations = 200\nparticipation = 1.0\nlearning_rate = 0.5", &[])?;
//! let task = Task::new(&experiment, &dataset)?;
//! let mut state = State::initial(&task);
//! let mut losses = Vec::new();
//! let ending = run::train(&task, &mut state, |interval| {
//!     losses.extend(interval.evaluation.map(|e| e.loss_train));
//!     Ok::<_, std::convert::Infallible>(ControlFlow::Continue(()))
//! })?;
//! assert_eq!(ending, run::Ending::Finished);
//! assert!(losses.last() < losses.first());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod absence;
pub mod adaptive;
pub mod aggregate;
pub mod assess;
pub mod attack;
pub mod baseline;
pub mod calibration;
pub mod checks;
pub mod clock;
mod cloud;
pub mod codec;
pub mod conduct;
pub mod cost;
pub mod dataset;
pub mod enrol;

pub mod exchange;
pub mod experiment;
pub mod fingerprint;
pub mod gradient;
pub mod group;
pub mod hsgd;
mod judging;
pub mod keys;
pub mod ledger;
pub mod local_steps;
pub mod message_path;
pub mod metrics;
pub mod model;
pub mod objective;
pub mod optimiser;
pub mod outcome;
mod plausible;
pub mod positive;
pub mod protocol;
pub mod reversal;
pub mod role;
pub mod run;
pub mod schedule;
pub mod scores;
pub mod selection;
pub mod state;
pub mod statistics;
pub mod task;
pub mod theory;

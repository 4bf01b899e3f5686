//! A run as real processes: one party in each, on NATS.
//!
//! ```text
//! config    what a node is told: its run, its shard, its server
//! enrol     one party, before training: who takes part, from tables that parties hold themselves
//! bounds    how much the parties of a run say to each other at most, and keep on servers
//! node      one party, from its config to the end of the run
//! answer    what hospital and edge need to answer joint predictions when it is over
//! ask       a gateway that asks for them: its `patients`, and the `predictions` that come back
//! journal   what a party writes down: the cloud its run directory, everybody its absences
//! consortium who takes part and where, as its operator describes it
//! kit       the files of all parties and servers, a folder for each
//! doctor    can a party take part: its server, its key, its clock, its data
//! processes those servers and parties as processes, started again when they die
//! up        all of it, from an experiment to a trained model
//! status    who is there, who is missing and why
//! ```

pub(crate) mod answer;
pub(crate) mod ask;
mod bounds;
pub(crate) mod config;
pub(crate) mod consortium;
pub(crate) mod doctor;
pub(crate) mod enrol;
pub(crate) mod journal;
pub(crate) mod kit;
pub(crate) mod node;
mod patients;
pub(crate) mod predictions;
pub(crate) mod processes;
pub(crate) mod status;
pub(crate) mod up;

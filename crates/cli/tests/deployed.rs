//! Runs as real processes on real servers: equal to the simulation, whoever is killed, cut off or refused.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

#[path = "deployed/cluster.rs"]
mod cluster;
mod common;
#[path = "deployed/deployment.rs"]
mod deployment;
#[path = "deployed/equal.rs"]
mod equal;
#[path = "deployed/faults.rs"]
mod faults;
#[path = "deployed/flood.rs"]
mod flood;
#[path = "deployed/guide.rs"]
mod guide;
#[path = "deployed/hostile.rs"]
mod hostile;
#[path = "deployed/joint.rs"]
mod joint;
#[path = "deployed/killed.rs"]
mod killed;
#[path = "deployed/kit.rs"]
mod kit;
#[path = "deployed/lost.rs"]
mod lost;
#[path = "deployed/newcomers.rs"]
mod newcomers;
#[path = "deployed/provisioned.rs"]
mod provisioned;
#[path = "deployed/refused.rs"]
mod refused;
#[path = "deployed/stopped.rs"]
mod stopped;
#[path = "deployed/uplink.rs"]
mod uplink;

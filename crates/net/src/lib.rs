//! Parties on NATS: the only async code.
//!
//! ```text
//! drive ── Protocol (selvedge-core) ── handle(event) ──► outbox
//!   │                                                      │ 1. the record
//!   │                                                      ▼
//!   │                                                   records     JetStream, on the party's own server
//!   │                                                      │ 2. messages
//!   │                                                      ▼
//!   └──────────── incoming ◄── transport ◄───────────── subjects    pieces, TLS, a key for each party
//! ```
//!
//! Every hospital site has a server of its own, and a link from there dials out to the cloud's server, the hub. What
//! stays inside a group is not sent over that link, whatever the hub's operator configures: see [`server`].

pub mod broker;
pub mod chunks;
pub mod counters;
pub mod credentials;
pub mod deadlines;
pub mod drive;
pub mod examination;
pub mod floor;
pub mod gate;
mod http;
pub mod identity;
pub mod records;
pub mod server;
pub mod subjects;
pub mod transport;

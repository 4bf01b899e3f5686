//! What a party may take up of its server.

use serde::{Deserialize, Serialize};

/// Connections of one party: its node, its questions, and those that its server does not know yet to be dead.
const CONNECTIONS: usize = 16;

/// Subscriptions of one connection besides those to gateways.
const SUBSCRIPTIONS: usize = 16;

/// How many bytes parties may take up of their servers. Nobody's records may fill the disk of all, and nothing may take
/// all of a server's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quotas {
    /// Records of one party, on disk.
    pub store: u64,
    /// What may wait for one connection of a site's server.
    pub waiting_at_site: u64,
    /// What may wait for one connection of the cloud's server.
    pub waiting_at_hub: u64,
}

/// Of a run whose sizes are not known yet.
impl Default for Quotas {
    fn default() -> Self {
        Quotas {
            store: 1 << 30,
            waiting_at_site: 1 << 30,
            waiting_at_hub: 1 << 30,
        }
    }
}

impl Quotas {
    /// What an account may keep, on so many servers together: one stream, on disk, without consumers.
    pub(super) fn of_records(&self, servers: usize) -> String {
        let store = self.store * servers as u64;
        format!(
            "    jetstream: {{ max_mem: 0, max_store: {store}, max_streams: 1, max_consumers: 0 }}\n"
        )
    }

    /// How often an account may connect, and what each connection may listen to.
    pub(super) fn of_connections(gateways: usize) -> String {
        let subscriptions = SUBSCRIPTIONS + gateways;
        format!(
            "    limits: {{ max_connections: {CONNECTIONS}, max_subscriptions: {subscriptions} }}\n"
        )
    }
}

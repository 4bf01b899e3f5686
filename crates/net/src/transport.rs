//! A party's connection to its server: what it hears, and what it says.
//!
//! Messages are lost silently while the connection is down, so roles send again what they wait for. Connecting is
//! retried indefinitely.

use crate::chunks::{self, Joiner, Unusable};
use crate::gate::{CALM, Declined, Gate, Turn};
use crate::subjects::{self, CLOUD, EDGE, HOSPITAL};
use async_nats::{Client, ConnectOptions, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use selvedge_core::role::Party;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout_at};

/// How a party connects to its server.
#[derive(Clone)]
pub struct Access {
    /// `host:port` of one or more servers.
    pub servers: Vec<String>,
    /// The certificate of the deployment's authority.
    pub authority: PathBuf,
    /// The seed of the party's key, a secret.
    pub seed: String,
}

impl Access {
    /// How many servers keep each record: all of a cluster of three, so that it outlives one of them. How a party
    /// connects.
    pub(crate) fn options(&self, party: Party) -> ConnectOptions {
        let name = name(party);
        ConnectOptions::with_nkey(self.seed.clone())
            .add_root_certificates(self.authority.clone())
            .require_tls(true)
            .custom_inbox_prefix(subjects::inbox_prefix(&name))
            .name(name)
    }

    pub(crate) fn replicas(&self) -> usize {
        if self.servers.len() < 3 { 1 } else { 3 }
    }
}

/// What happens to a connection.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// Somebody has sent something, which has this name.
    Message(Party, u64, Bytes),
    /// What came was of no use.
    Unusable(Party, Unusable),
    /// The same waits to be handled already.
    Doubled,
    /// Somebody floods, and is not listened to for so long.
    CutOff(Party, Duration),
    /// It is heard again.
    HeardAgain(Party),
    /// The connection is there, perhaps again.
    Connected,
    /// It is not.
    Disconnected,
    /// The server or the client says something that people should know.
    Said(String),
}

/// A connection.
pub(crate) struct Transport {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) incoming: Receiver<Incoming>,
    /// What each neighbour may send.
    pub(crate) gates: BTreeMap<Party, Arc<Gate>>,
    /// Messages that came faster than they could be looked at.
    overrun: Arc<AtomicU64>,
    party: Party,
}

/// Says whether somebody wants it to stop.
pub(crate) type Stopping<'a> = &'a dyn Fn() -> bool;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
    /// The address, certificate or key is invalid.
    #[error("cannot connect to {servers}: {problem}")]
    Connect {
        /// Where to.
        servers: String,
        /// What is wrong.
        problem: String,
    },
}

/// A party's name on its server.
pub fn name(party: Party) -> String {
    match party {
        Party::Cloud => CLOUD.into(),
        Party::Hospital(_) => HOSPITAL.into(),
        Party::Edge(_) => EDGE.into(),
        Party::Gateway(_, g) => format!("gateway-{g}"),
    }
}

/// The subject of messages from one party to another; none if they do not exchange messages.
pub fn subject(from: Party, to: Party) -> Option<String> {
    use Party::{Cloud, Edge, Gateway, Hospital};
    match (from, to) {
        (Hospital(m) | Edge(m), Cloud) => Some(subjects::up(m, &name(from))),
        (Cloud, Hospital(m) | Edge(m)) => Some(subjects::down(m, &name(to))),
        (Edge(m), Hospital(n) | Gateway(n, _)) | (Hospital(m) | Gateway(m, _), Edge(n))
            if m == n =>
        {
            Some(subjects::inside(m, &name(from), &name(to)))
        }
        _ => None,
    }
}

/// The parties that a party exchanges messages with, given the numbers of groups and of gateways per group.
pub fn neighbours(party: Party, groups: usize, gateways: usize) -> Vec<Party> {
    match party {
        Party::Cloud => (0..groups)
            .flat_map(|m| [Party::Hospital(m), Party::Edge(m)])
            .collect(),
        Party::Hospital(m) => vec![Party::Edge(m), Party::Cloud],
        Party::Edge(m) => [Party::Hospital(m), Party::Cloud]
            .into_iter()
            .chain((0..gateways).map(|g| Party::Gateway(m, g)))
            .collect(),
        Party::Gateway(m, _) => vec![Party::Edge(m)],
    }
}

impl Transport {
    /// Connects a party, and listens to its neighbours. No message is longer than `most` bytes, and none of them sends
    /// more than a turn in an interval. Tries until a server answers, and says why none does; nothing if it is to stop
    /// before.
    pub(crate) fn open(
        access: &Access,
        own: Party,
        neighbours: &[Party],
        (most, turn): (usize, Turn),
        (stop, notice): (Stopping<'_>, &dyn Fn(&str)),
    ) -> Result<Option<Self>, TransportError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(TransportError::Threads)?;
        let (sender, incoming) = mpsc::channel();
        let failed = |problem: String| TransportError::Connect {
            servers: access.servers.join(", "),
            problem,
        };
        let addresses: Vec<async_nats::ServerAddr> = access
            .servers
            .iter()
            .map(|server| format!("tls://{server}").parse())
            .collect::<Result<_, _>>()
            .map_err(|e: std::io::Error| failed(e.to_string()))?;
        crate::credentials::Identity::from_seed(&access.seed)
            .map_err(|e| failed(format!("the party's key is invalid: {e}")))?;
        std::fs::read(&access.authority)
            .map_err(|e| failed(format!("{}: {e}", access.authority.display())))?;
        let (told, overrun) = (sender.clone(), Arc::new(AtomicU64::new(0)));
        let options = || {
            let options = access.options(own);
            options
                .max_reconnects(None)
                .subscription_capacity(turn.messages_at_once())
                .ping_interval(Duration::from_secs(5))
                .connection_timeout(Duration::from_secs(5))
                .reconnect_delay_callback(|attempt| {
                    Duration::from_millis((50 << attempt.min(5)).min(2000))
                })
                .event_callback({
                    let (told, overrun) = (told.clone(), Arc::clone(&overrun));
                    move |event| {
                        let incoming = match event {
                            async_nats::Event::Connected => Some(Incoming::Connected),
                            async_nats::Event::Disconnected => Some(Incoming::Disconnected),
                            // As often as a flood has messages: whose it is, its gate tells.
                            async_nats::Event::SlowConsumer(_) => {
                                overrun.fetch_add(1, Ordering::Relaxed);
                                None
                            }
                            other => Some(Incoming::Said(other.to_string())),
                        };
                        let _ = incoming.map(|incoming| told.send(incoming));
                        async {}
                    }
                })
        };
        let mut tries = 0u32;
        let client = loop {
            match runtime.block_on(options().connect(addresses.clone())) {
                Ok(client) => break client,
                Err(error) => {
                    tries += 1;
                    if tries.is_power_of_two() {
                        notice(&failed(error.to_string()).to_string());
                    }
                }
            }
            let pause = Duration::from_millis((50u64 << tries.min(5)).min(2000));
            let until = std::time::Instant::now() + pause;
            while std::time::Instant::now() < until {
                if stop() {
                    return Ok(None);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let mut gates = BTreeMap::new();
        for neighbour in neighbours {
            if let Some(subject) = subject(*neighbour, own) {
                let gate = Arc::new(Gate::new(turn));
                gates.insert(*neighbour, Arc::clone(&gate));
                let listener = Listener {
                    from: *neighbour,
                    client: client.clone(),
                    subject,
                    most,
                    gate,
                    sender: sender.clone(),
                };
                let first = runtime
                    .block_on(client.subscribe(listener.subject.clone()))
                    .map_err(|e| failed(e.to_string()))?;
                runtime.spawn(listener.listen(first));
            }
        }
        Ok(Some(Transport {
            runtime,
            client,
            incoming,
            gates,
            overrun,
            party: own,
        }))
    }

    /// Messages that came faster than they could be looked at, since this was last asked.
    pub(crate) fn take_overrun(&self) -> u64 {
        self.overrun.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Sends bytes; how many, with all that is around them. Nothing is sent while there is no connection.
    pub(crate) fn send(&self, to: Party, bytes: Vec<u8>) -> usize {
        let Some(subject) = subject(self.party, to).filter(|_| self.is_connected()) else {
            return 0;
        };
        let mut sent = 0;
        for piece in chunks::split(bytes) {
            sent += piece.len();
            let published = self.client.publish(subject.clone(), piece);
            if self.runtime.block_on(published).is_err() {
                return sent;
            }
        }
        sent
    }

    /// Waits until everything is with the server, but not for ever.
    pub(crate) fn flush(&self) {
        let flushed =
            async { tokio::time::timeout(Duration::from_secs(5), self.client.flush()).await };
        let _ = self.runtime.block_on(flushed);
    }
}

/// Hands on what one neighbour sends, while it sends no more than it may.
struct Listener {
    from: Party,
    client: Client,
    subject: String,
    most: usize,
    gate: Arc<Gate>,
    sender: Sender<Incoming>,
}

/// Why a listener does not listen any more.
enum Silence {
    /// The sender floods.
    Flood,
    /// There is nobody to hand anything on to, or nothing to listen to.
    End,
}

impl Listener {
    async fn listen(self, mut subscription: Subscriber) {
        while let Silence::Flood = self.hear(&mut subscription).await {
            // Its server learns that nobody wants to hear this, and drops it.
            drop(subscription);
            let Some(again) = self.wait_until_calm().await else {
                return;
            };
            subscription = again;
        }
    }

    async fn hear(&self, subscription: &mut Subscriber) -> Silence {
        let mut joiner = Joiner::default();
        while let Some(message) = subscription.next().await {
            let piece = message.payload;
            if !self.gate.admits(piece.len()) {
                self.gate.drops(piece.len());
                return Silence::Flood;
            }
            let incoming = match joiner.take(&piece, self.most) {
                Ok(None) => continue,
                Ok(Some(bytes)) => match self.gate.lets_wait(&bytes) {
                    Ok(name) => Incoming::Message(self.from, name, bytes),
                    Err(Declined::Doubled) => Incoming::Doubled,
                    Err(Declined::Crowded) => continue,
                },
                Err(unusable) => Incoming::Unusable(self.from, unusable),
            };
            if self.sender.send(incoming).is_err() {
                return Silence::End;
            }
        }
        Silence::End
    }

    /// Pauses until the sender is calm, and listens again.
    async fn wait_until_calm(&self) -> Option<Subscriber> {
        loop {
            let pause = self.gate.closes();
            self.sender.send(Incoming::CutOff(self.from, pause)).ok()?;
            sleep(pause).await;
            let mut subscription = self.client.subscribe(self.subject.clone()).await.ok()?;
            self.gate.opens();
            if self.is_calm(&mut subscription).await {
                self.gate.is_open();
                self.sender.send(Incoming::HeardAgain(self.from)).ok()?;
                return Some(subscription);
            }
        }
    }

    /// Whether little comes for a moment; nothing of it is taken.
    async fn is_calm(&self, subscription: &mut Subscriber) -> bool {
        let until = Instant::now() + CALM;
        while let Ok(Some(message)) = timeout_at(until, subscription.next()).await {
            self.gate.drops(message.payload.len());
            if !self.gate.admits(message.payload.len()) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_that_talk_have_a_subject_of_their_own() {
        let all = [
            Party::Cloud,
            Party::Hospital(0),
            Party::Edge(0),
            Party::Gateway(0, 3),
            Party::Edge(1),
        ];
        let pairs = all.iter().flat_map(|from| all.map(|to| (*from, to)));
        let found: Vec<String> = pairs.filter_map(|(from, to)| subject(from, to)).collect();
        let expected = [
            "down.0.cloud.hospital",
            "down.0.cloud.edge",
            "down.1.cloud.edge",
            "up.0.hospital.cloud",
            "group.0.hospital.edge",
            "up.0.edge.cloud",
            "group.0.edge.hospital",
            "group.0.edge.gateway-3",
            "group.0.gateway-3.edge",
            "up.1.edge.cloud",
        ];
        assert_eq!(found, expected);
    }
}

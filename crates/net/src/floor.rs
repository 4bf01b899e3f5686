//! What the same traffic costs with nothing but NATS: messages of the same sizes between the same parties over the same
//! servers, in the same order, with records of the same sizes kept in the same places. The bytes mean nothing, and
//! nothing is computed. A deployment cannot be faster than this; `selvedge bench --deployed` shows how much slower it
//! is.

use crate::chunks::{Joiner, PIECE, split};
use crate::counters::Durations;
use crate::subjects;
use crate::transport::{Access, name, neighbours, subject};
use async_nats::jetstream::{self, message::PublishMessage};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use selvedge_core::role::Party;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of each message, and of each record.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sizes {
    /// Edge → gateway.
    pub invite: usize,
    /// Gateway → edge.
    pub zeta2: usize,
    /// Edge → hospital.
    pub batch: usize,
    /// Hospital → edge.
    pub frozen: usize,
    /// Edge → gateway.
    pub lesson: usize,
    /// Gateway → edge, each.
    pub models: usize,
    /// How many of these an interval has.
    pub models_count: usize,
    /// Hospital → cloud.
    pub hospital_model: usize,
    /// Edge → cloud.
    pub edge_model: usize,
    /// Cloud → hospital and edge.
    pub global: usize,
    /// Records.
    pub hospital_record: usize,
    /// Of the edge.
    pub edge_record: usize,
    /// Of the cloud.
    pub cloud_record: usize,
}

/// What to measure.
pub struct Plan {
    /// How each party connects to its server: the cloud, and a hospital, an edge and a gateway for each group.
    pub parties: Vec<(Party, Access)>,
    /// Of messages and records.
    pub sizes: Sizes,
    /// Intervals.
    pub intervals: usize,
    /// Of these, how many lie between two global aggregations.
    pub per_aggregation: usize,
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measured {
    /// All intervals, in seconds.
    pub seconds: f64,
    /// Phases, as edges see them.
    pub phases: BTreeMap<String, Durations>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[error("cannot measure plain NATS: {0}")]
pub struct FloorError(String);

fn failed(error: impl std::fmt::Display) -> FloorError {
    FloorError(error.to_string())
}

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

struct Peer {
    party: Party,
    client: Client,
    context: jetstream::Context,
    incoming: BTreeMap<Party, (Subscriber, Joiner)>,
    sequence: u64,
}

impl Peer {
    async fn connect(party: Party, access: &Access, from: &[Party]) -> Result<Self, FloorError> {
        let own = name(party);
        let connecting = access.options(party);
        let connecting = connecting.connect(format!("tls://{}", access.servers[0]));
        let client = connecting.await.map_err(failed)?;
        let mut incoming = BTreeMap::new();
        for other in from {
            if let Some(subject) = subject(*other, party) {
                let subscriber = client.subscribe(subject).await.map_err(failed)?;
                incoming.insert(*other, (subscriber, Joiner::default()));
            }
        }
        client.flush().await.map_err(failed)?;
        let context = jetstream::new(client.clone());
        let mut sequence = 0;
        if !matches!(party, Party::Gateway(..)) {
            let stream = context.get_or_create_stream(jetstream::stream::Config {
                name: own.clone(),
                subjects: vec![subjects::record(&own), subjects::all_records(&own)],
                max_messages_per_subject: 1,
                ..Default::default()
            });
            let stream = stream.await.map_err(failed)?;
            let record = subjects::record(&own);
            let last = stream.get_last_raw_message_by_subject(&record).await;
            sequence = last.map_or(0, |message| message.sequence);
        }
        Ok(Peer {
            party,
            client,
            context,
            incoming,
            sequence,
        })
    }

    async fn send(&self, to: Party, size: usize) -> Result<(), FloorError> {
        let subject = subject(self.party, to)
            .ok_or_else(|| failed("these parties do not exchange messages"))?;
        for piece in split(vec![0; size.max(1)]) {
            let published = self.client.publish(subject.clone(), piece);
            published.await.map_err(failed)?;
        }
        Ok(())
    }

    async fn receive(&mut self, from: Party) -> Result<(), FloorError> {
        let Some((subscriber, joiner)) = self.incoming.get_mut(&from) else {
            return Err(failed("these parties do not exchange messages"));
        };
        let whole = async {
            while let Some(message) = subscriber.next().await {
                if let Ok(Some(_)) = joiner.take(&message.payload, usize::MAX) {
                    return Ok(());
                }
            }
            Err(failed("the connection was lost"))
        };
        let waited = tokio::time::timeout(PATIENCE, whole).await;
        waited.map_err(|_| failed(format!("{} hears nothing from {from}", self.party)))?
    }

    async fn keep(&mut self, size: usize) -> Result<(), FloorError> {
        let own = subjects::record(&name(self.party));
        let mut left = size;
        while left > PIECE {
            let message = PublishMessage::build().payload(Bytes::from(vec![0; PIECE]));
            let piece = format!("{own}.piece.{}", left / PIECE);
            let sent = self.context.send_publish(piece, message);
            sent.await.map_err(failed)?.await.map_err(failed)?;
            left -= PIECE;
        }
        let message = PublishMessage::build()
            .payload(Bytes::from(vec![0; left]))
            .expected_last_subject_sequence(self.sequence);
        let sent = self.context.send_publish(own, message);
        self.sequence = sent.await.map_err(failed)?.await.map_err(failed)?.sequence;
        Ok(())
    }
}

/// Measures, each party on a thread of its own.
///
/// # Errors
/// If a party cannot connect, or hears nothing.
pub fn measure(plan: &Plan) -> Result<Measured, FloorError> {
    let groups = plan
        .parties
        .iter()
        .filter(|(party, _)| matches!(party, Party::Edge(_)))
        .count();
    let measured = Arc::new(Mutex::new(Measured::default()));
    let ready = Arc::new(std::sync::Barrier::new(plan.parties.len()));
    let mut threads = Vec::new();
    for (party, access) in plan.parties.clone() {
        let (sizes, intervals, per) = (plan.sizes, plan.intervals, plan.per_aggregation);
        let (measured, ready) = (Arc::clone(&measured), Arc::clone(&ready));
        threads.push(std::thread::spawn(move || -> Result<(), FloorError> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(failed)?;
            let from = neighbours(party, groups, 1);
            let peer = runtime.block_on(Peer::connect(party, &access, &from));
            // Links need a moment to learn who listens.
            std::thread::sleep(Duration::from_secs(1));
            ready.wait();
            let started = Instant::now();
            let phases = runtime.block_on(take_part(peer?, groups, sizes, intervals, per))?;
            let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
            measured.seconds = measured.seconds.max(started.elapsed().as_secs_f64());
            for (phase, durations) in phases {
                let all = measured.phases.entry(phase.into()).or_default();
                durations.into_iter().for_each(|d| all.add(d));
            }
            Ok(())
        }));
    }
    let mut wrong = Vec::new();
    for thread in threads {
        let ended = thread
            .join()
            .map_err(|_| failed("a thread has panicked"))
            .flatten();
        wrong.extend(ended.err());
    }
    // Who hears nothing waits for somebody else who has failed.
    if let Some(cause) = wrong
        .into_iter()
        .min_by_key(|error| error.to_string().contains("hears nothing"))
    {
        return Err(cause);
    }
    let measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(measured.clone())
}

type Phases = Vec<(&'static str, Vec<Duration>)>;

async fn take_part(
    mut peer: Peer,
    groups: usize,
    sizes: Sizes,
    intervals: usize,
    per: usize,
) -> Result<Phases, FloorError> {
    let mut phases: Phases = ["exchange", "hospital", "upload", "record", "global"]
        .map(|phase| (phase, Vec::new()))
        .to_vec();
    for i in 1..=intervals {
        let aggregates = i % per == 0;
        match peer.party {
            Party::Cloud if aggregates => {
                for m in 0..groups {
                    peer.receive(Party::Hospital(m)).await?;
                    peer.receive(Party::Edge(m)).await?;
                }
                peer.keep(sizes.cloud_record).await?;
                for m in 0..groups {
                    peer.send(Party::Hospital(m), sizes.global).await?;
                    peer.send(Party::Edge(m), sizes.global).await?;
                }
            }
            Party::Cloud => {}
            Party::Hospital(m) => {
                peer.receive(Party::Edge(m)).await?;
                peer.keep(sizes.hospital_record).await?;
                peer.send(Party::Edge(m), sizes.frozen).await?;
                if aggregates {
                    peer.send(Party::Cloud, sizes.hospital_model).await?;
                    peer.receive(Party::Cloud).await?;
                }
            }
            Party::Gateway(m, _) => {
                peer.receive(Party::Edge(m)).await?;
                peer.send(Party::Edge(m), sizes.zeta2).await?;
                peer.receive(Party::Edge(m)).await?;
                for _ in 0..sizes.models_count {
                    peer.send(Party::Edge(m), sizes.models).await?;
                }
            }
            Party::Edge(m) => {
                let gateway = Party::Gateway(m, 0);
                let mut at = Instant::now();
                let mut passed = |phase: usize| {
                    let now = Instant::now();
                    phases[phase].1.push(now - std::mem::replace(&mut at, now));
                };
                peer.send(gateway, sizes.invite).await?;
                peer.receive(gateway).await?;
                passed(0);
                peer.send(Party::Hospital(m), sizes.batch).await?;
                peer.receive(Party::Hospital(m)).await?;
                passed(1);
                peer.send(gateway, sizes.lesson).await?;
                for _ in 0..sizes.models_count {
                    peer.receive(gateway).await?;
                }
                passed(2);
                peer.keep(sizes.edge_record).await?;
                passed(3);
                if aggregates {
                    peer.send(Party::Cloud, sizes.edge_model).await?;
                    peer.receive(Party::Cloud).await?;
                    passed(4);
                }
            }
        }
    }
    peer.client.flush().await.map_err(failed)?;
    phases.retain(|(_, durations)| !durations.is_empty());
    Ok(phases)
}

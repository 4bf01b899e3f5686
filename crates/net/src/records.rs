//! A party's records, in JetStream: what it must find again after a crash.
//!
//! A party has one stream, and in it one subject with its last record. Each write names the one before it, and the
//! server refuses it if that is no longer the last. So nothing is written twice, and a second copy of a party is
//! detected:
//!
//! - a process that starts writes the last record again, as its own, and is from then on the only one that can continue;
//! - a copy that was started earlier is refused at its next write, and ends.
//!
//! A write whose answer does not come may still have happened: what is there is read and compared.
//!
//! Large records are stored in separate pieces, named by their content, and the record refers to them. Pieces of
//! replaced records are purged.

use crate::chunks::{PIECE, name};
use crate::subjects;
use async_nats::Client;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, message::PublishMessage};
use bytes::Bytes;
use futures_util::TryStreamExt;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long to wait before something is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a cluster says that does not know enough of its servers yet.
const NO_PEERS: jetstream::ErrorCode = jetstream::ErrorCode::CLUSTER_NO_PEERS;

/// Why records cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another copy of this party has written since.
    #[error("another copy of this party has taken over: only one can run")]
    Superseded,
    /// What is kept belongs to another run.
    #[error(
        "the server keeps records of {name} from another run ({theirs}, this one is {ours}): if it is this run and selvedge was upgraded since, finish it with the version that began it; if that run is over, discard them with --forget; otherwise use another server"
    )]
    OtherRun {
        /// The party.
        name: String,
        /// Their run.
        theirs: String,
        /// This run.
        ours: String,
    },
    /// What is kept cannot be read.
    #[error("the last record of {name} is damaged: {problem}")]
    Damaged {
        /// The party.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The server refuses.
    #[error("the server refuses the records of {name}: {problem}")]
    Refused {
        /// The party.
        name: String,
        /// What it says.
        problem: String,
    },
    /// The system provides no random numbers.
    #[error("cannot read random numbers: {0}")]
    Random(std::io::Error),
    /// The party is to stop.
    #[error("stopped")]
    Stopped,
}

/// The records of a party.
pub struct Records {
    context: jetstream::Context,
    stream: Stream,
    name: String,
    run: u64,
    /// How many servers keep each record.
    replicas: usize,
    /// How often the party was started.
    pub epoch: u64,
    /// The last record's number in the stream.
    sequence: u64,
    /// This process.
    copy: u64,
    /// The pieces of the last record, if it has any.
    pieces: Option<Pieces>,
}

/// What stands in the subject of the last record.
struct Head {
    run: u64,
    epoch: u64,
    /// Which process has written it: two that start together would else take each other's for their own.
    copy: u64,
    content: Content,
}

#[derive(Clone)]
enum Content {
    /// Nothing yet.
    Nothing,
    Here(Bytes),
    Pieces(Pieces),
}

/// Where the pieces of a record are. Each start of a party has its own places, so that what an earlier one purges late
/// is not what a later one has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pieces {
    epoch: u64,
    name: u64,
    count: u32,
}

impl Pieces {
    /// What their subjects begin with.
    fn prefix(&self, party: &str) -> String {
        let Pieces { epoch, name, .. } = self;
        format!("{}.{epoch}.{name:016x}.", subjects::record(party))
    }
}

impl Head {
    fn to_bytes(&self) -> Bytes {
        let mut out = Vec::new();
        out.extend_from_slice(&self.run.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.copy.to_le_bytes());
        match &self.content {
            Content::Nothing => out.push(0),
            Content::Here(bytes) => {
                out.push(1);
                out.extend_from_slice(bytes);
            }
            Content::Pieces(Pieces { epoch, name, count }) => {
                out.push(2);
                out.extend_from_slice(&epoch.to_le_bytes());
                out.extend_from_slice(&name.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
            }
        }
        out.into()
    }

    fn parse(bytes: &Bytes) -> Option<Self> {
        let eight = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let rest = bytes.get(25..)?;
        let content = match bytes.get(24)? {
            0 => Content::Nothing,
            1 => Content::Here(bytes.slice(25..)),
            2 if rest.len() == 20 => Content::Pieces(Pieces {
                epoch: eight(25)?,
                name: eight(33)?,
                count: u32::from_le_bytes(rest[16..].try_into().ok()?),
            }),
            _ => return None,
        };
        Some(Head {
            run: eight(0)?,
            epoch: eight(8)?,
            copy: eight(16)?,
            content,
        })
    }
}

impl Records {
    /// Opens the records of a party, takes them over, and returns the last one; `replicas` servers keep each. Tries
    /// until a server answers.
    ///
    /// # Errors
    /// If they are from another run (unless these are to be discarded), damaged, or refused.
    pub async fn open(
        client: &Client,
        (party, run): (&str, u64),
        replicas: usize,
        forget: bool,
        world: &World<'_>,
    ) -> Result<(Self, Option<Vec<u8>>), RecordError> {
        let mut context = jetstream::new(client.clone());
        context.set_timeout(PATIENCE);
        let stream = Self::stream(&context, (party, replicas), world).await?;
        let mut records = Records {
            context,
            stream,
            name: party.to_owned(),
            run,
            replicas,
            epoch: 0,
            sequence: 0,
            copy: random()?,
            pieces: None,
        };
        let (mut epoch, mut content) = (0, Content::Nothing);
        if let Some((sequence, bytes)) = records.last(world).await? {
            records.sequence = sequence;
            let head =
                Head::parse(&bytes).ok_or_else(|| records.damaged("its header is missing"))?;
            if head.run == run {
                (epoch, content) = (head.epoch, head.content);
            } else if !forget {
                return Err(RecordError::OtherRun {
                    name: party.into(),
                    theirs: format!("{:016x}", head.run),
                    ours: format!("{run:016x}"),
                });
            }
        }
        records.epoch = epoch + 1;
        records.write(content.clone(), world).await?;
        // From here on no other copy can write: what no record names is left over.
        let keep = match &content {
            Content::Pieces(pieces) => Some(*pieces),
            _ => None,
        };
        records.purge_all_but(keep, world).await?;
        let found = match content {
            Content::Nothing => None,
            Content::Here(bytes) => Some(bytes.to_vec()),
            Content::Pieces(pieces) => Some(records.read(pieces, world).await?),
        };
        Ok((records, found))
    }

    async fn stream(
        context: &jetstream::Context,
        (party, replicas): (&str, usize),
        world: &World<'_>,
    ) -> Result<Stream, RecordError> {
        let subject = subjects::record(party);
        loop {
            let config = stream::Config {
                name: party.to_owned(),
                subjects: vec![subject.clone(), subjects::all_records(party)],
                max_messages_per_subject: 1,
                storage: stream::StorageType::File,
                num_replicas: replicas,
                // Only the leader of a cluster is asked: others may be behind.
                allow_direct: false,
                ..stream::Config::default()
            };
            match context.get_or_create_stream(config.clone()).await {
                Ok(stream) if stream.cached_info().config.num_replicas == replicas => {
                    return Ok(stream);
                }
                // It was made when there was one server, or there is one again.
                Ok(_) => match context.update_stream(config).await {
                    Ok(_) => {}
                    Err(error) => world.pause(&error).await?,
                },
                Err(error) => {
                    if let jetstream::context::CreateStreamErrorKind::JetStream(problem) =
                        error.kind()
                        && problem.code() < 500
                        && problem.error_code() != NO_PEERS
                    {
                        return Err(RecordError::Refused {
                            name: party.into(),
                            problem: problem.to_string(),
                        });
                    }
                    world.pause(&error).await?;
                }
            }
        }
    }

    fn damaged(&self, problem: &str) -> RecordError {
        RecordError::Damaged {
            name: self.name.clone(),
            problem: problem.into(),
        }
    }

    /// The last message of the record's subject.
    async fn last(&self, world: &World<'_>) -> Result<Option<(u64, Bytes)>, RecordError> {
        self.message(&subjects::record(&self.name), world).await
    }

    async fn message(
        &self,
        subject: &str,
        world: &World<'_>,
    ) -> Result<Option<(u64, Bytes)>, RecordError> {
        loop {
            match self.stream.get_last_raw_message_by_subject(subject).await {
                Ok(message) => return Ok(Some((message.sequence, message.payload))),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                    return Ok(None);
                }
                Err(error) => world.pause(&error).await?,
            }
        }
    }

    async fn read(&self, pieces: Pieces, world: &World<'_>) -> Result<Vec<u8>, RecordError> {
        let (mut whole, prefix) = (Vec::new(), pieces.prefix(&self.name));
        for index in 0..pieces.count {
            let piece = self.message(&format!("{prefix}{index}"), world).await?;
            let (_, bytes) = piece.ok_or_else(|| self.damaged("a piece is missing"))?;
            whole.extend_from_slice(&bytes);
        }
        match name(&whole) == pieces.name {
            true => Ok(whole),
            false => Err(self.damaged("its pieces do not match")),
        }
    }

    /// Replaces the last record. Tries until a server answers.
    ///
    /// # Errors
    /// If another copy of the party has written since, or the server refuses.
    pub async fn keep(&mut self, record: Vec<u8>, world: &World<'_>) -> Result<(), RecordError> {
        if record.len() <= PIECE {
            return self.write(Content::Here(record.into()), world).await;
        }
        let pieces = Pieces {
            epoch: self.epoch,
            name: name(&record),
            count: record.len().div_ceil(PIECE) as u32,
        };
        if self.pieces == Some(pieces) {
            return Ok(());
        }
        let prefix = pieces.prefix(&self.name);
        for (index, bytes) in record.chunks(PIECE).enumerate() {
            let subject = format!("{prefix}{index}");
            self.publish(subject, Bytes::copy_from_slice(bytes), world)
                .await?;
        }
        self.write(Content::Pieces(pieces), world).await
    }

    /// Publishes until a server has it.
    async fn publish(
        &self,
        subject: String,
        bytes: Bytes,
        world: &World<'_>,
    ) -> Result<(), RecordError> {
        loop {
            let message = PublishMessage::build().payload(bytes.clone());
            match self.send(subject.clone(), message).await {
                Ok(_) => return Ok(()),
                Err(error) if is_refusal(&error) => return Err(self.refused(&error)),
                Err(error) => world.pause(&error).await?,
            }
        }
    }

    async fn send(&self, subject: String, message: PublishMessage) -> Result<u64, PublishError> {
        let sent = self.context.send_publish(subject, message).await?;
        sent.await.map(|acknowledged| acknowledged.sequence)
    }

    fn refused(&self, error: &PublishError) -> RecordError {
        RecordError::Refused {
            name: self.name.clone(),
            problem: error.to_string(),
        }
    }

    /// Writes the record's subject, if nobody else has since.
    async fn write(&mut self, content: Content, world: &World<'_>) -> Result<(), RecordError> {
        let head = Head {
            run: self.run,
            epoch: self.epoch,
            copy: self.copy,
            content,
        };
        let bytes = head.to_bytes();
        loop {
            let message = PublishMessage::build()
                .payload(bytes.clone())
                .expected_last_subject_sequence(self.sequence);
            match self.send(subjects::record(&self.name), message).await {
                Ok(sequence) => {
                    self.sequence = sequence;
                    break;
                }
                Err(error) if is_refusal(&error) => return Err(self.refused(&error)),
                // No answer, or somebody was first: that may have been this very write, before its answer was lost.
                Err(error) => {
                    let last = self.last(world).await?;
                    match last {
                        Some((sequence, there)) if there == bytes => {
                            self.sequence = sequence;
                            break;
                        }
                        Some((sequence, _)) if sequence > self.sequence => {
                            return Err(RecordError::Superseded);
                        }
                        // Of one server, that is not what was kept there; of a cluster, one may be behind.
                        None if self.sequence != 0 && self.replicas == 1 => {
                            return Err(RecordError::Superseded);
                        }
                        _ => world.pause(&error).await?,
                    }
                }
            }
        }
        let pieces = match head.content {
            Content::Pieces(pieces) => Some(pieces),
            _ => None,
        };
        let before = std::mem::replace(&mut self.pieces, pieces);
        if let Some(before) = before.filter(|before| pieces != Some(*before)) {
            let old = format!("{}>", before.prefix(&self.name));
            // Should this not arrive, the next start purges it.
            let _ = self.stream.purge().filter(old).await;
        }
        Ok(())
    }

    /// Removes pieces of earlier copies of this party that no record names.
    async fn purge_all_but(
        &mut self,
        keep: Option<Pieces>,
        world: &World<'_>,
    ) -> Result<(), RecordError> {
        self.pieces = keep;
        let all = loop {
            let filter = subjects::all_records(&self.name);
            let listed = match self.stream.info_with_subjects(filter).await {
                Ok(listed) => listed.try_collect::<Vec<(String, usize)>>().await,
                Err(error) => {
                    world.pause(&error).await?;
                    continue;
                }
            };
            match listed {
                Ok(all) => break all,
                Err(error) => world.pause(&error).await?,
            }
        };
        let own = format!("{}.", subjects::record(&self.name));
        for (subject, _) in all {
            // A later copy's are its own.
            let epoch = subject
                .strip_prefix(&own)
                .and_then(|rest| rest.split('.').next());
            let epoch = epoch.and_then(|epoch| epoch.parse::<u64>().ok());
            let wanted = keep.is_some_and(|kept| subject.starts_with(&kept.prefix(&self.name)));
            if epoch.is_some_and(|epoch| epoch < self.epoch) && !wanted {
                // Should this not arrive, the next start purges it.
                let _ = self.stream.purge().filter(subject).await;
            }
        }
        Ok(())
    }
}

/// Whether trying again is of no use.
fn is_refusal(error: &PublishError) -> bool {
    error.kind() == PublishErrorKind::MaxPayloadExceeded
}

/// A number that no other process has.
fn random() -> Result<u64, RecordError> {
    let bytes = crate::credentials::random().map_err(RecordError::Random)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Context for waiting for a server.
pub struct World<'a> {
    stop: &'a AtomicBool,
    notice: &'a dyn Fn(&str),
    tries: Cell<u32>,
}

impl<'a> World<'a> {
    /// Waits until `stop` is set; reports to `notice`, less and less often.
    pub fn new(stop: &'a AtomicBool, notice: &'a dyn Fn(&str)) -> Self {
        World {
            stop,
            notice,
            tries: Cell::new(0),
        }
    }

    async fn pause(&self, why: &dyn std::fmt::Display) -> Result<(), RecordError> {
        if self.stop.load(Ordering::SeqCst) {
            return Err(RecordError::Stopped);
        }
        self.tries.set(self.tries.get() + 1);
        // A server that is being started again is no news.
        if self.tries.get() >= 4 && self.tries.get().is_power_of_two() {
            (self.notice)(&format!(
                "waits for the server that keeps its records: {why}"
            ));
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }
}

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
//!
//! A party that lives knows its last record. If the server has lost it, or has an earlier one since its disk was
//! restored, the party writes it again; of several copies that do so one succeeds, since each write names the one before
//! it. A party that starts takes the newer one of what the server has and of the copy in its own folder.

mod copy;
mod head;
mod world;

pub use copy::RecordCopy;
pub use world::World;

use crate::chunks::{PIECE, name};
use crate::subjects;
use async_nats::Client;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, message::PublishMessage};
use bytes::Bytes;
use copy::Copied;
use futures_util::TryStreamExt;
use head::{Content, Head, Pieces};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a cluster says that does not know enough of its servers yet.
const NO_PEERS: jetstream::ErrorCode = jetstream::ErrorCode::CLUSTER_NO_PEERS;

/// Of a cluster, a server may know less than the others for a moment; for so long, none does.
const CLUSTER_TIME: Duration = Duration::from_secs(10);

/// Why records cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another copy of this party has written since.
    #[error("another copy of this party has taken over: only one can run")]
    Superseded,
    /// What is kept belongs to another run.
    #[error(
        "{place} records of {name} from another run ({theirs}, this one is {ours}): if it is this run and selvedge was upgraded since, finish it with the version that began it; if that run is over, discard them with --forget; otherwise use another server"
    )]
    OtherRun {
        /// Where they are.
        place: String,
        /// The party.
        name: String,
        /// Their run.
        theirs: String,
        /// This run.
        ours: String,
    },
    /// What is kept cannot be read.
    #[error(
        "the last record of {name} is damaged ({problem}), and there is no copy of it in {folder}: restore that folder or the server's store from a backup, or discard the record with --forget"
    )]
    Damaged {
        /// The party.
        name: String,
        /// What is wrong.
        problem: String,
        /// Where a copy would be.
        folder: String,
    },
    /// A server that is there does not keep it.
    #[error("the server has not kept a record for {seconds} s: {problem}")]
    Unkept {
        /// For how long.
        seconds: u64,
        /// What it says.
        problem: String,
    },
    /// The copy in its folder cannot be read.
    #[error("cannot read {path}: {problem}")]
    Copy {
        /// Where it is.
        path: String,
        /// Why.
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
    client: Client,
    context: jetstream::Context,
    stream: Stream,
    name: String,
    run: u64,
    /// How many servers keep each record.
    replicas: usize,
    /// How often the party was started, and its records were lost.
    pub epoch: u64,
    /// The last record's number in the stream.
    sequence: u64,
    /// This process.
    copy: u64,
    /// The pieces of the last record, if it has any.
    pieces: Option<Pieces>,
    /// Where the party keeps a copy, and how often that did not work.
    own: Option<RecordCopy>,
    uncopied: u64,
}

/// Whose records these are, and where.
pub struct Place<'a> {
    /// The party.
    pub party: &'a str,
    /// The run.
    pub run: u64,
    /// How many servers keep each record.
    pub replicas: usize,
    /// Whether records of another run, and damaged ones, are discarded.
    pub forget: bool,
    /// The copy in the party's folder, if it keeps one.
    pub copy: Option<RecordCopy>,
}

/// What is in the server's stream.
enum There {
    /// There is no stream.
    NoStream,
    /// No record.
    Nothing,
    /// The last one, with its number.
    Last(u64, Bytes),
}

/// What came of a write.
enum Written {
    There,
    /// What was there before is lost: all has to be written anew.
    Anew,
}

impl Records {
    /// Opens the records of a party, takes them over, and returns the last one. Tries until a server answers.
    ///
    /// # Errors
    /// If they are from another run (unless these are to be discarded), damaged, or refused.
    pub async fn open(
        client: &Client,
        place: Place<'_>,
        world: &World<'_>,
    ) -> Result<(Self, Option<Vec<u8>>), RecordError> {
        let mut context = jetstream::new(client.clone());
        context.set_timeout(PATIENCE);
        let (party, run, replicas) = (place.party, place.run, place.replicas);
        let stream = Self::stream((client, &context), (party, replicas), world).await?;
        let mut records = Records {
            client: client.clone(),
            context,
            stream,
            name: party.to_owned(),
            run,
            replicas,
            epoch: 0,
            sequence: 0,
            copy: random()?,
            pieces: None,
            own: place.copy,
            uncopied: 0,
        };
        let kept = match records.kept(world).await {
            Err(RecordError::OtherRun { .. } | RecordError::Damaged { .. }) if place.forget => None,
            kept => Some(kept),
        };
        let copied = records.copied(place.forget)?;
        let found = records.newest(kept, copied, world)?;
        match &found {
            None => while let Written::Anew = records.write(Content::Nothing, world).await? {},
            Some(record) => records.keep(record.clone(), world).await?,
        }
        // From here on no other copy can write: what no record names is left over.
        records.purge_all_but(records.pieces, world).await?;
        Ok((records, found))
    }

    /// What the server has, with its epoch and number; its number is that of the next write's predecessor.
    async fn kept(&mut self, world: &World<'_>) -> Result<Option<Copied>, RecordError> {
        let There::Last(sequence, bytes) = self.last(world).await? else {
            return Ok(None);
        };
        self.sequence = sequence;
        let head = Head::parse(&bytes).ok_or_else(|| self.damaged("its header is missing"))?;
        if head.run != self.run {
            return Err(self.other_run(head.run, "the server keeps"));
        }
        self.epoch = self.epoch.max(head.epoch);
        let record = match head.content {
            Content::Nothing => return Ok(None),
            Content::Here(bytes) => bytes.to_vec(),
            Content::Pieces(pieces) => self.read(pieces, world).await?,
        };
        Ok(Some(Copied {
            run: head.run,
            epoch: head.epoch,
            sequence,
            record,
        }))
    }

    /// What the party's own folder has.
    fn copied(&mut self, forget: bool) -> Result<Option<Copied>, RecordError> {
        let Some(own) = &self.own else {
            return Ok(None);
        };
        let path = own.path().display().to_string();
        let wrong = |error: std::io::Error| RecordError::Copy {
            path: path.clone(),
            problem: error.to_string(),
        };
        let Some(copied) = own.read().map_err(wrong)? else {
            return Ok(None);
        };
        if copied.run == self.run {
            self.epoch = self.epoch.max(copied.epoch);
            return Ok(Some(copied));
        }
        match forget {
            true => own.forget().map_err(wrong).map(|()| None),
            false => Err(self.other_run(copied.run, &format!("{path} is"))),
        }
    }

    /// The newer one of both, which becomes the next epoch's.
    fn newest(
        &mut self,
        kept: Option<Result<Option<Copied>, RecordError>>,
        copied: Option<Copied>,
        world: &World<'_>,
    ) -> Result<Option<Vec<u8>>, RecordError> {
        self.epoch += 1;
        let (kept, problem) = match kept {
            None => (None, None),
            Some(Ok(kept)) => (kept, None),
            // The copy is as new as the record, or nearly.
            Some(Err(RecordError::Damaged { problem, .. })) if copied.is_some() => {
                (None, Some(problem))
            }
            Some(Err(error)) => return Err(error),
        };
        let age = |found: &Copied| (found.epoch, found.sequence);
        match (kept, copied) {
            (kept, Some(copied)) if kept.as_ref().is_none_or(|kept| age(kept) < age(&copied)) => {
                let why = match (&kept, problem) {
                    (_, Some(problem)) => format!("is damaged ({problem})"),
                    (Some(_), _) => "is an earlier one".into(),
                    (None, _) => "is lost".into(),
                };
                let path = self
                    .own
                    .as_ref()
                    .map(|own| own.path().display().to_string());
                world.tell(&format!(
                    "its record on the server {why}: goes on from the copy in {}",
                    path.unwrap_or_default()
                ));
                Ok(Some(copied.record))
            }
            (kept, _) => Ok(kept.map(|kept| kept.record)),
        }
    }

    fn other_run(&self, theirs: u64, place: &str) -> RecordError {
        RecordError::OtherRun {
            place: place.into(),
            name: self.name.clone(),
            theirs: format!("{theirs:016x}"),
            ours: format!("{:016x}", self.run),
        }
    }

    async fn stream(
        (client, context): (&Client, &jetstream::Context),
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
                    Err(error) => world.pause(client, &error).await?,
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
                    world.pause(client, &error).await?;
                }
            }
        }
    }

    fn damaged(&self, problem: &str) -> RecordError {
        RecordError::Damaged {
            name: self.name.clone(),
            problem: problem.into(),
            folder: match &self.own {
                Some(own) => own.path().with_file_name("").display().to_string(),
                None => "its folder".into(),
            },
        }
    }

    /// The last message of the record's subject.
    async fn last(&self, world: &World<'_>) -> Result<There, RecordError> {
        self.message(&subjects::record(&self.name), world).await
    }

    async fn message(&self, subject: &str, world: &World<'_>) -> Result<There, RecordError> {
        loop {
            match self.stream.get_last_raw_message_by_subject(subject).await {
                Ok(message) => return Ok(There::Last(message.sequence, message.payload)),
                Err(error) => match error.kind() {
                    LastRawMessageErrorKind::NoMessageFound => return Ok(There::Nothing),
                    LastRawMessageErrorKind::JetStream(problem)
                        if problem.error_code() == jetstream::ErrorCode::STREAM_NOT_FOUND =>
                    {
                        return Ok(There::NoStream);
                    }
                    _ => world.pause(&self.client, &error).await?,
                },
            }
        }
    }

    async fn read(&self, pieces: Pieces, world: &World<'_>) -> Result<Vec<u8>, RecordError> {
        let (mut whole, prefix) = (Vec::new(), pieces.prefix(&self.name));
        for index in 0..pieces.count {
            let There::Last(_, piece) = self.message(&format!("{prefix}{index}"), world).await?
            else {
                return Err(self.damaged("a piece is missing"));
            };
            whole.extend_from_slice(&piece);
        }
        match name(&whole) == pieces.name {
            true => Ok(whole),
            false => Err(self.damaged("its pieces do not match")),
        }
    }

    /// Replaces the last record, and the copy of it. Tries until a server answers.
    ///
    /// # Errors
    /// If another copy of the party has written since, or the server refuses.
    pub async fn keep(&mut self, record: Vec<u8>, world: &World<'_>) -> Result<(), RecordError> {
        while let Written::Anew = self.put(&record, world).await? {}
        let Some(own) = &self.own else { return Ok(()) };
        if let Err(error) = own.write((self.run, self.epoch, self.sequence), &record) {
            // The server has it; whoever looks after the folder is told, and ever less often.
            self.uncopied += 1;
            if self.uncopied.is_power_of_two() {
                world.tell(&format!("cannot write {}: {error}", own.path().display()));
            }
        }
        Ok(())
    }

    async fn put(&mut self, record: &[u8], world: &World<'_>) -> Result<Written, RecordError> {
        if record.len() <= PIECE {
            let content = Content::Here(Bytes::copy_from_slice(record));
            return self.write(content, world).await;
        }
        let pieces = Pieces {
            epoch: self.epoch,
            name: name(record),
            count: record.len().div_ceil(PIECE) as u32,
        };
        if self.pieces == Some(pieces) {
            return Ok(Written::There);
        }
        let prefix = pieces.prefix(&self.name);
        for (index, bytes) in record.chunks(PIECE).enumerate() {
            let (subject, bytes) = (format!("{prefix}{index}"), Bytes::copy_from_slice(bytes));
            if let Written::Anew = self.publish(subject, bytes, world).await? {
                return Ok(Written::Anew);
            }
        }
        self.write(Content::Pieces(pieces), world).await
    }

    /// Publishes until a server has it.
    async fn publish(
        &mut self,
        subject: String,
        bytes: Bytes,
        world: &World<'_>,
    ) -> Result<Written, RecordError> {
        loop {
            let message = PublishMessage::build().payload(bytes.clone());
            match self.send(subject.clone(), message).await {
                Ok(_) => return Ok(Written::There),
                Err(error) if is_refusal(&error) => return Err(self.refused(&error)),
                Err(error) => match self.last(world).await? {
                    There::NoStream if self.is_lost(world) => {
                        return self.begin_again(0, world).await;
                    }
                    _ => world.pause(&self.client, &error).await?,
                },
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
    async fn write(&mut self, content: Content, world: &World<'_>) -> Result<Written, RecordError> {
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
                Err(error) => match self.last(world).await? {
                    There::Last(sequence, there) if there == bytes => {
                        self.sequence = sequence;
                        break;
                    }
                    There::Last(sequence, there) => match self.is_earlier(sequence, &there) {
                        None => return Err(RecordError::Superseded),
                        Some(true) if self.is_lost(world) => {
                            return self.begin_again(sequence, world).await;
                        }
                        Some(_) => world.pause(&self.client, &error).await?,
                    },
                    There::Nothing | There::NoStream
                        if self.sequence != 0 && self.is_lost(world) =>
                    {
                        return self.begin_again(0, world).await;
                    }
                    // It was removed between two tries of a party that begins.
                    There::NoStream if self.sequence == 0 => self.make_stream(world).await?,
                    There::NoStream | There::Nothing => {
                        world.pause(&self.client, &error).await?;
                    }
                },
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
        Ok(Written::There)
    }

    /// Whether what is there is an earlier record of this copy, since the server's disk was restored or truncated;
    /// nothing if another copy has written.
    fn is_earlier(&self, sequence: u64, there: &Bytes) -> Option<bool> {
        let head = Head::parse(there);
        let is_own = head.is_some_and(|head| {
            let same_start = head.epoch == self.epoch && head.copy == self.copy;
            head.run == self.run && (head.epoch < self.epoch || same_start)
        });
        (sequence <= self.sequence && is_own).then_some(sequence < self.sequence)
    }

    /// Whether a server that has less than was kept there has lost it. Of a cluster, one may only be behind.
    fn is_lost(&self, world: &World<'_>) -> bool {
        self.replicas == 1 || world.lasts() >= CLUSTER_TIME
    }

    /// The server has lost what was kept there. This copy knows it, and goes on behind what is there now; should another
    /// copy do the same, the server takes the write of one of them.
    async fn begin_again(
        &mut self,
        sequence: u64,
        world: &World<'_>,
    ) -> Result<Written, RecordError> {
        world.tell(match sequence {
            0 => "the server has lost its records: writes the last one again",
            _ => "the server has an earlier record than was kept there: writes the last one again",
        });
        self.make_stream(world).await?;
        // Numbers begin again, and the copies in folders tell by the epoch which is the newer.
        self.epoch += 1;
        (self.sequence, self.pieces) = (sequence, None);
        Ok(Written::Anew)
    }

    async fn make_stream(&mut self, world: &World<'_>) -> Result<(), RecordError> {
        let servers = (&self.client, &self.context);
        self.stream = Self::stream(servers, (&self.name, self.replicas), world).await?;
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
                    world.pause(&self.client, &error).await?;
                    continue;
                }
            };
            match listed {
                Ok(all) => break all,
                Err(error) => world.pause(&self.client, &error).await?,
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

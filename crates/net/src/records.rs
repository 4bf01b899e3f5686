//! A party's records, in JetStream: what it must find again after a crash.
//!
//! A party has one stream, and in it one subject with its last record. Each write names the one before it, and the server
//! refuses it if that is not the last any more. So nobody writes twice, and a second copy of a party is found out:
//!
//! - who starts writes the last record again, as its own, and is from then on the only one who can go on;
//! - a copy that was started before is refused at its next write, and ends.
//!
//! A write whose answer does not come may still have happened: what is there is read and compared.
//!
//! Large records lie in pieces beside it, named by their content, and the record names them. Those of a record that was
//! replaced are purged.

use crate::chunks::{PIECE, name};
use crate::subjects;
use async_nats::Client;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, message::PublishMessage};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long to wait before something is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why records are of no use.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another copy of this party has written since.
    #[error("another copy of this party has taken over: only one can go on")]
    Superseded,
    /// What is kept belongs to another run.
    #[error(
        "the server keeps records of {name} of another run ({theirs}, this one is {ours}): forget them with --forget, or use another server"
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
    /// Somebody wants the party to stop.
    #[error("stopped")]
    Stopped,
}

/// The records of a party.
pub struct Records {
    context: jetstream::Context,
    stream: Stream,
    name: String,
    run: u64,
    /// How often the party was started.
    pub epoch: u64,
    /// The last record's number in the stream.
    sequence: u64,
    /// The pieces of the last record, if it has any.
    pieces: Option<u64>,
}

/// What stands in the subject of the last record.
struct Head {
    run: u64,
    epoch: u64,
    content: Content,
}

#[derive(Clone)]
enum Content {
    /// Nothing yet.
    Nothing,
    Here(Bytes),
    Pieces {
        name: u64,
        count: u32,
    },
}

impl Head {
    fn to_bytes(&self) -> Bytes {
        let mut out = Vec::new();
        out.extend_from_slice(&self.run.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        match &self.content {
            Content::Nothing => out.push(0),
            Content::Here(bytes) => {
                out.push(1);
                out.extend_from_slice(bytes);
            }
            Content::Pieces { name, count } => {
                out.push(2);
                out.extend_from_slice(&name.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
            }
        }
        out.into()
    }

    fn parse(bytes: &Bytes) -> Option<Self> {
        let eight = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let rest = bytes.get(17..)?;
        let content = match bytes.get(16)? {
            0 => Content::Nothing,
            1 => Content::Here(bytes.slice(17..)),
            2 if rest.len() == 12 => Content::Pieces {
                name: eight(17)?,
                count: u32::from_le_bytes(rest[8..].try_into().ok()?),
            },
            _ => return None,
        };
        Some(Head {
            run: eight(0)?,
            epoch: eight(8)?,
            content,
        })
    }
}

impl Records {
    /// Opens the records of a party, makes them its own, and gives the last one. Tries until a server answers.
    ///
    /// # Errors
    /// If they are of another run (unless those are to be forgotten), damaged, or refused.
    pub async fn open(
        client: &Client,
        (party, run): (&str, u64),
        forget: bool,
        stop: &AtomicBool,
    ) -> Result<(Self, Option<Vec<u8>>), RecordError> {
        let mut context = jetstream::new(client.clone());
        context.set_timeout(PATIENCE);
        let stream = Self::stream(&context, party, stop).await?;
        let mut records = Records {
            context,
            stream,
            name: party.to_owned(),
            run,
            epoch: 0,
            sequence: 0,
            pieces: None,
        };
        let (mut epoch, mut content) = (0, Content::Nothing);
        if let Some((sequence, bytes)) = records.last(stop).await? {
            records.sequence = sequence;
            let head = Head::parse(&bytes).ok_or_else(|| records.damaged("it has no head"))?;
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
        records.write(content.clone(), stop).await?;
        // From here on no other copy can write: what no record names is left over.
        let keep = match &content {
            Content::Pieces { name, .. } => Some(*name),
            _ => None,
        };
        records.purge_all_but(keep, stop).await?;
        let found = match content {
            Content::Nothing => None,
            Content::Here(bytes) => Some(bytes.to_vec()),
            Content::Pieces { name, count } => Some(records.read(name, count, stop).await?),
        };
        Ok((records, found))
    }

    async fn stream(
        context: &jetstream::Context,
        party: &str,
        stop: &AtomicBool,
    ) -> Result<Stream, RecordError> {
        let subject = subjects::record(party);
        loop {
            let config = stream::Config {
                name: party.to_owned(),
                subjects: vec![subject.clone(), subjects::all_records(party)],
                max_messages_per_subject: 1,
                storage: stream::StorageType::File,
                allow_direct: false,
                ..stream::Config::default()
            };
            match context.get_or_create_stream(config).await {
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    if let jetstream::context::CreateStreamErrorKind::JetStream(problem) =
                        error.kind()
                        && problem.code() < 500
                    {
                        return Err(RecordError::Refused {
                            name: party.into(),
                            problem: problem.to_string(),
                        });
                    }
                    pause(stop).await?;
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
    async fn last(&self, stop: &AtomicBool) -> Result<Option<(u64, Bytes)>, RecordError> {
        self.message(&subjects::record(&self.name), stop).await
    }

    async fn message(
        &self,
        subject: &str,
        stop: &AtomicBool,
    ) -> Result<Option<(u64, Bytes)>, RecordError> {
        loop {
            match self.stream.get_last_raw_message_by_subject(subject).await {
                Ok(message) => return Ok(Some((message.sequence, message.payload))),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                    return Ok(None);
                }
                Err(_) => pause(stop).await?,
            }
        }
    }

    async fn read(&self, name: u64, count: u32, stop: &AtomicBool) -> Result<Vec<u8>, RecordError> {
        let mut whole = Vec::new();
        for index in 0..count {
            let piece = self.message(&self.piece(name, index), stop).await?;
            let (_, bytes) = piece.ok_or_else(|| self.damaged("a piece is missing"))?;
            whole.extend_from_slice(&bytes);
        }
        match self::name(&whole) == name {
            true => Ok(whole),
            false => Err(self.damaged("its pieces do not fit")),
        }
    }

    fn piece(&self, name: u64, index: u32) -> String {
        format!("{}.{name:016x}.{index}", subjects::record(&self.name))
    }

    /// Keeps a record in the place of the last one. Tries until a server answers.
    ///
    /// # Errors
    /// If another copy of the party has written since, or the server refuses.
    pub async fn keep(&mut self, record: Vec<u8>, stop: &AtomicBool) -> Result<(), RecordError> {
        if record.len() <= PIECE {
            return self.write(Content::Here(record.into()), stop).await;
        }
        let name = name(&record);
        if self.pieces == Some(name) {
            return Ok(());
        }
        let count = record.len().div_ceil(PIECE) as u32;
        for (index, bytes) in (0..count).zip(record.chunks(PIECE)) {
            let subject = self.piece(name, index);
            self.publish(subject, Bytes::copy_from_slice(bytes), stop)
                .await?;
        }
        self.write(Content::Pieces { name, count }, stop).await
    }

    /// Publishes until a server has it.
    async fn publish(
        &self,
        subject: String,
        bytes: Bytes,
        stop: &AtomicBool,
    ) -> Result<(), RecordError> {
        loop {
            let message = PublishMessage::build().payload(bytes.clone());
            match self.send(subject.clone(), message).await {
                Ok(_) => return Ok(()),
                Err(error) if is_refusal(&error) => return Err(self.refused(&error)),
                Err(_) => pause(stop).await?,
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
    async fn write(&mut self, content: Content, stop: &AtomicBool) -> Result<(), RecordError> {
        let head = Head {
            run: self.run,
            epoch: self.epoch,
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
                Err(_) => {
                    let last = self.last(stop).await?;
                    match last {
                        Some((sequence, there)) if there == bytes => {
                            self.sequence = sequence;
                            break;
                        }
                        Some((sequence, _)) if sequence != self.sequence => {
                            return Err(RecordError::Superseded);
                        }
                        None if self.sequence != 0 => return Err(RecordError::Superseded),
                        _ => pause(stop).await?,
                    }
                }
            }
        }
        let pieces = match head.content {
            Content::Pieces { name, .. } => Some(name),
            _ => None,
        };
        let before = std::mem::replace(&mut self.pieces, pieces);
        if let Some(name) = before.filter(|name| pieces != Some(*name)) {
            let old = format!("{}.{name:016x}.>", subjects::record(&self.name));
            // Should this not arrive, the next start purges it.
            let _ = self.stream.purge().filter(old).await;
        }
        Ok(())
    }

    /// Removes pieces that no record names.
    async fn purge_all_but(
        &mut self,
        keep: Option<u64>,
        stop: &AtomicBool,
    ) -> Result<(), RecordError> {
        self.pieces = keep;
        loop {
            let all = match self
                .stream
                .info_with_subjects(subjects::all_records(&self.name))
                .await
            {
                Ok(info) => info,
                Err(_) => {
                    pause(stop).await?;
                    continue;
                }
            };
            use futures_util::TryStreamExt;
            let Ok(all) = all.try_collect::<Vec<(String, usize)>>().await else {
                pause(stop).await?;
                continue;
            };
            let wanted = keep.map(|name| format!("{}.{name:016x}.", subjects::record(&self.name)));
            for (subject, _) in all {
                if !wanted.as_ref().is_some_and(|w| subject.starts_with(w)) {
                    let _ = self.stream.purge().filter(subject).await;
                }
            }
            return Ok(());
        }
    }
}

/// Whether trying again is of no use.
fn is_refusal(error: &PublishError) -> bool {
    error.kind() == PublishErrorKind::MaxPayloadExceeded
}

async fn pause(stop: &AtomicBool) -> Result<(), RecordError> {
    if stop.load(Ordering::SeqCst) {
        return Err(RecordError::Stopped);
    }
    tokio::time::sleep(PAUSE).await;
    Ok(())
}

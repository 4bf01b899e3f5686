//! A party as a process: brings what happens to its role, and does what the role wants.
//!
//! One thread computes and decides; another listens and sends. For every event: the role handles it, its record is kept, and
//! only then is anything sent that follows from it.
//!
//! Everybody says every few seconds to whom it talks that it is there (a *greeting*). Who has just been started may have
//! forgotten what it was told, so its neighbours tell it again; who trains another experiment is refused.

mod presence;

pub(crate) use presence::Control;
pub use presence::{Presence, Snapshot};

use crate::chunks::name as content;
use crate::counters::Counters;
use crate::deadlines::Deadlines;
use crate::http;
use crate::identity::RunIdentity;
use crate::records::{RecordError, Records, World};
use crate::transport::{Access, Incoming, Transport, TransportError, name};
use selvedge_core::role::wire::{self, WireError};
use selvedge_core::role::{Absence, Event, Outbox, Party, Phase, Role};
use selvedge_core::run::Ending;
use selvedge_core::state::{Evaluation, State};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Between two greetings.
const GREET_EVERY: Duration = Duration::from_secs(2);

/// Until something is sent again for the first time, and so much longer for what was sent; then twice as long each time.
/// Messages are only lost with a connection or with who has received them, and both are noticed; this is for what is not.
const BYTES_PER_SECOND: f64 = 2e6;
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LAST: Duration = Duration::from_secs(8);

/// How long a party that knows the end waits for others to know it too.
const LINGER: Duration = Duration::from_secs(20);

/// How often people are told how many predictions were answered.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// How often somebody who wants it to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a node needs to know besides its role.
pub struct Settings<'a> {
    /// How it gets to its server.
    pub access: Access,
    /// Those it talks to.
    pub neighbours: Vec<Party>,
    /// The run that it takes part in.
    pub identity: RunIdentity,
    /// How long it waits for whom.
    pub deadlines: Deadlines,
    /// Where it answers over HTTP, if it does.
    pub http: Option<SocketAddr>,
    /// No message of this run is longer.
    pub longest_message: usize,
    /// Whether records of another run are in the way, or may be forgotten.
    pub forget: bool,
    /// Whether it stays when the run is over, to answer for the trained model.
    pub answer: bool,
    /// Set when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told what keeps it waiting while it can do nothing else.
    pub notice: &'a dyn Fn(&str),
}

/// Who is told what happens.
pub trait Observer {
    /// θ was aggregated, and kept: where the run is, its evaluation, if there was one, and how it has ended, if it has. After
    /// a crash it may be told twice.
    ///
    /// # Errors
    /// If that cannot be noted; the node ends then.
    fn aggregated(
        &mut self,
        state: &State,
        evaluations: &[Evaluation],
        ending: Option<&Ending>,
    ) -> Result<(), String>;

    /// Somebody was absent. After a crash it may be told twice.
    ///
    /// # Errors
    /// If that cannot be noted; the node ends then.
    fn absent(&mut self, absence: &Absence) -> Result<(), String>;

    /// It begins: from a record, or before the first. Whatever was noted before the first belongs to no run.
    ///
    /// # Errors
    /// If that cannot be noted; the node ends then.
    fn begins(&mut self, from_record: bool) -> Result<(), String>;

    /// What it has counted, when it ends.
    fn counted(&mut self, counters: &Counters);

    /// Something that people should know.
    fn log(&mut self, level: &'static str, text: &str);
}

/// Why a node ends before the run does.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Records are of no use.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// There is no way to the server.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The last record is not one of this party.
    #[error("the last record cannot be gone on from: {0}")]
    Record(WireError),
    /// It is not let in.
    #[error("{by} refuses this party, since it takes part in another run:\n{differences}")]
    Refused {
        /// Who refuses it.
        by: Party,
        /// In what they differ.
        differences: String,
    },
    /// What happens cannot be noted.
    #[error("{0}")]
    Observer(String),
    /// HTTP cannot be served there.
    #[error("cannot answer over HTTP at {address}: {source}")]
    Http {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

/// How a node ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With the run.
    Over,
    /// Before it, since somebody wanted so.
    Stopped,
}

/// A role and its world.
struct Node<'a, 'b> {
    role: Role<'a>,
    settings: &'b Settings<'b>,
    observer: &'b mut dyn Observer,
    transport: Transport,
    records: Option<Records>,
    incarnation: u64,
    run: u64,
    iterations: u64,
    armed: BTreeMap<(Phase, u64), Instant>,
    known: HashSet<(Phase, u64)>,
    presences: BTreeMap<Party, (Instant, Presence)>,
    counters: Counters,
    evaluation: Option<Evaluation>,
    snapshot: Arc<Mutex<Snapshot>>,
    /// What it waits for at which iteration, and since when.
    stage: ((&'static str, u64), Instant),
    /// How long each stage takes, lately at the longest: over a slow line nothing is lost only since it takes its time.
    usual: BTreeMap<&'static str, Duration>,
    /// What the cloud has last sent to whom, by kind.
    last_sent: BTreeMap<(Party, &'static str), u64>,
    refused: Option<NodeError>,
    retry: Retry,
    shown: Instant,
    /// How many predictions it has told of, and when.
    told: (u64, Instant),
    waiting: VecDeque<Incoming>,
}

/// When to send again.
struct Retry {
    at: Instant,
    wait: Duration,
}

impl Retry {
    /// Behind so many bytes that were sent, for an answer that usually takes so long.
    fn behind(bytes: u64, usual: Duration) -> Self {
        let first = RETRY_FIRST.max(2 * usual).min(RETRY_LAST);
        let wait = first + Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND);
        Retry {
            at: Instant::now() + wait,
            wait,
        }
    }

    fn longer(&mut self) {
        self.wait = (2 * self.wait).min(self.wait.max(RETRY_LAST));
        self.at = Instant::now() + self.wait;
    }
}

/// Runs a party until the run is over, or somebody wants it to stop.
///
/// # Errors
/// If it cannot go on; starting it again may help.
pub fn run(
    role: Role<'_>,
    iterations: u64,
    settings: &Settings<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, NodeError> {
    let party = role.party();
    let run = settings.identity.run();
    let transport = Transport::open(
        &settings.access,
        party,
        &settings.neighbours,
        settings.longest_message,
        (&|| settings.stop.load(Ordering::SeqCst), settings.notice),
    )?;
    let Some(transport) = transport else {
        return Ok(Outcome::Stopped);
    };
    let snapshot = Arc::new(Mutex::new(Snapshot {
        party,
        doing: role.doing(),
        connected: false,
        evaluation: None,
        iterations,
        present: Vec::new(),
        missing: settings.neighbours.clone(),
        counters: Counters::default(),
    }));
    if let Some(address) = settings.http {
        let serving = http::serve(address, Arc::clone(&snapshot));
        let served = transport.runtime.block_on(serving);
        served.map_err(|source| NodeError::Http { address, source })?;
    }
    let (records, found) = match role {
        Role::Gateway(_) => (None, None),
        _ => {
            let name = name(party);
            let world = World::new(settings.stop, settings.notice);
            let opened = Records::open(
                &transport.client,
                (&name, run),
                settings.access.replicas(),
                settings.forget,
                &world,
            );
            match transport.runtime.block_on(opened) {
                Ok((records, found)) => (Some(records), found),
                Err(RecordError::Stopped) => return Ok(Outcome::Stopped),
                Err(error) => return Err(error.into()),
            }
        }
    };
    let incarnation = records.as_ref().map_or_else(
        || u64::from(std::process::id()) << 32 | u64::from(clock_nanos()),
        |records| records.epoch,
    );
    observer
        .begins(found.is_some())
        .map_err(NodeError::Observer)?;
    observer.log(
        "info",
        &match &found {
            Some(record) => format!("goes on from its record of {} bytes", record.len()),
            None => "begins".into(),
        },
    );
    let mut node = Node {
        stage: (role.stage(), Instant::now()),
        role,
        settings,
        observer,
        transport,
        records,
        incarnation,
        run,
        iterations,
        armed: BTreeMap::new(),
        known: HashSet::new(),
        presences: BTreeMap::new(),
        counters: Counters::default(),
        evaluation: None,
        snapshot,
        refused: None,
        retry: Retry::behind(0, Duration::ZERO),
        usual: BTreeMap::new(),
        last_sent: BTreeMap::new(),
        shown: Instant::now(),
        told: (0, Instant::now()),
        waiting: VecDeque::new(),
    };
    let lived = node.live(found.as_deref());
    node.observer.counted(&node.counters);
    match lived {
        Err(NodeError::Records(RecordError::Stopped)) => Ok(Outcome::Stopped),
        other => other,
    }
}

/// Seconds that processors have worked for this process: where they are shared, waiting for one is no work.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes to the place that it is given, which is there.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    match read {
        0 => time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64,
        _ => 0.0,
    }
}

fn clock_nanos() -> u32 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos())
}

impl Node<'_, '_> {
    fn live(&mut self, record: Option<&[u8]>) -> Result<Outcome, NodeError> {
        self.greet();
        let mut outbox = Outbox::default();
        self.role
            .begin(record, &mut outbox)
            .map_err(NodeError::Record)?;
        self.carry_out(outbox, false)?;
        let (mut greeted, mut ended): (Instant, Option<Instant>) = (Instant::now(), None);
        loop {
            if self.shown.elapsed() >= LOOK_EVERY {
                self.show();
            }
            if self.settings.answer && self.role.has_ended() {
                if ended.is_none() {
                    ended = Some(Instant::now());
                    self.observer
                        .log("info", "the run is over: answers predictions");
                }
                self.tell_answered(TELL_EVERY);
            } else if self.role.is_over() {
                break;
            } else if self.role.has_ended() {
                let since = *ended.get_or_insert_with(Instant::now);
                if since.elapsed() > LINGER {
                    let missing = self.role.doing().missing;
                    let missing: Vec<String> = missing.iter().map(Party::to_string).collect();
                    let text = format!("the run is over; no word from {}", missing.join(", "));
                    self.observer.log("warn", &text);
                    break;
                }
            }
            if self.settings.stop.load(Ordering::SeqCst) {
                self.tell_answered(Duration::ZERO);
                self.transport.flush();
                // Who has only been answering has nothing left to do.
                return Ok(match self.settings.answer && self.role.has_ended() {
                    true => Outcome::Over,
                    false => Outcome::Stopped,
                });
            }
            if greeted.elapsed() >= GREET_EVERY {
                self.greet();
                greeted = Instant::now();
            }
            self.wait_and_handle()?;
            if let Some(error) = self.refused.take() {
                return Err(error);
            }
        }
        self.show();
        self.transport.flush();
        Ok(Outcome::Over)
    }

    /// Handles the next thing that happens, if anything does soon.
    fn wait_and_handle(&mut self) -> Result<(), NodeError> {
        // Whoever has sent something is not late, however long this party was busy: messages come before deadlines.
        self.take_in();
        if let Some(incoming) = self.waiting.pop_front() {
            return self.heard(incoming);
        }
        let now = Instant::now();
        let due = self.armed.iter().find(|(_, at)| **at <= now);
        if let Some((phase, t)) = due.map(|(key, _)| *key) {
            self.armed.remove(&(phase, t));
            let text = format!(
                "the deadline of {phase:?} at t = {t} is over: {}",
                self.role.doing().what
            );
            self.observer.log("warn", &text.to_lowercase());
            return self.happen(Event::Deadline(phase, t), false);
        }
        if self.retry.at <= now {
            self.retry.longer();
            return self.happen(Event::Retry, true);
        }
        let next = self.armed.values().copied().chain([self.retry.at]);
        let next = next.fold(now + LOOK_EVERY, Instant::min);
        match self.transport.incoming.recv_timeout(next - now) {
            Ok(incoming) => self.heard(incoming),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Takes in what has come. What was sent again before it was looked at is there once.
    fn take_in(&mut self) {
        while let Ok(incoming) = self.transport.incoming.try_recv() {
            let same = |other: &Incoming| match (&incoming, other) {
                (Incoming::Message(a, x), Incoming::Message(b, y)) => a == b && x == y,
                _ => false,
            };
            match self.waiting.iter().any(same) {
                true => self.counters.refuse("doubled"),
                false => self.waiting.push_back(incoming),
            }
        }
    }

    fn heard(&mut self, incoming: Incoming) -> Result<(), NodeError> {
        match incoming {
            Incoming::Message(from, bytes) => {
                self.counters.received += 1;
                self.counters.received_bytes += bytes.len() as u64;
                if bytes.first() == Some(&b'{') {
                    return self.control(from, &bytes);
                }
                match wire::decode(self.run, &bytes) {
                    Ok(message) => {
                        if let Some((at, _)) = self.presences.get_mut(&from) {
                            *at = Instant::now();
                        }
                        self.happen(Event::Received(from, message), false)
                    }
                    Err(error) => {
                        let why = match error {
                            WireError::Version(_) => "version",
                            WireError::OtherRun(_) => "other run",
                            _ => "malformed",
                        };
                        self.refuse(why, &format!("from {from}: {error}"));
                        Ok(())
                    }
                }
            }
            Incoming::Unusable(unusable) => {
                self.refuse(&format!("{unusable:?}").to_lowercase(), "");
                Ok(())
            }
            Incoming::Connected => {
                self.observer.log("info", "connected");
                self.greet();
                self.happen(Event::Retry, true)
            }
            Incoming::Disconnected => {
                self.counters.disconnects += 1;
                self.observer
                    .log("warn", "the server is not reached; trying again");
                Ok(())
            }
            Incoming::Said(text) => {
                self.observer.log("warn", &text);
                Ok(())
            }
        }
    }

    /// Says how many predictions were answered since it last did, if that was so long ago.
    fn tell_answered(&mut self, every: Duration) {
        let ((told, since), all) = (self.told, self.counters.predictions);
        if all > told && since.elapsed() >= every {
            self.told = (all, Instant::now());
            let text = format!("{} predictions answered, {all} in all", all - told);
            self.observer.log("info", &text);
        }
    }

    fn refuse(&mut self, why: &str, detail: &str) {
        self.counters.refuse(why);
        // The first of each kind, and then ever fewer: nobody fills a disk with these.
        if self.counters.refused[why].is_power_of_two() {
            let count = self.counters.refused[why];
            let text = format!("refused a message ({why}, {count} so far) {detail}");
            self.observer.log("warn", text.trim_end());
        }
    }

    /// Brings an event to the role, and does what it wants.
    fn happen(&mut self, event: Event, again: bool) -> Result<(), NodeError> {
        let mut outbox = Outbox::default();
        let before = processor_seconds();
        self.role.handle(event, &mut outbox);
        self.counters.computed += processor_seconds() - before;
        self.carry_out(outbox, again)
    }

    fn carry_out(&mut self, mut outbox: Outbox, again: bool) -> Result<(), NodeError> {
        loop {
            if let (Some(record), Some(records)) = (outbox.record.take(), &mut self.records) {
                let started = Instant::now();
                self.counters.records += 1;
                self.counters.record_bytes += record.len() as u64;
                let world = World::new(self.settings.stop, self.settings.notice);
                let kept = records.keep(record, &world);
                self.transport.runtime.block_on(kept)?;
                self.counters.took("record", started.elapsed());
            }
            self.counters.predictions += outbox.answered;
            let mut awaited = 0;
            for (to, message) in outbox.messages.drain(..) {
                let bytes = wire::encode(self.run, &message);
                let again = again || self.is_said_again(to, message.kind(), &bytes);
                let sent = self.transport.send(to, bytes) as u64;
                let counters = &mut self.counters;
                counters.sent(message.kind(), sent);
                if again {
                    counters.again += 1;
                    counters.again_bytes += sent;
                }
                if message.is_of_evaluation() {
                    counters.evaluation_bytes += sent;
                }
                // Who only answers a question waits for nothing, and what it waits for otherwise may be lost.
                if !message.is_of_prediction() || self.role.has_ended() {
                    awaited += sent;
                }
            }
            if awaited > 0 && !again {
                let usual = self.usual.get(self.role.stage().0).copied();
                self.retry = Retry::behind(awaited, usual.unwrap_or_default());
            }
            for absence in &outbox.absences {
                let who = match absence.device {
                    Some(device) => format!("device {device} of group {}", absence.group),
                    None => format!("group {}", absence.group),
                };
                let phase = format!("{:?}", absence.phase).to_lowercase();
                let text = format!("{who} is absent at t = {} ({phase})", absence.t);
                self.observer.log("warn", &text);
                self.observer.absent(absence).map_err(NodeError::Observer)?;
            }
            for over in outbox.over.drain(..) {
                self.armed.remove(&over);
                self.known.remove(&over);
            }
            for (phase, t) in outbox.phases.drain(..) {
                let deadline = self.settings.deadlines.of(phase);
                if let Some(after) = deadline.filter(|_| self.known.insert((phase, t))) {
                    self.armed.insert((phase, t), Instant::now() + after);
                }
            }
            if let Role::Cloud(cloud) = &self.role
                && outbox.aggregated
            {
                if let Some(evaluation) = outbox.evaluations.last() {
                    self.evaluation = Some(evaluation.clone());
                }
                let told = self.observer.aggregated(
                    cloud.state(),
                    &outbox.evaluations,
                    outbox.ending.as_ref(),
                );
                told.map_err(NodeError::Observer)?;
            }
            self.time_stage();
            if !outbox.go_on {
                return Ok(());
            }
            outbox = Outbox::default();
            self.role.handle(Event::GoOn, &mut outbox);
        }
    }

    /// Whether the cloud says again what it has just said, to somebody who has not heard it: no timer tells it to. Others do
    /// not, and have too much to say to look at all of it.
    fn is_said_again(&mut self, to: Party, kind: &'static str, bytes: &[u8]) -> bool {
        if !matches!(self.role, Role::Cloud(_)) {
            return false;
        }
        let content = content(bytes);
        self.last_sent.insert((to, kind), content) == Some(content)
    }

    /// Counts how long the role was in a stage, when it leaves it. Deadlines of before are of no use then.
    fn time_stage(&mut self) {
        let now = self.role.stage();
        if now != self.stage.0 {
            let ((before, _), since) = std::mem::replace(&mut self.stage, (now, Instant::now()));
            let took = since.elapsed();
            self.counters.took(before, took);
            let usual = self.usual.entry(before).or_default();
            *usual = took.min(RETRY_LAST).max(usual.mul_f64(0.9));
            let (_, t) = now;
            self.armed.retain(|(_, at), _| *at >= t);
            self.known.retain(|(_, at)| *at >= t);
        }
    }
}

//! The loop: what happens goes in, what the party wants is done.

use super::presence::{Lives, Presence, show_trouble};
use super::{DriveError, Observer, Outcome, Settings, Snapshot};
use crate::chunks::name as content;
use crate::counters::{Counters, Dropped};
use crate::identity::RunIdentity;
use crate::records::{Records, World};
use crate::transport::{Incoming, Transport};
use selvedge_core::protocol::{Event, Outbox, Packet, Party, Phase, Protocol};
use selvedge_core::state::Evaluation;
use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Between two greetings.
const GREET_EVERY: Duration = Duration::from_secs(2);

/// Until something is sent again for the first time, and so much longer for what was sent; then twice as long each
/// time, up to what the party's patience allows.
pub(super) const RETRY_FIRST: Duration = Duration::from_millis(500);
const BYTES_PER_SECOND: f64 = 2e6;

/// How often people are told how many predictions were answered.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// How often somebody who wants it to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A party and its world.
pub(super) struct Driver<'a, P: Protocol> {
    pub(super) party: &'a mut P,
    pub(super) settings: &'a Settings<'a>,
    pub(super) observer: &'a mut dyn Observer<P>,
    pub(super) transport: Transport,
    records: Option<Records>,
    pub(super) incarnation: u64,
    pub(super) run: u64,
    armed: BTreeMap<(Phase, u64), Instant>,
    known: HashSet<(Phase, u64)>,
    pub(super) presences: BTreeMap<Party, (Instant, Presence)>,
    pub(super) counters: Counters,
    pub(super) evaluation: Option<Evaluation>,
    pub(super) snapshot: Arc<Mutex<Snapshot>>,
    /// What it waits for at which iteration, and since when.
    stage: ((&'static str, u64), Instant),
    /// How long each stage takes, lately at the longest: over a slow line nothing is lost only since it takes its time.
    usual: BTreeMap<&'static str, Duration>,
    /// What the cloud has last sent to whom, by kind.
    last_sent: BTreeMap<(Party, &'static str), u64>,
    pub(super) refused: Option<DriveError>,
    retry: Retry,
    /// When there was news.
    heard: Instant,
    pub(super) shown: Instant,
    /// Whom the party has last not waited for.
    pub(super) gone: Vec<Party>,
    /// How many predictions it has told of, and when.
    told: (u64, Instant),
    /// What it has last said that it waits for, and when.
    noticed: (String, Instant),
    /// How often each neighbour may begin a new life.
    pub(super) lives: BTreeMap<Party, Lives>,
}

/// When to send again.
struct Retry {
    at: Instant,
    wait: Duration,
}

impl Retry {
    /// Behind so many bytes that were sent, for an answer that usually takes so long.
    fn behind(bytes: u64, usual: Duration, longest: Duration) -> Self {
        let wait = RETRY_FIRST.max(2 * usual).min(longest) + behind(bytes);
        Retry {
            at: Instant::now() + wait,
            wait,
        }
    }

    /// After so many bytes that were sent again.
    fn longer(&mut self, bytes: u64, longest: Duration) {
        self.wait = (2 * self.wait).min(self.wait.max(longest));
        self.at = Instant::now() + self.wait.max(RETRY_FIRST + behind(bytes));
    }
}

/// How long bytes may be on their way.
fn behind(bytes: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND)
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

impl<'a, P: Protocol> Driver<'a, P> {
    pub(super) fn new(
        party: &'a mut P,
        settings: &'a Settings<'a>,
        observer: &'a mut dyn Observer<P>,
        transport: Transport,
        records: Option<Records>,
        snapshot: Arc<Mutex<Snapshot>>,
    ) -> Self {
        let incarnation = records.as_ref().map_or_else(
            || u64::from(std::process::id()) << 32 | u64::from(clock_nanos()),
            |records| records.epoch,
        );
        let now = Instant::now();
        Driver {
            stage: (party.stage(), now),
            party,
            settings,
            observer,
            transport,
            records,
            incarnation,
            run: settings
                .options
                .identity
                .as_ref()
                .map_or(0, RunIdentity::run),
            armed: BTreeMap::new(),
            known: HashSet::new(),
            presences: BTreeMap::new(),
            counters: Counters::default(),
            evaluation: None,
            snapshot,
            refused: None,
            retry: Retry::behind(0, Duration::ZERO, settings.patience.pause),
            usual: BTreeMap::new(),
            last_sent: BTreeMap::new(),
            heard: now,
            shown: now,
            gone: Vec::new(),
            told: (0, now),
            noticed: (String::new(), now),
            lives: BTreeMap::new(),
        }
    }

    pub(super) fn live(&mut self, record: Option<&[u8]>) -> Result<Outcome, DriveError> {
        self.greet();
        let mut outbox = Outbox::default();
        let begun = self.party.begin(record, &mut outbox);
        begun.map_err(DriveError::Record)?;
        self.carry_out(outbox, false)?;
        let (mut greeted, mut ended): (Instant, Option<Instant>) = (Instant::now(), None);
        loop {
            if self.shown.elapsed() >= LOOK_EVERY {
                self.tell_gone();
                self.show();
            }
            if self.is_done(&mut ended)? {
                break;
            }
            if self.settings.is_to_stop() {
                self.tell_answered(Duration::ZERO);
                self.transport.flush();
                // Who has only been answering has nothing left to do.
                return Ok(
                    match self.settings.options.answer && self.party.has_ended() {
                        true => Outcome::Over,
                        false => Outcome::Stopped,
                    },
                );
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

    /// Whether it need not wait for anything any more; `ended` is since when it knows how it ends.
    fn is_done(&mut self, ended: &mut Option<Instant>) -> Result<bool, DriveError> {
        let patience = &self.settings.patience;
        let failure = self.party.failure();
        if failure.is_none() && !self.party.has_ended() {
            if patience.timeout.is_some_and(|t| self.heard.elapsed() >= t) {
                return Err(self.missing());
            }
            self.tell_waits();
            return Ok(false);
        }
        let first = ended.is_none();
        let since = ended.get_or_insert_with(Instant::now).elapsed();
        let quiet = since.min(self.heard.elapsed());
        if let Some(why) = failure {
            if since < patience.last_words {
                return Ok(false);
            }
            self.transport.flush();
            return Err(DriveError::GivenUp(why));
        }
        if self.settings.options.answer {
            if first {
                self.observer.told("the run is over: answers predictions");
            }
            self.tell_answered(TELL_EVERY);
            return Ok(false);
        }
        if self.party.is_over() {
            return Ok(quiet >= patience.linger);
        }
        if quiet <= patience.silence {
            return Ok(false);
        }
        let missing = self.party.doing().missing;
        if !missing.is_empty() {
            let missing: Vec<String> = missing.iter().map(Party::to_string).collect();
            let text = format!("the run is over; nothing heard from {}", missing.join(", "));
            (self.settings.notice)(&text);
        }
        Ok(true)
    }

    /// Nothing has come for too long.
    fn missing(&self) -> DriveError {
        let missing = self.party.doing().missing.first().copied();
        match missing.filter(|_| self.transport.is_connected()) {
            None => self.settings.no_server(),
            Some(who) => DriveError::Missing {
                who,
                kind: match who {
                    Party::Hospital(_) => "hospital",
                    _ => "edge",
                },
                seconds: self.settings.patience.seconds(),
            },
        }
    }

    /// Says what it waits for, if that is another than before and people are to be told now.
    fn tell_waits(&mut self) {
        let every = self.settings.patience.notice;
        let (before, at) = &self.noticed;
        if every.is_none_or(|every| at.elapsed() < every) {
            return;
        }
        let what = self.party.doing().what;
        if what != *before {
            (self.settings.notice)(&what);
        }
        self.noticed = (what, Instant::now());
    }

    /// Handles the next thing that happens, if anything does soon.
    fn wait_and_handle(&mut self) -> Result<(), DriveError> {
        // Whoever has sent something is not late, however long this party was busy: messages come before deadlines.
        if let Ok(incoming) = self.transport.incoming.try_recv() {
            return self.heard(incoming);
        }
        let now = Instant::now();
        let due = self.armed.iter().find(|(_, at)| **at <= now);
        if let Some((phase, t)) = due.map(|(key, _)| *key) {
            self.armed.remove(&(phase, t));
            let text = format!(
                "the deadline of {phase:?} at t = {t} has passed: {}",
                self.party.doing().what
            );
            (self.settings.notice)(&text.to_lowercase());
            return self.happen(Event::Deadline(phase, t), false);
        }
        if self.retry.at <= now {
            let before = self.counters.again_bytes;
            self.happen(Event::Retry, true)?;
            let sent = self.counters.again_bytes - before;
            self.retry.longer(sent, self.settings.patience.pause);
            return Ok(());
        }
        let next = self.armed.values().copied().chain([self.retry.at]);
        let next = next.fold(now + LOOK_EVERY, Instant::min);
        match self.transport.incoming.recv_timeout(next - now) {
            Ok(incoming) => self.heard(incoming),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    fn heard(&mut self, incoming: Incoming) -> Result<(), DriveError> {
        match incoming {
            Incoming::Message(from, name, bytes) => {
                if let Some(gate) = self.transport.gates.get(&from) {
                    gate.is_handled(name, bytes.len());
                }
                self.counters.received += 1;
                self.counters.received_bytes += bytes.len() as u64;
                if self.settings.options.identity.is_some() && bytes.first() == Some(&b'{') {
                    return self.control(from, &bytes);
                }
                match self.party.decode(self.run, &bytes) {
                    Ok(message) => {
                        if let Some((at, _)) = self.presences.get_mut(&from) {
                            *at = Instant::now();
                        }
                        self.happen(Event::Received(from, message), false)
                    }
                    Err(error) => {
                        self.refuse(error.why, &format!("from {from}: {error}"));
                        Ok(())
                    }
                }
            }
            Incoming::Unusable(from, unusable) => {
                let why = format!("{unusable:?}").to_lowercase();
                self.refuse(&why, &format!("from {from}"));
                Ok(())
            }
            Incoming::Doubled => {
                self.counters.refuse("doubled");
                Ok(())
            }
            Incoming::CutOff(from, pause) => {
                self.tell_cut_off(from, pause);
                let deadlines = self.settings.options.deadlines;
                let phases = Phase::ALL.into_iter();
                phases
                    .filter(|phase| deadlines.of(*phase).is_some())
                    .try_for_each(|phase| self.happen(Event::Silenced(phase, from), false))
            }
            Incoming::HeardAgain(from) => {
                self.observer.told(&format!("{from} is listened to again"));
                // What was said meanwhile is lost, on both sides perhaps.
                self.happen(Event::Retry, true)
            }
            Incoming::Connected => {
                self.observer.told("connected");
                self.greet();
                self.happen(Event::Retry, true)
            }
            Incoming::Disconnected => {
                self.counters.disconnects += 1;
                (self.settings.notice)("the server cannot be reached; trying again");
                Ok(())
            }
            Incoming::Said(text) => {
                (self.settings.notice)(&text);
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
            self.observer.told(&text);
        }
    }

    /// Says that somebody floods: each of the first times, and then ever less often.
    fn tell_cut_off(&mut self, from: Party, pause: Duration) {
        let Some(dropped) = self.transport.gates.get(&from).map(|gate| gate.dropped()) else {
            return;
        };
        if dropped.cut_off.is_power_of_two() {
            (self.settings.notice)(&format!(
                "{from} floods: it is not listened to for {} s (cut off {} times so far, {} messages and {} bytes dropped here)",
                pause.as_secs(),
                dropped.cut_off,
                dropped.messages,
                dropped.bytes
            ));
        }
    }

    /// Takes over what was dropped before it could be handled.
    pub(super) fn count_dropped(&mut self) {
        for (from, gate) in &self.transport.gates {
            let dropped = gate.dropped();
            if dropped != Dropped::default() {
                self.counters.dropped.insert(from.to_string(), dropped);
            }
        }
        let overrun = self.transport.take_overrun();
        if overrun > 0 {
            *self.counters.refused.entry("overrun".into()).or_default() += overrun;
        }
    }

    pub(super) fn refuse(&mut self, why: &str, detail: &str) {
        self.counters.refuse(why);
        // The first of each kind, and then ever fewer: nobody fills a disk with these.
        if self.counters.refused[why].is_power_of_two() {
            let count = self.counters.refused[why];
            let text = format!("refused a message ({why}, {count} so far) {detail}");
            (self.settings.notice)(text.trim_end());
        }
    }

    /// Brings an event to the party, and does what it wants.
    pub(super) fn happen(
        &mut self,
        event: Event<P::Message>,
        again: bool,
    ) -> Result<(), DriveError> {
        let mut outbox = Outbox::default();
        let before = processor_seconds();
        self.party.handle(event, &mut outbox);
        self.counters.computed += processor_seconds() - before;
        self.carry_out(outbox, again)
    }

    fn carry_out(&mut self, mut outbox: Outbox<P::Message>, again: bool) -> Result<(), DriveError> {
        loop {
            if let (Some(record), Some(records)) = (outbox.record.take(), &mut self.records) {
                let started = Instant::now();
                self.counters.records += 1;
                self.counters.record_bytes += record.len() as u64;
                let trouble = |why: &str| show_trouble(&self.snapshot, why);
                let world = World::new(self.settings.stop, self.settings.notice, &trouble);
                let kept = records.keep(record, &world);
                self.transport.runtime.block_on(kept)?;
                self.counters.took("record", started.elapsed());
            }
            self.counters.predictions += outbox.answered;
            let mut awaited = 0;
            for (to, message) in outbox.messages.drain(..) {
                awaited += self.send(to, self.party.encode(self.run, &message), again);
            }
            if awaited > 0 && !again {
                let usual = self.usual.get(self.party.stage().0).copied();
                let longest = self.settings.patience.pause;
                self.retry = Retry::behind(awaited, usual.unwrap_or_default(), longest);
            }
            for notice in &outbox.notices {
                (self.settings.notice)(notice);
            }
            if let Some(reason) = outbox.stop.take() {
                return Err(DriveError::Stopped(reason));
            }
            for absence in &outbox.absences {
                let who = match absence.device {
                    Some(device) => format!("device {device} of group {}", absence.group),
                    None => format!("group {}", absence.group),
                };
                let phase = format!("{:?}", absence.phase).to_lowercase();
                self.counters.absent(absence);
                let what = match absence.reason {
                    None => "is absent".into(),
                    Some(reason) => format!("is left out, {reason},"),
                };
                let text = format!("{who} {what} at t = {} ({phase})", absence.t);
                (self.settings.notice)(&text);
            }
            for over in outbox.over.drain(..) {
                self.armed.remove(&over);
                self.known.remove(&over);
            }
            for (phase, t) in outbox.phases.drain(..) {
                let deadline = self.settings.options.deadlines.of(phase);
                if let Some(after) = deadline.filter(|_| self.known.insert((phase, t))) {
                    self.armed.insert((phase, t), Instant::now() + after);
                }
            }
            if let Some(evaluation) = outbox.evaluations.last() {
                self.evaluation = Some(evaluation.clone());
            }
            if outbox.news {
                self.heard = Instant::now();
            }
            if outbox.news || outbox.answered > 0 {
                self.goes_on();
            }
            let told = self.observer.happened(self.party, &outbox);
            told.map_err(DriveError::Observer)?;
            self.time_stage();
            if !outbox.go_on {
                return Ok(());
            }
            outbox = Outbox::default();
            self.party.handle(Event::GoOn, &mut outbox);
        }
    }

    /// It is at another interval, or has answered: others may send more.
    fn goes_on(&self) {
        self.transport
            .gates
            .values()
            .for_each(|gate| gate.goes_on());
    }

    /// Sends something; how many bytes of it an answer is awaited for.
    fn send(&mut self, to: Party, packet: Packet, again: bool) -> u64 {
        let Packet { bytes, kind, .. } = packet;
        let again = again || self.is_said_again(to, kind, &bytes);
        let sent = self.transport.send(to, bytes) as u64;
        let counters = &mut self.counters;
        counters.sent(kind, sent);
        if again {
            counters.again += 1;
            counters.again_bytes += sent;
        }
        if packet.is_of_evaluation {
            counters.evaluation_bytes += sent;
        }
        match packet.is_awaited {
            true => sent,
            false => 0,
        }
    }

    /// Whether the cloud says again what it has just said, to somebody who has not heard it: no timer tells it to.
    /// Others do not, and have too much to say to look at all of it.
    fn is_said_again(&mut self, to: Party, kind: &'static str, bytes: &[u8]) -> bool {
        if self.party.party() != Party::Cloud || self.settings.options.identity.is_none() {
            return false;
        }
        let content = content(bytes);
        self.last_sent.insert((to, kind), content) == Some(content)
    }

    /// Counts how long the party was in a stage, when it leaves it. Deadlines of before are of no use then.
    fn time_stage(&mut self) {
        let now = self.party.stage();
        if now != self.stage.0 {
            let ((before, then), since) = std::mem::replace(&mut self.stage, (now, Instant::now()));
            let took = since.elapsed();
            self.counters.took(before, took);
            let usual = self.usual.entry(before).or_default();
            *usual = took
                .min(self.settings.patience.pause)
                .max(usual.mul_f64(0.9));
            let (_, t) = now;
            if t != then {
                self.goes_on();
            }
            self.armed.retain(|(_, at), _| *at >= t);
            self.known.retain(|(_, at)| *at >= t);
        }
    }
}

//! Two or more parties that talk until all know what they must: each says all that its neighbours have not heard yet, at once when
//! it is something else than before, and again after a while. No records: who is started again begins anew.

use crate::transport::{Access, Incoming, Transport, TransportError};
use selvedge_core::role::Party;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Until something is said again, and so much longer for what was said.
const AGAIN: Duration = Duration::from_millis(500);
const BYTES_PER_SECOND: f64 = 2e6;

/// How often people are told what it waits for.
const NOTICE_EVERY: Duration = Duration::from_secs(5);

/// How long who has finished answers others that may not know it.
const LINGER: Duration = Duration::from_secs(1);

/// How long neighbours must be silent before who has finished takes it that they have left.
const SILENCE: Duration = Duration::from_secs(5);

/// How long who has given up tells others why.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How often somebody who wants it to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A party that talks.
pub trait Talk {
    /// All that it has to say now, one message for each neighbour.
    fn say(&self) -> Vec<(Party, Vec<u8>)>;

    /// A neighbour says something. Gives whether anything follows from it.
    ///
    /// # Errors
    /// If it is of no use; that changes nothing.
    fn hear(&mut self, from: Party, bytes: &[u8]) -> Result<bool, String>;

    /// What it waits for, for people.
    fn waits(&self) -> String;

    /// Why it has given up, if it has.
    fn failure(&self) -> Option<String>;

    /// Whether it and all its neighbours have finished, though they may not know of each other yet.
    fn has_finished(&self) -> bool;

    /// Whether there is nothing more to say or to hear.
    fn is_over(&self) -> bool;
}

/// What it needs to know besides.
pub struct TalkSettings<'a> {
    /// How it gets to its server.
    pub access: Access,
    /// Who it is.
    pub party: Party,
    /// Those it talks to.
    pub neighbours: Vec<Party>,
    /// No message is longer.
    pub longest_message: usize,
    /// Set when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told what keeps it waiting.
    pub notice: &'a dyn Fn(&str),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TalkEnd {
    /// All have finished.
    Over,
    /// It or a neighbour has given up: why.
    Failed(String),
    /// Somebody wanted it to stop.
    Stopped,
}

/// Talks until all have finished, one gives up, or somebody wants it to stop.
///
/// # Errors
/// If there is no way to the server.
pub fn talk(talker: &mut dyn Talk, settings: &TalkSettings<'_>) -> Result<TalkEnd, TransportError> {
    let opened = Transport::open(
        &settings.access,
        settings.party,
        &settings.neighbours,
        settings.longest_message,
        (&|| settings.stop.load(Ordering::SeqCst), settings.notice),
    )?;
    let Some(transport) = opened else {
        return Ok(TalkEnd::Stopped);
    };
    let mut mouth = Mouth {
        transport: &transport,
        last: BTreeMap::new(),
        again: Instant::now(),
    };
    mouth.speak(talker, true);
    let (mut heard, mut noticed) = (Instant::now(), Instant::now());
    let (mut ended, mut refused): (Option<Instant>, u64) = (None, 0);
    let mut waited = String::new();
    loop {
        if settings.stop.load(Ordering::SeqCst) {
            transport.flush();
            return Ok(TalkEnd::Stopped);
        }
        let failure = talker.failure();
        if failure.is_some() || talker.is_over() {
            ended.get_or_insert_with(Instant::now);
        }
        let since = ended.map_or(Duration::ZERO, |ended| ended.elapsed());
        match failure {
            Some(why) if since >= LAST_WORDS => {
                transport.flush();
                return Ok(TalkEnd::Failed(why));
            }
            None if talker.is_over() && since.min(heard.elapsed()) >= LINGER => {
                transport.flush();
                return Ok(TalkEnd::Over);
            }
            None if talker.has_finished() && heard.elapsed() >= SILENCE => {
                return Ok(TalkEnd::Over);
            }
            _ => {}
        }
        if noticed.elapsed() >= NOTICE_EVERY && ended.is_none() {
            noticed = Instant::now();
            let waits = talker.waits();
            if waits != waited {
                (settings.notice)(&waits);
                waited = waits;
            }
        }
        if mouth.again <= Instant::now() {
            mouth.speak(talker, true);
        }
        match transport.incoming.recv_timeout(LOOK_EVERY) {
            Ok(Incoming::Message(from, bytes)) => match talker.hear(from, &bytes) {
                Ok(news) => {
                    // Who only says again that it has finished does not keep this one here.
                    if news || !talker.is_over() {
                        heard = Instant::now();
                    }
                    if news {
                        mouth.speak(talker, false);
                    }
                }
                Err(problem) => {
                    refused += 1;
                    // The first, and then ever fewer: nobody fills a disk with these.
                    if refused.is_power_of_two() {
                        (settings.notice)(&format!(
                            "refused a message from {from} ({refused} so far): {problem}"
                        ));
                    }
                }
            },
            Ok(Incoming::Connected) => mouth.speak(talker, true),
            Ok(Incoming::Disconnected) => {
                (settings.notice)("the server is not reached; trying again");
            }
            Ok(Incoming::Said(text)) => (settings.notice)(&text),
            Ok(Incoming::Unusable(unusable)) => {
                (settings.notice)(&format!("refused a message: {unusable:?}").to_lowercase());
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

/// Says what is to be said, and remembers what was.
struct Mouth<'a> {
    transport: &'a Transport,
    last: BTreeMap<Party, Vec<u8>>,
    /// When all is said again.
    again: Instant,
}

impl Mouth<'_> {
    /// Says everything, or only what is another than before.
    fn speak(&mut self, talker: &dyn Talk, everything: bool) {
        let mut sent = 0;
        for (to, bytes) in talker.say() {
            if everything || self.last.get(&to) != Some(&bytes) {
                sent += self.transport.send(to, bytes.clone());
                self.last.insert(to, bytes);
            }
        }
        if everything || sent > 0 {
            let behind = Duration::from_secs_f64(sent as f64 / BYTES_PER_SECOND);
            self.again = Instant::now() + AGAIN + behind;
        }
    }
}

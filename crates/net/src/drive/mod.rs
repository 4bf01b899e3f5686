//! The driver of one party, whatever it takes part in: training, enrolment, a question to a trained group. It passes
//! events to the party and carries out what the party wants.
//!
//! One thread computes and decides; another listens and sends. For every event: the party handles it, its record is
//! kept, and only then is anything sent that follows from it.
//!
//! In a run, every party tells its neighbours every few seconds that it is there (a *greeting*). A party that has just
//! been started may have forgotten what it was told, so its neighbours tell it again; a party that trains another
//! experiment is refused. Enrolment comes before there is a run, and needs no greetings: a restarted party starts over.

mod driver;
mod presence;

pub use presence::{Presence, Snapshot};

use crate::counters::Counters;
use crate::deadlines::Deadlines;
use crate::gate::Turn;
use crate::http;
use crate::identity::RunIdentity;
use crate::records::{Place, RecordCopy, RecordError, Records, World};
use crate::transport::{Access, Transport, TransportError, name};
use driver::{Driver, RETRY_FIRST};
use presence::show_trouble;
use selvedge_core::protocol::{Outbox, Party, Protocol, Unread};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a party waits for others.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The longest pause before something is sent again, not counting the time it takes to send; pauses grow up to it.
    pub pause: Duration,
    /// How long a party that is done keeps answering others that may not know.
    pub linger: Duration,
    /// How long others must be silent before a party that is done assumes they are gone.
    pub silence: Duration,
    /// How long a party that has given up tells others why.
    pub last_words: Duration,
    /// How often it reports to people what it waits for.
    pub notice: Option<Duration>,
    /// How long it waits while nothing happens.
    pub timeout: Option<Duration>,
}

impl Patience {
    /// For parties of a run. Messages are lost only with a connection or with their receiver, and both are noticed;
    /// sending again covers the rest.
    pub const TRAINING: Patience = Patience {
        pause: Duration::from_secs(8),
        linger: Duration::ZERO,
        silence: Duration::from_secs(20),
        last_words: Duration::ZERO,
        notice: None,
        timeout: None,
    };

    /// For parties that enrol: only repeated messages show that others are there.
    pub const ENROLMENT: Patience = Patience {
        pause: RETRY_FIRST,
        linger: Duration::from_secs(1),
        silence: Duration::from_secs(5),
        last_words: Duration::from_secs(2),
        notice: Some(Duration::from_secs(5)),
        timeout: None,
    };

    /// For a party that asks, and wants to know soon if nobody answers.
    pub const fn of_asker(timeout: Duration) -> Self {
        Patience {
            pause: RETRY_FIRST,
            timeout: Some(timeout),
            ..Patience::TRAINING
        }
    }

    /// How long it waits when nothing happens, if there is an end to it.
    fn seconds(&self) -> f64 {
        self.timeout.unwrap_or_default().as_secs_f64()
    }
}

/// What a driver needs to know besides its party.
pub struct Settings<'a> {
    /// How it connects to its server.
    pub access: Access,
    /// Those it talks to.
    pub neighbours: Vec<Party>,
    /// No message is longer.
    pub longest_message: usize,
    /// No honest neighbour sends more in an interval.
    pub turn: Turn,
    /// The most gateways that a group can have.
    pub most_gateways: usize,
    /// How long it waits for others.
    pub patience: Patience,
    /// Further options.
    pub options: Options,
    /// Set when it is to stop.
    pub stop: &'a AtomicBool,
    /// Receives notices for people: what keeps it waiting, what is wrong.
    pub notice: &'a dyn Fn(&str),
}

/// Options of a party.
#[derive(Default)]
pub struct Options {
    /// The run that it takes part in, if there is one.
    pub identity: Option<RunIdentity>,
    /// How long it waits for others in each phase.
    pub deadlines: Deadlines,
    /// Where it answers over HTTP, if it does.
    pub http: Option<SocketAddr>,
    /// T, for display.
    pub iterations: u64,
    /// Whether records of another run may be discarded; otherwise they are an error.
    pub forget: bool,
    /// Where it keeps a copy of its last record, if it does.
    pub copy: Option<RecordCopy>,
    /// Whether it stays when the run is over, to answer for the trained model.
    pub answer: bool,
}

impl Settings<'_> {
    fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn no_server(&self) -> DriveError {
        DriveError::Server {
            servers: self.access.servers.join(", "),
            seconds: self.patience.seconds(),
        }
    }
}

/// Observes what happens.
pub trait Observer<P: Protocol> {
    /// Something has happened to the party: its record is kept, and its messages are on their way. After a crash this
    /// may be called twice.
    ///
    /// # Errors
    /// If that cannot be recorded; the driver then ends.
    fn happened(&mut self, party: &mut P, outbox: &Outbox<P::Message>) -> Result<(), String>;

    /// It begins: from a record, or without one. Without one, whatever was written before belongs to no run.
    ///
    /// # Errors
    /// If that cannot be recorded; the driver then ends.
    fn begins(&mut self, from_record: bool) -> Result<(), String> {
        let _ = from_record;
        Ok(())
    }

    /// The counters, when it ends.
    fn counted(&mut self, counters: &Counters) {
        let _ = counters;
    }

    /// Information for people that needs no action.
    fn told(&mut self, text: &str) {
        let _ = text;
    }
}

/// Who only looks at what has happened.
impl<P: Protocol, F> Observer<P> for F
where
    F: FnMut(&mut P, &Outbox<P::Message>) -> Result<(), String>,
{
    fn happened(&mut self, party: &mut P, outbox: &Outbox<P::Message>) -> Result<(), String> {
        self(party, outbox)
    }
}

/// Why a party ends before it is over.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Records cannot be used.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// There is no connection to the server.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The party does not go on.
    #[error("{0}")]
    Stopped(String),
    /// The last record is not one of this party.
    #[error("cannot resume from the last record: {0}")]
    Record(Unread),
    /// Another party refuses it.
    #[error("{by} refuses this {kind}: it takes part in a different run:\n{differences}")]
    Refused {
        /// Who refuses it.
        by: Party,
        /// What it is called.
        kind: &'static str,
        /// The differences.
        differences: String,
    },
    /// The server does not answer.
    #[error("{servers} could not be reached within {seconds} s: is the hospital's server running?")]
    Server {
        /// Where.
        servers: String,
        /// How long it waited.
        seconds: f64,
    },
    /// Somebody does not answer.
    #[error(
        "{who} has not answered within {seconds} s: is `selvedge node {kind} --answer` running there?"
    )]
    Missing {
        /// Who.
        who: Party,
        /// What its node is called.
        kind: &'static str,
        /// How long it waited.
        seconds: f64,
    },
    /// It has given up.
    #[error("{0}")]
    GivenUp(String),
    /// An event cannot be recorded.
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

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All have finished.
    Over,
    /// It was stopped before that.
    Stopped,
}

/// Drives a party until it is over, gives up or is stopped.
///
/// # Errors
/// If it cannot go on; starting it again may help.
pub fn drive<P: Protocol>(
    party: &mut P,
    settings: &Settings<'_>,
    observer: &mut dyn Observer<P>,
) -> Result<Outcome, DriveError> {
    let own = party.party();
    let begun = Instant::now();
    let timeout = settings.patience.timeout;
    let is_late = || timeout.is_some_and(|timeout| begun.elapsed() >= timeout);
    let opened = Transport::open(
        &settings.access,
        own,
        &settings.neighbours,
        (settings.longest_message, settings.turn),
        (&|| settings.is_to_stop() || is_late(), settings.notice),
    )?;
    let Some(transport) = opened else {
        return match settings.is_to_stop() {
            true => Ok(Outcome::Stopped),
            false => Err(settings.no_server()),
        };
    };
    let run = settings
        .options
        .identity
        .as_ref()
        .map_or(0, RunIdentity::run);
    let snapshot = Arc::new(Mutex::new(Snapshot {
        party: own,
        doing: party.doing(),
        connected: false,
        trouble: None,
        evaluation: None,
        iterations: settings.options.iterations,
        present: Vec::new(),
        missing: settings.neighbours.clone(),
        counters: Counters::default(),
    }));
    if let Some(address) = settings.options.http {
        let serving = http::serve(address, Arc::clone(&snapshot));
        let served = transport.runtime.block_on(serving);
        served.map_err(|source| DriveError::Http { address, source })?;
    }
    let (records, found) = match party.keeps_records() {
        false => (None, None),
        true => {
            let trouble = |why: &str| show_trouble(&snapshot, why);
            let world = World::new(settings.stop, settings.notice, &trouble);
            let place = Place {
                party: &name(own),
                run,
                replicas: settings.access.replicas(),
                forget: settings.options.forget,
                copy: settings.options.copy.clone(),
            };
            let opened = Records::open(&transport.client, place, &world);
            match transport.runtime.block_on(opened) {
                Ok((records, found)) => (Some(records), found),
                Err(RecordError::Stopped) => return Ok(Outcome::Stopped),
                Err(error) => return Err(error.into()),
            }
        }
    };
    let begins = observer.begins(found.is_some());
    begins.map_err(DriveError::Observer)?;
    observer.told(&match &found {
        Some(record) => format!("resumes from its record of {} bytes", record.len()),
        None => "begins".into(),
    });
    let mut driver = Driver::new(party, settings, observer, transport, records, snapshot);
    let lived = driver.live(found.as_deref());
    driver.count_dropped();
    driver.observer.counted(&driver.counters);
    match lived {
        Err(DriveError::Records(RecordError::Stopped)) => Ok(Outcome::Stopped),
        other => other,
    }
}

//! A gateway that asks for joint predictions, from its connection to the last answer.
//!
//! It says what it wants at once, and again when nothing has come for a while; who does not answer within the given time is
//! named. The edge is greeted first: it refuses who takes part in another run, and shows the difference.

use crate::credentials::random;
use crate::identity::RunIdentity;
use crate::node::Control;
use crate::transport::{Access, Incoming, Transport, TransportError};
use selvedge_core::role::wire::{self, WireError};
use selvedge_core::role::{AskError, Asker, Doing, Message, Party};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Until something is said again, and so much longer for what was said.
const AGAIN: Duration = Duration::from_millis(500);
const BYTES_PER_SECOND: f64 = 2e6;

/// How often somebody who wants it to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What it needs to know besides.
pub struct AskSettings<'a> {
    /// How it gets to its server.
    pub access: Access,
    /// A group, and the gateway's number in it.
    pub gateway: (usize, usize),
    /// The run whose model is asked.
    pub identity: RunIdentity,
    /// No message of this run is longer.
    pub longest_message: usize,
    /// How long it waits when nothing happens.
    pub timeout: Duration,
    /// Set when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told what keeps it waiting.
    pub notice: &'a dyn Fn(&str),
    /// Told for how many patients there is an answer, and how many there are.
    pub progress: &'a dyn Fn((usize, usize)),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskFailed {
    /// There is no way to the server.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server does not answer.
    #[error("{servers} is not reached within {seconds} s: is the hospital's server running?")]
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
    /// It is not let in.
    #[error("{by} refuses this gateway, since it takes part in another run:\n{differences}")]
    OtherRun {
        /// Who refuses it.
        by: Party,
        /// In what they differ.
        differences: String,
    },
    /// There will be none.
    #[error(transparent)]
    Asker(#[from] AskError),
}

/// Asks until everything is answered; false if somebody wants it to stop before.
///
/// # Errors
/// If somebody is missing or refuses to answer.
pub fn ask(asker: &mut Asker<'_>, settings: &AskSettings<'_>) -> Result<bool, AskFailed> {
    let (m, g) = settings.gateway;
    let (begun, stopped) = (Instant::now(), || settings.stop.load(Ordering::SeqCst));
    let opened = Transport::open(
        &settings.access,
        Party::Gateway(m, g),
        &[Party::Edge(m)],
        settings.longest_message,
        (
            &|| stopped() || begun.elapsed() >= settings.timeout,
            settings.notice,
        ),
    )?;
    let Some(transport) = opened else {
        return match stopped() {
            true => Ok(false),
            false => Err(settings.no_server()),
        };
    };
    let mut asking = Asking {
        asker,
        settings,
        transport,
        run: settings.identity.run(),
        incarnation: random::<8>().map_or(1, u64::from_le_bytes),
        heard: Instant::now(),
        again: Instant::now(),
    };
    while !asking.asker.is_over() {
        if stopped() {
            return Ok(false);
        }
        asking.step()?;
    }
    asking.transport.flush();
    Ok(true)
}

impl AskSettings<'_> {
    fn no_server(&self) -> AskFailed {
        AskFailed::Server {
            servers: self.access.servers.join(", "),
            seconds: self.timeout.as_secs_f64(),
        }
    }
}

/// One that is connected.
struct Asking<'a, 'b, 'c> {
    asker: &'a mut Asker<'c>,
    settings: &'a AskSettings<'b>,
    transport: Transport,
    run: u64,
    incarnation: u64,
    /// When anything last came of what it heard.
    heard: Instant,
    /// When all is said again.
    again: Instant,
}

impl Asking<'_, '_, '_> {
    fn step(&mut self) -> Result<(), AskFailed> {
        if self.heard.elapsed() >= self.settings.timeout {
            return Err(self.missing());
        }
        if self.again <= Instant::now() {
            if self.asker.progress().0 == 0 {
                self.greet();
            }
            self.speak(true)?;
        }
        match self.transport.incoming.recv_timeout(LOOK_EVERY) {
            Ok(Incoming::Message(from, bytes)) => self.hear(from, &bytes),
            Ok(Incoming::Connected) => self.speak(true),
            Ok(Incoming::Disconnected) => {
                (self.settings.notice)("the server is not reached; trying again");
                Ok(())
            }
            Ok(Incoming::Said(text)) => {
                (self.settings.notice)(&text);
                Ok(())
            }
            Ok(Incoming::Unusable(_))
            | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    fn missing(&self) -> AskFailed {
        if !self.transport.is_connected() {
            return self.settings.no_server();
        }
        let who = self.asker.waits_for();
        AskFailed::Missing {
            who,
            kind: match who {
                Party::Hospital(_) => "hospital",
                _ => "edge",
            },
            seconds: self.settings.timeout.as_secs_f64(),
        }
    }

    /// Who takes part in another run is told so.
    fn greet(&self) {
        let greeting = Control::Greeting {
            run: format!("{:016x}", self.run),
            incarnation: self.incarnation,
            doing: Doing {
                t: 0,
                what: "asks for predictions".into(),
                missing: Vec::new(),
                below_quorum: false,
            },
            heard: Vec::new(),
        };
        if let Ok(bytes) = serde_json::to_vec(&greeting) {
            self.transport.send(self.edge(), bytes);
        }
    }

    fn edge(&self) -> Party {
        Party::Edge(self.settings.gateway.0)
    }

    fn speak(&mut self, again: bool) -> Result<(), AskFailed> {
        let mut sent = 0;
        for message in self.asker.say(again)? {
            let bytes = wire::encode(self.run, &message);
            sent += self.transport.send(self.edge(), bytes);
        }
        if again || sent > 0 {
            let behind = Duration::from_secs_f64(sent as f64 / BYTES_PER_SECOND);
            self.again = Instant::now() + AGAIN + behind;
        }
        Ok(())
    }

    fn hear(&mut self, from: Party, bytes: &[u8]) -> Result<(), AskFailed> {
        if bytes.first() == Some(&b'{') {
            return self.control(from, bytes);
        }
        let message = match wire::decode(self.run, bytes) {
            // That is for the gateway's node, which answers for itself.
            Ok(Message::End) => return Ok(()),
            Ok(message) => message,
            // What is said to the same gateway's node is not for this one.
            Err(WireError::OtherRun(_)) => return Ok(()),
            Err(error) => {
                (self.settings.notice)(&format!("refused a message from {from}: {error}"));
                return Ok(());
            }
        };
        if self.asker.hear(from, &message)? {
            self.heard = Instant::now();
            (self.settings.progress)(self.asker.progress());
            self.speak(false)?;
        }
        Ok(())
    }

    fn control(&self, from: Party, bytes: &[u8]) -> Result<(), AskFailed> {
        if let Ok(Control::Refusal(theirs)) = serde_json::from_slice(bytes) {
            let differences = self.settings.identity.differences(&theirs);
            if !differences.is_empty() {
                return Err(AskFailed::OtherRun {
                    by: from,
                    differences: differences.join("\n"),
                });
            }
        }
        Ok(())
    }
}

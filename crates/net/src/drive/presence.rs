//! Who is there: greetings, refusals, and what a party shows of itself.

use super::DriveError;
use super::driver::Driver;
use crate::counters::Counters;
use crate::identity::RunIdentity;
use selvedge_core::protocol::{Doing, Event, Party, Protocol};
use selvedge_core::state::Evaluation;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest text that is taken from another, and the most parties that it waits for.
const LONGEST_TEXT: usize = 200;
const MOST_MISSING: usize = 16;

/// Lives that a neighbour may begin at once, and how long it takes until it may begin one more.
const LIVES: u32 = 4;
const LIFE: Duration = Duration::from_secs(1);

/// How often a neighbour may still appear: each time it is told again what it may have forgotten.
pub(super) struct Lives {
    left: u32,
    since: Instant,
}

impl Lives {
    pub(super) fn new() -> Self {
        Lives {
            left: LIVES,
            since: Instant::now(),
        }
    }

    /// Whether it may now.
    fn takes_one(&mut self) -> bool {
        while self.left < LIVES && self.since.elapsed() >= LIFE {
            (self.left, self.since) = (self.left + 1, self.since + LIFE);
        }
        if self.left == LIVES {
            self.since = Instant::now();
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

/// What a party says of itself, no longer than it has to be.
fn shortened(mut doing: Doing) -> Doing {
    if let Some((end, _)) = doing.what.char_indices().nth(LONGEST_TEXT) {
        doing.what.truncate(end);
    }
    doing.missing.truncate(MOST_MISSING);
    doing.gone.truncate(MOST_MISSING);
    doing
}

/// A party as its neighbours see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Presence {
    /// Who.
    pub party: Party,
    /// Seconds since it was last heard from.
    pub silent: f64,
    /// How often it was started.
    pub incarnation: u64,
    /// What it reported to be doing.
    pub doing: Doing,
}

/// The state that a party shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Who it is.
    pub party: Party,
    /// What it is doing.
    pub doing: Doing,
    /// Whether it reaches its server.
    pub connected: bool,
    /// What keeps it from going on, if that is its server.
    #[serde(default)]
    pub trouble: Option<String>,
    /// The last evaluation, if it is the cloud.
    pub evaluation: Option<Evaluation>,
    /// T
    pub iterations: u64,
    /// Parties that have been heard from.
    pub present: Vec<Presence>,
    /// Parties that have not.
    pub missing: Vec<Party>,
    /// What was counted.
    pub counters: Counters,
}

/// What parties say to each other besides messages.
#[derive(Serialize, Deserialize)]
enum Control {
    /// I am there.
    Greeting {
        run: String,
        incarnation: u64,
        doing: Doing,
        /// Whom I have heard of, for who cannot.
        heard: Vec<Presence>,
    },
    /// You are in another run; mine is this.
    Refusal(RunIdentity),
}

impl<P: Protocol> Driver<'_, P> {
    pub(super) fn control(&mut self, from: Party, bytes: &[u8]) -> Result<(), DriveError> {
        let Ok(control) = serde_json::from_slice(bytes) else {
            self.refuse("malformed", &format!("from {from}"));
            return Ok(());
        };
        match control {
            Control::Greeting {
                run,
                incarnation,
                doing,
                heard,
            } => {
                if run != format!("{:016x}", self.run) {
                    self.refuse("other run", &format!("from {from}"));
                    let own = self.settings.options.identity.as_ref();
                    if let Some(own) = own.filter(|_| judges(self.party.party(), from)) {
                        self.say(from, &Control::Refusal(own.clone()));
                    }
                    return Ok(());
                }
                self.hear_of_gateways(from, heard);
                let before = self.presences.get(&from);
                let known = before.is_some_and(|(_, before)| before.incarnation == incarnation);
                let appears = !known || self.party.has_ended();
                let lives = self.lives.entry(from).or_insert_with(Lives::new);
                if appears && !lives.takes_one() {
                    // It is heard when it greets again.
                    self.refuse("too many lives", &format!("from {from}"));
                    return Ok(());
                }
                let presence = Presence {
                    party: from,
                    silent: 0.0,
                    incarnation,
                    doing: shortened(doing),
                };
                self.presences.insert(from, (Instant::now(), presence));
                if !known {
                    // It does not know of this party either, or not any more.
                    self.greet_one(from);
                }
                if appears {
                    return self.happen(Event::Appeared(from), true);
                }
            }
            Control::Refusal(theirs) => {
                let own = self.settings.options.identity.as_ref();
                let differences = own.map_or_else(Vec::new, |own| own.differences(&theirs));
                if judges(from, self.party.party()) && !differences.is_empty() {
                    self.refused = Some(DriveError::Refused {
                        by: from,
                        kind: match self.party.party() {
                            Party::Gateway(..) => "gateway",
                            _ => "party",
                        },
                        differences: differences.join("\n"),
                    });
                }
            }
        }
        Ok(())
    }

    /// What an edge tells of its gateways, each time of all of them.
    fn hear_of_gateways(&mut self, from: Party, heard: Vec<Presence>) {
        let (Party::Edge(m), Party::Cloud) = (from, self.party.party()) else {
            return;
        };
        let of_group = |party: &Party| matches!(party, Party::Gateway(n, _) if *n == m);
        self.presences.retain(|party, _| !of_group(party));
        let most = self.settings.most_gateways;
        let is_own = |party: Party| matches!(party, Party::Gateway(n, g) if n == m && g < most);
        for presence in heard.into_iter().filter(|p| is_own(p.party)) {
            let since = Duration::try_from_secs_f64(presence.silent).unwrap_or_default();
            let now = Instant::now();
            let at = now.checked_sub(since).unwrap_or(now);
            let presence = Presence {
                doing: shortened(presence.doing),
                ..presence
            };
            self.presences.insert(presence.party, (at, presence));
        }
    }

    fn say(&self, to: Party, control: &Control) {
        if let Ok(bytes) = serde_json::to_vec(control) {
            self.transport.send(to, bytes);
        }
    }

    pub(super) fn greet(&self) {
        for to in &self.settings.neighbours {
            self.greet_one(*to);
        }
    }

    fn greet_one(&self, to: Party) {
        if self.settings.options.identity.is_none() || !self.party.greets() {
            return;
        }
        // An edge tells the cloud of its gateways, who cannot.
        let mut heard = match to {
            Party::Cloud => self.present(),
            _ => Vec::new(),
        };
        heard.retain(|presence| matches!(presence.party, Party::Gateway(..)));
        let greeting = Control::Greeting {
            run: format!("{:016x}", self.run),
            incarnation: self.incarnation,
            doing: self.party.doing(),
            heard,
        };
        self.say(to, &greeting);
    }

    fn present(&self) -> Vec<Presence> {
        let silent = |(at, presence): &(Instant, Presence)| Presence {
            silent: at.elapsed().as_secs_f64(),
            ..presence.clone()
        };
        self.presences.values().map(silent).collect()
    }

    /// Says whom the party does not wait for any more, and whom it waits for again.
    pub(super) fn tell_gone(&mut self) {
        let now = self.party.doing().gone;
        for who in now.iter().filter(|who| !self.gone.contains(who)) {
            let text = "has missed several deadlines in a row: it is not waited for until it is heard from";
            (self.settings.notice)(&format!("{who} {text}"));
        }
        for who in self.gone.iter().filter(|who| !now.contains(who)) {
            (self.settings.notice)(&format!("{who} is heard from: it is waited for again"));
        }
        self.gone = now;
    }

    pub(super) fn show(&mut self) {
        self.shown = Instant::now();
        self.count_dropped();
        if self.settings.options.http.is_none() {
            return;
        }
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |party: &&Party| !self.presences.contains_key(*party);
        *snapshot = Snapshot {
            party: self.party.party(),
            doing: self.party.doing(),
            connected: self.transport.is_connected(),
            trouble: None,
            evaluation: self.evaluation.clone(),
            iterations: self.settings.options.iterations,
            present: self.present(),
            missing: self
                .settings
                .neighbours
                .iter()
                .filter(is_missing)
                .copied()
                .collect(),
            counters: self.counters.clone(),
        };
    }
}

/// Shows at once what a party waits for that can do nothing else meanwhile.
pub(super) fn show_trouble(snapshot: &Mutex<Snapshot>, why: &str) {
    let mut snapshot = snapshot.lock().unwrap_or_else(PoisonError::into_inner);
    snapshot.trouble = Some(why.to_owned());
}

/// Whether one party decides which run the other has to take part in.
fn judges(one: Party, other: Party) -> bool {
    matches!(
        (one, other),
        (Party::Cloud, Party::Hospital(_) | Party::Edge(_)) | (Party::Edge(_), Party::Gateway(..))
    )
}

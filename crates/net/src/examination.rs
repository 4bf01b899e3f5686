//! One connection to a server, to check whether a party could take part: can it be reached, does it know this key, what
//! time is it there?

use crate::credentials::Identity;
use crate::subjects::WHO_AM_I;
use crate::transport::Access;
use selvedge_core::role::Party;
use serde::Deserialize;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// How long each answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a server knows about a party.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The server's name.
    pub server: String,
    /// Its version.
    pub version: String,
    /// The public key that it knows the party by.
    pub user: String,
    /// The party's account there.
    pub account: String,
    /// Seconds for a request and its response.
    pub round_trip: f64,
    /// Seconds by which this machine's clock is ahead of the server's.
    pub clock_ahead: f64,
}

#[derive(Deserialize)]
struct Answer {
    server: AnsweringServer,
    data: User,
}

#[derive(Deserialize)]
struct AnsweringServer {
    name: String,
    ver: String,
    time: String,
}

#[derive(Deserialize)]
struct User {
    user: String,
    account: String,
}

/// Connects to one server as a party, asks which user it is there, and disconnects.
///
/// # Errors
/// A message for people: what failed, and what to do about it.
pub fn examine(access: &Access, server: &str, party: Party) -> Result<Known, String> {
    Identity::from_seed(&access.seed).map_err(|e| e.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let connecting = access
            .options(party)
            .connection_timeout(PATIENCE)
            .connect(format!("tls://{server}"));
        let client = match tokio::time::timeout(2 * PATIENCE, connecting).await {
            Ok(connected) => connected.map_err(|e| explain(&e.to_string()))?,
            Err(_) => return Err("no answer".into()),
        };
        let asked = Instant::now();
        let question = client.request(WHO_AM_I, "".into());
        let answer = match tokio::time::timeout(PATIENCE, question).await {
            Ok(answer) => answer.map_err(|e| format!("it does not identify this party: {e}"))?,
            Err(_) => {
                return Err(
                    "it accepts the connection but does not answer this party: is this another party's folder?".into(),
                );
            }
        };
        let round_trip = asked.elapsed().as_secs_f64();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        let answer: Answer = serde_json::from_slice(&answer.payload)
            .map_err(|e| format!("its answer about this party's identity cannot be read: {e}"))?;
        let there = seconds(&answer.server.time)
            .ok_or_else(|| format!("its time {:?} is invalid", answer.server.time))?;
        Ok(Known {
            server: answer.server.name,
            version: answer.server.ver,
            user: answer.data.user,
            account: answer.data.account,
            round_trip,
            clock_ahead: now - round_trip / 2.0 - there,
        })
    })
}

/// What people can do about a failure.
fn explain(problem: &str) -> String {
    let hint = [
        (
            "UnknownIssuer",
            "its certificate is from a different authority: is it the consortium's server?",
        ),
        (
            "NotValidForName",
            "its certificate is for a different host name",
        ),
        (
            "Expired",
            "its certificate has expired, or this machine's clock is wrong",
        ),
        (
            "authorization",
            "it does not know this key: it may have been replaced or revoked",
        ),
        (
            "Connection refused",
            "nothing is listening there: is the server running?",
        ),
        ("failed to lookup", "the host name cannot be resolved here"),
    ];
    let found = hint.iter().find(|(part, _)| problem.contains(part));
    match found {
        Some((_, hint)) => format!("{problem} ({hint})"),
        None => problem.to_owned(),
    }
}

/// Seconds since 1970 of a time in UTC, like `2026-11-15T21:03:00.25Z`.
fn seconds(text: &str) -> Option<f64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Some(time.unix_timestamp() as f64 + f64::from(time.nanosecond()) / 1e9)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_are_those_of_another_implementation() {
        // date -u -d 2026-11-15T21:03:00 +%s, and so on
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2000-02-29T12:00:00Z", 951_825_600.0),
            ("2026-11-15T21:03:00.25Z", 1_794_776_580.25),
            ("2100-03-01T00:00:01Z", 4_107_542_401.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "2026-11-15",
            "2026-13-01T00:00:00Z",
            "x-1-1T0:0:0Z",
            "1-2T3Z",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}

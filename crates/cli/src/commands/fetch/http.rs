//! One request: a file, or the rest of it.

use selvedge_run::format::seconds;
use std::io::{self, Read};
use std::time::Duration;
use ureq::http::Response;
use ureq::http::header::{CONTENT_RANGE, CONTENT_TYPE, RANGE};
use ureq::{Agent, Body, Error};

/// Why a request did not bring what it should.
pub(super) enum Stop {
    /// The connection broke or the server is busy: another try may go better.
    Passing(String),
    /// There is no way to the server.
    Unreachable(String),
    /// No other try would go better.
    Final(anyhow::Error),
}

/// What a server answers.
pub(super) enum Answer {
    /// The file from its beginning, whatever was asked for, and how long it is where the server says so.
    Whole(Incoming, Option<u64>),
    /// The rest that was asked for, and how long the whole file is.
    Rest(Incoming, Option<u64>),
    /// There is no rest: all bytes are here.
    NoRest,
    /// The server's file is another one than the one that was begun.
    Changed,
}

/// Bytes that are on their way.
pub(super) struct Incoming {
    reader: ureq::BodyReader<'static>,
    patience: Duration,
}

impl Incoming {
    /// Some more bytes; none at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Stop> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Passing(lost(&error, self.patience))),
                Ok(count) => return Ok(count),
            }
        }
    }
}

/// Why no more bytes came.
fn lost(error: &io::Error, patience: Duration) -> String {
    let cause = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
    match cause {
        Some(Error::Timeout(_)) => silent(patience),
        _ => format!("the connection was lost ({error})"),
    }
}

fn silent(patience: Duration) -> String {
    format!("nothing received for {}", seconds(patience.as_secs_f64()))
}

/// Asks servers.
pub(super) struct Client {
    agent: Agent,
    patience: Duration,
}

impl Client {
    /// A client that waits so long for a server that says nothing.
    pub(super) fn new(patience: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_resolve(Some(patience))
            .timeout_connect(Some(patience))
            .timeout_per_read(Some(patience))
            .timeout_per_write(Some(patience))
            .user_agent(concat!("selvedge/", env!("CARGO_PKG_VERSION")))
            .build();
        Client {
            agent: config.into(),
            patience,
        }
    }

    /// Asks for a file, without its first `have` bytes.
    pub(super) fn get(&self, address: &str, have: u64) -> Result<Answer, Stop> {
        let mut request = self.agent.get(address);
        if have > 0 {
            request = request.header(RANGE, format!("bytes={have}-"));
        }
        let response = request.call().map_err(|error| self.failed(error))?;
        let status = response.status();
        let range = content_range(&response);
        match status.as_u16() {
            200 => {
                check_kind(&response)?;
                let length = response.body().content_length();
                Ok(Answer::Whole(self.incoming(response), length))
            }
            206 => match range {
                Some((Some(first), total)) if first == have => {
                    Ok(Answer::Rest(self.incoming(response), total))
                }
                _ if have > 0 => Ok(Answer::Changed),
                _ => Err(refused("with a part of the file that was not requested")),
            },
            416 if have > 0 => match range {
                Some((None, Some(total))) if total == have => Ok(Answer::NoRest),
                _ => Ok(Answer::Changed),
            },
            408 | 425 | 429 | 500.. => Err(Stop::Passing(format!("the server answered {status}"))),
            404 | 410 => Err(refused(&format!("{status}: the file is no longer there"))),
            401 | 403 | 407 => Err(refused(&format!("{status}: access to the file is denied"))),
            _ => Err(refused(&format!("{status}: expected 200 OK"))),
        }
    }

    fn incoming(&self, response: Response<Body>) -> Incoming {
        Incoming {
            reader: response.into_body().into_reader(),
            patience: self.patience,
        }
    }

    fn failed(&self, error: Error) -> Stop {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionReset, InvalidData, TimedOut, UnexpectedEof,
        };
        match error {
            Error::HostNotFound => Stop::Unreachable("unknown host (no network?)".into()),
            Error::ConnectionFailed => Stop::Unreachable("no connection".into()),
            Error::ConnectProxyFailed(why) => {
                Stop::Unreachable(format!("no connection through the proxy ({why})"))
            }
            Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
                Stop::Unreachable(format!("no connection: {}", silent(self.patience)))
            }
            Error::Timeout(_) => Stop::Passing(silent(self.patience)),
            Error::Io(error) => match error.kind() {
                ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof | TimedOut => {
                    Stop::Passing(format!("the connection was lost ({error})"))
                }
                InvalidData => Stop::Final(anyhow::anyhow!("no secure connection ({error})")),
                // Refused, no route, no name server, …
                _ => Stop::Unreachable(format!("no connection ({error})")),
            },
            Error::Protocol(error) => {
                Stop::Passing(format!("the server's answer is malformed ({error})"))
            }
            error => Stop::Final(anyhow::anyhow!("{error}")),
        }
    }
}

fn refused(answer: &str) -> Stop {
    Stop::Final(anyhow::anyhow!("the server answered {answer}"))
}

/// A login page or a firewall's answers with a page, and says that all is well.
fn check_kind(response: &Response<Body>) -> Result<(), Stop> {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.to_ascii_lowercase().starts_with("text/html") {
        true => Err(refused(
            "with a web page instead of the file (from a login page or a firewall?)",
        )),
        false => Ok(()),
    }
}

/// `bytes 10-19/20` or `bytes */20`: the first byte and how many there are in all, each where it is said.
fn content_range(response: &Response<Body>) -> Option<(Option<u64>, Option<u64>)> {
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    parse_range(text)
}

fn parse_range(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let first = match range.trim() {
        "*" => None,
        range => Some(range.split_once('-')?.0.trim().parse().ok()?),
    };
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse().ok()?),
    };
    Some((first, total))
}

#[cfg(test)]
mod tests {
    use super::parse_range;

    #[test]
    fn ranges_are_read_and_nonsense_is_not() {
        assert_eq!(parse_range("bytes 10-19/20"), Some((Some(10), Some(20))));
        assert_eq!(parse_range("bytes 0-1/*"), Some((Some(0), None)));
        assert_eq!(parse_range("bytes */20"), Some((None, Some(20))));
        for nonsense in [
            "",
            "bytes",
            "lines 1-2/3",
            "bytes 1/2",
            "bytes -1-2/3",
            "bytes a-b/c",
        ] {
            assert_eq!(parse_range(nonsense), None, "{nonsense}");
        }
    }
}

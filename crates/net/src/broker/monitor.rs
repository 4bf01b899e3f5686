//! Requests to a server's monitoring.

use super::BrokerError;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long one question to the monitoring may take.
const ASK_TIME: Duration = Duration::from_secs(2);

/// The longest answer of the monitoring that is still read.
const LONGEST_ANSWER: u64 = 16 << 20;

/// What went through a server since it was started, and what it stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counters {
    /// Messages that came in, from clients and links.
    pub in_messages: u64,
    /// Messages that went out.
    pub out_messages: u64,
    /// Bytes of those that came in.
    pub in_bytes: u64,
    /// Bytes of those that went out.
    pub out_bytes: u64,
    /// Links that are up.
    pub links: u64,
    /// Bytes that came in over the links that are up, since each came up.
    pub link_in_bytes: u64,
    /// Bytes that went out over them.
    pub link_out_bytes: u64,
    /// Bytes that JetStream holds on disk.
    pub stored_bytes: u64,
}

impl Counters {
    /// What a server counted before it was started again, and since; what it holds is what it holds now.
    #[must_use]
    pub fn and(&self, since: &Counters) -> Self {
        Self {
            in_messages: self.in_messages + since.in_messages,
            out_messages: self.out_messages + since.out_messages,
            in_bytes: self.in_bytes + since.in_bytes,
            out_bytes: self.out_bytes + since.out_bytes,
            links: since.links,
            link_in_bytes: self.link_in_bytes + since.link_in_bytes,
            link_out_bytes: self.link_out_bytes + since.link_out_bytes,
            stored_bytes: since.stored_bytes,
        }
    }

    /// What a server has counted, by its monitoring.
    ///
    /// # Errors
    /// If nobody answers there, or not as expected.
    pub fn read(monitor: SocketAddr) -> Result<Self, BrokerError> {
        let all = Page::get(monitor, "/varz")?;
        let links = Page::get(monitor, "/leafz")?;
        let streams = Page::get(monitor, "/jsz")?;
        // Without any, there is no list.
        let each: Vec<&Value> = links.json["leafs"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        let over_links = |key| {
            each.iter()
                .map(|link| links.number(link, key))
                .sum::<Result<u64, _>>()
        };
        Ok(Self {
            in_messages: all.number(&all.json, "in_msgs")?,
            out_messages: all.number(&all.json, "out_msgs")?,
            in_bytes: all.number(&all.json, "in_bytes")?,
            out_bytes: all.number(&all.json, "out_bytes")?,
            links: links.number(&links.json, "leafnodes")?,
            link_in_bytes: over_links("in_bytes")?,
            link_out_bytes: over_links("out_bytes")?,
            stored_bytes: streams.number(&streams.json, "storage")?,
        })
    }
}

/// An answer of the monitoring.
struct Page {
    monitor: SocketAddr,
    page: &'static str,
    json: Value,
}

impl Page {
    fn get(monitor: SocketAddr, page: &'static str) -> Result<Self, BrokerError> {
        let mut answer = Self {
            monitor,
            page,
            json: Value::Null,
        };
        let (status, body) = ask(monitor, page).map_err(|e| answer.wrong(e.to_string()))?;
        if status != 200 {
            return Err(answer.wrong(format!("status {status}")));
        }
        answer.json = serde_json::from_str(&body).map_err(|e| answer.wrong(e.to_string()))?;
        Ok(answer)
    }

    fn number(&self, part: &Value, key: &str) -> Result<u64, BrokerError> {
        part[key]
            .as_u64()
            .ok_or_else(|| self.wrong(format!("{key} is not a number")))
    }

    fn wrong(&self, problem: String) -> BrokerError {
        BrokerError::Monitoring {
            monitor: self.monitor,
            page: self.page.to_owned(),
            problem,
        }
    }
}

/// One HTTP/1.0 request, whose response ends with the connection.
///
/// # Errors
/// If nobody answers in time.
pub fn ask(monitor: SocketAddr, page: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&monitor, ASK_TIME)?;
    stream.set_read_timeout(Some(ASK_TIME))?;
    stream.set_write_timeout(Some(ASK_TIME))?;
    write!(stream, "GET {page} HTTP/1.0\r\nHost: {monitor}\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(LONGEST_ANSWER).read_to_string(&mut answer)?;
    let not_http = || io::Error::new(io::ErrorKind::InvalidData, "the response is not HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(not_http)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(not_http)?;
    Ok((status, body.to_owned()))
}

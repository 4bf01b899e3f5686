//! What servers say to each other over a link: read from a recording, or spoken by a test that keeps no rules.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use selvedge_net::credentials::Identity;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Such as `LMSG`.
    pub(crate) verb: String,
    /// The first word behind it: of a message or an interest, its subject.
    pub(crate) subject: String,
    /// The whole line.
    pub(crate) line: String,
    /// A message's, with its headers.
    pub(crate) payload: Vec<u8>,
}

/// All that was said in one direction, and how many bytes at the end are not whole. What cannot be read fails a test:
/// it could hide anything.
pub(crate) fn parse(bytes: &[u8]) -> (Vec<Said>, usize) {
    let (mut all, mut rest) = (Vec::new(), bytes);
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let line = str::from_utf8(&rest[..end]).expect("a line is text");
        let mut words = line.split_whitespace();
        let verb = words.next().expect("a line has a word").to_uppercase();
        let mut after = &rest[end + 2..];
        let payload = match verb.as_str() {
            "LMSG" | "HMSG" => {
                let size = line.rsplit(' ').next().and_then(|size| size.parse().ok());
                let size: usize = size.expect("a message has a size");
                let Some(payload) = after.get(..size + 2) else {
                    break;
                };
                assert_eq!(&payload[size..], b"\r\n", "{line}");
                after = &after[size + 2..];
                payload[..size].to_vec()
            }
            "INFO" | "CONNECT" | "LS+" | "LS-" | "PING" | "PONG" | "+OK" | "-ERR" => Vec::new(),
            other => panic!("{other:?} is not known of a link"),
        };
        all.push(Said {
            verb,
            subject: words.next().unwrap_or_default().to_owned(),
            line: line.to_owned(),
            payload,
        });
        rest = after;
    }
    (all, rest.len())
}

/// A link that a test speaks itself, in plain text: a server would keep to the rights that the hub names.
pub(crate) struct RawLink {
    stream: TcpStream,
    heard: Vec<u8>,
    ended: bool,
}

impl RawLink {
    /// Connects with a key. `is_hub` is what a site says that wants to be the hub of the two.
    pub(crate) fn connect(address: SocketAddr, key: &Identity, is_hub: bool) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let mut link = Self {
            stream,
            heard: Vec::new(),
            ended: false,
        };
        let info = link.until(|said| said.verb == "INFO").expect("a greeting");
        let (_, json) = info.line.split_once(' ').unwrap();
        let info: serde_json::Value = serde_json::from_str(json).unwrap();
        let pair = nkeys::KeyPair::from_seed(&key.seed).unwrap();
        let nonce = info["nonce"].as_str().expect("a nonce");
        let connect = serde_json::json!({
            "version": "2.15.1", "server_id": "HOSTILE", "name": "hostile", "headers": true, "proto": 1,
            "nkey": key.public, "sig": URL_SAFE_NO_PAD.encode(pair.sign(nonce.as_bytes()).unwrap()), "is_hub": is_hub,
        });
        link.say(&format!("CONNECT {connect}\r\nPING\r\n"));
        link
    }

    /// Says anything; a connection that has ended takes it too.
    pub(crate) fn say(&mut self, text: &str) {
        let _ = self.stream.write_all(text.as_bytes());
    }

    /// Reads for a moment.
    fn listen(&mut self) {
        let mut some = [0; 65536];
        match self.stream.read(&mut some) {
            Ok(0) => self.ended = true,
            Ok(count) => self.heard.extend_from_slice(&some[..count]),
            Err(error) => {
                use std::io::ErrorKind::{TimedOut, WouldBlock};
                self.ended |= !matches!(error.kind(), TimedOut | WouldBlock);
            }
        }
    }

    /// All that was heard so far.
    pub(crate) fn heard(&self) -> Vec<Said> {
        parse(&self.heard).0
    }

    /// Reads until something is said; nothing if the connection ends before.
    pub(crate) fn until(&mut self, is: impl Fn(&Said) -> bool) -> Option<Said> {
        let deadline = Instant::now() + crate::LONG;
        loop {
            if let Some(said) = self.heard().into_iter().find(&is) {
                return Some(said);
            }
            if self.ended {
                return None;
            }
            assert!(Instant::now() < deadline, "{:?}", self.heard());
            self.listen();
        }
    }

    /// Whether the other side hangs up.
    pub(crate) fn ends(&mut self) -> bool {
        self.until(|_| false).is_none()
    }
}

#[test]
fn a_link_is_read_to_the_byte() {
    let bytes = b"INFO {}\r\nLS+ up.*.*.cloud\r\nLMSG a 3\r\n\r\nx\r\nHMSG b c 2 4\r\nhhpp\r\nPING\r\nLMSG d 9\r\nx";
    let (said, rest) = parse(bytes);
    let short: Vec<_> = said
        .iter()
        .map(|s| (s.verb.as_str(), s.subject.as_str(), &s.payload[..]))
        .collect();
    let expected: [(&str, &str, &[u8]); 5] = [
        ("INFO", "{}", b""),
        ("LS+", "up.*.*.cloud", b""),
        ("LMSG", "a", b"\r\nx"),
        ("HMSG", "b", b"hhpp"),
        ("PING", "", b""),
    ];
    assert_eq!((&short[..], rest), (&expected[..], 11));
}

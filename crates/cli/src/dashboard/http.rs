//! HTTP as far as a read-only page needs it: one request a connection, without a body.

use httparse::Status;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};

/// A head that is longer is refused.
pub(super) const LONGEST_HEAD: usize = 16 * 1024;

/// More headers are refused.
const MOST_HEADERS: usize = 100;

/// A request for something, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Whether only the head of the answer is wanted.
    pub(super) head_only: bool,
    /// Decoded; begins with a slash.
    pub(super) path: String,
    /// Names and values, decoded.
    pub(super) query: Vec<(String, String)>,
    /// Names in lower case.
    headers: Vec<(String, String)>,
}

/// A request that is refused: its status, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) u16, pub(super) &'static str);

impl Request {
    /// The request at the start of `bytes`; nothing while its head is not whole.
    ///
    /// # Errors
    /// If it can never become one.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, Refusal> {
        let head = &bytes[..bytes.len().min(LONGEST_HEAD)];
        let mut found = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut found);
        match request.parse(head) {
            Ok(Status::Complete(_)) => {}
            Ok(Status::Partial) if bytes.len() < LONGEST_HEAD => return Ok(None),
            Ok(Status::Partial) => return Err(Refusal(431, "the request is longer than 16 kB")),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Refusal(431, "the request has more than 100 headers"));
            }
            Err(_) => {
                let expected =
                    "the request is not HTTP: expected `GET /… HTTP/1.1` and `name: value` lines";
                return Err(Refusal(400, expected));
            }
        }
        let (method, target) = (
            request.method.unwrap_or_default(),
            request.path.unwrap_or_default(),
        );
        if !target.starts_with('/') {
            return Err(Refusal(400, "the address does not begin with /"));
        }
        let head_only = match method {
            "GET" => false,
            "HEAD" => true,
            _ => {
                let only = "only GET and HEAD are supported: nothing can be changed here";
                return Err(Refusal(405, only));
            }
        };
        let mut headers = Vec::new();
        for header in request.headers {
            let value = str::from_utf8(header.value)
                .map_err(|_| Refusal(400, "a header is not UTF-8 text"))?;
            headers.push((header.name.to_ascii_lowercase(), value.to_owned()));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let wrong = Refusal(
            400,
            "the address has a % that is not followed by a byte of UTF-8",
        );
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        });
        Ok(Some(Request {
            head_only,
            path: decode(path).ok_or(wrong)?,
            query: pairs.collect::<Option<_>>().ok_or(wrong)?,
            headers,
        }))
    }

    /// The value of a header, if there is exactly one.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name);
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value)
    }

    /// The first value of a name in the query.
    pub(super) fn asked(&self, name: &str) -> Option<&str> {
        let mut found = self.query.iter().filter(|(n, _)| n == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// Text with its `%41` decoded.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |b: Option<u8>| b.and_then(|b| (b as char).to_digit(16));
        bytes.push(match byte {
            b'%' => (digit(rest.next())? * 16 + digit(rest.next())?) as u8,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// What is answered.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Bytes(Cow<'static, [u8]>),
    /// So many bytes of a file.
    File(File, u64),
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Response {
    pub(super) fn bytes(kind: &'static str, bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        Response {
            status: 200,
            kind,
            headers: Vec::new(),
            body: Body::Bytes(bytes.into()),
        }
    }

    pub(super) fn json(value: &serde_json::Value) -> Self {
        Response::bytes(JSON, value.to_string().into_bytes())
    }

    /// An answer for a program: what is wrong.
    pub(super) fn error(status: u16, why: &str) -> Self {
        let value = serde_json::json!({ "error": why });
        Response {
            status,
            ..Response::json(&value)
        }
    }

    /// An answer for a person: what is wrong.
    pub(super) fn text(status: u16, why: &str) -> Self {
        let bytes = format!("{why}\n").into_bytes();
        Response {
            status,
            ..Response::bytes(TEXT, bytes)
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Bytes of its body.
    pub(super) fn length(&self) -> u64 {
        match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        }
    }

    /// Writes it to somebody who understands HTTP.
    pub(super) fn write(self, head_only: bool, to: &mut impl Write) -> io::Result<()> {
        let length = self.length();
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        let own = self
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        for (name, value) in FOR_ALL.into_iter().chain(own) {
            // A header that would begin another one is left out: names of files are not ours.
            if !value.contains(|c: char| c.is_control()) {
                head += &format!("{name}: {value}\r\n");
            }
        }
        head += &format!(
            "Content-Type: {}\r\nContent-Length: {length}\r\n\r\n",
            self.kind
        );
        to.write_all(head.as_bytes())?;
        match self.body {
            _ if head_only => {}
            Body::Bytes(bytes) => to.write_all(&bytes)?,
            Body::File(file, length) => {
                let sent = io::copy(&mut file.take(length), to)?;
                if sent < length {
                    // It was cut while it was sent: the reader sees that something is missing.
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        to.flush()
    }
}

/// What every answer says: nothing but our own files may be loaded or run, nothing is kept, nobody may frame it.
const FOR_ALL: [(&str, &str); 7] = [
    ("Connection", "close"),
    ("Cache-Control", "no-store"),
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
];

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests;

//! Answers requests: a thread for each, a bounded number of them, a bounded time for each.

use super::access::{Access, Admission};
use super::http::{Refusal, Request, Response};
use super::routes;
use super::shelf::Shelf;
use std::io::{self, BufWriter, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Requests that are answered at a time; more are told to come again.
const MOST: usize = 64;

/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long somebody may read nothing of an answer.
const STALLED: Duration = Duration::from_secs(20);

pub(super) struct Server {
    pub(super) access: Access,
    pub(super) shelf: Shelf,
}

/// One of those that are answered now.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    /// Answers as long as the process lives.
    pub(super) fn serve(self, listener: &TcpListener) -> ! {
        let (server, busy) = (Arc::new(self), Arc::new(AtomicUsize::new(0)));
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // Too many files are open, say: it may get better.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let before = busy.fetch_add(1, Ordering::SeqCst);
            let (server, place) = (Arc::clone(&server), Place(Arc::clone(&busy)));
            if before >= MOST {
                let _ = refuse_all(&stream);
                continue;
            }
            let answer = move || {
                let _place = place;
                // Who has gone away needs no answer.
                let _ = server.answer(&stream);
            };
            // Without a thread the connection is closed, and the page asks again.
            let _ = std::thread::Builder::new().spawn(answer);
        }
    }

    fn answer(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(STALLED))?;
        let (head_only, response) = match receive(stream)? {
            None => return Ok(()),
            Some(Ok(request)) => (request.head_only, self.respond(&request)),
            Some(Err(Refusal(status, why))) => {
                let response = Response::text(status, why);
                match status {
                    405 => (false, response.with("Allow", "GET, HEAD")),
                    _ => (false, response),
                }
            }
        };
        response.write(head_only, &mut BufWriter::with_capacity(64 * 1024, stream))?;
        finish(stream)
    }

    fn respond(&self, request: &Request) -> Response {
        match self.access.admit(request) {
            Admission::Granted => routes::respond(&self.shelf, request),
            Admission::GrantedWithCookie(cookie) => {
                routes::respond(&self.shelf, request).with("Set-Cookie", cookie)
            }
            Admission::Refused(response) => response,
        }
    }
}

/// The request, if one comes before the other end closes.
fn receive(mut stream: &TcpStream) -> io::Result<Option<Result<Request, Refusal>>> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    loop {
        match Request::parse(&bytes) {
            Ok(None) => {}
            Ok(Some(request)) => return Ok(Some(Ok(request))),
            Err(refusal) => return Ok(Some(Err(refusal))),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Some(Err(Refusal(
                408,
                "the request took longer than 5 seconds",
            ))));
        }
        stream.set_read_timeout(Some(left))?;
        let mut some = [0; 4096];
        match stream.read(&mut some) {
            Ok(0) => return Ok(None),
            Ok(read) => bytes.extend_from_slice(&some[..read]),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Closes so that the other end can read everything: what it still sends, a body say, is taken off the line first.
fn finish(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    let (mut some, mut taken) = ([0; 4096], 0);
    while taken < 256 * 1024 {
        match stream.read(&mut some)? {
            0 => break,
            read => taken += read,
        }
    }
    Ok(())
}

fn refuse_all(mut stream: &TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(Duration::from_millis(100)))?;
    let response = Response::text(503, "too many requests at a time: try again in a moment");
    response
        .with("Retry-After", "1")
        .write(false, &mut stream)?;
    stream.shutdown(Shutdown::Write)?;
    // What has arrived is taken off the line, without waiting for more: others are waiting.
    stream.set_nonblocking(true)?;
    stream.read(&mut [0; 4096]).map(|_| ())
}

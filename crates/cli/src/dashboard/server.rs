//! Answers requests: a thread for each, a bounded number of them, a bounded time for each.

use super::access::{Access, Admission};
use super::http::{Refusal, Request, Response};
use super::routes;
use super::shelf::Shelf;
use std::io::{self, BufWriter, Read, Write};
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

/// Bytes of an answer that must be read in a second, over all of it: a gigabyte may take nine hours, and no more.
const SLOWEST: u64 = 32 * 1024;

/// How long somebody may go on sending after the answer.
const FAREWELL: Duration = Duration::from_secs(2);

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
        let timed = Timed::new(stream, time_for(response.length()));
        response.write(head_only, &mut BufWriter::with_capacity(64 * 1024, timed))?;
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
        let Some(left) = left(deadline) else {
            return Ok(Some(Err(Refusal(
                408,
                "the request took longer than 5 seconds",
            ))));
        };
        stream.set_read_timeout(Some(left))?;
        let mut some = [0; 4096];
        match stream.read(&mut some) {
            Ok(0) => return Ok(None),
            Ok(read) => bytes.extend_from_slice(&some[..read]),
            Err(e) if is_late(&e) || e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Whether nothing came in time.
fn is_late(error: &io::Error) -> bool {
    let kind = error.kind();
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The time until then, if there is some.
fn left(deadline: Instant) -> Option<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left)
}

/// How long an answer of so many bytes may take.
fn time_for(length: u64) -> Duration {
    STALLED.saturating_add(Duration::from_secs(length / SLOWEST))
}

/// Writes until a deadline for all of it, and waits for a reader who stands still no longer than [`STALLED`].
struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: Option<Instant>,
}

impl<'a> Timed<'a> {
    fn new(stream: &'a TcpStream, time: Duration) -> Self {
        Timed {
            stream,
            deadline: Instant::now().checked_add(time),
        }
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Without a deadline, that of a length no clock can count to, each wait has an end still.
        let left = self.deadline.map_or(Some(STALLED), left);
        let left = left.ok_or(io::ErrorKind::TimedOut)?;
        self.stream.set_write_timeout(Some(left.min(STALLED)))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Closes so that the other end can read everything: what it still sends, a body say, is taken off the line first.
fn finish(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let deadline = Instant::now() + FAREWELL;
    let (mut some, mut taken) = ([0; 4096], 0);
    while let Some(left) = left(deadline).filter(|_| taken < 256 * 1024) {
        stream.set_read_timeout(Some(left.min(Duration::from_millis(500))))?;
        match stream.read(&mut some) {
            Ok(0) => break,
            Ok(read) => taken += read,
            Err(e) if is_late(&e) => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a connection.
    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, client)
    }

    #[test]
    fn who_sends_on_and_on_is_left_after_a_while() {
        let (server, mut client) = connected();
        let started = Instant::now();
        let sender = std::thread::spawn(move || {
            // A byte before each single wait is over; in the end nobody is there to take it.
            while started.elapsed() < Duration::from_secs(8) && client.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        finish(&server).unwrap();
        let took = started.elapsed();
        drop(server);
        sender.join().unwrap();
        assert!(
            took > Duration::from_millis(400) && took < Duration::from_secs(5),
            "{took:?}"
        );
    }

    #[test]
    fn who_reads_too_slowly_does_not_get_all() {
        let (server, mut client) = connected();
        let started = Instant::now();
        let reader = std::thread::spawn(move || {
            // Never still for long, yet all of it would take a minute.
            let mut some = vec![0; 64 * 1024];
            while started.elapsed() < Duration::from_secs(8) && client.read(&mut some).is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let mut timed = Timed::new(&server, Duration::from_secs(1));
        let piece = vec![0; 64 * 1024];
        let written = (0..1200).try_for_each(|_| timed.write_all(&piece));
        let took = started.elapsed();
        drop(server);
        reader.join().unwrap();
        assert!(is_late(&written.unwrap_err()));
        assert!(took < Duration::from_secs(4), "{took:?}");
    }

    #[test]
    fn a_longer_answer_may_take_longer() {
        assert_eq!(time_for(1000), STALLED);
        assert_eq!(time_for(1 << 30), STALLED + Duration::from_secs(32 * 1024));
        let (server, _client) = connected();
        let endless = Timed::new(&server, Duration::MAX).write(b"x");
        assert_eq!(endless.unwrap(), 1);
    }
}

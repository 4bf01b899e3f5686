//! A web server on this machine that serves files well, or badly in the way that a test asks for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How one request is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Conduct {
    Well,
    /// The connection breaks off after so many bytes of the body.
    Cut(usize),
    /// After so many bytes nothing comes any more.
    Stall(usize),
    /// Not even an answer comes.
    Mute,
    /// Bytes come slowly: so many pieces, with so long a pause before each.
    Drip(usize, Duration),
    /// The whole file, whatever was asked for.
    IgnoreRange,
    /// The whole file too, and cut after so many bytes.
    Anew(usize),
    /// The rest, of a file that has become one byte longer.
    OtherTotal,
    /// The length is not told, and the end is where the server says so.
    Chunked,
    /// Nothing but a status.
    Status(u16),
    /// A page that says that all is well.
    WebPage,
    /// The same file is at /elsewhere.
    Redirect,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// The first byte, if not all were asked for.
    pub(crate) from: Option<usize>,
}

#[derive(Default)]
struct State {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    conduct: Mutex<VecDeque<Conduct>>,
    requests: Mutex<Vec<Request>>,
    closed: AtomicBool,
}

/// A server that listens as long as it is held.
pub(crate) struct Server {
    port: u16,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.closed.load(Ordering::SeqCst) {
                    return;
                }
                let (stream, state) = (stream.unwrap(), shared.clone());
                // A client that has gone away is what many tests are about.
                std::thread::spawn(move || answer(stream, &state).ok());
            }
        });
        Server {
            port,
            state,
            thread: Some(thread),
        }
    }

    /// The address of a file.
    pub(crate) fn address(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    pub(crate) fn serve(&self, name: &str, bytes: &[u8]) {
        let mut files = self.state.files.lock().unwrap();
        files.insert(format!("/{name}"), bytes.to_vec());
    }

    /// How the next requests are answered, one each; those after them are answered well.
    pub(crate) fn next(&self, conduct: &[Conduct]) {
        self.state.conduct.lock().unwrap().extend(conduct);
    }

    /// What was asked for since the last call.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.state.requests.lock().unwrap())
    }

    /// Closes the door: nobody can connect any more.
    pub(crate) fn close(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // The thread waits for a connection; this one ends it.
            let _ = TcpStream::connect(("127.0.0.1", self.port));
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

fn read_request(stream: &TcpStream) -> std::io::Result<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut from = None;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = Some(range.trim_end_matches('-').parse().unwrap());
        }
    }
    Ok(Request { path, from })
}

fn head(stream: &mut TcpStream, status: u16, lines: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status} Whatever\r\nConnection: close\r\n{lines}\r\n");
    stream.write_all(head.as_bytes())
}

fn answer(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    let request = read_request(&stream)?;
    state.requests.lock().unwrap().push(request.clone());
    let conduct = state.conduct.lock().unwrap().pop_front();
    let conduct = conduct.unwrap_or(Conduct::Well);
    let path = request.path.replace("/elsewhere", "");
    let file = state.files.lock().unwrap().get(&path).cloned();
    match conduct {
        Conduct::Mute => {
            wait(state);
            return Ok(());
        }
        Conduct::Status(status) => return head(&mut stream, status, "Content-Length: 0\r\n"),
        Conduct::WebPage => {
            let lines = "Content-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\n";
            head(&mut stream, 200, lines)?;
            return stream.write_all(b"login");
        }
        Conduct::Redirect => {
            let lines = format!("Location: /elsewhere{path}\r\nContent-Length: 0\r\n");
            return head(&mut stream, 302, &lines);
        }
        _ => {}
    }
    match file {
        Some(file) => send(stream, state, conduct, request.from, &file),
        None => head(&mut stream, 404, "Content-Length: 0\r\n"),
    }
}

/// Until the server is closed.
fn wait(state: &State) {
    while !state.closed.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(
    mut stream: TcpStream,
    state: &State,
    conduct: Conduct,
    from: Option<usize>,
    file: &[u8],
) -> std::io::Result<()> {
    let from = from.filter(|_| !matches!(conduct, Conduct::IgnoreRange | Conduct::Anew(_)));
    let total = file.len() + usize::from(matches!(conduct, Conduct::OtherTotal));
    if from.is_some_and(|from| from >= file.len()) {
        let lines = format!("Content-Range: bytes */{total}\r\nContent-Length: 0\r\n");
        return head(&mut stream, 416, &lines);
    }
    let body = &file[from.unwrap_or(0)..];
    let length = match conduct {
        Conduct::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    match from {
        None => head(&mut stream, 200, &length)?,
        Some(from) => {
            let range = format!("Content-Range: bytes {from}-{}/{total}\r\n", file.len() - 1);
            head(&mut stream, 206, &(length + &range))?;
        }
    }
    match conduct {
        Conduct::Cut(count) | Conduct::Anew(count) => stream.write_all(&body[..count])?,
        Conduct::Stall(count) => {
            stream.write_all(&body[..count])?;
            wait(state);
        }
        Conduct::Drip(pieces, pause) => {
            for piece in body.chunks(body.len().div_ceil(pieces)) {
                std::thread::sleep(pause);
                stream.write_all(piece)?;
            }
        }
        Conduct::Chunked => {
            for piece in body.chunks(10_000) {
                write!(stream, "{:x}\r\n", piece.len())?;
                stream.write_all(piece)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")?;
        }
        _ => stream.write_all(body)?,
    }
    stream.shutdown(Shutdown::Both)
}

//! `/metrics`, `/healthz` and `/status` of a party, over plain HTTP for its own machine.

use crate::drive::Snapshot;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A request that is longer is none.
const LONGEST: usize = 8 * 1024;

/// More headers than this are none that a browser or a monitor sends.
const MOST_HEADERS: usize = 100;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers until the runtime ends.
pub(crate) async fn serve(
    address: SocketAddr,
    snapshot: Arc<Mutex<Snapshot>>,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    tokio::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                let snapshot = Arc::clone(&snapshot);
                tokio::spawn(async move { timeout(PATIENCE, answer(stream, &snapshot)).await });
            } else {
                // Too many files are open, say: it may get better.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    Ok(())
}

async fn answer(mut stream: TcpStream, snapshot: &Mutex<Snapshot>) -> std::io::Result<()> {
    let mut request = Vec::new();
    let path = loop {
        let mut some = [0; 1024];
        let read = stream.read(&mut some).await?;
        request.extend_from_slice(&some[..read]);
        if read == 0 || request.len() > LONGEST {
            return Ok(());
        }
        if let Some(path) = path(&request) {
            break path;
        }
    };
    let (status, kind, body) = {
        let snapshot = snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        respond(&path, &snapshot)
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// What is asked for, once the request is whole; nothing that exists, if it is malformed or no GET.
fn path(request: &[u8]) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(_)) if parsed.method == Some("GET") => {
            let path = parsed.path.unwrap_or_default();
            Some(path.split('?').next().unwrap_or_default().to_owned())
        }
        _ => Some(String::new()),
    }
}

const UNHEALTHY: &str = "503 Service Unavailable";

fn respond(path: &str, snapshot: &Snapshot) -> (&'static str, &'static str, String) {
    let text = "text/plain; charset=utf-8";
    match path {
        "/metrics" => {
            let (t, connected) = (snapshot.doing.t, snapshot.connected);
            let body = snapshot.counters.to_prometheus(t, connected);
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", body)
        }
        "/healthz" => match (&snapshot.trouble, snapshot.connected) {
            (None, true) => ("200 OK", text, "ok\n".into()),
            (Some(trouble), _) => (UNHEALTHY, text, format!("{trouble}\n")),
            (None, false) => (UNHEALTHY, text, "the server cannot be reached\n".into()),
        },
        "/status" => match serde_json::to_string(snapshot) {
            Ok(body) => ("200 OK", "application/json", body),
            Err(error) => ("500 Internal Server Error", text, error.to_string()),
        },
        _ => (
            "404 Not Found",
            text,
            "there are /metrics, /healthz and /status\n".into(),
        ),
    }
}

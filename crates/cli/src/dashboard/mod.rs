//! `selvedge dashboard`: a page that follows runs, finished or not, by reading their directories.
//!
//! ```text
//! browser ──► server ──► access (host, token) ──► routes ──┬──► assets: the page itself
//!                                                          ├──► shelf: which runs there are ◄── find, summary ◄── locks
//!                                                          └──► details ◄── curves, schedule, participation ◄── absent, trace
//!                                                                              ▲
//!                                                                follow: what is new in a file
//! ```
//!
//! It writes nothing, locks nothing and is asked by nobody: a run does not notice it. The page asks every second what
//! has changed, and then for what it shows of that; so it goes on by itself when a server comes back, or a laptop wakes
//! up.

mod absent;
mod access;
mod assets;
mod curves;
mod details;
mod find;
mod http;
mod locks;
mod participation;
mod routes;
mod schedule;
mod server;
mod shelf;
mod summary;
#[cfg(test)]
mod tests;

use access::Access;
use anyhow::{Context, Result, anyhow};
use server::Server;
use shelf::Shelf;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

/// A dashboard that has its port.
pub(crate) struct Dashboard {
    listener: TcpListener,
    address: SocketAddr,
    server: Server,
}

impl Dashboard {
    /// Takes the port. `token` is what `--token` says.
    pub(crate) fn new(
        runs: Vec<PathBuf>,
        listen: &str,
        token: Option<Option<&str>>,
    ) -> Result<Self> {
        let wanted = parse_address(listen)?;
        let listener = TcpListener::bind(wanted).map_err(|e| refused(wanted, e))?;
        let address = listener.local_addr().context("cannot listen")?;
        let server = Server {
            access: Access::new(address, token)?,
            shelf: Shelf::new(runs),
        };
        Ok(Dashboard {
            listener,
            address,
            server,
        })
    }

    /// Where a browser on this machine finds it.
    pub(crate) fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        match &self.server.access.token {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.server.access.token.as_deref()
    }

    /// Answers as long as the process lives.
    pub(crate) fn serve(self) -> ! {
        self.server.serve(&self.listener)
    }
}

/// The port, unless somebody names another.
const PORT: u16 = 8080;

/// `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, or an address or a port alone.
fn parse_address(text: &str) -> Result<SocketAddr> {
    let here = Ipv4Addr::LOCALHOST;
    let named = text.replacen("localhost", "127.0.0.1", 1);
    let alone = || named.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    let port = || {
        named
            .parse::<u16>()
            .map(|port| SocketAddr::from((here, port)))
    };
    let found = named
        .parse()
        .ok()
        .or_else(|| alone().ok())
        .or_else(|| port().ok());
    found.ok_or_else(|| {
        anyhow!(
            "--listen {text}: expected an address of this machine with a port, like 127.0.0.1:8080; port 0 picks a free one"
        )
    })
}

fn refused(address: SocketAddr, error: io::Error) -> anyhow::Error {
    let (ip, port) = (address.ip(), address.port());
    let next = SocketAddr::new(ip, if port < u16::MAX { port + 1 } else { PORT });
    match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "port {port} of {ip} is in use, perhaps by another dashboard: stop that, or choose another port, like --listen {next}, or port 0 for any free one"
        ),
        io::ErrorKind::PermissionDenied => anyhow!(
            "port {port} is reserved for system services: choose one above 1023, like --listen {}",
            SocketAddr::new(ip, PORT)
        ),
        io::ErrorKind::AddrNotAvailable => anyhow!(
            "{ip} is not an address of this machine: expected one of its addresses, 127.0.0.1 for this machine only, or 0.0.0.0 for all of its addresses"
        ),
        _ => anyhow!(error).context(format!("cannot listen on {address}")),
    }
}

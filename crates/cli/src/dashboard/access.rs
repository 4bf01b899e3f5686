//! Who may look.
//!
//! On loopback whoever is on this machine may, if the request names this machine: a page of another host that was made
//! to point here (DNS rebinding) names that host. Elsewhere, or where a token was asked for, every request needs it: as
//! `Authorization: Bearer TOKEN`, as `?token=TOKEN`, or as the cookie that the latter sets.

use super::http::{Request, Response};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// A token for others than this machine is at least so long.
const SHORTEST: usize = 8;

/// How long a wrong token takes, so that nobody tries many.
const WRONG: Duration = Duration::from_millis(200);

pub(super) struct Access {
    pub(super) token: Option<String>,
    is_loopback: bool,
    cookie: String,
}

/// What follows from a request.
pub(super) enum Admission {
    Granted,
    /// By `?token=`: from now on a cookie does.
    GrantedWithCookie(String),
    Refused(Response),
}

impl Access {
    /// For who listens there. `wanted` is what `--token` says.
    pub(super) fn new(address: SocketAddr, wanted: Option<Option<&str>>) -> Result<Self> {
        let is_loopback = address.ip().to_canonical().is_loopback();
        let token = match wanted {
            Some(Some(token)) => {
                check(token, is_loopback)?;
                Some(token.to_owned())
            }
            None if is_loopback => None,
            None | Some(None) => Some(random_token()?),
        };
        Ok(Access {
            token,
            is_loopback,
            // Cookies know hosts and no ports; two dashboards have two names.
            cookie: format!("selvedge-{}", address.port()),
        })
    }

    pub(super) fn admit(&self, request: &Request) -> Admission {
        if self.is_loopback && !request.header("host").is_some_and(names_this_machine) {
            return Admission::Refused(Response::text(
                403,
                "the request is for another host: open the dashboard at http://127.0.0.1 or http://localhost with its port",
            ));
        }
        let Some(token) = &self.token else {
            return Admission::Granted;
        };
        if let Some(given) = request.asked("token")
            && is_same(given, token)
        {
            let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", self.cookie);
            return Admission::GrantedWithCookie(cookie);
        }
        let bearer = request.header("authorization");
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
        let cookies = request.header("cookie").unwrap_or_default();
        let mut cookies = cookies.split(';').filter_map(|c| c.trim().split_once('='));
        let cookie = cookies.find(|(name, _)| *name == self.cookie);
        let given = bearer.or(cookie.map(|(_, value)| value));
        if given.is_some_and(|given| is_same(given, token)) {
            return Admission::Granted;
        }
        if given.or(request.asked("token")).is_some() {
            std::thread::sleep(WRONG);
        }
        let refused = Response::text(
            401,
            "this dashboard needs its token: open the address that `selvedge dashboard` printed, or send `Authorization: Bearer TOKEN`",
        );
        Admission::Refused(refused.with("WWW-Authenticate", "Bearer"))
    }
}

fn check(token: &str, is_loopback: bool) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    if token.is_empty() || !token.chars().all(fits) {
        bail!(
            "--token {token}: expected letters, digits, `-`, `_`, `.` and `~` only, since it is part of an address; without a value a random one is generated"
        );
    }
    if token.len() < SHORTEST && !is_loopback {
        bail!(
            "--token: {} characters are easily guessed: expected {SHORTEST} or more where others have access; without a value a random one is generated",
            token.len()
        );
    }
    Ok(())
}

fn random_token() -> Result<String> {
    let bytes = selvedge_net::credentials::random::<16>().context("cannot generate a token")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a `Host` header is of this machine itself; the port may be another, by which a tunnel is reached.
fn names_this_machine(host: &str) -> bool {
    let address = host.parse::<SocketAddr>().map(|a| a.ip());
    let address = address.or_else(|_| host.trim_matches(['[', ']']).parse::<IpAddr>());
    if let Ok(address) = address {
        return address.to_canonical().is_loopback();
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost")
}

/// Whether two tokens are the same, in a time that does not tell how much of them is.
fn is_same(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|token| Sha256::digest(token.as_bytes()));
    one.ct_eq(&other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(access: &Access, target: &str, headers: &str) -> u16 {
        let text = format!("GET {target} HTTP/1.1\r\n{headers}\r\n");
        let request = Request::parse(text.as_bytes()).unwrap().unwrap();
        match access.admit(&request) {
            Admission::Granted => 200,
            Admission::GrantedWithCookie(cookie) => {
                assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
                201
            }
            Admission::Refused(response) => response.status,
        }
    }

    #[test]
    fn on_loopback_the_host_must_be_this_machine() {
        let access = Access::new("127.0.0.1:8080".parse().unwrap(), None).unwrap();
        for host in [
            "127.0.0.1:8080",
            "localhost:8080",
            "LOCALHOST",
            "[::1]:9",
            "[::1]",
            "127.0.0.2",
        ] {
            assert_eq!(
                ask(&access, "/", &format!("Host: {host}\r\n")),
                200,
                "{host}"
            );
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "10.0.0.1:8080",
            "localhost.evil:80",
            "",
        ] {
            assert_eq!(
                ask(&access, "/", &format!("Host: {host}\r\n")),
                403,
                "{host}"
            );
        }
        assert_eq!(ask(&access, "/", ""), 403);
        assert_eq!(
            ask(&access, "/", "Host: localhost\r\nHost: localhost\r\n"),
            403
        );
    }

    #[test]
    fn elsewhere_every_request_needs_the_token() {
        let address = "0.0.0.0:8080".parse().unwrap();
        let access = Access::new(address, Some(Some("correct-horse"))).unwrap();
        assert_eq!(ask(&access, "/", "Host: anything\r\n"), 401);
        assert_eq!(ask(&access, "/?token=correct-horse", ""), 201);
        assert_eq!(ask(&access, "/?token=correct-hors", ""), 401);
        assert_eq!(ask(&access, "/?token=", ""), 401);
        assert_eq!(
            ask(&access, "/", "Authorization: Bearer correct-horse\r\n"),
            200
        );
        assert_eq!(ask(&access, "/", "Authorization: Bearer wrong\r\n"), 401);
        assert_eq!(
            ask(&access, "/", "Cookie: a=b; selvedge-8080=correct-horse\r\n"),
            200
        );
        assert_eq!(ask(&access, "/", "Cookie: selvedge-8080=wrong\r\n"), 401);
        assert_eq!(
            ask(&access, "/", "Cookie: selvedge-8081=correct-horse\r\n"),
            401
        );
    }

    #[test]
    fn tokens_are_made_or_checked() {
        let all = "[::]:80".parse().unwrap();
        let here = "[::1]:80".parse().unwrap();
        let made = |address, wanted| Access::new(address, wanted).unwrap().token;
        assert_eq!(made(here, None), None);
        let [one, other] = [made(all, None).unwrap(), made(here, Some(None)).unwrap()];
        assert!(one.len() == 32 && one != other);
        assert!(Access::new(all, Some(Some("short"))).is_err());
        assert!(Access::new(here, Some(Some("short"))).is_ok());
        assert!(Access::new(here, Some(Some("runs/esr"))).is_err());
        assert!(Access::new(here, Some(Some(""))).is_err());
    }
}

//! Who may look, what is refused, and how it ends.

use super::{Served, place};
use crate::common::process::Live;
use crate::common::selvedge;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn on_loopback_only_this_machine_is_answered() {
    let place = place("dashboard-host", &[("one", &[])]);
    let served = Served::start(&place, &["runs"]);
    assert_eq!(served.url(), format!("http://{}/", served.address));
    let page = served.get("/");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("<title>Selvedge dashboard</title>"));
    let policy = &page.headers["content-security-policy"];
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    for path in ["/", "/api/runs", "/main.js", "/nothing"] {
        let other = served.request(&format!("GET {path} HTTP/1.1\r\nHost: evil.example"));
        assert_eq!(other.status, 403, "{path}");
        assert!(!other.text().contains("one"), "{}", other.text());
    }
    assert_eq!(served.request("GET / HTTP/1.1").status, 403);
}

#[test]
fn elsewhere_nothing_is_answered_without_the_token() {
    let place = place("dashboard-token", &[("one", &[])]);
    let served = Served::start(&place, &["--listen", "0.0.0.0:0"]);
    let token = served.said["token"].as_str().unwrap();
    assert!(token.len() == 32 && served.url().ends_with(&format!("/?token={token}")));
    for path in [
        "/",
        "/api/runs",
        "/main.js",
        "/style.css",
        "/?token=wrong",
        "/nothing",
    ] {
        let answer = served.get(path);
        assert_eq!(answer.status, 401, "{path}");
        assert!(
            answer.text().contains("needs its token"),
            "{}",
            answer.text()
        );
    }
    let page = served.get(&format!("/?token={token}"));
    assert_eq!(page.status, 200);
    let cookie = &page.headers["set-cookie"];
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    for header in [
        format!("Cookie: {cookie}"),
        format!("Authorization: Bearer {token}"),
    ] {
        let list = served.request(&format!("GET /api/runs HTTP/1.1\r\nHost: any\r\n{header}"));
        assert_eq!(list.status, 200, "{header}");
    }
    let (most, last) = cookie.split_at(cookie.len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    let wrong = served.request(&format!("GET / HTTP/1.1\r\nCookie: {most}{other}"));
    assert_eq!(wrong.status, 401);
    // A token of one's own, on loopback too.
    let served = Served::start(&place, &["--token", "my-own.token"]);
    assert_eq!(served.get("/").status, 401);
    assert_eq!(served.get("/?token=my-own.token").status, 200);
}

#[test]
fn nothing_can_be_changed_and_nonsense_is_refused() {
    let place = place("dashboard-nonsense", &[("one", &[])]);
    let before = crate::common::snapshot(place.path());
    let served = Served::start(&place, &[]);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let answer = served.request(&format!(
            "{method} /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0"
        ));
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.headers["allow"], "GET, HEAD");
    }
    let head = served.request("HEAD / HTTP/1.1\r\nHost: localhost");
    assert!(head.status == 200 && head.body.is_empty() && head.headers["content-length"] != "0");
    for (bytes, status) in [
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n".to_vec(), 400),
        (b"GET\r\n\r\n".to_vec(), 400),
        (
            [
                b"GET /".to_vec(),
                vec![b'a'; 40_000],
                b" HTTP/1.1\r\n\r\n".to_vec(),
            ]
            .concat(),
            431,
        ),
    ] {
        assert_eq!(super::Answer::parse(&served.send(&bytes)).status, status);
    }
    served.get(&format!("/api/run/{}", served.id("one")));
    crate::common::unchanged(
        &before,
        &crate::common::snapshot(place.path()),
        "a dashboard",
    );
}

#[test]
fn those_who_say_nothing_do_not_keep_others_waiting_for_long() {
    let place = place("dashboard-silent", &[("one", &[])]);
    let served = Served::start(&place, &[]);
    let mut silent: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(served.address).unwrap())
        .collect();
    silent[0].write_all(b"GET / HT").unwrap();
    let started = Instant::now();
    served.wait_until("an answer", |served| is_answered(served, "/api/runs"));
    assert!(
        started.elapsed() < Duration::from_secs(12),
        "{:?}",
        started.elapsed()
    );
    let mut told = String::new();
    silent[0].read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 408 "), "{told}");
}

#[test]
fn those_who_never_stop_sending_do_not_keep_others_waiting_for_long() {
    let place = place("dashboard-trickle", &[("one", &[])]);
    let served = Served::start(&place, &["--token", "my-own.token"]);
    let mut senders: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(served.address).unwrap())
        .collect();
    let ended = AtomicBool::new(false);
    let took = std::thread::scope(|scope| {
        // Refused for want of the token, they send a byte now and then.
        for sender in &mut senders {
            let _ = sender.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        }
        scope.spawn(|| {
            let long = Instant::now() + Duration::from_secs(40);
            while !ended.load(Ordering::Relaxed) && Instant::now() < long {
                senders.retain_mut(|sender| sender.write_all(b"x").is_ok());
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        std::thread::sleep(Duration::from_millis(500));
        let started = Instant::now();
        while !is_answered(&served, "/api/runs?token=my-own.token")
            && started.elapsed() < Duration::from_secs(15)
        {
            std::thread::sleep(Duration::from_millis(50));
        }
        ended.store(true, Ordering::Relaxed);
        started.elapsed()
    });
    assert!(took < Duration::from_secs(8), "{took:?}");
}

/// Whether there is a place for one more.
fn is_answered(served: &Served, path: &str) -> bool {
    let mut stream = TcpStream::connect(served.address).unwrap();
    let mut answer = Vec::new();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // Whoever is told to come again may be cut off while it still asks.
    let asked = stream.write_all(request.as_bytes());
    let told = asked.and_then(|()| stream.read_to_end(&mut answer));
    told.is_ok() && answer.starts_with(b"HTTP/1.1 200 ")
}

#[test]
fn what_cannot_be_listened_at_or_read_is_refused() {
    let place = place("dashboard-refused", &[("one", &[])]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = format!(
        "port {} of 127.0.0.1 is in use",
        taken.local_addr().unwrap().port()
    );
    place.refuses(
        &["dashboard", "--listen", &address],
        &[&port, "--listen 127.0.0.1:"],
    );
    place.refuses(
        &["dashboard", "--listen", "nowhere"],
        &["--listen nowhere: expected an address"],
    );
    place.refuses(
        &["dashboard", "--listen", "192.0.2.1:0"],
        &["192.0.2.1 is not an address of this machine"],
    );
    place.refuses(
        &["dashboard", "--listen", "0.0.0.0:0", "--token=short"],
        &["5 characters are easily guessed: expected 8 or more"],
    );
    place.refuses(
        &["dashboard", "--token", "runs/one"],
        &["--token runs/one: expected letters"],
    );
    place.refuses(&["dashboard", "none"], &["none: there is no such folder"]);
    place.refuses(
        &["dashboard", "small.toml"],
        &["small.toml is not a folder"],
    );
}

#[test]
fn ctrl_c_ends_it_at_once_and_its_port_is_free_again() {
    let place = place("dashboard-end", &[]);
    for signal in ["INT", "TERM"] {
        let mut served = Served::start(&place, &[]);
        let _idle = TcpStream::connect(served.address).unwrap();
        // A folder that is not there yet is waited for.
        assert!(
            served.json("/api/runs")["notes"][0]
                .as_str()
                .unwrap()
                .contains("runs does not exist")
        );
        let started = Instant::now();
        served.signal(signal);
        let status = served.child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{signal}");
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "{:?}",
            started.elapsed()
        );
        let again = Served::start(&place, &["--listen", &served.address.to_string()]);
        assert_eq!(again.address, served.address);
    }
    // For people it says where it is.
    let mut command = selvedge(place.path());
    let mut live = Live::start(command.args(["dashboard", "--listen", "127.0.0.1:0"]));
    std::thread::sleep(Duration::from_millis(700));
    live.signal("INT");
    let ran = live.finish().ended(130);
    assert!(
        ran.stdout.starts_with("Dashboard  http://127.0.0.1:"),
        "{}",
        ran.stdout
    );
}

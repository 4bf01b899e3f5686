use super::*;
use selvedge_nn::random::Key;

fn parse(text: &str) -> Result<Option<Request>, Refusal> {
    Request::parse(text.as_bytes())
}

#[test]
fn a_request_is_understood() {
    let text = "GET /api/run/a%20b?t=12&x=%2F&y HTTP/1.1\r\nHost: localhost:8080\r\nCookie:  a=b; c=d \r\n\r\n";
    for end in 0..text.len() {
        assert_eq!(parse(&text[..end]), Ok(None), "whole after {end} bytes");
    }
    let request = parse(text).unwrap().unwrap();
    assert_eq!(request.path, "/api/run/a b");
    assert!(!request.head_only);
    assert_eq!(request.asked("t"), Some("12"));
    assert_eq!(request.asked("x"), Some("/"));
    assert_eq!(request.asked("y"), Some(""));
    assert_eq!(request.asked("z"), None);
    assert_eq!(request.header("host"), Some("localhost:8080"));
    assert_eq!(request.header("cookie"), Some("a=b; c=d"));
    let head = parse("HEAD / HTTP/1.0\n\n").unwrap().unwrap();
    assert!(head.head_only);
    let twice = parse("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").unwrap();
    assert_eq!(
        twice.unwrap().header("host"),
        None,
        "which of them is meant?"
    );
}

#[test]
fn what_is_no_request_is_refused_with_a_reason() {
    for (text, status) in [
        ("POST / HTTP/1.1\r\n\r\n", 405),
        ("DELETE /api/runs HTTP/1.1\r\n\r\n", 405),
        ("GET http://elsewhere/ HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/2\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\n\r\n", 400),
        ("GET /\r\n\r\n", 400),
        ("GET /%2 HTTP/1.1\r\n\r\n", 400),
        ("GET /%ff HTTP/1.1\r\n\r\n", 400),
        ("GET /?a=%zz HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n folded: line\r\n\r\n", 400),
    ] {
        assert_eq!(parse(text).unwrap_err().0, status, "{text:?}");
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(LONGEST_HEAD));
    assert_eq!(parse(&long).unwrap_err().0, 431);
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    assert_eq!(parse(&many).unwrap_err().0, 431);
}

/// Random bytes, and requests with random bytes in them: an answer or a refusal, and never a panic; more bytes never
/// change what was understood.
#[test]
fn no_bytes_make_the_parser_fail() {
    const WORDS: [&[u8]; 14] = [
        b"GET ",
        b"HEAD ",
        b"POST ",
        b"/",
        b"?",
        b"=",
        b"&",
        b"%",
        b"%41",
        b" HTTP/1.1\r\n",
        b"Host: a\r\n",
        b"\r\n",
        b"\n",
        b"\xff",
    ];
    let mut random = Key::new(8080).stream();
    for _ in 0..60_000 {
        let mut bytes = Vec::new();
        for _ in 0..random.below(24) {
            match random.below(4) {
                0 => bytes.push(random.below(256) as u8),
                _ => bytes.extend(WORDS[random.below(WORDS.len() as u64) as usize]),
            }
        }
        let parsed = Request::parse(&bytes);
        if let Ok(Some(request)) = &parsed {
            assert!(request.path.starts_with('/'), "{bytes:?}");
        }
        if parsed != Ok(None) {
            bytes.extend(b"more");
            assert_eq!(Request::parse(&bytes), parsed, "{bytes:?}");
        }
    }
}

#[test]
fn an_answer_is_whole_and_no_value_begins_another_header() {
    let mut written = Vec::new();
    let answer = Response::error(404, "gone").with("X-Name", "a\r\nSet-Cookie: b");
    answer.write(false, &mut written).unwrap();
    let text = String::from_utf8(written).unwrap();
    assert!(text.starts_with("HTTP/1.1 404 Not Found\r\n"), "{text}");
    assert!(
        text.ends_with("Content-Length: 16\r\n\r\n{\"error\":\"gone\"}"),
        "{text}"
    );
    assert!(!text.contains("Set-Cookie"), "{text}");
    assert!(text.contains("default-src 'none'"), "{text}");
    let mut written = Vec::new();
    Response::text(200, "body")
        .write(true, &mut written)
        .unwrap();
    assert!(written.ends_with(b"Content-Length: 5\r\n\r\n"));
}

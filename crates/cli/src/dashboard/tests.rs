//! Folders for tests, and tests of what is above all parts.

use super::*;

/// The folders of the library's own tests.
#[path = "../../../run/src/tests.rs"]
mod folder;

pub(super) use folder::Folder;

#[test]
fn addresses_are_read_as_people_write_them() {
    for (text, address) in [
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("[::1]:0", "[::1]:0"),
        ("localhost:9000", "127.0.0.1:9000"),
        ("8081", "127.0.0.1:8081"),
        ("localhost", "127.0.0.1:8080"),
        ("::1", "[::1]:8080"),
        ("0.0.0.0:80", "0.0.0.0:80"),
    ] {
        assert_eq!(parse_address(text).unwrap().to_string(), address);
    }
    for text in ["", "127.0.0.1:99999", "example.org:80", ":", "localhosts"] {
        let error = parse_address(text).unwrap_err().to_string();
        assert!(error.contains("expected an address"), "{error}");
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_what_to_do() {
    let first = Dashboard::new(Vec::new(), "127.0.0.1:0", None).unwrap();
    let port = first.address().port();
    assert_eq!(first.url(), format!("http://127.0.0.1:{port}/"));
    let second = Dashboard::new(Vec::new(), &format!("127.0.0.1:{port}"), None);
    let error = second.err().unwrap().to_string();
    assert!(
        error.contains(&format!("port {port} of 127.0.0.1 is in use")),
        "{error}"
    );
    assert!(error.contains("--listen"), "{error}");
}

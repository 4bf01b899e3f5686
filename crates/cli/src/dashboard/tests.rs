//! Folders for tests, and tests of what is above all parts.

use super::*;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// A new folder, removed again at the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("selvedge-dashboard-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

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

//! `selvedge data fetch` against a server of our own: whatever happens on the way, a file has its name only if it is
//! whole and right, and what came of it is not asked for again.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

#[path = "fetch/broken.rs"]
mod broken;
#[path = "fetch/catalogues.rs"]
mod catalogues;
#[path = "fetch/server.rs"]
mod server;
#[path = "fetch/whole.rs"]
mod whole;

use common::process::{Live, finish};
use common::{Place, Ran, selvedge};
use serde_json::{Value, json};
use server::Server;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Bytes without a pattern.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    let digits = bytes.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes))
}

/// A folder, a server with one file on it, and a catalogue that knows of it.
struct Scene {
    place: Place,
    server: Server,
    bytes: Vec<u8>,
}

/// The set and the file of most tests.
const FILE: &str = "scans.npz";

impl Scene {
    /// With everything a catalogue can say about the file.
    fn new(name: &str) -> Self {
        let scene = Scene::bare(name);
        let file = json!({ "bytes": scene.bytes.len(), "sha256": sha256(&scene.bytes) });
        scene.describe(file);
        scene
    }

    /// Without a catalogue.
    fn bare(name: &str) -> Self {
        let (server, bytes) = (Server::start(), noise(300_000));
        server.serve(FILE, &bytes);
        Scene {
            place: Place::new(name),
            server,
            bytes,
        }
    }

    /// Writes a catalogue with the one file and what is known of it.
    fn describe(&self, mut file: Value) {
        file["name"] = FILE.into();
        file["address"] = self.server.address(FILE).into();
        self.catalogue(&json!([file]));
    }

    fn catalogue(&self, files: &Value) {
        let catalogue = json!({ "sets": [{
            "name": "scans",
            "title": "scans of nobody",
            "page": "https://hospital.example/scans",
            "licence": "CC0 1.0",
            "folder": "scans",
            "files": files,
        }] });
        self.place.write("sets.json", catalogue.to_string());
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = selvedge(self.place.path());
        for name in ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command
            .args(["data", "fetch", "scans", "--catalogue", "sets.json"])
            .args(more);
        command
    }

    #[track_caller]
    fn fetch(&self, more: &[&str]) -> Ran {
        finish(&mut self.command(more))
    }

    fn start(&self, more: &[&str]) -> Live {
        Live::start(&mut self.command(more))
    }

    fn target(&self) -> PathBuf {
        self.place.join("data/scans").join(FILE)
    }

    fn part(&self) -> PathBuf {
        self.target().with_extension("npz.part")
    }

    /// An earlier call has left these bytes.
    fn has_part(&self, bytes: impl AsRef<[u8]>) {
        self.place.write(&format!("data/scans/{FILE}.part"), bytes);
    }

    fn part_length(&self) -> u64 {
        fs::metadata(self.part()).map_or(0, |part| part.len())
    }

    /// The first bytes that were asked for, request by request.
    fn asked_from(&self) -> Vec<Option<usize>> {
        self.server
            .requests()
            .iter()
            .map(|request| request.from)
            .collect()
    }

    /// The file is there, whole and right, and nothing else.
    #[track_caller]
    fn is_whole(&self) {
        assert!(
            fs::read(self.target()).unwrap() == self.bytes,
            "other bytes"
        );
        assert!(!self.part().exists(), "the part is still there");
    }

    /// It is fetched, whole, with these requests.
    #[track_caller]
    fn fetches(&self, more: &[&str], asked_from: &[Option<usize>]) -> Ran {
        let ran = self.fetch(more).succeeded();
        self.is_whole();
        assert_eq!(self.asked_from(), asked_from);
        ran
    }

    /// Nothing has the file's name.
    #[track_caller]
    fn is_not_there(&self) {
        assert!(
            !self.target().exists(),
            "a file that is not whole has its name"
        );
    }

    /// And nothing is kept of it.
    #[track_caller]
    fn left_nothing(&self) {
        assert!(
            !self.place.join("data/scans").exists(),
            "something was left behind"
        );
    }
}

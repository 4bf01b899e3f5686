//! Downloads that come to their end.

use crate::common::says;
use crate::server::Conduct;
use crate::{FILE, Scene, hex, sha256};
use md5::{Digest, Md5};
use serde_json::json;
use std::fs;
use std::time::Duration;

#[test]
fn a_file_is_fetched_once_and_left_alone_then() {
    let scene = Scene::new("fetch-whole");
    let ran = scene.fetch(&[]).succeeded();
    scene.is_whole();
    let address = scene.server.address(FILE);
    says(
        &ran.stdout,
        &[
            "https://hospital.example/scans",
            &address,
            "CC0 1.0",
            "300 kB",
            "data/scans",
            "SHA-256 as expected",
        ],
    );
    assert_eq!(scene.asked_from(), [None]);
    let ran = scene.fetch(&[]).succeeded();
    says(&ran.stdout, &["already there"]);
    scene.is_whole();
    assert_eq!(scene.asked_from(), []);
}

#[test]
fn a_set_of_several_files_takes_those_that_are_missing() {
    let scene = Scene::bare("fetch-several");
    scene.server.serve("small.txt", b"small");
    scene.server.serve("empty.txt", b"");
    let md5 = hex(Md5::digest(&scene.bytes));
    scene.catalogue(&json!([
        { "name": FILE, "address": scene.server.address(FILE), "md5": md5.to_uppercase() },
        { "name": "small.txt", "address": scene.server.address("small.txt"), "sha256": sha256(b"small") },
        { "name": "empty.txt", "address": scene.server.address("empty.txt"), "bytes": 0, "sha256": sha256(b"") },
    ]));
    scene.place.write("data/scans/small.txt", "small");
    scene.fetch(&[]).succeeded();
    scene.is_whole();
    assert_eq!(
        fs::read(scene.place.join("data/scans/empty.txt")).unwrap(),
        b""
    );
    let paths: Vec<String> = scene
        .server
        .requests()
        .into_iter()
        .map(|r| r.path)
        .collect();
    assert_eq!(paths, ["/scans.npz", "/empty.txt"]);
}

#[test]
fn the_data_folder_is_the_option_or_the_environment() {
    let scene = Scene::new("fetch-folder");
    scene.fetch(&["--data-dir", "deep/sets"]).succeeded();
    assert!(scene.place.join("deep/sets/scans").join(FILE).is_file());
    let ran = crate::finish(scene.command(&[]).env("SELVEDGE_DATA", "other")).succeeded();
    assert!(
        scene.place.join("other/scans").join(FILE).is_file(),
        "{}",
        ran.stdout
    );
    assert!(!scene.place.join("data").exists());
}

#[test]
fn a_mirror_has_the_same_files_at_its_own_address() {
    let scene = Scene::bare("fetch-mirror");
    // Nobody listens at the catalogue's address.
    scene.catalogue(&json!([
        { "name": FILE, "address": "http://127.0.0.1:1/old/scans?download=1", "sha256": sha256(&scene.bytes) },
    ]));
    scene.server.serve(&format!("copies/{FILE}"), &scene.bytes);
    let mirror = scene.server.address("copies/");
    let ran = scene.fetch(&["--mirror", &mirror]).succeeded();
    says(&ran.stdout, &[&format!("{mirror}{FILE}")]);
    scene.is_whole();
    scene
        .fetch(&["--mirror", "ftp://mirror"])
        .refused(&["--mirror", "ftp://mirror", "https://"]);
}

#[test]
fn redirects_are_followed_for_the_rest_too() {
    let scene = Scene::new("fetch-redirect");
    scene.has_part(&scene.bytes[..1000]);
    scene.server.next(&[Conduct::Redirect]);
    scene.fetches(&[], &[Some(1000), Some(1000)]);
}

#[test]
fn a_file_of_untold_length_is_taken_to_its_end() {
    let scene = Scene::bare("fetch-chunked");
    scene.describe(json!({ "sha256": sha256(&scene.bytes) }));
    scene.server.next(&[Conduct::Chunked]);
    scene.fetch(&[]).succeeded();
    scene.is_whole();
}

#[test]
fn slow_is_not_silent() {
    let scene = Scene::new("fetch-slow");
    // Three seconds in all, and never more than 0.3 without a byte.
    scene
        .server
        .next(&[Conduct::Drip(10, Duration::from_millis(300))]);
    scene.fetches(&["--timeout", "1.5"], &[None]);
}

#[test]
fn without_a_checksum_what_came_is_said_and_nothing_old_is_gone_on_with() {
    let scene = Scene::bare("fetch-unknown");
    scene.describe(json!({}));
    scene.has_part("of another file");
    let ran = scene.fetches(&[], &[None]);
    let sum = sha256(&scene.bytes);
    says(&ran.stdout, &["no published checksum known", &sum]);
    let ran = scene.fetch(&[]).succeeded();
    says(&ran.stdout, &["already there (no checksum"]);
    assert_eq!(scene.asked_from(), []);
    scene.fetch(&["--force"]).succeeded();
    assert_eq!(scene.asked_from(), [None]);
    scene.is_whole();
}

#[test]
fn another_file_of_that_name_is_replaced_only_by_force() {
    let scene = Scene::new("fetch-force");
    let mut other = scene.bytes.clone();
    other[17] ^= 1;
    for (other, problem) in [
        (&other[..], sha256(&other)),
        (&other[..9], "9 bytes".into()),
    ] {
        scene.place.write(&format!("data/scans/{FILE}"), other);
        let ran = scene.fetch(&[]).refused(&[
            "data/scans/scans.npz",
            "a different file",
            &problem,
            "--force",
        ]);
        says(&ran.stdout, &["a different file is there"]);
        assert_eq!(fs::read(scene.target()).unwrap(), other);
        assert_eq!(scene.asked_from(), []);
    }
    // Even by force, the old one stays until the new one is whole and right.
    scene.server.next(&[Conduct::Status(404)]);
    scene.fetch(&["--force"]).refused(&["404"]);
    assert_eq!(fs::read(scene.target()).unwrap(), &other[..9]);
    scene.fetch(&["--force"]).succeeded();
    scene.is_whole();
    // A file that is right is left alone.
    scene.server.requests();
    scene.fetch(&["--force"]).succeeded();
    assert_eq!(scene.asked_from(), []);
}

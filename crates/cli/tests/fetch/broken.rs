//! Connections that break, servers that are gone, and files that are wrong.

use crate::common::disk::Disk;
use crate::common::process::Live;
use crate::common::says;
use crate::server::Conduct;
use crate::{FILE, Scene, hex, sha256};
use md5::{Digest, Md5};
use serde_json::json;
use std::fs;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_lost_connection_is_taken_up_again() {
    let scene = Scene::new("fetch-cut");
    scene
        .server
        .next(&[Conduct::Cut(100_000), Conduct::Cut(50_000)]);
    let ran = scene.fetches(&[], &[None, Some(100_000), Some(150_000)]);
    says(&ran.stderr, &["trying again"]);
}

#[test]
fn a_busy_or_silent_server_is_asked_again() {
    let scene = Scene::new("fetch-busy");
    let conduct = [Conduct::Status(503), Conduct::Mute, Conduct::Stall(7_000)];
    scene.server.next(&conduct);
    let ran = scene.fetches(&["--timeout", "0.4"], &[None, None, None, Some(7_000)]);
    says(&ran.stderr, &["503", "nothing received for 400 ms"]);
}

/// Starts a download that hangs after so many bytes, and waits until they are on disk.
fn hanging(scene: &Scene, count: usize) -> Live {
    scene.server.next(&[Conduct::Stall(count)]);
    let mut live = scene.start(&[]);
    let came = || scene.part_length() == count as u64;
    live.wait_until("all that is sent is on disk", PATIENCE, came);
    live
}

#[test]
fn what_came_outlives_a_kill_and_is_not_asked_for_again() {
    let scene = Scene::new("fetch-killed");
    let mut live = hanging(&scene, 150_000);
    live.signal("KILL");
    live.finish();
    scene.is_not_there();
    assert_eq!(fs::read(scene.part()).unwrap(), &scene.bytes[..150_000]);
    scene.fetches(&[], &[None, Some(150_000)]);
}

#[test]
fn an_interrupt_says_how_to_go_on() {
    let scene = Scene::new("fetch-interrupted");
    let mut live = hanging(&scene, 90_000);
    live.signal("INT");
    let ran = live.finish().ended(130);
    says(&ran.stderr, &["run the command again"]);
    scene.is_not_there();
    scene.fetches(&[], &[None, Some(90_000)]);
}

#[test]
fn two_at_once_do_not_write_into_each_other() {
    let scene = Scene::new("fetch-two");
    let mut live = hanging(&scene, 90_000);
    scene
        .fetch(&[])
        .refused(&["scans.npz.part", "another selvedge"]);
    assert!(live.is_running());
    assert_eq!(scene.part_length(), 90_000);
}

#[test]
fn a_server_that_goes_away_leaves_something_to_go_on_with() {
    let mut scene = Scene::new("fetch-gone");
    scene.server.next(&[Conduct::Stall(120_000)]);
    let mut live = scene.start(&[]);
    let length = || fs::metadata(scene.part()).map_or(0, |part| part.len());
    live.wait_until("some bytes are on disk", PATIENCE, || length() == 120_000);
    scene.server.close();
    let ran = live
        .finish()
        .refused(&["no connection", "5 times", "120 kB", "scans.npz.part"]);
    says(&ran.stderr, &["run the command again to resume"]);
    scene.is_not_there();
    assert_eq!(scene.part_length(), 120_000);
}

#[test]
fn no_network_is_said_at_once() {
    let mut scene = Scene::new("fetch-refused");
    scene.server.close();
    scene
        .fetch(&[])
        .refused(&["http://127.0.0.1", "no connection", "Run the command again"]);
    scene.left_nothing();
    // What an earlier call brought stays.
    scene.has_part(&scene.bytes[..1000]);
    scene
        .fetch(&[])
        .refused(&["no connection", "1.00 kB are kept", "run the command again"]);
    assert_eq!(scene.part_length(), 1000);
    scene.is_not_there();
}

#[test]
fn a_host_that_nobody_knows_is_no_network_either() {
    let scene = Scene::bare("fetch-host");
    let address = format!("http://nowhere.invalid/{FILE}");
    scene.catalogue(&json!([{ "name": FILE, "address": address }]));
    scene
        .fetch(&["--timeout", "5"])
        .refused(&["nowhere.invalid"]);
    scene.left_nothing();
}

#[test]
fn tries_end_only_when_they_bring_nothing_new() {
    let scene = Scene::new("fetch-often-cut");
    // More often than we try in vain, but each time a little further.
    scene.server.next(&[Conduct::Cut(10); 7]);
    scene.fetch(&[]).succeeded();
    scene.is_whole();
    assert_eq!(scene.asked_from().len(), 8);
    // Always to the same byte.
    fs::remove_file(scene.target()).unwrap();
    scene.server.next(&[Conduct::Anew(10); 9]);
    scene
        .fetch(&[])
        .refused(&["5 times", "10 B are kept", "run the command again"]);
    assert_eq!(scene.asked_from().len(), 5);
    scene.is_not_there();
}

#[test]
fn answers_that_are_no_file_are_refused_at_once() {
    let scene = Scene::new("fetch-404");
    for (conduct, part) in [
        (Conduct::Status(404), "404"),
        (Conduct::Status(403), "403"),
        (Conduct::Status(418), "418"),
        (Conduct::WebPage, "web page"),
    ] {
        scene.server.next(&[conduct]);
        let address = scene.server.address(FILE);
        scene.fetch(&[]).refused(&[&address, part]);
        assert_eq!(scene.asked_from(), [None]);
        scene.left_nothing();
        assert!(!scene.place.join("data").exists());
    }
}

#[test]
fn a_server_that_stays_busy_is_given_up() {
    let scene = Scene::new("fetch-500");
    scene.server.next(&[Conduct::Status(500); 9]);
    scene
        .fetch(&[])
        .refused(&["500", "5 times", "Run the command again"]);
    assert_eq!(scene.asked_from(), [None; 5]);
    scene.left_nothing();
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let scene = Scene::bare("fetch-wrong");
    let right = sha256(&scene.bytes);
    let mut wrong = scene.bytes.clone();
    wrong[299_999] ^= 0x80;
    scene.server.serve(FILE, &wrong);
    scene.describe(json!({ "bytes": 300_000, "sha256": right }));
    scene
        .fetch(&[])
        .refused(&["wrong checksum", &right, &sha256(&wrong), "removed"]);
    scene.left_nothing();
    let right = hex(Md5::digest(&scene.bytes));
    scene.describe(json!({ "md5": right }));
    scene
        .fetch(&[])
        .refused(&["wrong checksum", &right, &hex(Md5::digest(&wrong))]);
    scene.left_nothing();
}

#[test]
fn a_part_of_another_file_is_noticed_and_the_next_call_is_right() {
    let scene = Scene::new("fetch-other-part");
    scene.has_part(vec![0; 1000]);
    scene
        .fetch(&[])
        .refused(&["wrong checksum", "Run the command again"]);
    scene.left_nothing();
    scene.fetch(&[]).succeeded();
    scene.is_whole();
}

#[test]
fn a_file_of_another_size_is_not_even_downloaded() {
    let scene = Scene::bare("fetch-size");
    scene.describe(json!({ "bytes": 300_001 }));
    scene
        .fetch(&[])
        .refused(&["300,000 bytes", "expected 300,001"]);
    scene.left_nothing();
    // A server that does not tell the size is found out later.
    scene.server.next(&[Conduct::Chunked; 9]);
    scene.describe(json!({ "bytes": 200_000 }));
    scene.fetch(&[]).refused(&["more than the whole file"]);
    scene.left_nothing();
}

#[test]
fn a_server_without_ranges_starts_the_file_over() {
    let scene = Scene::new("fetch-ranges");
    scene.has_part(vec![0; 1000]);
    scene.server.next(&[Conduct::IgnoreRange]);
    scene.fetches(&[], &[Some(1000)]);
}

#[test]
fn a_file_that_changed_on_the_server_is_started_over() {
    let scene = Scene::new("fetch-changed");
    // Its size is another one now, it says; and then it is the right one after all.
    scene.has_part(vec![0; 1000]);
    scene.server.next(&[Conduct::OtherTotal]);
    scene.fetches(&[], &[Some(1000), None]);
    // More came than there is: known from the catalogue, or from the server's 416.
    for (file, asked) in [
        (
            json!({ "bytes": 300_000, "sha256": sha256(&scene.bytes) }),
            vec![None],
        ),
        (
            json!({ "sha256": sha256(&scene.bytes) }),
            vec![Some(300_007), None],
        ),
    ] {
        scene.describe(file);
        fs::remove_file(scene.target()).unwrap();
        scene.has_part(vec![0; 300_007]);
        scene.fetches(&[], &asked);
    }
}

#[test]
fn a_download_that_only_lacks_its_name_is_not_repeated() {
    let scene = Scene::bare("fetch-named");
    let sum = sha256(&scene.bytes);
    for (file, asked) in [
        (json!({ "bytes": 300_000, "sha256": sum }), vec![]),
        (json!({ "sha256": sum }), vec![Some(300_000)]),
    ] {
        scene.describe(file);
        scene.has_part(&scene.bytes);
        scene.fetches(&[], &asked);
        fs::remove_file(scene.target()).unwrap();
    }
}

#[test]
fn a_full_disk_is_named_and_with_more_room_the_download_goes_on() {
    let scene = Scene::new("fetch-full");
    let Some(disk) = Disk::mount(&scene.place.join("data"), 128) else {
        eprintln!("skipped: mounting a small disk needs root");
        return;
    };
    scene
        .fetch(&[])
        .refused(&["scans.npz.part", "No space left", "run the command again"]);
    scene.is_not_there();
    let kept = scene.part_length() as usize;
    assert!(kept > 50_000, "{kept}");
    disk.enlarge();
    scene.fetches(&[], &[None, Some(kept)]);
}

#[test]
fn places_that_cannot_be_written_to_are_named() {
    let scene = Scene::new("fetch-unwritable");
    scene.place.write("data", "a file in the way");
    scene.fetch(&[]).refused(&["data/scans"]);
    fs::remove_file(scene.place.join("data")).unwrap();
    fs::create_dir_all(scene.part()).unwrap();
    scene.fetch(&[]).refused(&["scans.npz.part"]);
    fs::remove_dir(scene.part()).unwrap();
    fs::create_dir(scene.target()).unwrap();
    scene.fetch(&[]).refused(&["scans.npz", "folder"]);
    scene.fetch(&["--force"]).refused(&["scans.npz"]);
    assert_eq!(scene.asked_from().len(), 1);
}

//! PhysioNet 2012 in the layouts in which it is found: one archive, folders, and as its publisher offers it.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::Folder;
use flate2::Compression;
use flate2::write::GzEncoder;
use selvedge_core::experiment::DataSettings;
use selvedge_data::load;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Stays of one set: a name and what the file says.
fn stays(set: char) -> Vec<(String, String)> {
    let first = if set == 'a' { 132_539 } else { 142_675 };
    let stay = |number: u32| {
        let id = first + number;
        let text = format!(
            "Time,Parameter,Value\n00:00,RecordID,{id}\n00:00,Age,{}\n00:07,HR,{}\n05:30,Creatinine,{}.5\n",
            40 + number,
            60 + number,
            number % 3
        );
        (format!("set-{set}/{id}.txt"), text)
    };
    (0..12).map(stay).collect()
}

fn outcomes(set: char) -> String {
    let mut text = String::from("RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n");
    for (index, (name, _)) in stays(set).iter().enumerate() {
        let id = name
            .trim_start_matches(&format!("set-{set}/"))
            .trim_end_matches(".txt");
        text += &format!("{id},6,1,5,-1,{}\n", u8::from(index % 3 == 0));
    }
    text
}

/// A gzipped tar archive.
fn archive(files: &[(String, String)]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, text) in files {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
        header[156] = b'0';
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.write_all(&header).unwrap();
        out.write_all(text.as_bytes()).unwrap();
        let padding = text.len().next_multiple_of(512) - text.len();
        out.write_all(&vec![0; padding]).unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
    out.finish().unwrap()
}

fn put(folder: &Folder, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.path().join("physionet2012").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn put_archive(folder: &Folder, set: char) {
    put(folder, &format!("set-{set}.tar.gz"), archive(&stays(set)));
}

fn put_unpacked(folder: &Folder, set: char) {
    for (name, text) in stays(set) {
        put(folder, &name, text);
    }
}

fn put_outcomes(folder: &Folder) {
    for set in ['a', 'b'] {
        put(folder, &format!("Outcomes-{set}.txt"), outcomes(set));
    }
}

fn settings() -> DataSettings {
    DataSettings {
        set: "physionet2012".into(),
        groups: 2,
        split: "iid".into(),
        ..DataSettings::default()
    }
}

#[track_caller]
fn fingerprint(folder: &Path) -> String {
    let dataset = load(&settings(), 42, Some(folder)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((dataset.training_samples(), dataset.test.len()), (12, 12));
    dataset.fingerprint().to_string()
}

#[test]
fn every_layout_is_the_same_set() {
    let unpacked = Folder::new();
    put_unpacked(&unpacked, 'a');
    put_unpacked(&unpacked, 'b');
    put_outcomes(&unpacked);
    let expected = fingerprint(unpacked.path());

    let downloaded = Folder::new();
    put_archive(&downloaded, 'a');
    put_archive(&downloaded, 'b');
    put_outcomes(&downloaded);
    assert_eq!(fingerprint(downloaded.path()), expected);

    // An archive beside its own contents is not read a second time.
    put_unpacked(&downloaded, 'a');
    assert_eq!(fingerprint(downloaded.path()), expected);

    let single = Folder::new();
    let mut all: Vec<(String, String)> = ['a', 'b'].into_iter().flat_map(stays).collect();
    all.extend(['a', 'b'].map(|set| (format!("Outcomes-{set}.txt"), outcomes(set))));
    put(&single, "physionet2012-ab.tar.gz", archive(&all));
    assert_eq!(fingerprint(single.path()), expected);
}

#[track_caller]
fn refused(folder: &Folder, parts: &[&str]) {
    let error = load(&settings(), 42, Some(folder.path()))
        .unwrap_err()
        .to_string();
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn a_download_that_is_not_complete_says_what_is_missing() {
    let folder = Folder::new();
    refused(&folder, &["selvedge data fetch physionet2012"]);
    put_archive(&folder, 'a');
    put_outcomes(&folder);
    // A file that is still on its way is none yet.
    put(&folder, "set-b.tar.gz.part", &archive(&stays('b'))[..100]);
    refused(&folder, &["physionet2012", "no set-b", "set-b.tar.gz"]);
    put_archive(&folder, 'b');
    fs::remove_file(folder.path().join("physionet2012/Outcomes-b.txt")).unwrap();
    refused(&folder, &["physionet2012", "no outcome", "Outcomes-b.txt"]);
    put_outcomes(&folder);
    fingerprint(folder.path());
    put(&folder, "set-b.tar.gz", &archive(&stays('b'))[..200]);
    refused(&folder, &["set-b.tar.gz", "ends early"]);
}

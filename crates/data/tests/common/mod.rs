//! A small file in the layout of the ESR set, in a folder of its own.

#![allow(dead_code)] // each test file uses its share

pub(crate) mod archive;

use selvedge_core::experiment::DataSettings;
use selvedge_data::{PartyShard, PseudonymKey};
use selvedge_nn::random::Key;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The file's name, as UCI ships it.
pub(crate) const NAME: &str = "Epileptic Seizure Recognition.csv";

/// Amplitudes per row.
pub(crate) const WIDTH: usize = 178;

/// A new folder that is removed again.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("selvedge-data-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("esr")).unwrap();
        Folder(path)
    }

    /// A folder whose ESR file has these bytes.
    pub(crate) fn with_esr(bytes: &[u8]) -> Self {
        let folder = Folder::new();
        fs::write(folder.0.join("esr").join(NAME), bytes).unwrap();
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that stays behind harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `Unnamed,X1,…,X178,y`
pub(crate) fn header() -> String {
    let columns: Vec<String> = (1..=WIDTH).map(|i| format!("X{i}")).collect();
    format!("Unnamed,{},y", columns.join(","))
}

/// One row per recording and second: five classes of `recordings` recordings of `seconds` seconds. Amplitudes are
/// different in every row and negative in every other column.
pub(crate) fn rows(recordings: usize, seconds: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for class in 1..=5 {
        for recording in 0..recordings {
            for second in 1..=seconds {
                let number = rows.len();
                let value = |i: usize| {
                    let size = (number * 7 + i * i) % 1_999;
                    if i.is_multiple_of(2) {
                        -(size as i64)
                    } else {
                        size as i64
                    }
                };
                let values: Vec<String> = (1..=WIDTH).map(|i| value(i).to_string()).collect();
                rows.push(format!(
                    "X{second}.C{class}R{recording:03},{},{class}",
                    values.join(",")
                ));
            }
        }
    }
    rows
}

/// A file of 125 rows: 20 a class are left for training with a test share of 0.2.
pub(crate) fn small_file() -> Vec<String> {
    let mut lines = vec![header()];
    lines.extend(rows(5, 5));
    lines
}

/// The lines with a line feed after each.
pub(crate) fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn esr_settings() -> DataSettings {
    DataSettings {
        set: "esr".into(),
        ..DataSettings::default()
    }
}

/// The same with a validation share and several rows a device.
pub(crate) fn esr_with_validation(samples_per_device: usize) -> DataSettings {
    DataSettings {
        validation: 0.2,
        samples_per_device,
        ..esr_settings()
    }
}

/// Groups with 20 devices each and a validation share.
pub(crate) fn synthetic_settings(groups: usize, samples_per_device: usize) -> DataSettings {
    DataSettings {
        groups,
        devices: 20,
        samples_per_device,
        validation: 0.1,
        ..DataSettings::default()
    }
}

/// Sets of each kind, all with a few rows; the first one needs a folder with [`small_file`].
pub(crate) fn small_sets() -> [DataSettings; 3] {
    let series = DataSettings {
        set: "synthetic-physionet2012".into(),
        groups: 2,
        devices: 9,
        ..DataSettings::default()
    };
    [esr_with_validation(3), synthetic_settings(3, 2), series]
}

/// Numbers, bit for bit.
pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The key of a cut.
pub(crate) fn key() -> PseudonymKey {
    PseudonymKey::new([3; 32])
}

/// The folder with real data, or a word that the test is skipped.
pub(crate) fn real_data(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("SELVEDGE_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: {test} needs SELVEDGE_DATA, a folder with esr/{NAME}.gz");
    }
    folder
}

/// Every party of groups with so many devices each.
pub(crate) fn parties(devices: &[usize]) -> Vec<PartyShard> {
    let of_group = |(m, devices): (usize, &usize)| {
        let gateways = gateways(m, *devices as u32, 1);
        [PartyShard::Edge(m), PartyShard::Hospital(m)]
            .into_iter()
            .chain(gateways)
    };
    let all = devices.iter().enumerate().flat_map(of_group);
    all.chain([PartyShard::Coordinator]).collect()
}

/// Gateways that carry the devices of a group, in ranges that are drawn.
pub(crate) fn gateways(group: usize, devices: u32, seed: u64) -> Vec<PartyShard> {
    let mut random = Key::new(seed).with(group as u64).stream();
    let mut first = 0;
    let mut all = Vec::new();
    while first < devices {
        let most = u64::from(devices).div_ceil(2);
        let end = devices.min(first + 1 + random.below(most) as u32);
        all.push(PartyShard::Gateway {
            group,
            devices: first..end,
            held_out: first == 0,
        });
        first = end;
    }
    all
}

/// The files of a folder, below it.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false => found.push(path.strip_prefix(folder).unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

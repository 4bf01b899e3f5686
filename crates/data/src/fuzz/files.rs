//! Formats of files.

use super::{place, told};
use crate::files::collection;
use crate::files::csv::Csv;
use crate::files::lines::Lines;
use crate::files::npy::{self, Kind};
use crate::files::parquet::{Failure, Parquet};
use crate::files::unzip::{Archive, Problem};
use crate::files::zip::ZipWriter;
use std::convert::Infallible;
use std::io::Cursor;

pub(super) fn npy_header(bytes: &[u8]) {
    if let Some(Ok(header)) = npy::parse(&String::from_utf8_lossy(bytes)) {
        header.values();
    }
}

pub(super) fn parquet(bytes: &[u8]) {
    let Some(mut parquet) = told(Parquet::open(Cursor::new(bytes))) else {
        return;
    };
    let all: Vec<usize> = (0..parquet.columns().len()).collect();
    let read = parquet.read(&all, &mut |_, cells| -> Result<(), Infallible> {
        assert_eq!(cells.len(), all.len());
        Ok(())
    });
    if let Err(Failure::File(problem)) = read {
        assert!(!problem.is_empty());
    }
}

pub(super) fn zip(bytes: &[u8]) {
    arrays(bytes);
    if let Some(repaired) = with_right_checksums(bytes) {
        arrays(&repaired);
    }
}

fn arrays(bytes: &[u8]) {
    let Some(mut archive) = told(Archive::open(Cursor::new(bytes))) else {
        return;
    };
    let names = archive.entries.iter().take(8);
    let names: Vec<String> = names
        .map(|entry| entry.name.trim_end_matches(".npy").to_owned())
        .collect();
    for name in names {
        let Some((header, unpacking)) = told(npy::open(&mut archive, &name)) else {
            continue;
        };
        match header.kind {
            Kind::Text { .. } => drop(told(npy::texts(&header, unpacking, &name))),
            _ => drop(told(npy::numbers(&header, unpacking, &name, |_, _| Ok(())))),
        }
    }
}

/// The archive packed anew: chance would find no checksum, and so nothing that lies behind one.
pub(super) fn with_right_checksums(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut archive = Archive::open(Cursor::new(bytes)).ok()?;
    let mut out = Cursor::new(Vec::new());
    let mut zip = ZipWriter::new(&mut out).ok()?;
    for entry in archive.entries.clone().iter().take(16) {
        let mut unpacking = archive.unpack(entry).ok()?;
        let mut content = vec![0; unpacking.left().min(1 << 16) as usize];
        let _: Result<(), Problem> = unpacking.fill(&mut content);
        zip.file(&entry.name, content.len() as u64, |file| {
            file.write_all(&content)
        })
        .ok()?;
    }
    zip.finish().ok()?;
    Some(out.into_inner())
}

pub(super) fn tar(bytes: &[u8]) {
    tar_gz(bytes);
    tar_gz(&with_right_sums(bytes));
}

pub(super) fn tar_gz(bytes: &[u8]) {
    let any = |name: &str| !name.ends_with(".skip");
    told(collection::read_archive(
        place(),
        bytes,
        &any,
        &mut |texts| {
            assert!(texts.iter().all(|text| !text.name.is_empty()));
            Ok(())
        },
    ));
}

/// The archive with the sum that each header should have.
pub(super) fn with_right_sums(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + 512) {
        at += 512;
        if header.iter().all(|byte| *byte == 0) {
            continue;
        }
        let size = str::from_utf8(&header[124..135]).unwrap_or_default();
        let size = usize::from_str_radix(size, 8).unwrap_or(0);
        at += size.next_multiple_of(512);
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    bytes
}

pub(super) fn lines(bytes: &[u8]) {
    let Some(mut lines) = told(Lines::of(place(), Cursor::new(bytes.to_vec()))) else {
        return;
    };
    while let Some(Some(line)) = told(lines.next_line()) {
        assert!(!line.contains('\n'));
    }
    let lines = told(Lines::of(place(), Cursor::new(bytes)));
    let Some(csv) = lines.and_then(|lines| told(Csv::open(lines, place()))) else {
        return;
    };
    let all: Vec<usize> = (0..csv.columns().len()).collect();
    told(csv.read(&all, &mut |_, cells| {
        assert_eq!(cells.len(), all.len());
        Ok(())
    }));
}

//! The folder of an export: all of its files appear, or none.

use super::{FILES, File};
use anyhow::{Context, Result, bail};
use selvedge_run::files::{make_folder, write_whole};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::path::Path;

/// Writes files into a folder, which may hold an earlier export; whatever else is there stays as it is.
pub(crate) fn write(out: &Path, files: &[File]) -> Result<()> {
    for file in files {
        check_replaceable(&out.join(file.name))?;
    }
    let is_new = !out.exists();
    make_folder(out)?;
    let partial = out.join(format!(".partial-{}", std::process::id()));
    let result = write_through(&partial, out, files);
    // Nothing is lost with it, and on a full disk its room is needed.
    let _ = fs::remove_dir_all(&partial);
    if is_new && result.is_err() {
        // Only if it is empty.
        let _ = fs::remove_dir(out);
    }
    result
}

/// Writes everything beside its place before anything is moved there.
fn write_through(partial: &Path, out: &Path, files: &[File]) -> Result<()> {
    fs::create_dir(partial).with_context(|| format!("cannot create {}", partial.display()))?;
    for file in files {
        write_whole(&partial.join(file.name), &file.contents)?;
    }
    for file in files {
        let place = out.join(file.name);
        fs::rename(partial.join(file.name), &place)
            .with_context(|| format!("cannot write {}", place.display()))?;
    }
    Ok(())
}

/// Every file of an export has this word near its beginning.
const MARK: &[u8] = b"selvedge";
const BEGINNING: u64 = 4096;

/// A card is there to be completed by people, whose words must not get lost: it ends with a seal of what stands above.
pub(super) fn sealed(mut text: String) -> Vec<u8> {
    text += &seal_of(text.as_bytes());
    text.into_bytes()
}

fn is_text_for_people(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

/// A comment that no reader of the page sees.
fn seal_of(contents: &[u8]) -> String {
    let digest = Sha256::digest(contents);
    let digits: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("\n<!-- as written by selvedge export: {digits} -->\n")
}

/// Its length.
const SEAL: usize = "\n<!-- as written by selvedge export:  -->\n".len() + 32;

/// A file of an export may be replaced, another one may not.
fn check_replaceable(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let mut beginning = Vec::new();
    if path.is_file() {
        let file = fs::File::open(path).map(|file| file.take(BEGINNING));
        let read = file.and_then(|mut file| file.read_to_end(&mut beginning));
        read.with_context(|| format!("cannot read {}", path.display()))?;
    }
    if is_text_for_people(path) && path.is_file() {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (above, seal) = text.split_at(text.len().saturating_sub(SEAL));
        if !above.is_empty() && seal == seal_of(above).as_bytes() {
            return Ok(());
        }
        bail!(
            "{} already exists and has been edited: move it away, or choose another --out",
            path.display()
        );
    }
    if beginning.windows(MARK.len()).any(|bytes| bytes == MARK) {
        return Ok(());
    }
    bail!(
        "{} already exists and was not written by `selvedge export`: choose another --out (an export writes {})",
        path.display(),
        FILES.join(", ")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

    use super::*;

    #[test]
    fn only_files_of_an_export_are_replaced() {
        let folder = std::env::temp_dir().join(format!("selvedge-export-{}", std::process::id()));
        fs::create_dir_all(folder.join("load.py")).unwrap();
        let files = |text: &str| {
            let file = |name| File {
                name,
                contents: format!("{text} of selvedge").into_bytes(),
            };
            ["model.onnx", "load.py"].map(file)
        };
        let read = || fs::read_to_string(folder.join("model.onnx"));
        let refused = write(&folder, &files("one")).unwrap_err().to_string();
        assert!(refused.contains("load.py already exists"), "{refused}");
        assert!(read().is_err());
        fs::remove_dir(folder.join("load.py")).unwrap();
        fs::write(folder.join("notes.txt"), "mine").unwrap();
        for text in ["one", "two"] {
            write(&folder, &files(text)).unwrap();
            assert_eq!(read().unwrap(), format!("{text} of selvedge"));
        }
        fs::write(folder.join("model.onnx"), "of somebody else").unwrap();
        assert!(write(&folder, &files("three")).is_err());
        assert_eq!(read().unwrap(), "of somebody else");
        // A card that somebody has completed stays.
        let card = [File {
            name: "model-card.md",
            contents: sealed("# A card of selvedge\n".into()),
        }];
        let place = folder.join("model-card.md");
        write(&folder, &card).unwrap();
        write(&folder, &card).unwrap();
        let text = fs::read_to_string(&place).unwrap();
        fs::write(&place, format!("{text}Seen by the ethics committee.\n")).unwrap();
        let refused = write(&folder, &card).unwrap_err().to_string();
        assert!(refused.contains("model-card.md"), "{refused}");
        fs::remove_file(&place).unwrap();
        let there = fs::read_dir(&folder).unwrap().count();
        assert_eq!(there, 3, "model.onnx, load.py, notes.txt");
        fs::remove_dir_all(&folder).unwrap();
    }
}

//! The folder of an export: all of its files appear, or none.

use super::File;
use anyhow::Result;
use selvedge_run::files::make_folder;
use selvedge_run::outputs::{Output, write_together};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes files into a folder, which may hold an earlier export; whatever else is there stays as it is.
pub(crate) fn write(out: &Path, files: &[File]) -> Result<()> {
    let paths: Vec<PathBuf> = files.iter().map(|file| out.join(file.name)).collect();
    let mut whole = Vec::new();
    for (file, path) in files.iter().zip(&paths) {
        let (option, kind) = ("", file.kind);
        let output = Output { option, path, kind };
        output.check(&[])?;
        whole.push((output, &file.contents[..]));
    }
    let is_new = !out.exists();
    make_folder(out)?;
    let written = write_together(&whole);
    if is_new && written.is_err() {
        // Only if it is empty.
        let _ = fs::remove_dir(out);
    }
    Ok(written?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

    use super::*;
    use selvedge_run::outputs::Kind;

    #[test]
    fn only_files_of_an_export_as_it_was_written_are_replaced() {
        let folder = std::env::temp_dir().join(format!("selvedge-export-{}", std::process::id()));
        fs::create_dir_all(folder.join("load.py")).unwrap();
        let files = |text: &str| {
            let kinds = [
                ("model.onnx", Kind::Network),
                ("load.py", Kind::Script),
                ("model-card.md", Kind::Card),
            ];
            kinds.map(|(name, kind)| File {
                name,
                kind,
                contents: format!("{text} of selvedge, {}\n", Kind::Network.blank()).into_bytes(),
            })
        };
        let read = |name| fs::read_to_string(folder.join(name));
        let refused = write(&folder, &files("one")).unwrap_err().to_string();
        assert!(refused.contains("load.py"), "{refused}");
        assert!(read("model.onnx").is_err());
        fs::remove_dir(folder.join("load.py")).unwrap();
        fs::write(folder.join("notes.txt"), "mine").unwrap();
        for text in ["one", "two"] {
            write(&folder, &files(text)).unwrap();
            assert!(read("load.py").unwrap().starts_with(text));
        }
        // A word of somebody, anywhere, and nothing is replaced.
        for name in ["model.onnx", "load.py", "model-card.md"] {
            let whole = read(name).unwrap();
            for changed in [
                format!("{whole}Seen by the ethics committee.\n"),
                whole.replacen("two", "2", 1),
                "of somebody else, as written by selvedge".to_owned(),
            ] {
                fs::write(folder.join(name), &changed).unwrap();
                let refused = write(&folder, &files("three")).unwrap_err().to_string();
                assert!(refused.contains(name), "{refused}");
                assert_eq!(read(name).unwrap(), changed);
            }
            fs::write(folder.join(name), whole).unwrap();
        }
        write(&folder, &files("three")).unwrap();
        let there = fs::read_dir(&folder).unwrap().count();
        assert_eq!(there, 4, "three files, notes.txt");
        fs::remove_dir_all(&folder).unwrap();
    }
}

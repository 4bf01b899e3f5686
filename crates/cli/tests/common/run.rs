//! What a run directory says.

use super::Place;
use safetensors::SafeTensors;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A run directory.
#[derive(Clone)]
pub struct Run(pub PathBuf);

/// A tensor of a weights file.
#[derive(Debug, PartialEq)]
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// One line of `ledger.csv`: link, kind, direction, messages, bytes.
pub type LedgerLine = (String, String, String, u64, u64);

impl Run {
    pub fn at(place: &Place, name: &str) -> Self {
        Run(place.join(name))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    #[track_caller]
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let path = self.file(name);
        fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    #[track_caller]
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    #[track_caller]
    pub fn manifest(&self) -> Value {
        serde_json::from_str(&self.text("manifest.json")).unwrap()
    }

    /// Leaves out what the manifest says of the other files, as in a run of 0.2: they may be changed then.
    pub fn forget_digests(&self) {
        self.edit_manifest(|manifest| {
            manifest.as_object_mut().unwrap().remove("files");
        });
    }

    /// Changes the manifest.
    pub fn edit_manifest(&self, change: impl FnOnce(&mut Value)) {
        let mut manifest = self.manifest();
        change(&mut manifest);
        let text = serde_json::to_string_pretty(&manifest).unwrap();
        fs::write(self.file("manifest.json"), text).unwrap();
    }

    #[track_caller]
    pub fn lines(&self, name: &str) -> Vec<Value> {
        let text = self.text(name);
        assert!(text.ends_with('\n'), "{name} ends within a line");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[track_caller]
    pub fn metrics(&self) -> Vec<Value> {
        self.lines("metrics.jsonl")
    }

    /// Lines of `metrics.jsonl` so far; none while there is no file.
    pub fn evaluations_so_far(&self) -> usize {
        fs::read(self.file("metrics.jsonl"))
            .map_or(0, |b| b.iter().filter(|b| **b == b'\n').count())
    }

    #[track_caller]
    pub fn ledger(&self) -> Vec<LedgerLine> {
        let text = self.text("ledger.csv");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("link,kind,direction,messages,bytes"));
        lines
            .map(|line| {
                let words: Vec<&str> = line.split(',').collect();
                let [link, kind, direction, messages, bytes] = words[..] else {
                    panic!("ledger line {line:?}");
                };
                let number = |word: &str| word.parse().unwrap();
                (
                    link.into(),
                    kind.into(),
                    direction.into(),
                    number(messages),
                    number(bytes),
                )
            })
            .collect()
    }

    /// A ledger in JSON has as many bytes as the run's own.
    #[track_caller]
    pub fn sent_as_many_bytes_as(&self, ledger: &Value) {
        let lines = ledger.as_array().unwrap().iter();
        let sent: u64 = lines.map(|line| line["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sent, self.ledger().iter().map(|line| line.4).sum::<u64>());
    }

    #[track_caller]
    pub fn tensors(&self, name: &str) -> BTreeMap<String, Tensor> {
        read_tensors(&self.bytes(name))
    }

    /// Where the checkpoint is.
    pub fn checkpoint(&self) -> PathBuf {
        self.file("checkpoint/state.safetensors")
    }

    /// The iteration of the checkpoint, if there is one.
    pub fn checkpoint_t(&self) -> Option<u64> {
        let bytes = fs::read(self.checkpoint()).ok()?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let header = metadata.metadata().as_ref().unwrap()["selvedge"].clone();
        let header: Value = serde_json::from_str(&header).unwrap();
        header["progress"]["t"].as_u64()
    }
}

/// The tensors of a weights file.
pub fn read_tensors(bytes: &[u8]) -> BTreeMap<String, Tensor> {
    let tensors = SafeTensors::deserialize(bytes).unwrap();
    let tensor = |name: &str| {
        let view = tensors.tensor(name).unwrap();
        assert_eq!(view.dtype(), safetensors::Dtype::F32, "{name}");
        Tensor {
            shape: view.shape().to_vec(),
            values: view
                .data()
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
        }
    };
    tensors
        .names()
        .into_iter()
        .map(|name| (name.to_owned(), tensor(name)))
        .collect()
}

/// What must be the same to the bit in two runs of one experiment.
const RESULTS: [&str; 7] = [
    "initial.safetensors",
    "model.safetensors",
    "best.safetensors",
    "metrics.jsonl",
    "ledger.csv",
    "trace.jsonl",
    "segments.jsonl",
];

/// Two runs must have the same results to the bit; those that the first lacks, the second must lack too.
#[track_caller]
pub fn same_results(expected: &Run, found: &Run, what: &str) {
    assert!(
        expected.file("model.safetensors").is_file(),
        "the run to compare with is not finished"
    );
    for name in RESULTS {
        let read = |run: &Run| fs::read(run.file(name)).ok();
        let (expected, found) = (read(expected), read(found));
        assert_eq!(
            expected.as_ref().map(Vec::len),
            found.as_ref().map(Vec::len),
            "{what}: length of {name}"
        );
        assert!(expected == found, "{what}: {name} differs");
    }
}

/// Appends bytes to a file.
pub fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// A number of a JSON value.
#[track_caller]
pub fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} is no number in {value}"))
}

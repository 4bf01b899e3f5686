//! A run's state as one file, replaced whole: `checkpoint/state.safetensors`.
//!
//! Models are tensors; the rest is JSON in the header. Behind a global aggregation all groups hold θ, and only θ
//! is written.

use crate::error::{Context, Result, bail};
use crate::files::{read_bytes, write_whole};
use crate::weights::{from_bytes, serialize, to_bytes};
use safetensors::SafeTensors;
use selvedge_core::model::Model;
use selvedge_core::optimiser::Memories;
use selvedge_core::state::{Progress, Residuals, State};
use selvedge_core::task::Task;
use selvedge_nn::random::Key;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// What a checkpoint says besides the models.
#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    /// Which experiment on which data it belongs to.
    pub(crate) fingerprint: String,
    pub(crate) progress: Progress,
    /// To what lengths the run's other files are cut on resume.
    pub(crate) metrics_length: u64,
    pub(crate) trace_length: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) segments_length: Option<u64>,
    /// Real seconds of training so far.
    pub(crate) real_seconds: f64,
}

const NAMES: [&str; 3] = ["theta0", "theta1", "theta2"];

/// What compression has lost of each hospital's θ0.
const LOST_THETA0: &str = "lost.hospitals.theta0";

const HEADER: &str = "selvedge";
const CHECKSUM: &str = "checksum";

/// A fingerprint of all that a checkpoint says.
fn checksum<'a>(
    header: &str,
    tensors: impl Iterator<Item = (&'a str, &'a [usize], &'a [u8])>,
) -> String {
    let mut tensors: Vec<_> = tensors.collect();
    tensors.sort_unstable_by_key(|t| t.0);
    let bytes = |key: Key, bytes: &[u8]| {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        key.with(bytes.len() as u64).with_all(words)
    };
    let key = bytes(Key::new(1), header.as_bytes());
    let fold = |key, (name, shape, data): (&str, &[usize], &[u8])| {
        let key = bytes(key, name.as_bytes()).with_all(shape.iter().map(|d| *d as u64));
        bytes(key, data)
    };
    tensors.into_iter().fold(key, fold).hex()
}

/// Writes a checkpoint.
pub(crate) fn save(path: &Path, header: &Header, state: &State) -> Result<()> {
    let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
    let mut push = |prefix: &str, models: &[&Model]| {
        for (part, name) in NAMES.iter().enumerate() {
            let shape = vec![models.len(), models[0].parts()[part].len()];
            let bytes = models
                .iter()
                .flat_map(|m| to_bytes(m.parts()[part]))
                .collect();
            tensors.push((format!("{prefix}.{name}"), shape, bytes));
        }
    };
    push("global", &[&state.theta]);
    if state.progress.t != state.progress.aggregated {
        push("groups", &state.groups.iter().collect::<Vec<_>>());
    }
    push("good", &[&state.good]);
    if let Some(safe) = &state.safe {
        push("safe", &[safe]);
    }
    if let Some(best) = &state.best {
        push("best", &[best]);
    }
    let Residuals {
        hospitals,
        uploads,
        cloud,
    } = &state.residuals;
    if !uploads.is_empty() {
        push("lost.uploads", &uploads.iter().collect::<Vec<_>>());
    }
    push("lost.cloud", &[cloud]);
    let Memories { groups, cloud } = &state.memories;
    if state.memories.is_any() {
        push("memory.groups", &groups.iter().collect::<Vec<_>>());
        push("memory.cloud", &[cloud]);
    }
    let width = hospitals.first().map_or(0, Vec::len);
    let bytes = hospitals.iter().flat_map(|lost| to_bytes(lost)).collect();
    tensors.push((LOST_THETA0.into(), vec![hospitals.len(), width], bytes));
    let text = serde_json::to_string(header)?;
    let checksum = checksum(
        &text,
        tensors.iter().map(|(n, s, b)| (n.as_str(), &s[..], &b[..])),
    );
    let header = HashMap::from([(HEADER.to_owned(), text), (CHECKSUM.to_owned(), checksum)]);
    write_whole(path, &serialize(&tensors, Some(header))?)
}

/// Reads a checkpoint of a task.
pub(crate) fn load(path: &Path, task: &Task<'_>) -> Result<(Header, State)> {
    parse(&read_bytes(path)?, task).with_context(|| format!("{} is damaged", path.display()))
}

fn parse(bytes: &[u8], task: &Task<'_>) -> Result<(Header, State)> {
    let (widths, groups) = (task.architecture.widths(), task.dataset.groups.len());
    let (_, metadata) = SafeTensors::read_metadata(bytes)?;
    let tensors = SafeTensors::deserialize(bytes)?;
    let entry = |name: &str| {
        metadata
            .metadata()
            .as_ref()
            .and_then(|m| m.get(name))
            .cloned()
    };
    let text = entry(HEADER).context("it has no selvedge header")?;
    let found = tensors.tensors();
    let found = found
        .iter()
        .map(|(name, view)| (name.as_str(), view.shape(), view.data()));
    if entry(CHECKSUM) != Some(checksum(&text, found)) {
        bail!("its checksum does not fit");
    }
    let header: Header = serde_json::from_str(&text)?;
    let read = |prefix: &str, like: &[Model]| -> Result<Option<Vec<Model>>> {
        let (mut models, count) = (like.to_vec(), like.len());
        for (part, name) in NAMES.iter().enumerate() {
            let Ok(tensor) = tensors.tensor(&format!("{prefix}.{name}")) else {
                return Ok(None);
            };
            let width = models[0].parts()[part].len();
            if tensor.shape() != [count, width] {
                bail!(
                    "{prefix}.{name} is {:?}, not [{count}, {width}]",
                    tensor.shape()
                );
            }
            let values = from_bytes(tensor.data());
            for (m, model) in models.iter_mut().enumerate() {
                model.parts_mut()[part].copy_from_slice(&values[m * width..][..width]);
            }
        }
        Ok(Some(models))
    };
    let like = |name: &str, model: &Model| -> Result<Option<Model>> {
        Ok(read(name, std::slice::from_ref(model))?.and_then(|mut m| m.pop()))
    };
    let zeros = Model::zeros(widths);
    let one = |name: &str| like(name, &zeros);
    let theta: Model = one("global")?.context("it has no model")?;
    let good = one("good")?.context("it has no good model")?;
    let mut residuals = Residuals::none(&task.compression, widths, groups);
    let mut memories = Memories::new(&task.optimisers, widths, groups);
    let groups = match read("groups", &vec![zeros.clone(); groups])? {
        Some(groups) => groups,
        None => vec![theta.clone(); groups],
    };
    let best = one("best")?;
    let safe = one("safe")?;
    if safe.is_some() != header.progress.controller.is_some() {
        bail!("its safe model and who steers do not fit");
    }
    if !residuals.uploads.is_empty() {
        let lost = read("lost.uploads", &residuals.uploads)?;
        residuals.uploads = lost.context("it lacks what uploads have lost")?;
    }
    let lost = like("lost.cloud", &residuals.cloud)?;
    residuals.cloud = lost.context("it lacks what downloads have lost")?;
    if !memories.is_any() && tensors.tensor("memory.cloud.theta0").is_ok() {
        bail!("it has what another optimiser remembers");
    }
    if memories.is_any() {
        let lacks = "it lacks what optimisers remember";
        memories.groups = read("memory.groups", &memories.groups)?.context(lacks)?;
        memories.cloud = like("memory.cloud", &memories.cloud)?.context(lacks)?;
    }
    let lost = tensors.tensor(LOST_THETA0)?;
    let width = residuals.hospitals.first().map_or(0, Vec::len);
    if lost.shape() != [residuals.hospitals.len(), width] {
        bail!("{LOST_THETA0} is {:?}", lost.shape());
    }
    let values = from_bytes(lost.data());
    for (m, hospital) in residuals.hospitals.iter_mut().enumerate() {
        hospital.copy_from_slice(&values[m * width..][..width]);
    }
    let state = State {
        progress: header.progress.clone(),
        theta,
        groups,
        good,
        safe,
        best,
        residuals,
        memories,
    };
    Ok((header, state))
}

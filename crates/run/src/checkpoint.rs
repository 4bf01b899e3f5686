//! A run's state as one file, replaced whole: `checkpoint/state.safetensors`.
//!
//! Models are tensors; the rest is JSON in the header. Behind a global aggregation all groups hold θ, and only θ is
//! written.

use crate::error::{Context, Result, bail};
use crate::files::{read_bytes, write_whole};
use crate::weights::{from_bytes, serialize, to_bytes};
use safetensors::SafeTensors;
use selvedge_core::conduct::DeviceConduct;
use selvedge_core::fingerprint::{Fingerprint, was_mixed};
use selvedge_core::model::Model;
use selvedge_core::optimiser::Memories;
use selvedge_core::reversal::Reversals;
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
    /// What is held against devices, group by group; nothing where nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) devices: Vec<DeviceConduct>,
    /// To what lengths the run's other files are cut on resume.
    pub(crate) metrics_length: u64,
    pub(crate) trace_length: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) segments_length: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_out_length: Option<u64>,
    /// Real seconds of training so far.
    pub(crate) real_seconds: f64,
}

const NAMES: [&str; 3] = ["theta0", "theta1", "theta2"];

/// Each edge's copy of its hospital's θ0, where edges keep one.
const EDGES_THETA0: &str = "edges.theta0";

/// What the cloud remembers of the groups' steps, where it watches them.
const REVERSALS: &str = "reversals";

/// What compression had lost of each hospital's θ0, up to version 0.2.
const LOST_THETA0: &str = "lost.hospitals.theta0";

const HEADER: &str = "selvedge";
const CHECKSUM: &str = "checksum";

type Tensor<'a> = (&'a str, &'a [usize], &'a [u8]);

/// A fingerprint of everything in a checkpoint, whose tensors are in the order of their names.
fn checksum(header: &str, tensors: &[Tensor<'_>]) -> String {
    let whole = Fingerprint::of("checkpoint").text(header);
    let add = |whole: Fingerprint, (name, shape, data): &Tensor<'_>| {
        let shape = shape.iter().map(|d| *d as u64);
        whole.text(name).words(shape).bytes(data)
    };
    tensors.iter().fold(whole, add).hex()
}

/// What 0.2 and earlier wrote as its checksum.
fn mixed_checksum(header: &str, tensors: &[Tensor<'_>]) -> String {
    let bytes = |key: Key, bytes: &[u8]| {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        key.with(bytes.len() as u64).with_all(words)
    };
    let key = bytes(Key::new(1), header.as_bytes());
    let fold = |key, (name, shape, data): &Tensor<'_>| {
        let key = bytes(key, name.as_bytes()).with_all(shape.iter().map(|d| *d as u64));
        bytes(key, data)
    };
    tensors.iter().fold(key, fold).hex()
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
        edges,
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
    let width = edges.first().map_or(0, Vec::len);
    if width > 0 {
        let bytes = edges.iter().flat_map(|copy| to_bytes(copy)).collect();
        tensors.push((EDGES_THETA0.into(), vec![edges.len(), width], bytes));
    }
    let watched = state.reversals.to_bytes();
    if !watched.is_empty() {
        tensors.push((REVERSALS.into(), vec![watched.len() / 4], watched));
    }
    let text = serde_json::to_string(header)?;
    tensors.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let views: Vec<Tensor<'_>> = tensors.iter().map(|(n, s, b)| (&**n, &**s, &**b)).collect();
    let checksum = checksum(&text, &views);
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
    let mut views: Vec<Tensor<'_>> = found
        .iter()
        .map(|(name, view)| (&**name, view.shape(), view.data()))
        .collect();
    views.sort_unstable_by_key(|tensor| tensor.0);
    let stated = entry(CHECKSUM).context("it has no checksum")?;
    let own = match was_mixed(&stated) {
        true => mixed_checksum(&text, &views),
        false => checksum(&text, &views),
    };
    if own != stated {
        bail!("its checksum does not match its content");
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
    let count = groups;
    let groups = match read("groups", &vec![zeros.clone(); groups])? {
        Some(groups) => groups,
        None => vec![theta.clone(); groups],
    };
    let best = one("best")?;
    let safe = one("safe")?;
    if safe.is_some() != header.progress.controller.is_some() {
        bail!("its safe model does not fit its controller");
    }
    if !residuals.uploads.is_empty() {
        let lost = read("lost.uploads", &residuals.uploads)?;
        residuals.uploads = lost.context("it lacks the residuals of uploads")?;
    }
    let lost = like("lost.cloud", &residuals.cloud)?;
    residuals.cloud = lost.context("it lacks the residuals of downloads")?;
    if !memories.is_any() && tensors.tensor("memory.cloud.theta0").is_ok() {
        bail!("it has the memory of another optimiser");
    }
    if memories.is_any() {
        let lacks = "it lacks the memory of its optimisers";
        memories.groups = read("memory.groups", &memories.groups)?.context(lacks)?;
        memories.cloud = like("memory.cloud", &memories.cloud)?.context(lacks)?;
    }
    if tensors
        .tensor(LOST_THETA0)
        .is_ok_and(|lost| !lost.data().is_empty())
    {
        bail!(
            "version 0.2 wrote it, which added compression errors of theta0 to the next theta0 and so sent wrong values: \
             start the run again"
        );
    }
    let width = residuals.edges.first().map_or(0, Vec::len);
    if width > 0 {
        let copies = tensors.tensor(EDGES_THETA0)?;
        if copies.shape() != [residuals.edges.len(), width] {
            bail!("{EDGES_THETA0} is {:?}", copies.shape());
        }
        let values = from_bytes(copies.data());
        for (copy, values) in residuals.edges.iter_mut().zip(values.chunks_exact(width)) {
            copy.copy_from_slice(values);
        }
    }
    let watched = tensors
        .tensor(REVERSALS)
        .map_or(&[][..], |found| found.data());
    let reversals =
        Reversals::from_bytes(watched, count).context("its sketches of steps are cut")?;
    let state = State {
        progress: header.progress.clone(),
        theta,
        groups,
        good,
        safe,
        best,
        residuals,
        memories,
        devices: match header.devices.len() {
            0 => vec![DeviceConduct::default(); count],
            known if known == count => header.devices.clone(),
            other => {
                bail!("it holds something against the devices of {other} groups, not of {count}")
            }
        },
        reversals,
    };
    Ok((header, state))
}

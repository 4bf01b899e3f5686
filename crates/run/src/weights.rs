//! Models as safetensors in PyTorch's shapes: `combined.0.weight` [out, in] and so on.

use crate::error::{Context, Result, bail};
use crate::files::{read_bytes, write_whole};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use selvedge_core::model::{Architecture, Model};
use std::collections::HashMap;
use std::path::Path;

/// Numbers as the bytes that files hold.
pub fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Numbers from the bytes that files hold.
pub fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

/// Writes a model.
///
/// # Errors
/// If it cannot be written.
pub fn save(path: &Path, architecture: &Architecture, model: &Model) -> Result<()> {
    write_whole(path, &to_file(architecture, model, None)?)
}

/// A model as the bytes of a file, with metadata texts by key.
///
/// # Errors
/// If its numbers and shapes do not fit.
pub fn to_file(
    architecture: &Architecture,
    model: &Model,
    texts: Option<HashMap<String, String>>,
) -> Result<Vec<u8>> {
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = architecture
        .tensors()
        .into_iter()
        .map(|(part, tensor)| {
            let values = to_bytes(&tensor.read(model.parts()[part]));
            (tensor.name, tensor.shape, values)
        })
        .collect();
    serialize(&tensors, texts)
}

/// The bytes of a file of tensors, each with its name and its shape.
pub(crate) fn serialize(
    tensors: &[(String, Vec<usize>, Vec<u8>)],
    texts: Option<HashMap<String, String>>,
) -> Result<Vec<u8>> {
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>>>()?;
    Ok(safetensors::serialize(views, texts)?)
}

/// Reads a model, and checks that it fits these networks.
///
/// # Errors
/// If it cannot be read, is damaged or has other networks.
pub fn load(path: &Path, architecture: &Architecture) -> Result<Model> {
    let bytes = read_bytes(path)?;
    let tensors = SafeTensors::deserialize(&bytes)
        .with_context(|| format!("{} is damaged or not a safetensors file", path.display()))?;
    let mut model = Model::zeros(architecture.widths());
    for (part, wanted) in architecture.tensors() {
        let found = tensors
            .tensor(&wanted.name)
            .with_context(|| format!("{} has no tensor `{}`", path.display(), wanted.name))?;
        if found.shape() != wanted.shape || found.dtype() != Dtype::F32 {
            bail!(
                "{}: tensor `{}` is {:?} {:?}, but the experiment's model has F32 {:?}",
                path.display(),
                wanted.name,
                found.dtype(),
                found.shape(),
                wanted.shape
            );
        }
        let values = from_bytes(found.data());
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            bail!(
                "{} is damaged: tensor `{}` contains {value}; expected finite numbers",
                path.display(),
                wanted.name
            );
        }
        wanted.write(&values, model.parts_mut()[part]);
    }
    Ok(model)
}

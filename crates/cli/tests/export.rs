//! Exported models: the same numbers in ONNX Runtime and in PyTorch as `selvedge predict` gives, and a card that tells
//! of the run.
//!
//! `tools/python/setup` makes the Python that is used; without it the tests that need it are skipped.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

#[path = "export/agreement.rs"]
mod agreement;
#[path = "export/card.rs"]
mod card;
mod common;
#[path = "export/refused.rs"]
mod refused;
#[path = "export/stacks.rs"]
mod stacks;

/// Every file of an export.
const FILES: [&str; 7] = [
    "combined.onnx",
    "device.onnx",
    "hospital.onnx",
    "load.py",
    "model-card.md",
    "model.onnx",
    "model.safetensors",
];

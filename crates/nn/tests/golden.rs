//! Outputs and gradients against PyTorch's, in double precision (`tools/python/golden.py` made the file).

mod common;

use common::{network, pass};
use selvedge_nn::{LayerSpec, Shape, loss, simd::Level};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    loss_cases: Vec<LossCase>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    input_shape: Shape,
    layers: Vec<LayerSpec>,
    params: BTreeMap<String, Values>,
    input: Vec<f32>,
    output: Vec<f32>,
    d_output: Vec<f32>,
    grads: BTreeMap<String, Values>,
    d_input: Vec<f32>,
}

#[derive(Deserialize)]
struct Values {
    shape: Vec<usize>,
    data: Vec<f32>,
}

#[derive(Deserialize)]
struct LossCase {
    logits: Vec<f32>,
    label: u32,
    weight: f32,
    loss: f64,
    d_logits: Vec<f32>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden.json")).expect("golden.json")
}

fn close(what: &str, ours: &[f32], theirs: &[f32]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let scale = theirs.iter().fold(1e-3f32, |m, x| m.max(x.abs()));
    for (i, (x, y)) in ours.iter().zip(theirs).enumerate() {
        assert!(
            (x - y).abs() <= 5e-6 * scale,
            "{what}[{i}]: {x}, PyTorch says {y}"
        );
    }
}

#[test]
fn layers_agree_with_pytorch() {
    let golden = golden();
    assert!(golden.cases.len() >= 20);
    for case in golden.cases {
        let network = network(case.input_shape, &case.layers, Level::detect());
        let mut params = vec![f32::NAN; network.params()];
        let tensors = network.tensors();
        assert_eq!(tensors.len(), case.params.len(), "{}", case.name);
        for tensor in &tensors {
            let values = &case.params[&tensor.name];
            assert_eq!(values.shape, tensor.shape, "{}: {}", case.name, tensor.name);
            tensor.write(&values.data, &mut params);
            assert_eq!(tensor.read(&params), values.data);
        }
        let ours = pass(&network, &params, &case.input, &case.d_output);
        close(
            &format!("{}: output", case.name),
            &ours.output,
            &case.output,
        );
        close(
            &format!("{}: d_input", case.name),
            &ours.d_input,
            &case.d_input,
        );
        for tensor in &tensors {
            let what = format!("{}: gradient of {}", case.name, tensor.name);
            close(
                &what,
                &tensor.read(&ours.gradient),
                &case.grads[&tensor.name].data,
            );
        }
    }
}

#[test]
fn the_loss_agrees_with_pytorch() {
    let golden = golden();
    assert!(!golden.loss_cases.is_empty());
    for case in golden.loss_cases {
        let mut d_logits = vec![0.0; case.logits.len()];
        let level = Level::detect();
        let ours = loss::cross_entropy(level, &case.logits, case.label, case.weight, &mut d_logits);
        let error = (ours - case.loss).abs();
        assert!(
            error <= 1e-6 * case.loss.abs().max(1.0),
            "{:?}: {ours} {}",
            case.logits,
            case.loss
        );
        close("d_logits", &d_logits, &case.d_logits);
    }
}

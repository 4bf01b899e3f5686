//! What the tests of networks share: the stacks, and one sample's pass through one of them.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use selvedge_nn::{LayerSpec, Network, Shape, Update, random::Key, simd::Level};

/// Layers as an experiment would write them.
pub fn layers(json: &str) -> Vec<LayerSpec> {
    serde_json::from_str(json).expect("the test's own layers")
}

/// Every layer alone, and stacks of them.
pub fn stacks() -> Vec<(Shape, Vec<LayerSpec>)> {
    [
        (Shape::Flat(7), r#"[{"linear": {"out": 5}}]"#),
        (Shape::Flat(33), r#"[{"linear": {"out": 17}}]"#),
        (Shape::Flat(20), r#"["tanh"]"#),
        (Shape::Flat(20), r#"["relu"]"#),
        (Shape::Flat(37), r#"["sigmoid"]"#),
        (Shape::Flat(37), r#"["gelu"]"#),
        (Shape::Flat(37), r#"["softplus"]"#),
        (Shape::Steps(5, 3), r#"[{"conv1d": {"out": 4, "size": 2}}, "gelu", "flatten", {"linear": {"out": 6}}, "softplus", {"linear": {"out": 3}}, "sigmoid"]"#),
        (Shape::Flat(21), r#"[{"window": {"size": 8}}, "flatten"]"#),
        (Shape::Steps(9, 3), r#"[{"conv1d": {"out": 5, "size": 3}}]"#),
        (Shape::Steps(10, 2), r#"[{"conv1d": {"out": 17, "size": 4, "stride": 2, "padding": 1}}]"#),
        (Shape::Steps(9, 3), r#"[{"maxpool": {"size": 2}}]"#),
        (Shape::Image(3, 7, 6), r#"[{"conv2d": {"out": 4, "size": 3}}]"#),
        (Shape::Image(2, 8, 9), r#"[{"conv2d": {"out": 6, "size": 3, "stride": 2, "padding": 1}}]"#),
        (Shape::Image(2, 7, 7), r#"["maxpool"]"#),
        (Shape::Steps(6, 5), r#"[{"lstm": {"hidden": 16}}]"#),
        (Shape::Steps(4, 3), r#"[{"lstm": {"hidden": 7}}]"#),
        (Shape::Steps(1, 3), r#"[{"lstm": {"hidden": 32}}]"#),
        (Shape::Steps(6, 5), r#"[{"gru": {"hidden": 16}}]"#),
        (Shape::Steps(4, 3), r#"[{"gru": {"hidden": 7}}]"#),
        (Shape::Flat(30), r#"["spectrum"]"#),
        (Shape::Steps(3, 13), r#"["spectrum"]"#),
        (Shape::Flat(40), r#"[{"window": {"size": 9}}, {"conv1d": {"out": 8, "size": 2}}, "spectrum", {"gru": {"hidden": 5}}]"#),
        (Shape::Steps(7, 5), r#"[{"pool": "mean"}]"#),
        (Shape::Steps(7, 20), r#"[{"pool": "max"}]"#),
        (Shape::Steps(7, 5), r#"[{"pool": "last"}]"#),
        (Shape::Steps(1, 5), r#"[{"pool": "mean"}]"#),
        (Shape::Steps(6, 5), r#"[{"lstm": {"hidden": 16, "sequence": true}}]"#),
        (Shape::Steps(5, 3), r#"[{"gru": {"hidden": 7, "sequence": true}}]"#),
        (Shape::Steps(1, 3), r#"[{"gru": {"hidden": 7, "sequence": true}}]"#),
        (Shape::Steps(6, 5), r#"[{"lstm": {"hidden": 7, "both_ways": true}}]"#),
        (Shape::Steps(6, 5), r#"[{"gru": {"hidden": 16, "both_ways": true}}]"#),
        (Shape::Steps(5, 2), r#"[{"lstm": {"hidden": 4, "both_ways": true, "sequence": true}}]"#),
        (Shape::Steps(5, 2), r#"[{"gru": {"hidden": 5, "both_ways": true, "sequence": true}}]"#),
        (
            Shape::Steps(9, 3),
            r#"[{"lstm": {"hidden": 8, "sequence": true}}, {"gru": {"hidden": 5, "both_ways": true, "sequence": true}}, "gelu",
                {"pool": "mean"}, {"linear": {"out": 3}}]"#,
        ),
        (Shape::Steps(9, 3), r#"[{"gru": {"hidden": 6, "sequence": true}}, {"pool": "max"}, {"linear": {"out": 3}}]"#),
        (Shape::Flat(12), r#"[{"linear": {"out": 9}}, "tanh", {"linear": {"out": 4}}]"#),
        (Shape::Flat(30), r#"[{"window": {"size": 8}}, {"lstm": {"hidden": 16}}, {"linear": {"out": 3}}]"#),
        (Shape::Flat(30), r#"["tanh", {"window": {"size": 7}}, {"gru": {"hidden": 5}}, "tanh"]"#),
        (
            Shape::Steps(12, 3),
            r#"[{"conv1d": {"out": 6, "size": 3, "padding": 1}}, "relu", "maxpool", {"lstm": {"hidden": 8}}]"#,
        ),
        (
            Shape::Image(1, 12, 12),
            r#"[{"conv2d": {"out": 4, "size": 3, "padding": 1}}, "relu", "maxpool",
                {"conv2d": {"out": 6, "size": 3, "padding": 1}}, "relu", "maxpool",
                "flatten", {"linear": {"out": 5}}, "tanh"]"#,
        ),
    ]
    .into_iter()
    .map(|(shape, json)| (shape, layers(json)))
    .collect()
}

/// `n` normal numbers.
pub fn normals(key: Key, n: usize) -> Vec<f32> {
    let mut stream = key.stream();
    (0..n).map(|_| stream.normal()).collect()
}

/// Everything that one sample's forward and backward pass gives.
#[derive(Debug, PartialEq)]
pub struct Pass {
    pub output: Vec<f32>,
    pub gradient: Vec<f32>,
    pub d_input: Vec<f32>,
}

/// A network that also differentiates its input.
pub fn network(shape: Shape, specs: &[LayerSpec], level: Level) -> Network {
    Network::new(shape, specs)
        .expect("a stack that fits")
        .with_input_gradient()
        .with_level(level)
}

/// One sample forward and backward.
pub fn pass(network: &Network, params: &[f32], input: &[f32], d_output: &[f32]) -> Pass {
    let mut tape = vec![f32::NAN; network.tape()];
    let mut prepared = vec![f32::NAN; network.prepared()];
    let mut scratch = vec![f32::NAN; network.scratch()];
    let mut gradient = vec![0.0; network.params()];
    let mut d_input = vec![f32::NAN; input.len()];
    network.prepare(params, &mut prepared);
    let output = network.forward(params, input, &mut tape).to_vec();
    network.backward(
        &prepared,
        input,
        &tape,
        d_output,
        Update::Accumulate(&mut gradient),
        &mut scratch,
        Some(&mut d_input),
    );
    Pass {
        output,
        gradient,
        d_input,
    }
}

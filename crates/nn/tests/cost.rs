//! Costs against closed forms, layer by layer.

mod common;

use common::{layers, stacks};
use selvedge_nn::{Cost, LayerSpec, Network, Shape};

/// A layer's closed forms, in multiply-adds: of the forward pass, and of the gradients of weights, of hidden states and
/// of the input.
struct Closed {
    params: usize,
    activations: usize,
    forward: u64,
    weights: u64,
    states: u64,
    inputs: u64,
}

impl Closed {
    /// A layer whose products have as many terms in every direction.
    fn alike(params: usize, activations: usize, products: u64) -> Self {
        Closed {
            params,
            activations,
            forward: products,
            weights: products,
            states: 0,
            inputs: products,
        }
    }
}

#[track_caller]
fn check(shape: Shape, json: &str, closed: &Closed) {
    let layers = layers(json);
    let tower = Network::new(shape, &layers).expect("the test's own layers");
    let cost = |inputs| Cost {
        params: closed.params,
        activations: closed.activations,
        forward_flops: 2 * closed.forward,
        backward_flops: 2 * (closed.weights + closed.states + inputs),
        frozen_backward_flops: 2 * (closed.states + inputs),
    };
    assert_eq!(tower.cost(), cost(0), "{json}");
    let tower = tower.with_input_gradient();
    assert_eq!(tower.cost(), cost(closed.inputs), "{json}");
}

#[test]
fn linear() {
    let closed = Closed::alike(7 * 5 + 5, 5, 7 * 5);
    check(Shape::Flat(7), r#"[{"linear": {"out": 5}}]"#, &closed);
}

/// The gates, each with a product of the input in every step and of the hidden state in all but the first; and how many
/// numbers are kept for each hidden one of a step.
#[track_caller]
fn check_recurrent(kind: &str, gates: u64, kept: usize, [steps, inputs, hidden]: [u64; 3]) {
    let of_input = gates * steps * inputs * hidden;
    let of_hidden = gates * (steps - 1) * hidden * hidden;
    let closed = Closed {
        params: (gates * hidden * (inputs + hidden + 1)) as usize,
        activations: kept * (steps * hidden) as usize,
        forward: of_input + of_hidden,
        weights: of_input + of_hidden,
        states: of_hidden,
        inputs: of_input,
    };
    let json = format!(r#"[{{"{kind}": {{"hidden": {hidden}}}}}]"#);
    let shape = Shape::Steps(steps as usize, inputs as usize);
    check(shape, &json, &closed);
}

/// Kept are the four gates, the cell, its tanh and the hidden state.
#[test]
fn lstm() {
    check_recurrent("lstm", 4, 7, [6, 5, 16]);
}

/// Kept are the three gates, their sums of the hidden state, and the hidden state.
#[test]
fn gru() {
    check_recurrent("gru", 3, 7, [4, 3, 7]);
}

/// Two of them, beside the input turned round and what comes out of both.
#[test]
fn both_ways() {
    let (steps, inputs, hidden, gates) = (4, 3, 7, 3);
    let of_input = 2 * gates * steps * inputs * hidden;
    let of_hidden = 2 * gates * (steps - 1) * hidden * hidden;
    for (keys, outputs) in [("", 1), (r#", "sequence": true"#, steps)] {
        let activations = steps * inputs + 2 * 7 * steps * hidden + 2 * outputs * hidden;
        let closed = Closed {
            params: (2 * gates * hidden * (inputs + hidden + 1)) as usize,
            activations: activations as usize,
            forward: of_input + of_hidden,
            weights: of_input + of_hidden,
            states: of_hidden,
            inputs: of_input,
        };
        let json = format!(r#"[{{"gru": {{"hidden": {hidden}, "both_ways": true{keys}}}}}]"#);
        check(
            Shape::Steps(steps as usize, inputs as usize),
            &json,
            &closed,
        );
    }
}

/// Each of `places` outputs of each of `out` channels is a product of size × channels terms. Kept are the padded input,
/// up to a cache line, and the output.
#[test]
fn conv1d() {
    // ⌊(10 + 2 − 4)/2⌋ + 1 = 5 places
    let closed = Closed::alike(4 * 2 * 17 + 17, 32 + 5 * 17, 5 * 17 * 4 * 2);
    let json = r#"[{"conv1d": {"out": 17, "size": 4, "stride": 2, "padding": 1}}]"#;
    check(Shape::Steps(10, 2), json, &closed);
}

#[test]
fn conv2d() {
    // One channel lies in memory as it is given, and so does one that comes out: nothing is turned.
    let closed = Closed::alike(3 * 3 + 1, 48 + 5 * 4, 5 * 4 * 3 * 3);
    let json = r#"[{"conv2d": {"out": 1, "size": 3}}]"#;
    check(Shape::Image(1, 7, 6), json, &closed);
}

/// Each of the steps times a table of real and imaginary parts, which are kept up to a cache line beside the powers.
#[test]
fn spectrum() {
    let (steps, size, bins) = (5, 9, 5);
    let products = (steps * size * 2 * bins) as u64;
    let closed = Closed {
        weights: 0,
        ..Closed::alike(0, 64 + steps * bins, products)
    };
    let shape = Shape::Steps(steps, size);
    let layers = layers(r#"["spectrum"]"#);
    let tower = Network::new(shape, &layers).expect("the test's own layers");
    // Without weights below it, nobody needs its gradient.
    assert_eq!(tower.cost().backward_flops, 0);
    check(shape, r#"["spectrum"]"#, &closed);
}

#[test]
fn work_on_single_numbers_is_not_counted() {
    for (json, numbers) in [
        (r#"["maxpool"]"#, 4 * 3),
        (r#"["tanh"]"#, 9 * 3),
        (r#"[{"pool": "mean"}]"#, 3),
    ] {
        check(Shape::Steps(9, 3), json, &Closed::alike(0, numbers, 0));
    }
    check(
        Shape::Image(1, 7, 7),
        r#"["maxpool"]"#,
        &Closed::alike(0, 9, 0),
    );
}

/// What nobody has is not differentiated: neither the raw input, nor layers before the first weights.
#[test]
fn a_stack_is_the_sum_of_its_layers() {
    let json =
        r#"["tanh", {"window": {"size": 7}}, {"gru": {"hidden": 5}}, {"linear": {"out": 2}}]"#;
    let tower = Network::new(Shape::Flat(30), &layers(json)).expect("the test's own layers");
    let of_input = 2 * 3 * 5 * 7 * 5;
    let of_hidden = 2 * 3 * 4 * 5 * 5;
    let linear = 2 * 5 * 2;
    assert_eq!(tower.cost().forward_flops, of_input + of_hidden + linear);
    assert_eq!(
        tower.cost().backward_flops,
        of_input + 2 * of_hidden + 2 * linear
    );
    assert_eq!(tower.cost().frozen_backward_flops, of_hidden + linear);

    for (shape, specs) in stacks() {
        let network = Network::new(shape, &specs).expect("the test's own layers");
        let cost = network.cost();
        assert_eq!(cost, network.costs().into_iter().sum());
        assert_eq!(cost.params, network.params());
        assert!(cost.activations <= network.tape());
        let weights = cost.backward_flops - cost.frozen_backward_flops;
        if !specs.contains(&LayerSpec::Spectrum) {
            assert_eq!(weights, cost.forward_flops);
        }
    }
}

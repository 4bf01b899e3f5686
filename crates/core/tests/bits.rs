//! The bits of trained models, written down: a version that changes any of them is seen, whether it means to or not.

mod common;

use common::{Plan, checked, dataset, experiment, model_bits, run, task, with_algorithm};
use selvedge_core::experiment::Algorithm;
use selvedge_core::fingerprint::Fingerprint;
use selvedge_nn::Shape;

/// Layers of every kind, in the order of θ0, θ1, θ2.
const LAYERS: [&str; 3] = [
    r#"[{"linear": {"out": 6}}, "tanh", {"linear": {"out": 3}}]"#,
    r#"[{"conv2d": {"out": 4, "size": 3, "padding": 1}}, "relu", "maxpool", "flatten"]"#,
    r#"[{"window": {"size": 3}}, {"lstm": {"hidden": 5}}]"#,
];

/// Digests of θ after twelve iterations with P = 4 and Q = 2, by algorithm. Who changes one on purpose writes it down
/// here and in the changelog: an older run can then not be resumed to the same end.
const DIGESTS: [(Algorithm, &str); 9] = [
    (Algorithm::Hsgd, "f9e425fd7310a941"),
    (Algorithm::Jfl, "90a633a3efaa41e2"),
    (Algorithm::Tdcd, "c602b4c401a207d8"),
    (Algorithm::CHsgd, "ea2853208c31ee49"),
    (Algorithm::CTdcd, "e50827a43c6bcb5f"),
    (Algorithm::Centralised, "1091b12c922efe48"),
    (Algorithm::FedAvg, "2d4027ab18f83822"),
    (Algorithm::HospitalOnly, "1620b32bc49c7e6b"),
    (Algorithm::DeviceOnly, "d07114caa7b0a180"),
];

#[test]
fn models_have_the_bits_that_they_had() {
    let plan = Plan {
        x1: Shape::Image(1, 6, 6),
        x2: Shape::Flat(12),
        classes: 3,
        validation: 12,
        ..Plan::of_groups(&[9, 14, 11])
    };
    let data = dataset(3, &plan);
    let mut e = experiment(3, [12, 4, 2], LAYERS);
    (e.train.learning_rate, e.train.halve_every) = (0.2, 5);
    let e = checked(&e);
    let found = DIGESTS.map(|(algorithm, _)| {
        let e = with_algorithm(&e, algorithm);
        let bits = model_bits(&run(&task(&e, &data)).last.theta);
        let words = bits.into_iter().map(u64::from);
        (algorithm, Fingerprint::of("model").words(words).hex())
    });
    let found = found
        .each_ref()
        .map(|(algorithm, hex)| (*algorithm, &hex[..16]));
    assert_eq!(found, DIGESTS);
}

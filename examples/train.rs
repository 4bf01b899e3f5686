//! Data in memory: train with HSGD, read the metrics, use the model.

use selvedge_run::{
    Dataset, Error, Experiment, Group, Holders, Loaded, Outcome, Samples, Shape, Training,
};
use std::ops::Range;

/// Patients with one number at the hospital and one on a device; those whose numbers have the same sign are ill.
fn patients(numbers: Range<u16>) -> Samples {
    let mut samples = Samples::default();
    for n in numbers.map(f32::from) {
        let (x1, x2) = ((0.37 * n) % 2.0 - 1.0, (0.61 * n) % 2.0 - 1.0);
        samples.push(&[x1], &[x2], u32::from(x1 * x2 > 0.0));
    }
    samples
}

fn main() -> Result<(), Error> {
    let group = |name: &str, numbers| Group::one_sample_per_device(name.into(), patients(numbers));
    let data = Loaded::from(Dataset {
        name: "signs".into(),
        hospital: Shape::Flat(1),
        device: Shape::Flat(1),
        outcome: Outcome::Class,
        classes: vec!["well".into(), "ill".into()],
        groups: vec![group("north", 0..300), group("south", 300..600)],
        validation: patients(600..700),
        test: patients(700..900),
        holders: Holders::InTurn,
    });
    let experiment = Experiment::parse("[train]\niterations = 1000\nlearning_rate = 0.5", &[])?;
    let finished = Training::new(&experiment, &data).run()?;
    for e in finished.evaluations.iter().step_by(5) {
        let f1 = e.test.f1.unwrap_or(f64::NAN);
        println!("t {:4}  loss {:.3}  F1 {f1:.3}", e.t, e.loss_train);
    }
    let new = finished.predict(&patients(900..902)).answers;
    println!("ill with probability {:.2} and {:.2}", new[1], new[3]);
    Ok(())
}

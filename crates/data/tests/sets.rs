//! What follows from the set where an experiment leaves it out.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use selvedge_data::{SETS, load};
use selvedge_nn::LayerSpec;

/// The default rates and computation times are the paper's.
#[test]
fn the_default_clock_is_the_papers() {
    let text = |set: &str| format!("[data]\nset = \"{set}\"");
    let esr = SETS.parse(&text("esr"), &[]).unwrap().time;
    let synthetic = SETS.parse("", &[]).unwrap().time;
    let rates = [esr.mobile_up, esr.mobile_down, esr.fixed_up, esr.fixed_down];
    assert_eq!(rates, [14e6, 110e6, 74e6, 204e6]);
    assert_eq!(
        (esr.compute_seconds(), synthetic.compute_seconds()),
        (0.064, 0.05)
    );
    assert_eq!(
        (
            esr.compute_scale,
            esr.shared_uplink,
            esr.sequential_exchange
        ),
        (1.0, false, false)
    );
}

/// A model of a set fits its twin, whatever is learnt.
#[test]
fn twins_have_as_many_labels_as_their_sets() {
    for (set, outcome, labels) in [
        ("physionet2012", "labels", 3),
        ("mimic3", "phenotyping", 25),
        ("mimic3", "decompensation", 2),
    ] {
        for set in [set.to_owned(), format!("synthetic-{set}")] {
            let text = format!("[data]\nset = \"{set}\"\noutcome = \"{outcome}\"\ndevices = 20");
            let experiment = SETS.parse(&text, &[]).unwrap();
            let layers = experiment.model.combined.unwrap();
            let last = LayerSpec::Linear { out: labels };
            assert_eq!(layers.last(), Some(&last), "{set}");
            if set.starts_with("synthetic") {
                let dataset = load(&experiment.data, 1, None).unwrap();
                assert_eq!(dataset.classes.len(), labels, "{set}");
            }
        }
    }
}

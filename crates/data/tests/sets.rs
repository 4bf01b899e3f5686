//! What follows from the set where an experiment leaves it out.

use selvedge_data::SETS;

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

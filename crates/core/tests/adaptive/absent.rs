//! Groups and devices that are not there, and models that come back.

use crate::common::{Missing, Phase, model_bits, run, task};
use crate::{MODES, assert_sound, begun, changes, compressed, data, line, safe, steered};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::Adaptive;
use selvedge_core::ledger::{Direction, Kind, Link};
use selvedge_core::model::Model;
use selvedge_core::state::State;

/// Who is absent sends no report and is told nothing until it returns.
#[test]
fn absent_groups_neither_report_nor_are_told() {
    let data = data(3);
    let e = steered(Adaptive::Gain, 3, [400, 20, 20], 4.0);
    let mut task = task(&e, &data);
    let alone = |t: u64| (40..120).contains(&t);
    task.absences = Box::new(Missing(move |t, group, phase| {
        phase == Phase::Global && group > 0 && alone(t)
    }));
    let run = run(&task);
    assert_sound(&e, &run);
    let (mut reports, mut settings, mut before) = (0, 0, 0);
    for state in &run.log.states[1..] {
        let t = state.progress.t;
        let there = if alone(t) { 1 } else { 3 };
        reports += there;
        settings += there * u64::from(begun(state).is_some());
        settings += if alone(before) && !alone(t) { 2 } else { 0 };
        before = t;
        let ledger = &state.progress.ledger;
        assert_eq!(
            line(ledger, Link::HospitalCloud, Kind::Report).0,
            reports,
            "t = {t}"
        );
        assert_eq!(
            line(ledger, Link::EdgeCloud, Kind::Settings).0,
            settings,
            "t = {t}"
        );
    }
}

/// What an absent group saw is not aggregated, so it must not steer either.
#[test]
fn what_an_absent_group_sees_steers_nothing() {
    let mut data = data(4);
    let e = steered(Adaptive::Gain, 4, [60, 10, 10], 0.4);
    let finished = |data: &Dataset| {
        let mut task = task(&e, data);
        task.absences = Box::new(Missing(|_, group, phase| {
            phase == Phase::Global && group == 1
        }));
        let run = run(&task);
        changes(&run)
            .into_iter()
            .map(|c| (c.t, c.p, c.eta.to_bits()))
            .collect::<Vec<_>>()
    };
    let plain = finished(&data);
    data.groups[1].samples.x1.fill(1e30);
    assert_eq!(plain, finished(&data));
}

/// The last interval is cut to what is left of the run even if nobody is there to steer it.
#[test]
fn with_nobody_there_a_run_ends_at_its_end_and_knows_no_new_good_model() {
    for mode in MODES {
        let data = data(5);
        let e = steered(mode, 5, [101, 101, 1], 0.4);
        for from in [1, 10, 40, 80] {
            let mut task = task(&e, &data);
            task.absences = Box::new(Missing(move |t, _, phase| {
                matches!(phase, Phase::Exchange(_)) && t >= from
            }));
            let run = run(&task);
            assert_sound(&e, &run);
            for pair in run.log.states.windows(2) {
                let [before, after] = pair else {
                    unreachable!()
                };
                if before.progress.t >= from {
                    let bits = |s: &State| model_bits(safe(s));
                    assert_eq!(bits(before), bits(after), "nobody has seen anything");
                }
            }
        }
    }
}

/// A model that comes back goes whole to all groups, and nothing that was lost of the bad ones is added to it.
#[test]
fn restoring_forgets_what_compression_has_lost_and_sends_the_whole_model() {
    let data = data(6);
    let e = compressed(steered(Adaptive::Gain, 6, [1000, 50, 50], 400.0));
    let task = task(&e, &data);
    let w = task.architecture.widths();
    let run = run(&task);
    let mut restored = 0;
    for pair in run.log.states.windows(2) {
        let [before, after] = pair else {
            unreachable!()
        };
        if !begun(after).is_some_and(|c| c.reason.contains("back to")) {
            continue;
        }
        restored += 1;
        assert_eq!(model_bits(&after.theta), model_bits(safe(before)));
        let lost = &after.residuals;
        let zero = |m: &Model| m.parts().iter().all(|p| p.iter().all(|x| *x == 0.0));
        assert!(lost.uploads.iter().all(zero) && zero(&lost.cloud));
        assert!(lost.edges.iter().flatten().all(|x| *x == 0.0));
        let down = |s: &State| {
            let entries = s.progress.ledger.entries().iter();
            let found =
                entries.filter(|e| e.link == Link::EdgeCloud && e.direction == Direction::Down);
            found
                .filter(|e| e.kind == Kind::Theta2)
                .map(|e| e.bytes)
                .sum::<u64>()
        };
        assert_eq!(down(after) - down(before), 3 * 4 * w.n2 as u64);
    }
    assert!(restored > 1, "{restored}");
}

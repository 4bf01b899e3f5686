//! Training at a glance, for terminals of all sizes.

use super::glance::{Course, Glance, LINES, Parties, Present};
use selvedge_core::outcome::Kind;
use selvedge_core::run;
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_data::SETS;
use std::ops::ControlFlow;

/// A run that is steered, as it is after some intervals.
fn with_a_run(look: impl FnOnce(&State, &[Evaluation], Parties, Present)) {
    let text = "[data]\ngroups = 3\ndevices = 40\n[train]\niterations = 120\nglobal_interval = 4\nlocal_interval = 2\n\
        adaptive = \"gain\"\nevaluate_every = 4";
    let experiment = SETS.parse(text, &[]).unwrap();
    let dataset = crate::load::dataset(&experiment, &crate::args::DataDirectory { data_dir: None });
    let dataset = dataset.unwrap();
    let task = Task::new(&experiment, &dataset).unwrap();
    let (mut state, mut found, mut present) =
        (State::initial(&task), Vec::new(), Present::default());
    let done: Result<_, std::convert::Infallible> = run::train(&task, &mut state, |interval| {
        found.extend(interval.evaluation.cloned());
        present = Present::of(interval.groups);
        Ok(ControlFlow::Continue(()))
    });
    done.unwrap();
    look(&state, &found, Parties::of(&dataset), present);
}

#[test]
fn nothing_is_wider_or_higher_than_the_terminal() {
    with_a_run(|state, found, parties, present| {
        let (mut loss, mut auc) = (Course::default(), Course::default());
        for e in found {
            loss.add(e.loss_train);
            auc.add(e.test.auc.unwrap());
        }
        let glance = Glance {
            label: "a name of\u{1b}[2J somebody 漢字",
            total: 120,
            speed: Some((8_665.4, 3.2)),
            learning_rate: state.progress.segment.learning_rate,
            progress: &state.progress,
            last: found.last(),
            loss: &loss,
            kind: Kind::Class,
            chief: &auc,
            parties,
            present,
        };
        for columns in 1..=210 {
            for rows in 1..30 {
                let lines = glance.lines(columns, rows);
                assert!(
                    lines.len() <= LINES && lines.len() < rows.max(2),
                    "{rows} rows"
                );
                let widest = lines.iter().map(|line| line.width()).max().unwrap();
                assert!(widest < columns.max(2), "{widest} in {columns} columns");
            }
        }
        let lines = glance.lines(120, 24);
        let text: Vec<String> = lines.iter().map(|line| line.text()).collect();
        let text = text.join("\n");
        for part in [
            "t 120/120  3.2 s left  8,665 iterations/s",
            "a name of?[2J somebody ??",
            "loss     0.",
            "AUC      0.",
            "per group  device-edge ",
            "theta0 ",
            "P ",
            "why      since t ",
            "devices  12 of 120 devices take part  3 groups × 40 devices",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    });
}

#[test]
fn a_long_course_is_thinned_out_and_keeps_its_shape() {
    let mut course = Course::default();
    (0..100_000).for_each(|i| course.add(f64::from(i)));
    assert!(course.len() <= 512);
    assert_eq!(course.line(8), "▁▂▃▄▅▆▇█");
}

use super::*;

fn segment(q: u64, learning_rate: f64) -> Segment {
    Segment {
        start: 0,
        global_interval: q,
        local_interval: q,
        learning_rate,
        halve_every: None,
    }
}

/// What is seen where an interval learns and a first step keeps so much, at a loss of 1 with this η.
fn seen(learnt: f64, kept: f64, rate: f64) -> Descended {
    // The first step promises a tenth of the loss.
    Descended {
        first: 1.0,
        second: 1.0 - 0.1 * kept,
        last: libm::exp(-learnt),
        slope: 0.1 / rate,
    }
}

fn steer(gain: &mut Gain, seen: &Descended, q: u64, rate: f64) -> Decision {
    gain.steer(seen, 200.0, true, segment(q, rate))
}

#[test]
fn too_far_makes_the_way_shorter_and_too_timid_makes_it_longer() {
    for (learnt, kept, q, way) in [
        (1.2, 0.6, 16, 8.0),   // twice the aim: half the way
        (0.3, 0.6, 16, 32.0),  // half the aim: twice the way
        (0.05, 0.6, 16, 64.0), // at most four times
        (6.0, 0.6, 16, 4.0),   // at least a quarter
        (0.5, 0.6, 16, 16.0),  // not worth a change
        (0.05, 0.3, 16, 16.0), // steps go back and forth: no reason to go further
        (-0.5, 0.3, 16, 8.0),  // the batch's loss rises: half
    ] {
        let next = steer(&mut Gain::default(), &seen(learnt, kept, 1.0), q, 1.0);
        let found = next.learning_rate * next.interval as f64;
        assert!((found / way - 1.0).abs() < 0.01, "{learnt} {kept}: {found}");
        assert!(!next.restore && next.good, "{next:?}");
    }
}

#[test]
fn steps_grow_where_they_keep_what_they_promise_and_are_halved_where_they_do_not() {
    // As far as before, in half the steps.
    let next = steer(&mut Gain::default(), &seen(0.6, 0.9, 0.5), 8, 0.5);
    assert_eq!((next.interval, next.learning_rate), (4, 1.0));
    // Further by larger steps, not by more of them.
    let next = steer(&mut Gain::default(), &seen(0.15, 0.9, 0.5), 8, 0.5);
    assert_eq!((next.interval, next.learning_rate), (8, 2.0));
    // As far as before, in twice the steps.
    let next = steer(&mut Gain::default(), &seen(0.6, 0.05, 0.5), 8, 0.5);
    assert_eq!((next.interval, next.learning_rate), (16, 0.25));
    // Between, nothing changes.
    let next = steer(&mut Gain::default(), &seen(0.6, 0.5, 0.5), 8, 0.5);
    assert_eq!((next.interval, next.learning_rate), (8, 0.5));
}

#[test]
fn what_only_shows_rounding_makes_steps_larger() {
    let nothing = Descended {
        first: 0.7,
        second: 0.7,
        last: 0.7,
        slope: 0.1,
    };
    let mut rate = 1e-9;
    for _ in 0..10 {
        let next = steer(&mut Gain::default(), &nothing, 2, rate);
        assert_eq!((next.interval, next.learning_rate), (2, 4.0 * rate));
        rate = next.learning_rate;
    }
}

#[test]
fn a_decision_takes_a_hundred_patients() {
    let mut gain = Gain::default();
    let too_far = seen(1.2, 0.6, 1.0);
    for _ in 0..4 {
        let next = gain.steer(&too_far, 24.0, true, segment(16, 1.0));
        assert_eq!(
            (next.interval, next.learning_rate, next.good),
            (16, 1.0, false)
        );
    }
    let next = gain.steer(&too_far, 24.0, true, segment(16, 1.0));
    assert_eq!((next.interval, next.good), (8, true));
    assert_eq!(gain.patients, 0.0);
}

#[test]
fn one_step_shows_nothing() {
    let next = steer(&mut Gain::default(), &seen(0.0, 0.0, 1.0), 1, 0.3);
    assert_eq!((next.interval, next.learning_rate), (2, 0.3));
}

#[test]
fn a_loss_twice_that_of_the_start_brings_back_the_last_good_model() {
    let mut gain = Gain::default();
    steer(&mut gain, &seen(0.6, 0.5, 1.0), 8, 1.0);
    let mut worse = seen(0.6, 0.5, 1.0);
    worse.first = 1.9;
    assert!(!steer(&mut gain, &worse, 8, 1.0).restore);
    worse.first = 2.1;
    let next = steer(&mut gain, &worse, 8, 1.0);
    assert!(next.restore && !next.good);
    assert_eq!((next.interval, next.learning_rate), (4, 0.25));
    // At once, however few the patients, if it is no number.
    worse.first = f64::NAN;
    assert!(gain.steer(&worse, 1.0, true, segment(8, 1.0)).restore);
    let fine = seen(0.6, 0.5, 1.0);
    assert!(gain.steer(&fine, 1.0, false, segment(8, 1.0)).restore);
}

/// The aim after a window of decisions that see these losses.
fn aim_after(gain: &mut Gain, loss: f64) -> f64 {
    for i in 0..WINDOW {
        // Some spread, so that there is such a thing as chance.
        gain.look_at(loss + 0.01 * (i % 3) as f64);
    }
    gain.aim
}

#[test]
fn the_aim_follows_what_fresh_patients_show() {
    let mut gain = Gain::default();
    let first = aim_after(&mut gain, 1.0);
    assert!((first / AIM - 0.95).abs() < 1e-9, "nothing to compare with");
    let better = aim_after(&mut gain, 0.9);
    assert!((better / first - 1.15).abs() < 1e-9);
    let same = aim_after(&mut gain, 0.9);
    assert!((same / better - 0.95).abs() < 1e-9);
    let worse = aim_after(&mut gain, 1.2);
    assert!((worse / same - 0.7).abs() < 1e-9);
    // As long as it is worse than the best, not just than the last.
    let still = aim_after(&mut gain, 1.1);
    assert!((still / worse - 0.7).abs() < 1e-9);
    for _ in 0..50 {
        aim_after(&mut gain, 1.1);
    }
    assert_eq!(gain.aim, AIMS[0]);
    for i in 0..50 {
        aim_after(&mut gain, 0.8 - 0.1 * f64::from(i));
    }
    assert_eq!(gain.aim, AIMS[1]);
}

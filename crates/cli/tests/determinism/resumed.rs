//! Killed, interrupted and torn runs, gone on with.

use crate::common::process::Live;
use crate::common::run::{Run, append, number, same_results};
use crate::common::{Place, Random, copy, mixed_experiment, says, selvedge, text};
use crate::{SOON, instructions, mixed_run};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// How long runs that are to be killed take, in seconds, so that checkpoints (one every two seconds) are met. A machine
/// that was busy when its speed was measured and then is not gets there too soon: then a longer one is taken.
pub(super) const LONG: [f64; 3] = [4.0, 12.0, 36.0];

/// The experiment of the kill test, long enough to take about so many seconds here; and the run of it that nobody
/// disturbed.
fn long_reference(place: &Place, seconds: f64) -> Run {
    place.write("trial.toml", mixed_experiment(2400));
    place.succeeds(&["train", "trial.toml", "--threads", "1", "--out", "trial"]);
    let rate = rate(&Run::at(place, "trial"));
    let iterations = (seconds * rate / 120.0).ceil() as u64 * 120;
    place.write("long.toml", mixed_experiment(iterations));
    let args = ["--threads", "1", "--trace", "--out", "whole"];
    place.succeeds(&[&["train", "long.toml"][..], &args].concat());
    Run::at(place, "whole")
}

/// Iterations a second.
fn rate(run: &Run) -> f64 {
    let timing = &run.manifest()["timing"];
    number(timing, "iterations") / number(timing, "seconds")
}

#[test]
fn killed_at_ten_moments_and_resumed_it_ends_the_same() {
    let met = LONG.into_iter().any(kill_at_ten_moments);
    assert!(met, "no kill found a checkpoint behind t = 0");
}

/// Whether any kill found a checkpoint behind t = 0.
fn kill_at_ten_moments(seconds: f64) -> bool {
    let place = Place::new("killed");
    let whole = long_reference(&place, seconds);
    let all = number(&whole.manifest()["timing"], "iterations");
    const SEED: u64 = 0x5e1f_ed9e;
    let mut random = Random(SEED);
    // One moment in each tenth of what is left to do, in random order.
    let mut moments: Vec<f64> = (0..10)
        .map(|i| (f64::from(i) + random.next()) / 10.0)
        .collect();
    for i in (1..moments.len()).rev() {
        moments.swap(i, (random.next() * (i + 1) as f64) as usize);
    }
    let mut rate = rate(&whole);
    let (mut kills, mut behind_start, mut runs) = (0, 0, 0);
    let mut history = format!("seed {SEED:#x}, {all} iterations, {rate:.0} a second");
    let resume = |name: &str| {
        let mut command = selvedge(place.path());
        let args = ["--threads", "1", "--trace", "--resume", name];
        command.args(["train", "long.toml"]).args(args);
        Live::start(&mut command)
    };
    while kills < moments.len() {
        let name = format!("killed-{runs}");
        let run = Run::at(&place, &name);
        let left = all - run.checkpoint_t().unwrap_or(0) as f64;
        let started = Instant::now();
        let mut live = resume(&name);
        if live.ends_within(Duration::from_secs_f64(moments[kills] * left / rate)) {
            // Faster than expected: the moment is for the next one.
            live.finish().succeeded();
            same_results(&whole, &run, &history);
            rate = rate.max(left / started.elapsed().as_secs_f64());
            runs += 1;
            assert!(runs < 20, "runs end too soon to be killed: {history}");
            continue;
        }
        live.signal("KILL");
        live.finish();
        let t = run.checkpoint_t();
        behind_start += u32::from(t.is_some_and(|t| t > 0));
        history += &format!(
            "\n{name} killed after {:?}, saved at {t:?}",
            started.elapsed()
        );
        kills += 1;
    }
    resume(&format!("killed-{runs}")).finish().succeeded();
    same_results(
        &whole,
        &Run::at(&place, &format!("killed-{runs}")),
        &history,
    );
    behind_start > 0
}

#[test]
fn ctrl_c_saves_says_how_to_go_on_and_going_on_ends_the_same() {
    let place = Place::new("ctrl-c");
    let whole = mixed_run(&place, 3600, "whole");
    let run = Run::at(&place, "run");
    let simd = instructions(&whole);
    let start = ["train", "mixed.toml", "--trace", "--out", "run"];
    let resume = ["train", "--resume", "run", "--threads"];
    let fast = simd.iter().rfind(|l| *l != "plain");
    let other = [&resume[..], &["1", "--simd", fast.unwrap_or(&simd[0])]].concat();
    let commands = [
        &start[..],
        &[&resume[..], &["2"]].concat(),
        &other,
        &[&resume[..], &["3"]].concat(),
    ];
    let mut before = 0;
    for (i, command) in commands.into_iter().enumerate() {
        let mut live = Live::start(selvedge(place.path()).args(command));
        if i == 3 {
            live.finish().succeeded();
            break;
        }
        let evaluations = 3 + 30 * i;
        live.wait_until("far enough", SOON, || {
            run.evaluations_so_far() > evaluations
        });
        live.signal("INT");
        let ran = live.finish().ended(130);
        let (ending, t) = (
            run.manifest()["ending"].clone(),
            run.checkpoint_t().unwrap(),
        );
        assert_eq!(
            (&ending["kind"], &ending["t"]),
            (&"interrupted".into(), &t.into())
        );
        assert!(before < t && t < 3600, "interrupted at {t}");
        before = t;
        says(&ran.stdout, &["selvedge train --resume run"]);
        assert!(!run.file("model.safetensors").exists());
        place.refuses(
            &["evaluate", "run"],
            &["run", "selvedge train --resume run"],
        );
    }
    same_results(&whole, &run, "interrupted three times");
}

#[test]
fn ctrl_c_leaves_one_json_object_too() {
    let place = Place::new("ctrl-c-json");
    place.write("mixed.toml", mixed_experiment(36_000));
    let run = Run::at(&place, "run");
    let args = ["train", "mixed.toml", "--json", "--out", "run"];
    let mut live = Live::start(selvedge(place.path()).args(args));
    live.wait_until("begun", SOON, || run.evaluations_so_far() > 1);
    // `timeout` sends one to the process and one to its group: still one wish to stop.
    live.signal("INT");
    live.signal("INT");
    let ran = live.finish().ended(130);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        value.is_object(),
        "a finished run is an object, this is {value}"
    );
    assert_eq!(value["ending"]["kind"], "interrupted");
}

/// A run that was ended by SIGKILL when it had evaluated a few times, and the one that was not.
fn killed_run(place: &Place) -> (Run, Run) {
    place.write("mixed.toml", mixed_experiment(2400));
    let args = ["train", "mixed.toml", "--trace", "--out"];
    place.succeeds(&[&args[..], &["whole"]].concat());
    let run = Run::at(place, "run");
    let mut live = Live::start(selvedge(place.path()).args(args).arg("run"));
    live.wait_until("begun", SOON, || run.evaluations_so_far() > 10);
    live.signal("KILL");
    live.finish();
    (Run::at(place, "whole"), run)
}

#[test]
fn torn_tails_and_half_written_files_of_a_killed_run_are_harmless() {
    let place = Place::new("torn");
    let (whole, run) = killed_run(&place);
    append(&run.file("metrics.jsonl"), br#"{"t":99,"p"#);
    append(
        &run.file("trace.jsonl"),
        b"{\"t\":4,\"group\":0,\"dev\xff\x00garbage\n\n",
    );
    let left = "checkpoint/.selvedge-0123456789abcdef.partial";
    let others = ["checkpoint/state.safetensors.partial", "ledger.csv.partial"];
    for name in [left, ".selvedge-0123456789abcdef.partial"]
        .iter()
        .chain(&others)
    {
        fs::write(run.file(name), b"half of it").unwrap();
    }
    place.succeeds(&["train", "mixed.toml", "--resume", "run"]);
    same_results(&whole, &run, "torn tails");
    assert!(!run.file(left).exists());
    assert!(others.iter().all(|name| run.file(name).exists()));
}

#[test]
fn metrics_that_are_shorter_than_the_checkpoint_says_are_not_gone_on_with() {
    let place = Place::new("short");
    let run = mixed_run(&place, 240, "run");
    // As in a run that was killed.
    run.forget_digests();
    for name in ["metrics.jsonl", "trace.jsonl"] {
        let whole = run.bytes(name);
        fs::write(run.file(name), &whole[..whole.len() - 7]).unwrap();
        place.refuses(
            &["train", "--resume", "run"],
            &[name, &whole.len().to_string()],
        );
        fs::write(run.file(name), whole).unwrap();
    }
    place.succeeds(&["train", "--resume", "run"]);
}

#[test]
fn a_finished_run_is_not_changed_by_resuming_it() {
    let place = Place::new("finished");
    let run = mixed_run(&place, 240, "run");
    copy(&run.0, &place.join("before"));
    let ran = place.succeeds(&["train", "mixed.toml", "--resume", "run", "--json"]);
    same_results(&Run::at(&place, "before"), &run, "resumed when finished");
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["last"], *run.metrics().last().unwrap());
    let parts = ["manifest.json", "checkpoint/state.safetensors"];
    assert!(parts.iter().all(|name| run.file(name).is_file()));
}

/// Every file is as a kill leaves them between the last checkpoint and the manifest that says the run has stopped.
#[test]
fn a_run_killed_just_after_its_target_was_reached_stops_there_all_the_same() {
    let place = Place::new("killed-at-target");
    for (key, value) in [("stop.auc", "0.9"), ("stop.bytes", "1e6")] {
        let set = format!("{key}={value}");
        place.succeeds(&["train", "--set", &set, "--out", key]);
        let whole = Run::at(&place, key);
        let run = Run::at(&place, &format!("killed-{key}"));
        copy(&whole.0, &run.0);
        run.edit_manifest(|manifest| {
            assert_eq!(manifest["ending"]["key"], key);
            manifest["ending"] = Value::Null;
        });
        for name in ["model.safetensors", "best.safetensors"] {
            fs::remove_file(run.file(name)).unwrap();
        }
        place.succeeds(&["train", "--resume", text(&run.0)]);
        same_results(&whole, &run, key);
    }
}

#[test]
fn seeds_killed_in_the_middle_are_gone_on_with() {
    let place = Place::new("killed-seeds");
    place.write("mixed.toml", mixed_experiment(600));
    let train = ["train", "mixed.toml", "--seeds", "3"];
    place.succeeds(&[&train[..], &["--out", "whole"]].concat());
    let mut live = Live::start(selvedge(place.path()).args(train).args(["--out", "all"]));
    let second = Run::at(&place, "all/seed-8");
    live.wait_until("at the second", SOON, || second.evaluations_so_far() > 3);
    live.signal("KILL");
    live.finish();
    assert!(!place.join("all/seed-9").exists(), "killed too late");
    let ran = place.succeeds(&[&train[..], &["--resume", "all"]].concat());
    says(&ran.stdout, &["3 seeds"]);
    for seed in [7, 8, 9] {
        let [whole, found] = ["whole", "all"].map(|d| Run::at(&place, &format!("{d}/seed-{seed}")));
        same_results(&whole, &found, &format!("seed {seed}"));
    }
}

/// A kill between making the folder and writing `seeds.json`.
#[test]
fn seeds_killed_before_the_first_run_are_begun_by_resuming() {
    let place = Place::new("seeds-not-begun");
    place.write("mixed.toml", mixed_experiment(24));
    place.write(
        "all/.selvedge-0123456789abcdef.partial",
        "{ \"name\": \"mix",
    );
    place.succeeds(&["train", "mixed.toml", "--seeds", "2", "--resume", "all"]);
    assert!(place.join("all/seed-8/model.safetensors").is_file());
}

#[test]
fn resuming_what_has_not_begun_begins_it() {
    let place = Place::new("not-begun");
    place.write("mixed.toml", mixed_experiment(48));
    place.succeeds(&["train", "mixed.toml", "--out", "whole"]);
    place.succeeds(&["train", "mixed.toml", "--resume", "run"]);
    same_results(
        &Run::at(&place, "whole"),
        &Run::at(&place, "run"),
        "begun by --resume",
    );
    place.refuses(&["train", "--resume", "nowhere"], &["nowhere"]);
}

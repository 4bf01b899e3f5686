//! Readers that go away, and names that are not text.

use crate::common::run::Run;
use crate::common::{Place, selvedge, words};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

const SHORT: &str = "--set train.iterations=20 --set train.evaluate_every=10";

/// A pipe whose reader has gone away already.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[track_caller]
fn no_panic(output: &Output, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let panicked = stderr.contains("panicked") || output.status.code() == Some(101);
    assert!(!panicked, "{what}: {:?}\n{stderr}", output.status);
    assert!(
        output.status.code().is_some(),
        "{what}: {:?}",
        output.status
    );
}

fn train(place: &Place, out: &str) -> Command {
    let mut command = selvedge(place.path());
    command.args(["train", "--out", out]).args(words(SHORT));
    command
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = Place::new("closed-stdout");
    place.succeeds(&words(&format!("train --out run {SHORT}")));
    for args in [
        &["experiments", "--keys"][..],
        &["experiments", "--show", "esr"],
        &["data", "inspect"],
        &["data", "inspect", "--json"],
        &["evaluate", "run"],
        &["evaluate", "run", "--json"],
        &["--help"],
    ] {
        let output = selvedge(place.path())
            .args(args)
            .stdout(closed())
            .output()
            .unwrap();
        no_panic(&output, &format!("{args:?}"));
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
    for (out, json) in [("text", None), ("json", Some("--json"))] {
        let output = train(&place, out)
            .args(json)
            .stdout(closed())
            .output()
            .unwrap();
        no_panic(&output, out);
        assert_eq!(output.status.code(), Some(0), "{out}");
        assert!(
            Run::at(&place, out).file("model.safetensors").is_file(),
            "{out}"
        );
    }
}

#[test]
fn head_gets_its_line_and_the_run_is_whole() {
    let place = Place::new("head");
    let script =
        "\"$0\" train --out run --set train.iterations=20 2>errors | head -1; cat errors >&2";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_selvedge")])
        .current_dir(place.path())
        .env_remove("SELVEDGE_DATA")
        .output()
        .unwrap();
    no_panic(&output, "head -1");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.starts_with("synthetic · hsgd") && stdout.lines().count() == 1,
        "{stdout}"
    );
    assert!(Run::at(&place, "run").file("model.safetensors").is_file());
}

#[test]
fn training_goes_on_when_nobody_reads_the_errors() {
    let place = Place::new("closed-stderr");
    let output = train(&place, "run").stderr(closed()).output().unwrap();
    no_panic(&output, "stderr is closed");
    assert_eq!(output.status.code(), Some(0));
    assert!(Run::at(&place, "run").file("model.safetensors").is_file());
    let both = train(&place, "both")
        .stdout(closed())
        .stderr(closed())
        .output()
        .unwrap();
    no_panic(&both, "both are closed, as by `2>&1 | head`");
    let wrong = train(&place, "wrong")
        .args(["--set", "seed=x"])
        .stderr(closed())
        .output()
        .unwrap();
    assert_eq!(
        wrong.status.code(),
        Some(2),
        "an error that nobody reads is still one"
    );
}

#[test]
fn a_directory_whose_name_is_not_text_works() {
    let place = Place::new("not-text");
    let name = OsStr::from_bytes(b"run-\xff\xfe");
    let run = |args: &[&str], json: bool| {
        let mut command = selvedge(place.path());
        command.args(args).arg(name).args(json.then_some("--json"));
        command.output().unwrap()
    };
    let output = run(&words(&format!("train {SHORT} --out")), false);
    no_panic(&output, "train");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for (args, json) in [
        (&["evaluate"][..], false),
        (&["train", "--resume"], false),
        (&["evaluate"], true),
        (&["train", "--resume"], true),
    ] {
        let output = run(args, json);
        no_panic(&output, &format!("{args:?}, json {json}"));
        assert_eq!(output.status.code(), Some(0), "{args:?}, json {json}");
    }
}

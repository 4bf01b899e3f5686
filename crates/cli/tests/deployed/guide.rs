//! docs/consortium.md, followed to the letter: its commands, in its order, and nothing else.

use crate::common::run::Run;
use crate::common::{Place, says};
use crate::deployment::{LONG, place_with_server, read};
use crate::joint::predictions;
use selvedge_net::broker::{Program, free_port, free_ports};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A block of commands, and how it is to be run: to its end, beside others to their end, or until all is over.
struct Block {
    kind: String,
    commands: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```sh") else {
            continue;
        };
        let commands: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        found.push(Block {
            kind: kind.trim().to_owned(),
            commands: commands.join("\n"),
        });
    }
    found
}

/// A shell and all that it has started; ends with the test.
struct Shell {
    child: Child,
    log: PathBuf,
    commands: String,
}

impl Shell {
    fn start(place: &Place, number: usize, commands: &str, path: &str) -> Self {
        let log = place.join(format!("shell-{number}.log"));
        let file = std::fs::File::create(&log).unwrap();
        let child = Command::new("bash")
            .args(["-e", "-c", commands])
            .current_dir(place.path())
            .env("PATH", path)
            .env_remove("SELVEDGE_DATA")
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap();
        Shell {
            child,
            log,
            commands: commands.to_owned(),
        }
    }

    /// Waits for a good end, and gives what was said.
    #[track_caller]
    fn succeeds(mut self) -> String {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let said = read(&self.log);
                assert!(status.success(), "{}\n{status}\n{said}", self.commands);
                return said;
            }
            assert!(
                began.elapsed() < LONG,
                "{}\n{}",
                self.commands,
                read(&self.log)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let group = format!("-{}", self.child.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = self.child.wait();
        }
    }
}

#[test]
fn from_a_description_to_a_trained_model_by_the_written_guide() {
    let Some(place) = place_with_server("guide") else {
        return;
    };
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let example = "docs/example_consortium.py";
    place.write(example, read(&docs.join("example_consortium.py")));
    let mut guide = read(&docs.join("consortium.md"));
    // Somebody else may be at the guide's ports.
    for (port, free) in [
        ("14222", free_port().unwrap()),
        ("17422", free_port().unwrap()),
        ("18222", free_port().unwrap()),
        ("14223", free_port().unwrap()),
        ("18223", free_port().unwrap()),
        ("19100", free_port().unwrap()),
        ("19101", free_ports(4).unwrap()),
    ] {
        assert!(
            guide.contains(port),
            "the guide has another port than {port}"
        );
        guide = guide.replace(port, &free.to_string());
    }
    let server = std::path::absolute(Program::find().unwrap().path()).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_selvedge")).parent().unwrap();
    let path = format!(
        "{}:{}:{}",
        binary.display(),
        server.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let (mut servers, mut parties, mut said) = (Vec::new(), Vec::new(), String::new());
    let all = blocks(&guide);
    let of_kind = |kind: &str| all.iter().filter(|block| block.kind == kind).count();
    assert_eq!((of_kind("server"), of_kind("party")), (4, 10));
    for (number, block) in all.iter().enumerate() {
        let shell = Shell::start(&place, number, &block.commands, &path);
        match block.kind.as_str() {
            "server" => {
                servers.push(shell);
                // What a person takes to read on.
                std::thread::sleep(Duration::from_secs(2));
            }
            "party" => parties.push(shell),
            _ => {
                // Theirs must end before this makes sense: nothing of it has been started yet but a shell.
                said += &shell.succeeds();
            }
        }
        // The next block is for who has seen these end.
        let next = all.get(number + 1).map(|block| block.kind.as_str());
        if block.kind == "party" && next != Some("party") {
            for party in parties.drain(..) {
                said += &party.succeeds();
            }
        }
    }
    // 160 patients, of whom one is there twice; 150 are carried, two of them by both gateways; 12 whom nobody knows.
    println!("{said}");
    says(
        &said,
        &[
            "147 patients take part",
            "10 left out: known only to the hospital",
            "2 left out: at several gateways",
            "1 left out: twice in the hospital's files",
            "unknown to the hospital: X9999",
            "2 predictions in predictions.csv",
        ],
    );
    let run = Run(place.join("kit/cloud/run"));
    let last = run.metrics().pop().unwrap();
    assert_eq!(last["t"], 400);
    assert!(last["auc"].as_f64().unwrap() > 0.75, "{last}");
    assert!(run.file("report.html").is_file());
    let told = predictions(&read(&place.join("predictions.csv")));
    let ids: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["P0003", "P0155"]);
}

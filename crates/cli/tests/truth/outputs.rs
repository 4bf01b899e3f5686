//! What is written where a user says: never over something else.

use crate::common::{Place, snapshot, words};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// What an option with a path does with it, and how the command is called without it.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Reads,
    /// Writes this file.
    File(&'static str),
    /// Writes into this folder.
    Folder(&'static str),
    /// Goes on with what is in this folder, or replaces what it was told to.
    Resumes,
}
use Does::{File, Folder, Reads, Resumes};

/// Every option that has a path or writes something. The test below fails if one of the program's is missing here.
const OPTIONS: &[(&str, &str, Does)] = &[
    ("train", "--out", Folder("train t.toml")),
    ("train", "--trace", Resumes),
    ("train", "--resume", Resumes),
    ("train", "--replay", Reads),
    (
        "compare",
        "--out",
        Folder("compare t.toml --seeds 1 --algorithms hsgd"),
    ),
    (
        "sweep",
        "--out",
        Folder("sweep t.toml --seeds 1 --over train.iterations=10"),
    ),
    ("tune", "--apply", File("tune t.toml")),
    (
        "reproduce",
        "--out",
        Folder(
            "reproduce bytes,fig4 --data esr --seeds 2 --intervals 2 --set data.set=synthetic-esr \
             --set data.groups=2 --set data.devices=60 --set train.participation=0.1 --set train.iterations=40",
        ),
    ),
    ("data stats", "--out", File("data stats t.toml")),
    ("data split", "--out", Folder("data split t.toml")),
    ("data split", "--key", Reads),
    ("data export", "--out", File("data export t.toml")),
    ("data fetch", "--force", Resumes),
    ("data fetch", "--catalogue", Reads),
    ("evaluate", "--data", Reads),
    ("evaluate", "--html", File("evaluate run")),
    ("predict", "--input", Reads),
    ("predict", "--out", File("predict run --input t.csv")),
    ("predict", "--arrays", File("predict run --input t.csv")),
    ("export", "--out", Folder("export run")),
    ("export", "--format", Reads),
    ("report", "--out", File("report run")),
    ("report", "--svg", Folder("report run --out new.html")),
    ("up", "--out", Folder("up t.toml")),
    ("up", "--resume", Resumes),
    ("enrol", "--config", Reads),
    ("enrol", "--table", Reads),
    ("enrol", "--again", Resumes),
    ("node", "--config", Reads),
    ("node", "--table", Reads),
    ("ask", "--config", Reads),
    ("ask", "--input", Reads),
    ("ask", "--out", File("ask --config t.toml")),
    ("provision", "--out", Folder("provision t.toml")),
    ("provision", "--shards", Reads),
    ("kit key", "", File("kit key")),
    ("doctor", "--config", Reads),
    ("status", "", Reads),
];

fn place(name: &str) -> Place {
    let place = crate::tables::place(
        name,
        crate::tables::flat(&crate::tables::patients(120), ["no", "yes"]),
        &crate::tables::experiment("", ""),
    );
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    place.succeeds(&["data", "split", "t.toml", "--out", "shards"]);
    place.succeeds(&words("train t.toml --seeds 2 --out all"));
    place.succeeds(&words("compare t.toml --seeds 1 --algorithms hsgd --out c"));
    place.write("other.csv", "id,value\n1,2\n");
    place.write("notes.txt", "nobody wrote this twice\n");
    place
}

/// The commands and options of the reference that have a path or, as their help says, write something.
fn listed(place: &Place) -> BTreeSet<(String, String)> {
    place.succeeds(&["reference", "--out", "reference"]);
    let text = fs::read_to_string(place.join("reference/commands.md")).unwrap();
    let mut found = BTreeSet::new();
    for section in text.split("\n## selvedge ").skip(1) {
        let command = section.lines().next().unwrap();
        for line in section.lines() {
            let Some((option, help)) = line.strip_prefix("- `").and_then(|l| l.split_once("`: "))
            else {
                continue;
            };
            let values = ["<FILE>", "<DIR>", "<PATH>", "<DEPLOYMENT>"];
            let help = help.to_lowercase();
            let writes = ["write", "save", "replac", "creat"]
                .iter()
                .any(|word| help.contains(word));
            if !values.iter().any(|value| option.contains(value)) && !writes {
                continue;
            }
            let name = option.split(' ').next().unwrap().trim_end_matches('…');
            let name = if name.starts_with('<') { "" } else { name };
            if name != "--data-dir" {
                found.insert((command.to_owned(), name.to_owned()));
            }
        }
    }
    found
}

/// A new option must be added above, with what it does, and so is tried below.
#[test]
fn every_option_that_writes_is_known() {
    let place = Place::new("outputs-known");
    let known = OPTIONS
        .iter()
        .map(|(command, option, _)| (command.to_string(), option.to_string()));
    assert_eq!(listed(&place), known.collect());
}

/// The place of the statistics among the victims.
const STATISTICS: usize = 11;

/// A table, an experiment, a run's files, a shard's: by their names, in a roundabout way, through links.
fn victims(place: &Place) -> Vec<String> {
    let mut files: Vec<String> = words(
        "t.csv t.toml other.csv notes.txt run/manifest.json run/metrics.jsonl run/best.safetensors run/inputs.json \
         run/ledger.csv run/validation.safetensors run/checkpoint/state.safetensors shards/stats.json \
         shards/experiment.toml shards/shards.json all/seeds.json c/comparison.json c/table.txt",
    )
    .into_iter()
    .map(String::from)
    .collect();
    fs::create_dir(place.join("links")).unwrap();
    for (number, name) in files.clone().into_iter().enumerate() {
        let (soft, hard) = (
            format!("links/soft-{number}"),
            format!("links/hard-{number}"),
        );
        symlink(place.join(&name), place.join(&soft)).unwrap();
        fs::hard_link(place.join(&name), place.join(&hard)).unwrap();
        files.extend([soft, hard, format!("./links/../{name}")]);
    }
    // A run would take these for its own.
    files.extend(
        [
            "run/trace.jsonl",
            "run/absences.jsonl",
            "run/left-out.jsonl",
            "run/evaluation.json",
            "seeds.json",
            "comparison.json",
            "./run/../run/seeds.json",
        ]
        .map(String::from),
    );
    files
}

#[test]
fn a_file_that_is_named_as_an_output_is_never_another_one() {
    let place = place("outputs-files");
    let victims = victims(&place);
    // Inode and bytes: a file that is replaced by its equal is replaced all the same.
    let before = snapshot(place.path());
    for (command, option, does) in OPTIONS {
        let File(call) = does else { continue };
        for victim in &victims {
            // Other statistics are of the same kind, and a hard link that is replaced leaves them as they are.
            if *command == "data stats" && *victim == format!("links/hard-{STATISTICS}") {
                continue;
            }
            let mut args = words(call);
            let joined = format!("{option}={victim}");
            args.push(if option.is_empty() { victim } else { &joined });
            let ran = place.selvedge(&args);
            let after = snapshot(place.path());
            let what = format!("{args:?}: {}", ran.stderr);
            assert_eq!(ran.code(), Some(2), "{what}");
            assert!(
                ran.stderr.contains(victim.trim_start_matches("./")),
                "{what}"
            );
            crate::common::unchanged(&before, &after, &what);
        }
    }
    // What the command reads, though an earlier output would look the same.
    let shards = words("data stats shards/experiment.toml --out ./shards/stats.json");
    place.refuses(&shards, &["shards/stats.json", "reads this file"]);
    place.succeeds(&words("predict run --input t.csv --out predictions.csv"));
    let chained = "id,prediction,lab,pulse\n1,a,0.1,0.2\n";
    place.write("chain.csv", chained);
    place.refuses(
        &words("predict run --input chain.csv --out chain.csv"),
        &["--out chain.csv", "reads this file"],
    );
}

/// A run, a part of one, shards, and what is no folder.
const FOLDERS: [&str; 6] = [
    "t.csv",
    "run/manifest.json",
    "run",
    "run/checkpoint",
    "shards",
    ".",
];

#[test]
fn a_folder_that_is_named_as_an_output_keeps_what_is_in_it() {
    let place = place("outputs-folders");
    let whole = |before: &BTreeMap<PathBuf, Option<Vec<u8>>>, what: &str| {
        let after = snapshot(place.path());
        for (path, bytes) in before {
            assert_eq!(after.get(path), Some(bytes), "{what} changed {path:?}");
        }
    };
    for (command, option, does) in OPTIONS {
        let Folder(call) = does else { continue };
        // Nobody waits for a whole reproduction in each.
        let folders = match *command {
            "reproduce" => &FOLDERS[..2],
            _ => &FOLDERS,
        };
        for folder in folders {
            // What it would write there begins with training, or with data that is not here.
            if ["report", "export"].contains(command) && *folder == "." {
                continue;
            }
            let before = snapshot(place.path());
            let mut args = words(call);
            args.extend([option, folder]);
            let ran = place.selvedge(&args);
            whole(&before, &format!("{args:?}: {}", ran.stderr));
        }
    }
}

/// Names that are tried of each command.
const MOST_NAMES: usize = 6;

/// What a command writes into a folder is found out, and then each of these names is somebody else's.
#[test]
fn a_folder_of_others_with_the_same_names_stays_as_it_is() {
    let place = place("outputs-theirs");
    place.write("consortium.toml", crate::lost::CONSORTIUM);
    for (command, option, does) in OPTIONS {
        let Folder(call) = does else { continue };
        // Servers are needed to see what this one writes; its folder must be new, as that of a kit.
        let call = match *command {
            "up" => continue,
            "provision" => "provision consortium.toml --shards shards",
            _ => call,
        };
        let call_with = |folder| [words(call), vec![option, folder]].concat();
        place.succeeds(&call_with("fresh"));
        let mut names: Vec<String> = fs::read_dir(place.join("fresh"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let most = names.len().div_ceil(MOST_NAMES);
        for name in names.iter().step_by(most) {
            let is_folder = place.join("fresh").join(name).is_dir();
            let inside = if is_folder { "/inside" } else { "" };
            place.write(&format!("theirs/{name}{inside}"), "mine");
            let before = snapshot(place.path());
            let ran = place.selvedge(&call_with("theirs"));
            let what = format!("{command} {option}, {name}: {}", ran.stderr);
            assert_eq!(ran.code(), Some(2), "{what}");
            let after = snapshot(place.path());
            for (path, bytes) in &before {
                assert_eq!(after.get(path), Some(bytes), "{what} changed {path:?}");
            }
            fs::remove_dir_all(place.join("theirs")).unwrap();
        }
        fs::remove_dir_all(place.join("fresh")).unwrap();
    }
}

#[test]
fn an_earlier_output_an_empty_file_and_a_new_one_are_written() {
    let place = place("outputs-again");
    for call in [
        "evaluate run --html e.html",
        "report run",
        "report run --out r.html --svg charts",
        "predict run --input t.csv --out p.csv --arrays a.npz",
        "data stats t.toml --out stats.json",
        "data export t.toml --out data.npz",
        "export run",
        "reference --out pages",
    ] {
        for _ in 0..2 {
            place.succeeds(&words(call));
        }
        for part in words(call)
            .iter()
            .filter(|word| word.contains('.') && *word != &"t.toml" && *word != &"t.csv")
        {
            place.write(part, "");
        }
        place.succeeds(&words(call));
    }
    place.refuses(
        &words("predict run --input t.csv --out x --arrays ./x"),
        &["the same file"],
    );
}

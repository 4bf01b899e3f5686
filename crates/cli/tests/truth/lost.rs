//! Nothing that a command did not write itself is lost: words that somebody has added, files of others under the names
//! that a command uses, tables in folders that are replaced.

use crate::common::process::Live;
use crate::common::{Place, ROOT, selvedge, snapshot, unchanged, words};
use crate::tables::{experiment, flat, patients};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

fn trained(name: &str) -> Place {
    let text = flat(&patients(120), ["no", "yes"]);
    let place = crate::tables::place(name, text, &experiment("", ""));
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    place
}

const COMPARE: &str = "compare t.toml --seeds 1 --algorithms hsgd --out c";

/// Every command that writes a file of its own, and files that it writes.
const WRITERS: &[(&str, &str)] = &[
    ("evaluate run --html e.html", "e.html"),
    ("report run", "run/report.html"),
    (
        "report run --out r.html --svg charts",
        "r.html charts/auc-bytes.svg",
    ),
    (
        "predict run --input t.csv --out p.csv --arrays a.npz",
        "p.csv a.npz",
    ),
    ("data stats t.toml --out s.json", "s.json"),
    ("data export t.toml --out d.npz", "d.npz"),
    (
        "export run",
        "run/export/hospital.onnx run/export/device.onnx run/export/combined.onnx run/export/model.onnx \
         run/export/model.safetensors run/export/load.py run/export/model-card.md",
    ),
    ("reference --out pages", "pages/commands.md pages/keys.md"),
    (COMPARE, "c/table.txt c/table.csv c/report.html"),
];

/// One letter of a file, near its middle.
fn with_a_letter_changed(bytes: &[u8]) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let middle = bytes.len() / 2;
    changed[middle] ^= 1;
    changed
}

#[test]
fn what_somebody_has_changed_is_not_replaced() {
    let place = trained("lost-words");
    for (call, names) in WRITERS {
        let call = words(call);
        place.succeeds(&call);
        for name in words(names) {
            let whole = fs::read(place.join(name)).unwrap();
            let mut kinds = vec![
                [&whole[..], b"\nphone her on Monday\n"].concat(),
                b"phone her on Monday".to_vec(),
            ];
            // What has a seal is known to the letter, what has none by its form.
            if !name.ends_with(".csv") && !name.starts_with("pages/") {
                kinds.push(with_a_letter_changed(&whole));
            }
            // Pages of the reference say that nobody may edit them.
            let is_reference = name.starts_with("pages/");
            for changed in kinds.into_iter().skip(usize::from(is_reference)) {
                fs::write(place.join(name), &changed).unwrap();
                place.refuses(&call, &[name, "as selvedge has written it"]);
            }
            fs::remove_file(place.join(name)).unwrap();
            place.succeeds(&call);
            place.succeeds(&call);
        }
    }
}

/// Other pages, charts, tables and programs, which only begin like ours.
#[test]
fn a_file_that_only_looks_like_an_output_is_not_replaced() {
    let place = trained("lost-alike");
    place.write("page.html", "<!doctype html>\n<title>Ward round</title>\n");
    place.write(
        "chart.svg",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>\n",
    );
    place.write("stats.json", "{\n  \"classes\": [\"no\", \"yes\"]\n}\n");
    place.write(
        "p.csv",
        "id,prediction,probability_no,reviewed\np1,no,0.9,by hand\n",
    );
    place.write(
        "more.csv",
        "id,prediction,probability_no,probability_yes,notes\np1,no,0.75,0.25,phone her\n",
    );
    place.write("folder/load.py", "# uses what selvedge exports\n");
    place.write(
        "folder/commands.md",
        "# My commands\n\nAs `selvedge reference` has them.\n",
    );
    place.write("folder/auc-bytes.svg", "<svg ></svg>\n");
    for (call, name) in [
        ("evaluate run --html page.html", "page.html"),
        ("report run --out page.html", "page.html"),
        (
            "report run --out new.html --svg folder",
            "folder/auc-bytes.svg",
        ),
        ("report run --out chart.svg", "chart.svg"),
        ("data stats t.toml --out stats.json", "stats.json"),
        ("predict run --input t.csv --out p.csv", "p.csv"),
        ("predict run --input t.csv --out more.csv", "more.csv"),
        ("export run --out folder", "folder/load.py"),
        ("reference --out folder", "folder/commands.md"),
    ] {
        place.refuses(&words(call), &[name, "choose another name"]);
    }
}

/// A model that has learnt from the predictions of another one.
#[test]
fn a_table_that_was_trained_on_is_not_replaced() {
    let place = trained("lost-table");
    place.succeeds(&words("predict run --input t.csv --out p.csv"));
    let second = experiment("", "")
        .replace("t.csv", "p.csv")
        .replace("\"label\"", "\"prediction\"")
        .replace("\"lab\"", "\"probability_no\"")
        .replace("\"pulse\"", "\"probability_yes\"");
    place.write("second.toml", second);
    place.succeeds(&words("train second.toml --out second"));
    fs::copy(place.join("p.csv"), place.join("new.csv")).unwrap();
    for out in ["p.csv", "./run/../p.csv"] {
        let call = ["predict", "second", "--input", "new.csv", "--out", out];
        place.refuses(&call, &[out, "reads this file"]);
    }
    place.succeeds(&words("predict run --input t.csv --out p.csv"));
}

/// Names that are used while something is written were those of others.
#[test]
fn what_lies_beside_an_output_stays() {
    let place = trained("lost-beside");
    place.write("elsewhere.txt", "a file that links lead to");
    let more = [
        ("data split t.toml --out shards", "shards"),
        ("train t.toml --out other", "other"),
        ("train t.toml --seeds 2 --out all", "all all/seeds.json"),
        ("kit key north.nk", "north.nk"),
    ];
    for (call, names) in WRITERS.iter().chain(&more) {
        for name in words(names) {
            for ending in [".partial", ".new", ".old"] {
                place.write(&format!("{name}{ending}"), "mine");
            }
            // A folder that is to be new must not have anything in it, a file's folder may.
            if name.starts_with("all/") || name.starts_with("c/") {
                fs::remove_dir_all(place.join(name.split('/').next().unwrap())).unwrap();
            }
        }
        let before = snapshot(place.path());
        place.succeeds(&words(call));
        let after = snapshot(place.path());
        for (path, bytes) in &before {
            assert_eq!(after.get(path), Some(bytes), "{call} changed {path:?}");
        }
    }
    // The same as a folder and as a link.
    for (number, call) in [
        "predict run --input t.csv --out q.csv",
        "data split t.toml --out cut",
    ]
    .iter()
    .enumerate()
    {
        let name = ["q.csv.partial", "cut.partial"][number];
        place.write(&format!("{name}/inside"), "mine");
        place.succeeds(&words(call));
        assert_eq!(fs::read(place.join(name).join("inside")).unwrap(), b"mine");
    }
    symlink(place.join("elsewhere.txt"), place.join("l.csv.partial")).unwrap();
    place.succeeds(&words("predict run --input t.csv --out l.csv"));
    assert!(place.join("l.csv.partial").is_symlink());
    symlink(place.join("nowhere"), place.join("dangling.csv")).unwrap();
    let call = words("predict run --input t.csv --out dangling.csv");
    let ran = place.selvedge(&call).refused(&["dangling.csv", "link"]);
    assert!(place.join("dangling.csv").is_symlink(), "{}", ran.stderr);
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().flatten().collect();
    let is_left = |name: &str| name.starts_with(".selvedge-");
    assert!(
        !left
            .iter()
            .any(|e| is_left(e.file_name().to_str().unwrap()))
    );
}

/// What comparisons find in their folder.
#[test]
fn a_comparison_takes_no_file_of_others() {
    let place = trained("lost-comparison");
    for (name, contents) in [
        ("lock", "of my door"),
        ("table.csv.partial", "half of mine"),
        ("tuning/notes.txt", "mine"),
        ("report.html", "<!doctype html>\n"),
    ] {
        place.write(&format!("c/{name}"), contents);
        place.refuses(
            &words(COMPARE),
            &["c is not a comparison", "choose another --out"],
        );
        let sweep = "sweep t.toml --seeds 1 --over train.iterations=10 --out c";
        place.refuses(&words(sweep), &["c is not a comparison"]);
        fs::remove_dir_all(place.join("c")).unwrap();
    }
    place.write("c/lock", "");
    place.succeeds(&words(COMPARE));
    place.write("c/lock", "of my door");
    place.succeeds(&words(COMPARE));
    assert_eq!(fs::read(place.join("c/lock")).unwrap(), b"of my door");
    // Lists of runs are no place for anything else, whether they are there or not.
    place.succeeds(&words("train t.toml --seeds 2 --out all"));
    for name in ["all/seeds.json", "c/comparison.json", "seeds.json"] {
        for call in [
            "predict run --input t.csv --out",
            "report run --out",
            "kit key",
        ] {
            let mut call = words(call);
            call.push(name);
            place.refuses(&call, &[name, "belongs to a list of runs"]);
        }
    }
}

/// One hospital.
pub const CONSORTIUM: &str = "name = \"trial\"\nexperiment = \"t.toml\"\nhttp = 9001\n
    [[cloud]]\nhost = \"127.0.0.1\"\nlisten = \"127.0.0.1\"\nclient = 9002\nlinks = 9003\ncluster = 9004\nmonitor = 9005\n
    [[hospital]]\nname = \"north\"\nhost = \"127.0.0.1\"\nlisten = \"127.0.0.1\"\nclient = 9006\nmonitor = 9007\n\
    http = 9010\ngateways = 1\n";

fn provisioned(name: &str) -> Place {
    let text = flat(&patients(60), ["no", "yes"]);
    let own = "labels = [\"no\", \"yes\"]";
    let experiment = experiment(own, "").replace("path = \"t.csv\"\n", "");
    let place = crate::tables::place(name, text, &experiment);
    place.write("consortium.toml", CONSORTIUM);
    place.write("kit.partial/key", "mine");
    place.succeeds(&words("provision consortium.toml --out kit"));
    assert_eq!(fs::read(place.join("kit.partial/key")).unwrap(), b"mine");
    place
}

#[test]
fn an_enrolment_replaces_no_table() {
    let place = provisioned("lost-enrolment");
    let data = "kit/north/hospital/data";
    // As an earlier enrolment has left it, with a table that was put beside its files.
    for name in [
        "shards.json",
        "stats.json",
        "enrolment.json",
        "group-0/hospital.npz",
    ] {
        place.write(&format!("{data}/{name}"), "{}");
    }
    place.write("kit/north/hospital/data.old/backup", "mine");
    place.write("kit/north/hospital/data.new/draft", "mine");
    fs::copy(place.join("t.csv"), place.join(data).join("ward.csv")).unwrap();
    let enrol = "enrol hospital --config kit/north/hospital/node.toml --again --table";
    let with = |table: &str| {
        let mut call = words(enrol);
        call.push(table);
        call.iter().map(|word| word.to_string()).collect::<Vec<_>>()
    };
    for (table, parts) in [
        (
            "kit/north/hospital/data/ward.csv",
            ["ward.csv", "in the data folder"],
        ),
        ("t.csv", ["data/ward.csv", "move it to another folder"]),
    ] {
        let call = with(table);
        let call: Vec<&str> = call.iter().map(String::as_str).collect();
        place.refuses(&call, &parts);
    }
    // A folder of shards was written by nobody's enrolment, and cannot be had again.
    fs::remove_file(place.join(data).join("ward.csv")).unwrap();
    fs::remove_file(place.join(data).join("enrolment.json")).unwrap();
    let call = with("t.csv");
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    place.refuses(&call, &["kit/north/hospital/data", "not empty"]);
}

/// A change of a kit writes what a kit has, and nothing else.
#[test]
fn changes_of_a_kit_leave_other_files_alone() {
    let place = provisioned("lost-kit");
    let others = [
        "kit/notes.txt",
        "kit/deployment.json.partial",
        "kit/experiment.toml.partial",
        "kit/hub/server.conf.partial",
        "kit/north/hospital/key.nk.partial",
        "kit/north/hospital/ward.csv",
        "kit/north/hospital/data/ward.csv",
    ];
    for name in others {
        place.write(name, "mine");
    }
    for call in [
        "kit add kit west --host 10.0.0.9",
        "kit rotate kit north/hospital",
        "kit rotate kit north",
        "kit pseudonyms kit north",
        "kit revoke kit north/gateway-0",
        "kit rotate kit north/gateway-0",
    ] {
        place.succeeds(&words(call));
        for name in others {
            assert_eq!(
                fs::read(place.join(name)).unwrap(),
                b"mine",
                "{call}: {name}"
            );
        }
    }
    place.write("kit/east/server/README.md", "mine");
    let add = "kit add kit east --host 10.0.0.10";
    place.refuses(&words(add), &["kit/east", "move it elsewhere"]);
    for call in ["provision consortium.toml --out kit", "up t.toml --out kit"] {
        place.refuses(&words(call), &["kit", "already exists"]);
    }
}

#[test]
fn ctrl_c_leaves_no_part_of_a_file() {
    let place = Place::new("lost-interrupted");
    let export = "data export --set data.devices=60000 --set data.groups=10 --out d.npz";
    let parts = |place: &Path| {
        let names = fs::read_dir(place).unwrap().flatten();
        names
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| name.starts_with(".selvedge-"))
            .count()
    };
    place.write("d.npz.partial", "mine");
    let before = snapshot(place.path());
    for signal in ["INT", "TERM"] {
        let mut live = Live::start(selvedge(place.path()).args(words(export)));
        live.wait_until("writing", Duration::from_secs(60), || {
            parts(place.path()) == 1
        });
        live.signal(signal);
        live.finish().ended(130);
        unchanged(&before, &snapshot(place.path()), signal);
    }
}

/// Where files are written, replaced or removed without the guard of outputs: folders of our own only.
#[test]
fn every_writer_goes_through_the_guard() {
    let known = [
        // Of a download, of a folder that was just cut, of a measurement, of a run that has not begun.
        "commands/bench/deployed.rs",
        "commands/data/shards.rs",
        "commands/fetch/download.rs",
        "commands/fetch/mod.rs",
        "commands/train.rs",
        // The result of an evaluation in its run.
        "commands/evaluate.rs",
        // An empty folder that an export has made.
        "export/folder.rs",
        // Kits, and the folders of their parties.
        "deploy/journal.rs",
        "deploy/kit/handover.rs",
        "deploy/kit/local.rs",
        "deploy/kit/mod.rs",
        "deploy/kit/write.rs",
        "deploy/processes.rs",
    ];
    let writes = [
        "fs::write(",
        "File::create",
        "File::options",
        "OpenOptions",
        "write_whole",
        "write_json(",
        "fs::rename(",
        "fs::copy(",
        "remove_file(",
        "remove_dir",
        "write_secret(",
    ];
    let sources = Path::new(ROOT).join("crates/cli/src");
    let mut found: Vec<String> = snapshot(&sources)
        .into_iter()
        .filter_map(|(path, bytes)| {
            let text = String::from_utf8(bytes?).ok()?;
            let program = text.split("#[cfg(test)]").next()?;
            let name = path.strip_prefix(&sources).ok()?.to_str()?.to_owned();
            let is_one = name.ends_with(".rs") && writes.iter().any(|word| program.contains(word));
            is_one.then_some(name)
        })
        .collect();
    let mut known: Vec<String> = known.map(String::from).into();
    found.sort();
    known.sort();
    assert_eq!(found, known, "write what users name through `Output`");
}

//! What parties make of an experiment that they read themselves, and what a command may not read.

use crate::common::process::finish;
use crate::common::{Place, says, selvedge, words};
use crate::tables::{csv, experiment, flat, hospital, patients, place, series, wearable};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

const CONSORTIUM: &str = "name = \"trial\"\nexperiment = \"e.toml\"\n[[cloud]]\nhost = \"127.0.0.1\"\n[[hospital]]\n\
    name = \"north\"\nhost = \"localhost\"\ngateways = 1\n";

/// A folder whose experiment has no [model], cut into shards.
fn cut(name: &str, table: String, experiment: &str) -> Place {
    let place = place(name, table, experiment);
    place.write("w.csv", wearable(&patients(120), |hour| hour.to_string()));
    place.write("e.toml", experiment);
    place.write("consortium.toml", CONSORTIUM);
    place.succeeds(&words("data split t.toml --out shards"));
    place
}

#[test]
fn the_layers_of_parties_fit_their_shards() {
    let without_model = series("").split("[model]").next().unwrap().to_owned();
    let of_series = cut("parties-series", hospital(&patients(120)), &without_model);
    of_series.succeeds(&words(
        "provision consortium.toml --shards shards --out kit",
    ));
    let text = fs::read_to_string(of_series.join("kit/north/edge/experiment.toml")).unwrap();
    says(&text, &["lstm"]);
    // So it is where a party is given the experiment as it was written.
    for node in ["cloud", "north/edge"] {
        let folder = of_series.join("kit").join(node);
        fs::write(folder.join("experiment.toml"), &without_model).unwrap();
        let file = folder.join("node.toml");
        let kind = node.rsplit('/').next().unwrap();
        let ran = of_series.selvedge(&["doctor", kind, "--config", file.to_str().unwrap()]);
        says(&ran.stdout, &["fits the experiment"]);
        // And what does not fit is found.
        let wrong = without_model.clone() + "[model]\ndevice = [{ linear = { out = 4 } }]\n";
        fs::write(folder.join("experiment.toml"), wrong).unwrap();
        let ran = of_series.selvedge(&["doctor", kind, "--config", file.to_str().unwrap()]);
        says(&ran.stdout, &["layer `linear` takes [features]"]);
    }
    let three = csv("id,site,lab,pulse,label", &patients(120), |p| {
        let label = ["well", "ill", "high"][usize::from(p.ill) + usize::from(p.lab > 0.2 && p.ill)];
        format!("{},{},{:.4},{:.4},{label}", p.id, p.site, p.lab, p.pulse)
    });
    let of_three = cut("parties-three", three, &experiment("", ""));
    of_three.succeeds(&words(
        "provision consortium.toml --shards shards --out kit",
    ));
    let text = fs::read_to_string(of_three.join("kit/cloud/experiment.toml")).unwrap();
    says(&text, &["out = 3"]);
}

#[test]
fn where_parties_enrol_with_series_the_layers_are_asked_for() {
    let place = Place::new("parties-enrol");
    let without_model = series("labels = [\"well\", \"ill\"]\n")
        .split("[model]")
        .next()
        .unwrap()
        .to_owned();
    place.write("e.toml", &without_model);
    place.write("consortium.toml", CONSORTIUM);
    let provision = words("provision consortium.toml --out kit");
    place.refuses(
        &provision,
        &[
            "data.table.time = \"hour\"",
            "which side has the time series",
            "[model]",
        ],
    );
    place.write(
        "e.toml",
        without_model + "[model]\ndevice = [{ gru = { hidden = 4 } }]\n",
    );
    place.succeeds(&provision);
}

#[test]
fn a_file_without_rows_and_a_column_of_no_file_are_called_so() {
    let place = place("no-rows", hospital(&patients(60)), &series(""));
    let all = wearable(&patients(60), |hour| hour.to_string());
    let train = words("train t.toml --out run");
    place.write("w.csv", all.lines().next().unwrap().to_owned() + "\n");
    place.refuses(&train, &["w.csv: a header but no rows of data"]);
    place.write("w.csv", all);
    for (key, name) in [("time", "hours"), ("variable", "nope"), ("value", "val")] {
        let set = format!("data.table.{key}={name}");
        let parts = [
            format!("data.table.{key} = \"{name}\""),
            "no file has such a column".into(),
        ];
        place.refuses(
            &[&train[..], &["--set", &set]].concat(),
            &parts.each_ref().map(String::as_str),
        );
    }
    place.succeeds(&train);
    place.write("none.csv", "id,site,lab,label\n");
    place.refuses(
        &words("predict run --input none.csv --input w.csv"),
        &["none.csv: a header but no rows of data"],
    );
    place.write("none.csv", "id,hour,variable,value\n");
    place.refuses(
        &words("predict run --input t.csv --input none.csv"),
        &["none.csv: a header but no rows of data"],
    );
}

/// By somebody who may not look into it: not root, who may.
#[test]
fn a_folder_that_cannot_be_read_is_called_so() {
    const NOBODY: u32 = 65534;
    let place = place(
        "unreadable",
        flat(&patients(60), ["no", "yes"]),
        &experiment("", ""),
    );
    place.succeeds(&words("train t.toml --out run"));
    let run = place.join("run");
    let mode = |mode| fs::set_permissions(&run, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    for call in ["report run", "evaluate run", "train --resume run"] {
        let mut command = selvedge(place.path());
        command.args(words(call));
        if fs::read_dir(&run).is_ok() {
            command.uid(NOBODY);
        }
        finish(&mut command).refused(&["cannot read run", "denied"]);
    }
    mode(0o700);
}

//! Joint predictions of a deployment: what a gateway is told is what the simulation's model says of whole rows, to the
//! bit.

use crate::common::process::{Ran, finish};
use crate::common::run::Run;
use crate::common::{Place, selvedge};
use crate::deployment::{FORTY_INTERVALS, LONG, Up, place_with_server, read, simulated};
use crate::equal::asking;
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::Experiment;
use selvedge_core::model::Model;
use selvedge_core::scores::predict;
use selvedge_core::task::Task;
use selvedge_data::SETS;
use selvedge_data::{PartyShard, read_party};
use selvedge_run::trained::{Trained, WhichModel};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The lines of a CSV file of predictions: ids, and the bits of all probabilities.
#[track_caller]
pub(crate) fn predictions(csv: &str) -> Vec<(String, Vec<u32>)> {
    let mut lines = csv.lines();
    let header = lines.next().unwrap_or_default();
    assert!(header.starts_with("id,prediction,probability_"), "{header}");
    let classes = header.matches(",probability_").count();
    let line = |line: &str| {
        let mut cells = line.split(',');
        let id = cells.next().unwrap().to_owned();
        let (_, p) = (cells.next(), cells);
        let bits = p
            .take(classes)
            .map(|p| p.parse::<f32>().unwrap().to_bits())
            .collect();
        (id, bits)
    };
    lines.map(line).collect()
}

/// Asks in a gateway's name; `more` is said besides.
fn ask(place: &Place, config: &str, more: &[&str]) -> Ran {
    let args = ["ask", "--config", config, "--timeout", "60"];
    finish(selvedge(place.path()).args(args).args(more))
}

/// The model of a run, and what it says of all samples: bits, row by row.
struct Simulated {
    trained: Trained,
    experiment: Experiment,
    model: BTreeMap<String, Vec<f32>>,
}

impl Simulated {
    fn new(run: &Run, experiment: &str) -> Self {
        let tensors = run.tensors("model.safetensors").into_iter();
        Simulated {
            trained: Trained::open(&run.file(""), WhichModel::Last).unwrap(),
            experiment: SETS.parse(experiment, &[]).unwrap(),
            model: tensors
                .map(|(name, tensor)| (name, tensor.values))
                .collect(),
        }
    }

    /// Of the test samples, and of each group's own.
    fn says(&self, calibrated: bool) -> (Vec<Vec<u32>>, Vec<Vec<Vec<u32>>>) {
        let data = &self.experiment.data;
        let dataset = selvedge_data::load(data, self.experiment.seed, None).unwrap();
        let task = Task::new(&self.experiment, &dataset).unwrap();
        let mut model = Model::zeros(task.architecture.widths());
        for (part, tensor) in task.architecture.tensors() {
            tensor.write(&self.model[&tensor.name], model.parts_mut()[part]);
        }
        let says = |samples: &Samples| -> Vec<Vec<u32>> {
            let said = predict(task.networks(), &model, samples, None);
            let said = self.trained.corrected(said.answers, calibrated);
            let rows = said.chunks_exact(self.trained.outputs());
            rows.map(|row| row.iter().map(|p| p.to_bits()).collect())
                .collect()
        };
        let groups = dataset.groups.iter();
        (
            says(&dataset.test),
            groups.map(|g| says(&g.samples)).collect(),
        )
    }
}

/// Waits until a log says something.
#[track_caller]
fn wait_for(log: &Path, text: &str) {
    let began = Instant::now();
    while !std::fs::read_to_string(log).is_ok_and(|log| log.contains(text)) {
        assert!(began.elapsed() < LONG, "{} has no {text:?}", log.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Of labels, quantities and survival curves a gateway is told all numbers.
#[test]
fn a_deployment_answers_whatever_was_asked() {
    for (outcome, heading) in [
        ("labels", "id,probability_"),
        ("quantity", "id,prediction\n"),
        ("survival", "id,survival_"),
    ] {
        let name = format!("joint-{outcome}");
        let Some(place) = place_with_server(&name) else {
            return;
        };
        let experiment = asking(outcome);
        let run = simulated(&place, &experiment, &[]);
        let simulated = Simulated::new(&run, &experiment);
        let (test, _) = simulated.says(true);
        let up = Up::start(&place, "up", &["--answer"]);
        for party in ["group-0/hospital", "group-0/edge"] {
            let log = place.join(format!("up/{party}/log"));
            wait_for(&log, "the run is over: answers predictions");
        }
        let shard = PartyShard::Gateway {
            group: 0,
            devices: 0..30,
            held_out: true,
        };
        let own = read_party(&place.join("up/group-0/gateway-0/data"), shard).unwrap();
        let config = "up/group-0/gateway-0/node.toml";
        let told = ask(&place, config, &["--part", "test"]).succeeded().stdout;
        assert!(told.starts_with(heading), "{told}");
        // A line ends with all that the model says.
        let outputs = simulated.trained.outputs();
        let bits = |line: &str| -> Vec<u32> {
            let cells: Vec<&str> = line.split(',').collect();
            let numbers = cells[cells.len() - outputs..].iter();
            numbers
                .map(|p| p.parse::<f32>().unwrap().to_bits())
                .collect()
        };
        let header = told.lines().next().unwrap();
        assert_eq!(header.split(',').count(), 1 + outputs, "{header}");
        let bits: Vec<Vec<u32>> = told.lines().skip(1).map(bits).collect();
        let places = &own.held_out[1].places;
        let expected: Vec<_> = places
            .iter()
            .map(|row| test[*row as usize].clone())
            .collect();
        assert!(!bits.is_empty());
        assert_eq!(bits, expected, "{outcome}");
        drop(up);
    }
}

#[test]
fn a_deployment_answers_as_the_simulation_predicts_whoever_is_killed() {
    let Some(place) = place_with_server("joint-up") else {
        return;
    };
    let run = simulated(&place, FORTY_INTERVALS, &[]);
    let simulated = Simulated::new(&run, FORTY_INTERVALS);
    let ((test, groups), (raw, _)) = (simulated.says(true), simulated.says(false));
    assert_ne!(test, raw);
    let mut up = Up::start(&place, "up", &["--gateways", "2", "--answer"]);
    let log = |name: &str| place.join(format!("up/{name}/log"));
    let parties = [
        "group-0/hospital",
        "group-0/edge",
        "group-1/hospital",
        "group-1/edge",
    ];
    for party in parties {
        wait_for(&log(party), "the run is over: answers predictions");
    }
    let mut pseudonyms = Vec::new();
    for (group, of_group) in groups.iter().enumerate() {
        let folder = place.join(format!("up/group-{group}/gateway-0/data"));
        let shard = PartyShard::Gateway {
            group,
            devices: 0..15,
            held_out: true,
        };
        let own = read_party(&folder, shard).unwrap();
        let places = &own.held_out[1].places;
        assert!(places.len() > 10, "{}", places.len());
        let config = format!("up/group-{group}/gateway-0/node.toml");
        let told = ask(&place, &config, &["--part", "test"]).succeeded();
        let told = predictions(&told.stdout);
        pseudonyms.extend(told.iter().map(|(id, _)| id.clone()));
        let bits: Vec<Vec<u32>> = told.iter().map(|(_, bits)| bits.clone()).collect();
        let expected: Vec<Vec<u32>> = places
            .iter()
            .map(|row| test[*row as usize].clone())
            .collect();
        assert_eq!(bits, expected, "group {group}");
        let told = ask(&place, &config, &["--part", "test", "--uncalibrated"]).succeeded();
        let told = predictions(&told.stdout).into_iter().map(|(_, bits)| bits);
        let bits: Vec<Vec<u32>> = told.collect();
        let expected: Vec<_> = places
            .iter()
            .map(|row| raw[*row as usize].clone())
            .collect();
        assert_eq!(bits, expected, "group {group}, not calibrated");
        // The other gateway has no held-out rows, but its own devices'.
        let config = format!("up/group-{group}/gateway-1/node.toml");
        place.refuses(
            &["ask", "--config", &config, "--part", "test"],
            &["no patients to ask about"],
        );
        let told = predictions(&ask(&place, &config, &[]).succeeded().stdout);
        let bits: Vec<Vec<u32>> = told.into_iter().map(|(_, bits)| bits).collect();
        assert_eq!(bits, of_group[30..], "group {group}");
    }
    // One after the other is killed and comes back with its record: the same answer, to a file of its owner's.
    let config = "up/group-0/gateway-0/node.toml";
    let before = ask(&place, config, &["--part", "test"]).succeeded().stdout;
    for name in ["group-0/hospital", "group-0/edge"] {
        let (_, pid) = up.processes().into_iter().find(|p| p.0 == name).unwrap();
        let kill = Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status();
        assert!(kill.unwrap().success());
        let told = ask(&place, config, &["--part", "test", "--out", "told.csv"]).succeeded();
        assert_eq!(read(&place.join("told.csv")), before, "{name}");
        assert!(told.stdout.is_empty() && told.stderr.contains("predictions in told.csv"));
    }
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(place.join("told.csv"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // One patient alone, as JSON.
    let told = ask(&place, config, &["--patient", &pseudonyms[0], "--json"]).succeeded();
    let told: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let first = &told["patients"][0];
    assert_eq!(first["id"], pseudonyms[0].as_str());
    let p = first["probabilities"]["0"].as_f64().unwrap() as f32;
    assert_eq!(p.to_bits(), predictions(&before)[0].1[0]);
    assert_eq!(told["unknown"], serde_json::json!([]));
    assert!(told["calibration"]["scale"].is_number());
    // What cannot be asked.
    place.refuses(
        &["ask", "--config", config, "--patient", "nobody"],
        &["--patient nobody", "no such patient here"],
    );
    place.refuses(
        &["ask", "--config", "up/group-0/hospital/node.toml"],
        &["group-0/hospital/node.toml is invalid", "is for a gateway"],
    );
    place.refuses(
        &["ask", "--config", config, "--input", "vitals.csv"],
        &["--input cannot be used here, since nobody has enrolled"],
    );
    // Parties say how many they have answered, and nothing of whom.
    up.live.signal("TERM");
    let ended = up.ends();
    ended.is(&run, "the run behind the predictions");
    for party in parties {
        let said = read(&log(party));
        assert!(said.contains("predictions answered"), "{party}: {said}");
        let about = pseudonyms.iter().find(|patient| said.contains(*patient));
        assert_eq!(about, None, "{party}");
    }
    // Now there is nobody.
    let args = ["ask", "--config", config, "--timeout", "1"];
    place.refuses(&args, &["could not be reached within 1 s"]);
}

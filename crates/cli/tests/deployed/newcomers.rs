//! Joint predictions in a consortium whose parties enrolled with tables of their own: patients who took part, and
//! others.

use crate::common::process::Ran;
use crate::common::{Place, says, selvedge};
use crate::deployment::{LONG, place_with_server, read};
use crate::joint::predictions;
use crate::kit::{Kit, consortium};
use selvedge_core::outcome::Outcome;
use selvedge_data::{PartyShard, read_party};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const EXPERIMENT: &str = r#"
seed = 3
[data]
set = "table"
groups = 1
validation = 0.1
test = 0.2
[data.table]
id = "patient"
label = "ill"
labels = ["no", "yes"]
hospital = ["age", "sex", "lactate"]
device = ["hr", "spo2"]
categorical = { sex = ["f", "m"] }
[train]
iterations = 40
global_interval = 4
local_interval = 2
learning_rate = 0.3
participation = 0.5
evaluate_every = 20
[model]
hospital = [{ linear = { out = 4 } }, "tanh"]
device = [{ linear = { out = 3 } }, "tanh"]
combined = [{ linear = { out = 2 } }]
"#;

/// Lab results and vital signs of a patient, some of them missing.
fn measured(n: u32) -> (String, String) {
    let sex = if n.is_multiple_of(3) { "f" } else { "m" };
    let lactate = match n % 7 {
        0 => String::new(),
        rest => format!("{}.{rest}", 1 + n % 2),
    };
    let labs = format!("{},{sex},{lactate}", 30 + n % 50);
    (labs, format!("{},{}", 60 + n % 40, 90 + n % 9))
}

/// A file of each side: forty patients, the first half of them with the first gateway.
fn tables(kit: &Kit) {
    let mut labs = "patient,age,sex,lactate,ill,sepsis,days\n".to_owned();
    let mut vitals = [
        "patient,hr,spo2\n".to_owned(),
        "patient,hr,spo2\n".to_owned(),
    ];
    for n in 0..40 {
        let (lab, vital) = measured(n);
        let ill = if n.is_multiple_of(2) { "no" } else { "yes" };
        let sepsis = ["no", "", "yes"][n as usize % 3];
        labs += &format!("P{n},{lab},{ill},{sepsis},{}\n", 1 + n * 7 % 31);
        vitals[usize::from(n >= 20)] += &format!("P{n},{vital}\n");
    }
    std::fs::write(kit.file("north/hospital/labs.csv"), labs).unwrap();
    for (g, vitals) in vitals.iter().enumerate() {
        std::fs::write(kit.file(&format!("north/gateway-{g}/vitals.csv")), vitals).unwrap();
    }
}

/// All of a kit with tables, enrolled.
fn enrolled(place: &Place, experiment: &str) -> Kit {
    place.write("experiment.toml", experiment);
    let mut kit = Kit::for_enrolment(place, &consortium(1, &[("north", 2)]));
    tables(&kit);
    kit.launch_all();
    let with_table: [(&str, &[&str]); 5] = [
        ("cloud", &[]),
        ("north/edge", &[]),
        ("north/hospital", &["--table", "labs.csv"]),
        ("north/gateway-0", &["--table", "vitals.csv"]),
        ("north/gateway-1", &["--table", "vitals.csv"]),
    ];
    for (name, more) in with_table {
        kit.start_as("enrol", name, more);
    }
    kit.ends();
    kit
}

/// Asks in the first gateway's name, for so many seconds.
fn ask(kit: &Kit, seconds: &str, more: &[&str]) -> Ran {
    let args = ["ask", "--config", "node.toml", "--timeout", seconds];
    let mut command = selvedge(&kit.file("north/gateway-0"));
    crate::common::process::finish(command.args(args).args(more))
}

/// Waits until nobody refuses any more since it still trains, and gives what is told then.
#[track_caller]
fn ask_when_trained(kit: &Kit, more: &[&str]) -> Ran {
    let began = Instant::now();
    loop {
        let told = ask(kit, "60", more);
        if !told.stderr.contains("the run is not over yet") {
            return told.succeeded();
        }
        assert!(began.elapsed() < LONG, "{}", told.stderr);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until a party's status says that it has answered so many predictions.
#[track_caller]
fn counts(place: &Place, address: &str, answered: u64) {
    let began = Instant::now();
    loop {
        let status = place.succeeds(&["status", address]).stdout;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("Asked   "));
        let count = line.and_then(|line| line.strip_suffix(" predictions answered"));
        let count: u64 = count.expect("a line of predictions").parse().unwrap();
        if count >= answered {
            return;
        }
        assert!(began.elapsed() < LONG, "{status}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn who_took_part_and_who_is_new_gets_an_answer_and_others_are_told() {
    let Some(place) = place_with_server("joint-new") else {
        return;
    };
    let mut kit = enrolled(&place, EXPERIMENT);
    // New patients are known ones by another name: N3 is P3 once more, and nobody has said whether it is ill.
    let (mut labs, mut vitals) = (
        "patient,age,sex,lactate\n".to_owned(),
        "patient,hr,spo2\n".to_owned(),
    );
    for n in [3, 7, 14] {
        let (lab, vital) = measured(n);
        labs += &format!("N{n},{lab}\n");
        vitals += &format!("N{n},{vital}\nP{n},{vital}\n");
    }
    // Carried by the other gateway; in nobody's table.
    let (lab, vital) = measured(25);
    labs += &format!("P25,{lab}\n");
    vitals += &format!("P25,{vital}\nX1,{vital}\n");
    std::fs::write(kit.file("north/hospital/new.csv"), labs).unwrap();
    std::fs::write(kit.file("north/gateway-0/new.csv"), vitals).unwrap();

    kit.start_as("node", "north/edge", &["--answer"]);
    let with_table = ["--answer", "--table", "new.csv"];
    kit.start_as("node", "north/hospital", &with_table);
    // There is no model before there is training.
    let began = Instant::now();
    let early = ask(&kit, "60", &[]);
    early.refused(&["the run is not over yet for the edge or the hospital"]);
    assert!(began.elapsed() < Duration::from_secs(30));
    for name in ["cloud", "north/gateway-0", "north/gateway-1"] {
        kit.start(name);
    }
    let told = ask_when_trained(&kit, &["--input", "new.csv"]);
    for unknown in ["P25", "X1"] {
        let line = format!("unknown to the hospital: {unknown}");
        says(&told.stderr, &[&line]);
    }
    let of: BTreeMap<String, Vec<u32>> = predictions(&told.stdout).into_iter().collect();
    let names: Vec<&str> = of.keys().map(String::as_str).collect();
    assert_eq!(names, ["N14", "N3", "N7", "P14", "P3", "P7"]);
    for n in [3, 7, 14] {
        assert_eq!(of[&format!("N{n}")], of[&format!("P{n}")], "patient {n}");
    }
    assert_ne!(of["P3"], of["P7"]);
    // Those of the data folder by pseudonym, one of them by its id.
    let all = predictions(&ask(&kit, "60", &[]).succeeded().stdout);
    assert_eq!(all.len(), 20);
    let one = ask(&kit, "60", &["--patient", "P3"]).succeeded();
    assert_eq!(
        predictions(&one.stdout),
        [("P3".to_owned(), of["P3"].clone())]
    );
    // Six of the table, twenty and one; more where somebody was slow and was asked again.
    for name in ["north/hospital", "north/edge"] {
        counts(&place, &kit.http(name), 27);
    }
    // The cloud and the gateways have ended with the run; nobody needs them.
    for name in ["cloud", "north/gateway-0", "north/gateway-1"] {
        let ran = kit.nodes.remove(name).unwrap().collect(LONG);
        assert_eq!(ran.complaint(0), None, "{name}");
    }

    // Who is missing is named: first the hospital, then the edge.
    kit.nodes.get_mut("north/hospital").unwrap().signal("KILL");
    kit.nodes.remove("north/hospital");
    ask(&kit, "4", &[]).refused(&["hospital 0 has not answered within 4 s", "--answer"]);
    kit.start_as("node", "north/hospital", &["--answer"]);
    let told = ask(&kit, "60", &["--input", "new.csv"]).succeeded();
    // Without its table it knows no new ones.
    assert_eq!(predictions(&told.stdout).len(), 3, "{}", told.stderr);
    let new = ["--input", "new.csv", "--patient", "N3"];
    ask(&kit, "60", &new).refused(&["unknown to the hospital: N3", "none of these patients"]);
    let mut edge = kit.nodes.remove("north/edge").unwrap();
    edge.signal("TERM");
    // It has done what it was there for.
    let said = edge.finish().succeeded().stderr;
    assert!(said.contains("predictions answered, "), "{said}");
    ask(&kit, "2", &[]).refused(&["edge 0 has not answered within 2 s", "node edge --answer"]);

    // Who takes part in another run is shown the difference.
    kit.start_as("node", "north/edge", &["--answer"]);
    let file = kit.file("north/gateway-0/experiment.toml");
    let text = read(&file);
    let changed = text.replace("learning_rate = 0.3", "learning_rate = 0.2");
    assert_ne!(changed, text);
    std::fs::write(&file, changed).unwrap();
    ask(&kit, "60", &[]).refused(&["edge 0 refuses this gateway", "train.learning_rate"]);
    std::fs::write(&file, text).unwrap();
    ask(&kit, "60", &[]).succeeded();

    // By another key those who take part would be strangers.
    let file = kit.file("north/gateway-0/pseudonyms.key");
    let key = read(&file);
    let other: String = key.trim().chars().rev().collect();
    std::fs::write(&file, other).unwrap();
    let input = ["--input", "new.csv"];
    ask(&kit, "60", &input).refused(&["pseudonyms.key", "is not the key"]);
    std::fs::write(&file, key).unwrap();
    ask(&kit, "60", &input).succeeded();
}

/// The same patients asked about otherwise: what stands in `[data]` and in `[data.table]`, what answers look like, and
/// a cell that is none, with its column.
const OTHERS: [[&str; 5]; 3] = [
    [
        "outcome = \"labels\"",
        "label = [\"ill\", \"sepsis\"]",
        "id,probability_ill,probability_sepsis",
        "maybe",
        "sepsis",
    ],
    [
        "outcome = \"quantity\"",
        "label = \"days\"",
        "id,prediction\n",
        "soon",
        "days",
    ],
    [
        "outcome = \"survival\"\nintervals = 3\nhorizon = 28.0",
        "label = \"days\"\nevent = \"ill\"",
        "id,survival_",
        "-4",
        "days",
    ],
];

#[test]
fn parties_enrol_for_labels_a_quantity_and_survival() {
    for [data, label, heading, wrong, column] in OTHERS {
        let name = format!("enrol-{column}-{}", data.len());
        let Some(place) = place_with_server(&name) else {
            return;
        };
        let (experiment, _) = EXPERIMENT.split_once("[model]").unwrap();
        let experiment = experiment.replace("[data]", &format!("[data]\n{data}"));
        let asked = "label = \"ill\"\nlabels = [\"no\", \"yes\"]";
        let mut kit = enrolled(&place, &experiment.replace(asked, label));

        // What all learn is what the hospital's patients show.
        let hospital = PartyShard::Hospital(0);
        let own = read_party(&kit.file("north/hospital/data"), hospital).unwrap();
        let values = own.dataset.groups[0].samples.y.numbers();
        match &own.statistics.outcome {
            Outcome::Quantity { mean, deviation } => {
                let n = values.len() as f64;
                let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
                    values.iter().map(|x| of(f64::from(*x))).sum::<f64>() / n
                };
                assert!((sum(&|x| x) - mean).abs() < 1e-9);
                assert!((sum(&|x| (x - mean).powi(2)).sqrt() - deviation).abs() < 1e-9);
            }
            Outcome::Survival { ends } => assert_eq!((ends.len(), ends[2]), (3, 28.0)),
            outcome => assert_eq!((outcome, values.len()), (&Outcome::Labels, 2 * 29)),
        }
        let said = kit.file("cloud/data/stats.json");
        assert_eq!(
            read(&said),
            read(&kit.file("north/gateway-1/data/stats.json"))
        );

        kit.start_as("node", "north/edge", &["--answer"]);
        let with_table = ["--answer", "--table", "new.csv"];
        // N3 is P3 once more, and nobody has said anything about it.
        let (lab, vital) = measured(3);
        let labs = format!("patient,age,sex,lactate\nN3,{lab}\n");
        let vitals = format!("patient,hr,spo2\nN3,{vital}\nP3,{vital}\n");
        std::fs::write(kit.file("north/hospital/new.csv"), labs).unwrap();
        std::fs::write(kit.file("north/gateway-0/new.csv"), vitals).unwrap();
        kit.start_as("node", "north/hospital", &with_table);
        for name in ["cloud", "north/gateway-0", "north/gateway-1"] {
            kit.start(name);
        }
        let told = ask_when_trained(&kit, &["--input", "new.csv"]).stdout;
        assert!(told.starts_with(heading), "{told}");
        let lines: Vec<&str> = told.lines().skip(1).collect();
        let [first, second] = lines[..] else {
            panic!("{told}")
        };
        assert_eq!(first.replace("N3", "P3"), second.replace("N3", "P3"));

        // A cell that cannot be is named by its row, before anybody hears of it.
        let labs = read(&kit.file("north/hospital/labs.csv"));
        let (head, rows) = labs.split_once('\n').unwrap();
        let at = head.split(',').position(|name| name == column).unwrap();
        let row = |(n, line): (usize, &str)| {
            let mut cells: Vec<&str> = line.split(',').collect();
            if n == 4 {
                cells[at] = wrong;
            }
            cells.join(",") + "\n"
        };
        let rows: String = rows.lines().enumerate().map(row).collect();
        place.write("wrong.csv", format!("{head}\n{rows}"));
        let config = "kit/north/hospital/node.toml";
        // The cloud is still writing, so that not everything stays as it was.
        let arguments = [
            "enrol", "hospital", "--config", config, "--again", "--table",
        ];
        let ran = place.selvedge(&[&arguments[..], &["wrong.csv"]].concat());
        ran.refused(&["wrong.csv", "6", column, wrong]);
    }
}

#[test]
fn what_answers_and_asks_cannot_do_is_refused() {
    let place = Place::new("joint-refused");
    place.write("experiment.toml", EXPERIMENT);
    Kit::for_enrolment(&place, &consortium(1, &[("north", 1)]));
    for kind in ["cloud", "devices"] {
        let folder = if kind == "cloud" {
            "cloud"
        } else {
            "north/gateway-0"
        };
        let config = format!("kit/{folder}/node.toml");
        let args = ["node", kind, "--config", &config, "--answer"];
        place.refuses(&args, &["--answer is for a hospital and its edge"]);
    }
    let edge = ["node", "edge", "--config", "kit/north/edge/node.toml"];
    let table = ["--answer", "--table", "labs.csv"];
    place.refuses(
        &[&edge[..], &table].concat(),
        &["--table is for a hospital"],
    );
    place.refuses(&[&edge[..], &table[1..]].concat(), &["--answer"]);
    let asks = ["ask", "--config", "kit/north/gateway-0/node.toml"];
    // Nobody has enrolled yet.
    place.refuses(&asks, &["kit/north/gateway-0"]);
    for wrong in ["0", "-1", "nan", "soon", "1e9"] {
        let timeout = format!("--timeout={wrong}");
        let args = [&asks[..], &[&timeout]].concat();
        place.refuses(&args, &["expected a number of seconds"]);
    }
}

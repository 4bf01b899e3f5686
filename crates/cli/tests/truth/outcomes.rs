//! Labels, quantities and survival in a table of one's own: what is said of patients is what was measured, and what
//! contradicts itself is refused.

use crate::common::run::Run;
use crate::common::{Place, says};
use crate::tables::{Patient, csv, experiment, patients, place};
use serde_json::Value;

/// An experiment whose label columns are other ones.
fn asking(label: &str, train: &str) -> String {
    experiment("", train).replace("label = \"label\"", label)
}

fn of_labels() -> Place {
    let mut n = 0;
    let text = csv("id,lab,pulse,sepsis,shock", &patients(300), |p| {
        n += 1;
        // Of each fifth patient one label is unknown.
        let sepsis = if n % 5 == 0 {
            ""
        } else {
            ["no", "yes"][usize::from(p.ill)]
        };
        let shock = if n % 5 == 1 {
            ""
        } else {
            ["0", "1"][usize::from(p.lab > 0.0)]
        };
        format!("{},{:.4},{:.4},{sepsis},{shock}", p.id, p.lab, p.pulse)
    });
    place(
        "truth-labels",
        text,
        &asking("label = [\"sepsis\", \"shock\"]", ""),
    )
}

fn quantity(p: &Patient) -> f64 {
    100.0 + 40.0 * p.lab + 20.0 * p.pulse
}

fn of_quantity(train: &str) -> Place {
    let text = csv("id,lab,pulse,days", &patients(300), |p| {
        format!("{},{:.4},{:.4},{:.3}", p.id, p.lab, p.pulse, quantity(p))
    });
    place("truth-days", text, &asking("label = \"days\"", train))
}

/// Who is worse has the event earlier; a third leave before.
fn survival(event: impl Fn(u64) -> &'static str) -> String {
    let mut n = 0;
    csv("id,lab,pulse,days,died", &patients(300), |p| {
        n += 1;
        let event = event(n);
        let days = (200.0 * (1.0 - p.lab - p.pulse)).max(1.0);
        format!("{},{:.4},{:.4},{days:.1},{event}", p.id, p.lab, p.pulse)
    })
}

fn of_survival() -> Place {
    let text = survival(|n| if n % 3 == 0 { "no" } else { "yes" });
    let label = "label = \"days\"\nevent = \"died\"";
    place("truth-survival", text, &asking(label, ""))
}

fn json(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.succeeds(args).stdout).unwrap()
}

fn close(a: &Value, b: f64) {
    let a = a.as_f64().unwrap();
    assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} and {b}");
}

#[test]
fn labels_are_learnt_where_they_are_known() {
    let place = of_labels();
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let manifest = Run::at(&place, "run").manifest();
    assert_eq!(manifest["data"]["outcome"], "labels");
    let found = json(&place, &["evaluate", "run", "--data", "t.csv", "--json"]);
    assert!(found["data"]["auc"].as_f64().unwrap() > 0.9, "{found}");
    let said = json(
        &place,
        &["predict", "run", "--input", "t.csv", "--all", "--json"],
    );
    let text = std::fs::read_to_string(place.join("t.csv")).unwrap();
    let (mut right, mut known) = (0.0, 0.0);
    for (line, said) in text
        .lines()
        .skip(1)
        .zip(said["samples"].as_array().unwrap())
    {
        let cells: Vec<&str> = line.split(',').collect();
        for (cell, name) in [(cells[3], "sepsis"), (cells[4], "shock")] {
            let likely = said["probabilities"][name].as_f64().unwrap() > 0.5;
            let yes = ["yes", "1"].contains(&cell);
            known += f64::from(u8::from(!cell.is_empty()));
            right += f64::from(u8::from(!cell.is_empty() && likely == yes));
        }
    }
    assert_eq!(known, 480.0);
    close(&found["data"]["accuracy"], right / known);
    // A file that a command wrote is written again; the columns are the labels'.
    for _ in 0..2 {
        place.succeeds(&[
            "predict", "run", "--input", "t.csv", "--all", "--out", "p.csv",
        ]);
    }
    let written = std::fs::read_to_string(place.join("p.csv")).unwrap();
    let head = "id,probability_sepsis,probability_shock,notes";
    assert_eq!(written.lines().next(), Some(head));
}

#[test]
fn a_quantity_is_said_in_its_own_unit() {
    let place = of_quantity("loss = \"huber\"");
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let found = json(&place, &["evaluate", "run", "--data", "t.csv", "--json"]);
    assert!(found["data"]["r2"].as_f64().unwrap() > 0.8, "{found}");
    let said = json(
        &place,
        &["predict", "run", "--input", "t.csv", "--all", "--json"],
    );
    let said = said["samples"].as_array().unwrap();
    let patients = patients(300);
    let errors = patients.iter().zip(said).map(|(p, said)| {
        let truth = f64::from(format!("{:.3}", quantity(p)).parse::<f32>().unwrap());
        (said["prediction"].as_f64().unwrap() - truth).abs()
    });
    close(&found["data"]["mae"], errors.sum::<f64>() / 300.0);
    // The metrics of the run are those of its outcome, and no others.
    let metrics = Run::at(&place, "run").text("metrics.jsonl");
    let last: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
    assert!(last["mae"].is_number() && last["mae_validation"].is_number());
    assert!(last["auc"].is_null() && last["concordance"].is_null());
}

#[test]
fn survival_falls_and_ranks_patients() {
    let place = of_survival();
    place.succeeds(&["train", "t.toml", "--out", "run"]);
    let found = json(&place, &["evaluate", "run", "--data", "t.csv", "--json"]);
    assert!(
        found["data"]["concordance"].as_f64().unwrap() > 0.8,
        "{found}"
    );
    let said = json(
        &place,
        &["predict", "run", "--input", "t.csv", "--all", "--json"],
    );
    for patient in said["samples"].as_array().unwrap() {
        let curve = patient["survival"].as_array().unwrap();
        let values: Vec<f64> = curve
            .iter()
            .map(|step| step["none"].as_f64().unwrap())
            .collect();
        assert_eq!(values.len(), 12);
        assert!(values.is_sorted_by(|a, b| a >= b) && values[0] <= 1.0);
    }
}

#[test]
fn what_contradicts_itself_is_refused_with_its_row() {
    let place = of_survival();
    let train = ["train", "t.toml", "--out", "run"];
    place.write("t.csv", survival(|n| if n == 7 { "maybe" } else { "yes" }));
    place.refuses(
        &train,
        &[
            "t.csv",
            "line 8",
            "died",
            "maybe",
            "yes if the event was at this time",
        ],
    );
    place.write("t.csv", survival(|n| if n == 9 { "" } else { "yes" }));
    place.refuses(
        &train,
        &["line 10", "died", "yes if the event was at this time"],
    );
    let negative = survival(|_| "yes").replacen(",yes\n", ",yes\np999,0.1,0.1,-3,no\n", 1);
    place.write("t.csv", negative);
    place.refuses(&train, &["line 3", "days", "-3", "a number of 0 or more"]);
    place.write("t.csv", survival(|_| "no"));
    place.refuses(&train, &["no training row has the event"]);
    place.write("t.csv", survival(|n| if n % 2 == 0 { "no" } else { "yes" }));
    place.refuses(
        &[
            "train",
            "t.toml",
            "--set",
            "data.horizon=1e6",
            "--out",
            "run",
        ],
        &["data.horizon", "nobody in training was seen for longer"],
    );
    place.write("t.toml", asking("label = \"days\"", ""));
    place.refuses(
        &[
            "train",
            "t.toml",
            "--set",
            "data.outcome=survival",
            "--out",
            "run",
        ],
        &[
            "data.table.event",
            "the column that says whether the event was",
        ],
    );
    let labels = of_labels();
    let text = std::fs::read_to_string(labels.join("t.csv")).unwrap();
    labels.write("t.csv", text.replacen(",yes,", ",perhaps,", 1));
    labels.refuses(
        &train,
        &[
            "sepsis",
            "perhaps",
            "yes, no or nothing where that is unknown",
        ],
    );
    let twice = asking("label = [\"sepsis\", \"sepsis\"]", "");
    labels.write("t.toml", twice);
    labels.refuses(&train, &["data.table.label", "different columns"]);
    let quantity = of_quantity("");
    let with = |set: &str, parts: &[&str]| {
        quantity.refuses(&["train", "t.toml", "--set", set, "--out", "run"], parts);
    };
    with(
        "stop.auc=0.9",
        &["stop.auc is not measured of a quantity", "stop.mae"],
    );
    with(
        "train.class_weights=balanced",
        &["train.class_weights", "classes and labels"],
    );
    with(
        "data.hidden=0.2",
        &["data.hidden", "only labels can be hidden"],
    );
    with(
        "data.table.positive=yes",
        &["data.table.positive", "no class"],
    );
    with(
        "data.intervals=5",
        &["data.intervals is for survival", "the outcome is quantity"],
    );
    with("data.horizon=9", &["data.horizon is for survival"]);
    with(
        "train.huber=2",
        &["train.huber is for train.loss = \"huber\", but it is \"squared\""],
    );
    with(
        "train.quantile=0.9",
        &["train.quantile is for train.loss = \"quantile\", but it is \"squared\""],
    );
    for (set, key) in [
        ("train.loss=huber", "train.loss"),
        ("train.huber=2", "train.huber"),
        ("train.quantile=0.9", "train.quantile"),
    ] {
        quantity.refuses(
            &["train", "synthetic", "--set", set, "--out", "run"],
            &[&format!("{key} is for a quantity"), "the outcome is class"],
        );
    }
    quantity.write("t.csv", "id,lab,pulse,days\na,0,1,5\nb,1,0,many\nc,1,1,7\n");
    with(
        "data.outcome=quantity",
        &["line 3", "days", "many", "a number"],
    );
}

#[test]
fn groups_that_know_nothing_are_told() {
    let mut n = 0;
    let text = csv("id,lab,pulse,site,sepsis,shock", &patients(300), |p| {
        n += 1;
        let known = p.site == "north";
        let (sepsis, shock) = match known {
            true => (["no", "yes"][usize::from(p.ill)], "no"),
            false => ("", ""),
        };
        format!(
            "{},{:.4},{:.4},{},{sepsis},{shock}",
            p.id, p.lab, p.pulse, p.site
        )
    });
    let of_sites = asking("label = [\"sepsis\", \"shock\"]\ngroup = \"site\"", "")
        .replace("groups = 1", "groups = 2\nsplit = \"column\"");
    let place = place("truth-unknown", text, &of_sites);
    let said = place.succeeds(&["train", "t.toml", "--out", "run"]);
    says(
        &said.stderr,
        &[
            "no label of south is known: it learns nothing",
            "no training rows are known to be with \"shock\": it cannot be learnt",
        ],
    );
}

#[test]
fn what_single_groups_lack_is_told() {
    let of_sites = |label: &str| {
        asking(&format!("{label}\ngroup = \"site\""), "")
            .replace("groups = 1", "groups = 2\nsplit = \"column\"")
    };
    let text = csv("id,lab,pulse,site,sepsis,shock", &patients(300), |p| {
        let shock = ["no", "yes"][usize::from(p.pulse > 0.0)];
        let sepsis = match p.site {
            "north" => ["no", "yes"][usize::from(p.ill)],
            _ => "",
        };
        format!(
            "{},{:.4},{:.4},{},{sepsis},{shock}",
            p.id, p.lab, p.pulse, p.site
        )
    });
    let labels = place(
        "truth-lacking",
        text,
        &of_sites("label = [\"sepsis\", \"shock\"]"),
    );
    let said = labels.succeeds(&["train", "t.toml", "--out", "run"]);
    says(
        &said.stderr,
        &["not known of any training row: \"sepsis\" at south"],
    );
    let text = csv("id,lab,pulse,site,state", &patients(300), |p| {
        let state = match (p.site, p.ill, p.lab > 0.3) {
            ("north", _, true) => "shock",
            (_, true, _) => "sepsis",
            _ => "well",
        };
        format!("{},{:.4},{:.4},{},{state}", p.id, p.lab, p.pulse, p.site)
    });
    let of_class = of_sites("label = \"state\"");
    let classes = place("truth-absent", text, &of_class);
    let said = classes.succeeds(&["train", "t.toml", "--out", "run"]);
    says(
        &said.stderr,
        &["no training row of that class: \"shock\" at south"],
    );
}

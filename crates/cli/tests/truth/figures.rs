//! Whatever the labels of a part or of a group are: no figure is printed that is not defined, and the ones that are
//! follow from the predictions.

use crate::common::{Place, Random, words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

const SITES: [&str; 3] = ["north", "south", "west"];
const PARTS: [&str; 4] = ["train", "train", "validation", "test"];

/// How a table is skewed.
#[derive(Clone, Copy, Debug)]
enum Skew {
    /// The part has none of this class.
    ClassMissing(&'static str, usize),
    /// The group has this class only, in all parts.
    GroupOfOneClass(&'static str, usize),
    /// The part has one row.
    OneRow(&'static str),
    /// The part has none.
    Empty(&'static str),
    /// All predictions will be alike: values say nothing and one class is rare.
    Rare,
    /// One group has one row in the part.
    OneOfGroup(&'static str, &'static str),
    /// The group has none of this class in the part.
    ClassMissingOfGroup(&'static str, &'static str, usize),
    None,
}
use Skew::{ClassMissing, ClassMissingOfGroup, Empty, GroupOfOneClass, OneOfGroup, OneRow, Rare};

const SKEWS: [Skew; 18] = [
    Skew::None,
    ClassMissing("validation", 0),
    ClassMissing("validation", 1),
    ClassMissing("test", 0),
    ClassMissing("test", 1),
    GroupOfOneClass("north", 0),
    GroupOfOneClass("west", 1),
    OneRow("validation"),
    OneRow("test"),
    OneRow("train"),
    Empty("validation"),
    Empty("test"),
    Rare,
    OneOfGroup("south", "test"),
    OneOfGroup("west", "train"),
    OneOfGroup("north", "validation"),
    ClassMissingOfGroup("south", "train", 1),
    ClassMissingOfGroup("west", "validation", 0),
];

/// So many tables have two or three of these at once.
const MIXED: usize = 6;

struct Row {
    id: String,
    site: &'static str,
    part: &'static str,
    values: [f64; 3],
    label: usize,
}

fn rows(classes: usize, skews: &[Skew], random: &mut Random) -> Vec<Row> {
    let mut rows: Vec<Row> = (0..140)
        .map(|n| {
            let values = [0; 3].map(|_| random.next() - 0.5);
            let score = values[0] + values[1] + 0.3 * (random.next() - 0.5);
            Row {
                id: format!("p{n}"),
                site: SITES[n % 3],
                part: PARTS[(random.next() * 4.0) as usize],
                values,
                label: (((score + 1.0) / 2.0 * classes as f64) as usize).min(classes - 1),
            }
        })
        .collect();
    for skew in skews {
        skewed(&mut rows, classes, *skew, random);
    }
    rows
}

fn skewed(rows: &mut Vec<Row>, classes: usize, skew: Skew, random: &mut Random) {
    let mut kept = 0;
    match skew {
        Skew::None => {}
        ClassMissing(part, class) => rows.retain(|row| row.part != part || row.label != class),
        GroupOfOneClass(site, class) => {
            let of_site = rows.iter_mut().filter(|row| row.site == site);
            of_site.for_each(|row| row.label = class);
        }
        // With one training row there is one group, and a class that only others have.
        OneRow("train") => rows.retain(|row| {
            kept += usize::from(row.part == "train");
            row.part != "train" || kept <= 2 * classes
        }),
        OneRow(part) => rows.retain(|row| {
            kept += usize::from(row.part == part);
            row.part != part || kept == 1
        }),
        Empty(part) => rows.retain(|row| row.part != part),
        Rare => {
            for (n, row) in rows.iter_mut().enumerate() {
                row.label = usize::from(n % 30 == 0);
                row.values = [random.next(), random.next(), random.next()];
            }
        }
        OneOfGroup(site, part) => rows.retain(|row| {
            kept += usize::from(row.part == part && row.site == site);
            row.part != part || row.site != site || kept == 1
        }),
        ClassMissingOfGroup(site, part, class) => {
            rows.retain(|row| row.part != part || row.site != site || row.label != class);
        }
    }
}

fn csv(rows: &[Row]) -> String {
    let mut text = "id,site,use,lab,pulse,steps,label\n".to_owned();
    for row in rows {
        let [lab, pulse, steps] = row.values;
        let (id, site, part, label) = (&row.id, row.site, row.part, row.label);
        writeln!(
            text,
            "{id},{site},{part},{lab:.4},{pulse:.4},{steps:.4},class{label}"
        )
        .unwrap();
    }
    text
}

fn experiment(classes: usize) -> String {
    let labels: Vec<String> = (0..classes)
        .map(|class| format!("\"class{class}\""))
        .collect();
    format!(
        "[data]\nset = \"table\"\npath = \"t.csv\"\nsplit = \"column\"\ngroups = 3\n[data.table]\nid = \"id\"\n\
         label = \"label\"\nlabels = [{}]\npart = \"use\"\ngroup = \"site\"\nhospital = [\"lab\"]\n\
         device = [\"pulse\", \"steps\"]\n[train]\niterations = 60\nevaluate_every = 20\nlearning_rate = 0.3\n\
         participation = 0.5\n[model]\ncombined = [{{ linear = {{ out = {classes} }} }}]\n",
        labels.join(", ")
    )
}

/// Words that only a number which is none has.
#[track_caller]
pub fn nothing_undefined(text: &str, what: &str) {
    let wrong = ["nan", "inf", "-inf", "infinity", "-nan", "0/0"];
    let words = text.split(|c: char| !(c.is_alphanumeric() || "-/.".contains(c)));
    for word in words {
        assert!(
            !wrong.contains(&word.to_lowercase().as_str()),
            "{what}: {word:?} in\n{text}"
        );
    }
}

/// Text of a page that people see: attributes and scripts are for programs.
pub fn seen(page: &str) -> String {
    let mut out = String::new();
    for (n, piece) in page.split('<').enumerate() {
        let is_script = piece.starts_with("script") || piece.starts_with("style");
        if n > 0 && !is_script {
            out += piece.split_once('>').map_or("", |(_, text)| text);
            out.push(' ');
        }
    }
    out
}

/// What follows from a confusion matrix: a share of nobody is not defined.
#[track_caller]
pub fn follows_from_confusion(part: &Value, classes: usize, positive: Option<usize>, what: &str) {
    let confusion: Vec<Vec<f64>> = serde_json::from_value(part["confusion"].clone()).unwrap();
    let row = |class: usize| confusion[class].iter().sum::<f64>();
    let column = |class: usize| confusion.iter().map(|row| row[class]).sum::<f64>();
    let all: f64 = (0..classes).map(row).sum();
    let is = |name: &str, expected: Option<f64>| match (part[name].as_f64(), expected) {
        (None, None) => {}
        (Some(found), Some(expected)) if (found - expected).abs() < 1e-9 => {}
        (found, _) => panic!("{what}: {name} is {found:?}, not {expected:?}: {confusion:?}"),
    };
    let share = |a: f64, b: f64| (b > 0.0).then(|| a / b);
    let right: f64 = (0..classes).map(|class| confusion[class][class]).sum();
    is("accuracy", share(right, all));
    let is_whole = (0..classes).all(|class| row(class) > 0.0);
    for mean in ["precision", "recall", "f1"] {
        assert_eq!(
            part[mean].is_number(),
            is_whole,
            "{what}: {mean} {}",
            part[mean]
        );
    }
    let ranked = (0..classes).any(|class| row(class) > 0.0 && row(class) < all);
    assert_eq!(
        part["auc"].is_number(),
        ranked,
        "{what}: auc {}",
        part["auc"]
    );
    let Some(positive) = positive else {
        assert!(part["sensitivity"].is_null(), "{what}");
        return;
    };
    let found = confusion[positive][positive];
    let (is_it, said) = (row(positive), column(positive));
    let rejected = all - is_it - said + found;
    is("sensitivity", share(found, is_it));
    is("specificity", share(rejected, all - is_it));
    is("positive_predictive_value", share(found, said));
    is("negative_predictive_value", share(rejected, all - said));
    assert_eq!(part["average_precision"].is_number(), is_it > 0.0, "{what}");
}

#[test]
fn no_undefined_figure_is_printed() {
    let (mut random, mut refusals) = (Random(2024), Vec::new());
    for classes in [2, 3] {
        for skew in SKEWS {
            if classes == 3 && matches!(skew, Rare) {
                continue;
            }
            let refused = check(classes, &[skew], &mut random);
            refusals.extend(refused.map(|why| format!("{classes} {skew:?}: {why}")));
        }
    }
    assert!(refusals.is_empty(), "{refusals:#?}");
    for _ in 0..MIXED {
        let any = |random: &mut Random| SKEWS[(random.next() * SKEWS.len() as f64) as usize];
        let skews: Vec<Skew> = (0..3).map(|_| any(&mut random)).collect();
        // A table that is refused is refused for what it is, which is seen to in there.
        check(2, &skews, &mut random);
    }
}

/// Tries every command, unless training is refused; then why it is.
fn check(classes: usize, skews: &[Skew], random: &mut Random) -> Option<String> {
    let what = format!("{classes} classes, {skews:?}");
    let place = Place::new("figures");
    let rows = rows(classes, skews, random);
    place.write("t.csv", csv(&rows));
    place.write("t.toml", experiment(classes));
    let trained = place.selvedge(&words("train t.toml --out run"));
    if trained.code() == Some(2) {
        // It says why, and leaves nothing.
        assert!(
            trained.stderr.contains("error: "),
            "{what}: {}",
            trained.stderr
        );
        assert!(!place.join("run").exists(), "{what}");
        return Some(trained.stderr);
    }
    let trained = trained.succeeded();
    nothing_undefined(&(trained.stdout + &trained.stderr), &what);
    for call in [
        "data inspect t.toml",
        "evaluate run --html run/e.html",
        "predict run --input t.csv --all",
        "report run --target auc=0.9 --target f1=0.5",
        "export run",
        "compare t.toml --algorithms hsgd,jfl --seeds 1 --out cmp --set train.iterations=20",
        "tune t.toml --budget 2e5",
    ] {
        let ran = place.succeeds(&words(call));
        nothing_undefined(&(ran.stdout + &ran.stderr), &format!("{what}: {call}"));
    }
    if skews.len() > 1 {
        for call in [
            "sweep t.toml --over train.local_interval=1,5 --seeds 1 --out swp --set train.iterations=20",
            "train t.toml --seeds 2 --out seeds --set train.iterations=20",
            "data stats t.toml --out stats.json",
        ] {
            let ran = place.succeeds(&words(call));
            nothing_undefined(&(ran.stdout + &ran.stderr), &format!("{what}: {call}"));
        }
    }
    for page in [
        "run/e.html",
        "run/report.html",
        "cmp/report.html",
        "run/export/model-card.md",
    ] {
        let text = fs::read_to_string(place.join(page)).unwrap();
        let text = if page.ends_with("html") {
            seen(&text)
        } else {
            text.replace("NaN where nothing was measured", "")
        };
        nothing_undefined(&text, &format!("{what}: {page}"));
    }
    for call in [
        "evaluate run --json",
        "predict run --input t.csv --all --json",
        "train run --out again --json",
    ] {
        let text = place.succeeds(&words(call)).stdout;
        nothing_undefined(&text, &format!("{what}: {call}"));
    }
    let own: Value =
        serde_json::from_str(&place.succeeds(&words("evaluate run --json")).stdout).unwrap();
    let positive = own["positive"]["class"]
        .as_str()
        .map(|name| name.trim_start_matches("class").parse().unwrap());
    assert_eq!(positive.is_some(), classes == 2, "{what}");
    for part in ["train", "validation", "test"] {
        if own[part].is_object() {
            follows_from_confusion(&own[part], classes, positive, &format!("{what}: {part}"));
        }
    }
    predictions_are_those_of_the_evaluation(&place, &rows, &own, &what);
    None
}

/// The patients of a part, given as new ones: the same confusion, loss and Brier score.
fn predictions_are_those_of_the_evaluation(place: &Place, rows: &[Row], own: &Value, what: &str) {
    let predict = words("predict run --input t.csv --all --json");
    let said: Value = serde_json::from_str(&place.succeeds(&predict).stdout).unwrap();
    let by_id: BTreeMap<&str, &Value> = said["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|patient| (patient["id"].as_str().unwrap(), patient))
        .collect();
    for part in ["train", "validation", "test"] {
        let of_part: Vec<&Row> = rows.iter().filter(|row| row.part == part).collect();
        if of_part.is_empty() {
            assert!(own[part].is_null(), "{what}: {part}");
            continue;
        }
        let classes = own["classes"].as_array().unwrap().len();
        let mut confusion = vec![vec![0_u64; classes]; classes];
        let mut loss = 0.0;
        for row in &of_part {
            let patient = by_id[row.id.as_str()];
            let class = patient["prediction"]
                .as_str()
                .unwrap()
                .trim_start_matches("class");
            confusion[row.label][class.parse::<usize>().unwrap()] += 1;
            let said = patient["probabilities"][format!("class{}", row.label)]
                .as_f64()
                .unwrap();
            loss -= libm::log(said.max(1e-30)) / of_part.len() as f64;
        }
        assert_eq!(
            serde_json::json!(confusion),
            own[part]["confusion"],
            "{what}: {part}"
        );
        let evaluated = own[part]["loss"].as_f64().unwrap();
        assert!(
            (loss - evaluated).abs() < 1e-4 * (1.0 + loss),
            "{what}: {part}: {loss} {evaluated}"
        );
    }
    // Given as new patients, the test rows have the figures of the test.
    if own["test"].is_object() {
        let data = place
            .succeeds(&words("evaluate run --data t.csv --json"))
            .stdout;
        let data: Value = serde_json::from_str(&data).unwrap();
        for name in [
            "auc",
            "loss",
            "accuracy",
            "sensitivity",
            "brier",
            "confusion",
        ] {
            assert_eq!(data["data"][name], own["test"][name], "{what}: {name}");
        }
    }
}

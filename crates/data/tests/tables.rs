//! Tables of one's own: every layout, what is read, and what the errors say.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::Folder;
use selvedge_data::SETS;
use selvedge_data::{DataError, Loaded, load_with_notes};
use selvedge_nn::Shape;
use std::fs;

/// Writes files and loads the set that the `[data]` table names.
fn load(files: &[(&str, &str)], settings: &str) -> Result<Loaded, DataError> {
    let bytes: Vec<(&str, &[u8])> = files.iter().map(|(n, t)| (*n, t.as_bytes())).collect();
    load_bytes(&bytes, settings)
}

fn load_bytes(files: &[(&str, &[u8])], settings: &str) -> Result<Loaded, DataError> {
    let folder = Folder::new();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let text = format!("[data]\nset = \"table\"\ngroups = 1\ntest = 0.0\n{settings}");
    let experiment = SETS.parse(&text, &[]).unwrap();
    load_with_notes(&experiment.data, 1, Some(folder.path()))
}

#[track_caller]
fn refused(files: &[(&str, &str)], settings: &str, parts: &[&str]) {
    let message = load(files, settings).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

const FLAT: &str = "patient,age,sex,hr,spo2,died,site\n\
    p10,61,f,80,97,no,north\n\
    p2,70,m,90,,yes,south\n\
    p1,50,f,100,93,no,south\n\
    p3,39,m,70,95,yes,north\n";

const FLAT_SETTINGS: &str = "path = \"t.csv\"\n\
    [data.table]\n\
    id = \"patient\"\n\
    label = \"died\"\n\
    hospital = [\"age\", \"sex\"]\n\
    device = [\"hr\", \"spo2\"]\n\
    categorical = [\"sex\"]\n";

#[test]
fn one_row_for_each_patient() {
    let loaded = load(&[("t.csv", FLAT)], FLAT_SETTINGS).unwrap();
    let (dataset, statistics) = (&loaded.dataset, &loaded.statistics);
    assert_eq!(dataset.classes, ["no", "yes"]);
    assert_eq!(
        (dataset.hospital, dataset.device),
        (Shape::Flat(3), Shape::Flat(2))
    );
    assert_eq!(statistics.hospital.names, ["age", "sex = f", "sex = m"]);
    assert_eq!(statistics.device.names, ["hr", "spo2"]);
    assert_eq!(statistics.device.missing, [0.0, 0.25]);
    // Ordered by id, p2 before p10; ages are standardised, categories left alone, the missing value is the mean.
    let samples = &dataset.groups[0].samples;
    assert_eq!(samples.y.classes(), [0, 1, 1, 0]);
    let ages = [50.0f64, 70.0, 39.0, 61.0];
    let mean = ages.iter().sum::<f64>() / 4.0;
    let deviation = (ages.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
    for (row, age) in ages.iter().enumerate() {
        assert_eq!(samples.x1[3 * row], ((age - mean) / deviation) as f32);
    }
    assert_eq!(samples.x1[1..3], [1.0, 0.0]);
    assert_eq!(samples.x1[4..6], [0.0, 1.0]);
    assert_eq!(samples.x2[3], 0.0);
}

#[test]
fn separators_quotes_gzip_and_order_change_nothing() {
    let expected = load(&[("t.csv", FLAT)], FLAT_SETTINGS).unwrap().dataset;
    let mut rows: Vec<&str> = FLAT.lines().collect();
    rows[1..].reverse();
    let turned = rows.join("\r\n");
    let quoted = format!(
        "\u{feff}{}",
        FLAT.replace("north", "\"nor,th\"")
            .replace("70,m", "\"70\",\"m\"")
    );
    let semicolons = FLAT.replace(',', ";");
    let tabs = FLAT.replace(',', "\t");
    for text in [turned, quoted, semicolons, tabs] {
        let loaded = load(&[("t.csv", &text)], FLAT_SETTINGS).unwrap();
        assert_eq!(loaded.dataset, expected, "{text}");
    }
    let gzipped = common::gzip(FLAT.as_bytes());
    let loaded = load_bytes(&[("t.csv", &gzipped)], FLAT_SETTINGS).unwrap();
    assert_eq!(loaded.dataset, expected);
}

#[test]
fn parquet_is_the_same_table() {
    let expected = load(&[("t.csv", FLAT)], FLAT_SETTINGS).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tables/patients.parquet");
    let bytes = fs::read(path).unwrap();
    let loaded = load_bytes(&[("t.csv", &bytes)], FLAT_SETTINGS).unwrap();
    assert_eq!(loaded.dataset, expected.dataset);
    assert_eq!(loaded.statistics, expected.statistics);
    // Errors count rows there, since there are no lines.
    let wrong = FLAT_SETTINGS.replace("\"sex\"]\ndevice", "\"sex\", \"site\"]\ndevice");
    let message = load_bytes(&[("t.csv", &bytes)], &wrong)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("row 1, column site: \"north\" is not a number"),
        "{message}"
    );
    // Every truncation is refused and none panics.
    for length in 0..bytes.len() {
        assert!(load_bytes(&[("t.csv", &bytes[..length])], FLAT_SETTINGS).is_err());
    }
}

#[test]
fn parts_groups_and_labels_as_columns_say() {
    let text = "id;x;z;y;site;use\n1;1;1;b;s2;train\n2;2;2;a;s1;train\n3;3;3;b;s1;test\n4;4;4;a;s2;validation\n5;5;5;a;s1;train\n";
    let settings = "path = \"t.csv\"\nsplit = \"column\"\n[data.table]\nid = \"id\"\nlabel = \"y\"\nlabels = [\"b\", \"a\"]\ngroup = \"site\"\npart = \"use\"\nhospital = [\"x\"]\ndevice = [\"*\"]\n";
    let settings = settings.replace("split", "groups = 2\nsplit");
    let text_settings = format!("[data]\nset = \"table\"\n{settings}");
    let folder = Folder::new();
    fs::write(folder.path().join("t.csv"), text).unwrap();
    let experiment = SETS.parse(&text_settings, &[]).unwrap();
    let dataset = load_with_notes(&experiment.data, 1, Some(folder.path()))
        .unwrap()
        .dataset;
    assert_eq!(dataset.classes, ["b", "a"]);
    let names: Vec<&str> = dataset.groups.iter().map(|g| g.name.as_str()).collect();
    assert_eq!(names, ["s1", "s2"]);
    assert_eq!(dataset.groups[0].samples.y.classes(), [1, 1]);
    assert_eq!(dataset.groups[1].samples.y.classes(), [0]);
    assert_eq!(
        (dataset.validation.y.classes(), dataset.test.y.classes()),
        (&[1][..], &[0][..])
    );
}

#[test]
fn several_rows_of_a_patient_are_one_device() {
    let text = "row,who,x,z,y\na,p1,1,1,0\nb,p2,2,2,1\nc,p1,3,3,0\nd,p3,4,4,1\ne,p2,5,5,1\n";
    let settings = "path = \"t.csv\"\n[data.table]\nid = \"row\"\npatient = \"who\"\nlabel = \"y\"\nhospital = [\"x\"]\ndevice = [\"z\"]\n";
    let dataset = load(&[("t.csv", text)], settings).unwrap().dataset;
    assert_eq!(dataset.groups[0].offsets.listed(), [0, 2, 4, 5]);
    assert_eq!(dataset.groups[0].samples.y.classes(), [0, 0, 1, 1, 1]);
    // They may have different labels, but not different uses or groups.
    let changed = text.replace("c,p1,3,3,0", "c,p1,3,3,1");
    let dataset = load(&[("t.csv", &changed)], settings).unwrap().dataset;
    assert_eq!(dataset.groups[0].samples.y.classes(), [0, 1, 1, 1, 1]);
    let used = text
        .replace("y\n", "y,use\n")
        .replace(",0\n", ",0,train\n")
        .replace(",1\n", ",1,train\n");
    let with_part = format!("{settings}part = \"use\"\n");
    let loaded = load(&[("t.csv", &used)], &with_part).unwrap();
    assert_eq!(loaded.dataset.training_samples(), 5);
    assert!(
        loaded
            .notes
            .join("")
            .contains("no rows are held out for testing")
    );
    let conflict = used.replace("c,p1,3,3,0,train", "c,p1,3,3,0,test");
    refused(
        &[("t.csv", &conflict)],
        &with_part,
        &["\"a\" and \"c\"", "training", "testing"],
    );
    let conflict = used.replace("c,p1,3,3,0,train", "c,p1,3,3,0,other");
    let by_group = format!("{settings}group = \"use\"\n");
    refused(
        &[("t.csv", &conflict)],
        &by_group,
        &["\"a\" and \"c\"", "\"train\" and \"other\""],
    );
}

const LABELS: &str = "id,age,y\n7,40,0\n8,50,1\n9,60,0\n";
const LONG: &str = "id,t,name,v\n\
    7,0.5,hr,80\n\
    7,0.9,hr,82\n\
    7,0.7,hr,81\n\
    7,2,lactate,1.5\n\
    8,0:30,hr,90\n\
    8,5,hr,99\n\
    8,1,posture,lying\n\
    8,1,ignored,whatever\n\
    11,1,hr,70\n";

const LONG_SETTINGS: &str = "path = \"labels.csv\"\n\
    [data.table]\n\
    files = [\"long.csv\"]\n\
    id = \"id\"\nlabel = \"y\"\ntime = \"t\"\nvariable = \"name\"\nvalue = \"v\"\nsteps = 3\n\
    hospital = [\"age\", \"lactate\"]\n\
    device = [\"hr\", \"posture\"]\n\
    categorical = { posture = [\"lying\", \"standing\"] }\n\
    masks = true\n";

#[test]
fn time_series_in_long_form() {
    let files = [("labels.csv", LABELS), ("long.csv", LONG)];
    let settings = format!("{LONG_SETTINGS}missing = \"carry\"\none_sided = \"keep\"\n");
    let loaded = load(&files, &settings).unwrap();
    let dataset = &loaded.dataset;
    assert_eq!(
        (dataset.hospital, dataset.device),
        (Shape::Steps(3, 4), Shape::Steps(3, 5))
    );
    assert_eq!(
        loaded.statistics.device.names,
        [
            "hr",
            "posture = lying",
            "posture = standing",
            "hr measured",
            "posture measured"
        ]
    );
    let notes = loaded.notes.join("\n");
    for part in [
        "1 measurement falls outside the time window",
        "1 id of further files",
        "1 patient is known to only one side",
    ] {
        assert!(notes.contains(part), "{part} is not in {notes}");
    }
    let samples = &dataset.groups[0].samples;
    // Patient 7: the last heart rate of the first hour by its time, not by its line; then carried.
    let scale = loaded.statistics.device.scales[0];
    let scaled = |x: f64| ((x - scale.mean) / scale.deviation) as f32;
    let seven = &samples.x2[..15];
    assert_eq!([seven[0], seven[5], seven[10]], [scaled(82.0); 3]);
    assert_eq!([seven[3], seven[8], seven[13]], [1.0, 0.0, 0.0]);
    // Patient 8: half past midnight is in the first hour, lying from the second on.
    let eight = &samples.x2[15..30];
    assert_eq!(eight[0], scaled(90.0));
    assert_eq!(eight[1..3], [0.0, 0.0]);
    assert_eq!(eight[6..8], [1.0, 0.0]);
    assert_eq!(eight[11..13], [1.0, 0.0]);
    // Patient 9 has no device: nothing but means and empty masks. Age is repeated at every step.
    assert_eq!(samples.x2[30..45], [0.0; 15]);
    let nine = &samples.x1[24..36];
    assert_eq!(nine[0], nine[4]);
    assert_ne!(nine[0], 0.0);

    let left_out = load(&files, LONG_SETTINGS).unwrap();
    assert_eq!(left_out.dataset.training_samples(), 2);
    let refusing = format!("{LONG_SETTINGS}one_sided = \"refuse\"\n");
    refused(&files, &refusing, &["labels.csv", "1 patient is", "\"9\""]);
}

#[test]
fn long_and_wide_series_agree() {
    let wide = "id,t,hr,lactate\n7,0.9,82,\n7,2,,1.5\n8,0.5,90,\n9,0.1,,2\n9,1,75,\n";
    let long =
        "id,t,name,v\n7,0.9,hr,82\n7,2,lactate,1.5\n8,0.5,hr,90\n9,0.1,lactate,2\n9,1,hr,75\n";
    let settings = |extra: &str| {
        format!(
            "path = \"labels.csv\"\n[data.table]\nfiles = [\"s.csv\"]\nid = \"id\"\nlabel = \"y\"\ntime = \"t\"\nsteps = 3\nhospital = [\"age\", \"lactate\"]\ndevice = [\"hr\"]\none_sided = \"keep\"\n{extra}"
        )
    };
    let from_wide = load(&[("labels.csv", LABELS), ("s.csv", wide)], &settings("")).unwrap();
    let from_long = load(
        &[("labels.csv", LABELS), ("s.csv", long)],
        &settings("variable = \"name\"\nvalue = \"v\"\n"),
    )
    .unwrap();
    assert_eq!(from_wide.dataset, from_long.dataset);
}

#[test]
fn the_labels_may_stand_in_the_series_itself() {
    let text = "id,t,hr,lactate,y\n7,0,80,1,no\n7,1,82,2,no\n8,0,90,3,yes\n";
    let settings = "path = \"s.csv\"\n[data.table]\nid = \"id\"\nlabel = \"y\"\ntime = \"t\"\nsteps = 2\nhospital = [\"lactate\"]\ndevice = [\"hr\"]\n";
    let dataset = load(&[("s.csv", text)], settings).unwrap().dataset;
    assert_eq!(dataset.groups[0].samples.y.classes(), [0, 1]);
    let changed = text.replace("82,2,no", "82,2,yes");
    refused(
        &[("s.csv", &changed)],
        settings,
        &[
            "s.csv, line 3, column y",
            "\"yes\"",
            "earlier rows of \"7\"",
        ],
    );
}

#[test]
fn what_stands_for_missing_values() {
    let settings = |missing: &str| format!("{FLAT_SETTINGS}missing = \"{missing}\"\n");
    let zero = load(&[("t.csv", FLAT)], &settings("zero")).unwrap();
    assert_eq!(
        zero.statistics.device.missing,
        [0.0, 0.25],
        "counted before they are filled"
    );
    let scale = zero.statistics.device.scales[1];
    let value = zero.dataset.groups[0].samples.x2[3];
    assert_eq!(value, ((0.0 - scale.mean) / scale.deviation) as f32);
    refused(
        &[("t.csv", FLAT)],
        &settings("refuse"),
        &["t.csv", "\"p2\"", "\"spo2\""],
    );
    let mut experiment = SETS
        .parse(
            &format!("[data]\nset = \"table\"\n{}", settings("zero")),
            &[],
        )
        .unwrap();
    let median = &["data.table.missing=median".to_owned()];
    let read = SETS.with(&experiment, median).unwrap_err().to_string();
    experiment.data.table.missing = "median".into();
    let used = selvedge_data::load(&experiment.data, 1, None);
    for message in [read, used.unwrap_err().to_string()] {
        for part in ["data.table.missing", "median", "\"mean\""] {
            assert!(message.contains(part), "{message}");
        }
    }
    let blank = FLAT.replace("90,,", "90,NA,");
    refused(
        &[("t.csv", &blank)],
        FLAT_SETTINGS,
        &[
            "line 3, column spo2: \"NA\" is not a number",
            "data.table.blank",
        ],
    );
    let named = format!("{FLAT_SETTINGS}blank = [\"NA\"]\n");
    let expected = load(&[("t.csv", FLAT)], FLAT_SETTINGS).unwrap().dataset;
    assert_eq!(
        load(&[("t.csv", &blank)], &named).unwrap().dataset,
        expected
    );
}

#[test]
fn errors_name_the_file_the_row_and_the_column() {
    let with = |from: &str, to: &str| FLAT.replace(from, to);
    let cases: &[(&str, String, &[&str])] = &[
        (
            "text",
            with("61,f", "old,f"),
            &["t.csv, line 2, column age: \"old\" is not a number"],
        ),
        (
            "nan",
            with("61,f", "NaN,f"),
            &["line 2, column age: \"NaN\" is not a number"],
        ),
        (
            "infinity",
            with("61,f", "-inf,f"),
            &["line 2, column age: \"-inf\""],
        ),
        (
            "too large for f32",
            with("61,f", "1e39,f"),
            &["line 2, column age: \"1e39\""],
        ),
        (
            "few values",
            with("97,no,north", "97,no"),
            &["t.csv, line 2: 6 values: expected 7"],
        ),
        (
            "many values",
            with("north\n", "north,1\n"),
            &["line 2: 8 values"],
        ),
        (
            "no label",
            with("97,no", "97,"),
            &["line 2, column died: it is empty: expected a label"],
        ),
        (
            "no id",
            with("p2,", ","),
            &["line 3, column patient", "an id"],
        ),
        (
            "twice",
            with("p3,", "p1,"),
            &["line 5, column patient: \"p1\"", "line 4 has it already"],
        ),
        ("quotes", with("p2,70", "\"p2,70"), &["line 3", "quotes"]),
        ("empty", String::new(), &["t.csv", "an empty file"]),
        (
            "no rows",
            FLAT.lines().next().unwrap().into(),
            &["a header but no rows"],
        ),
        ("column twice", with("spo2", "hr"), &["\"hr\" twice"]),
        ("one label", with("yes", "no"), &["at least two"]),
    ];
    for (name, text, parts) in cases {
        let message = load(&[("t.csv", text)], FLAT_SETTINGS)
            .unwrap_err()
            .to_string();
        for part in *parts {
            assert!(
                message.contains(part),
                "{name}: {part:?} is not in: {message}"
            );
        }
    }
    refused(
        &[("t.csv", FLAT)],
        &FLAT_SETTINGS.replace("\"hr\", \"spo2\"", "\"hr\", \"sp02\""),
        &["data.table.device", "\"sp02\"", "did you mean \"spo2\"?"],
    );
    refused(
        &[("t.csv", FLAT)],
        &FLAT_SETTINGS.replace("\"hr\", \"spo2\"", "\"hr\", \"age\""),
        &["\"age\"", "both"],
    );
    refused(
        &[("t.csv", FLAT)],
        &FLAT_SETTINGS.replace("label = \"died\"", "label = \"dead\""),
        &["t.csv", "\"dead\"", "data.table.label"],
    );
    refused(
        &[("t.csv", FLAT)],
        &FLAT_SETTINGS.replace("t.csv", "u.csv"),
        &["data.path", "u.csv", "no such file"],
    );
    let given = FLAT_SETTINGS.replace("[\"sex\"]", "{ sex = [\"f\"] }");
    refused(
        &[("t.csv", FLAT)],
        &given,
        &["line 3, column sex: \"m\"", "\"f\""],
    );
    let labels = format!("{FLAT_SETTINGS}labels = [\"no\", \"maybe\"]\n");
    refused(
        &[("t.csv", FLAT)],
        &labels,
        &["line 3, column died: \"yes\"", "\"maybe\""],
    );
}

#[test]
fn gzip_that_ends_early_or_is_damaged() {
    let gzipped = common::gzip(FLAT.as_bytes());
    for bytes in [&gzipped[..gzipped.len() / 2], &gzipped[..12]] {
        let message = load_bytes(&[("t.csv", bytes)], FLAT_SETTINGS)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("t.csv") && message.contains("gzip"),
            "{message}"
        );
    }
    let mut flipped = gzipped.clone();
    flipped[20] ^= 0x55;
    assert!(load_bytes(&[("t.csv", &flipped)], FLAT_SETTINGS).is_err());
    assert!(load_bytes(&[("t.csv", &[0xff; 100])], FLAT_SETTINGS).is_err());
}

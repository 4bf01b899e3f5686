//! Patients for a trained model: each set's readers give them as training saw them, without labels, and say what is
//! odd.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::{Folder, NAME};
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::DataSettings;
use selvedge_data::SETS;
use selvedge_data::{
    DataError, Labels, Loaded, Odd, Patients, Which, load_with_notes, read_patients,
};
use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

/// A set of files in a folder, loaded for training.
struct Trained {
    folder: Folder,
    settings: DataSettings,
    loaded: Loaded,
}

impl Trained {
    fn new(files: &[(&str, &str)], settings: &str) -> Self {
        let folder = Folder::new();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let text = format!("[data]\ngroups = 1\ntest = 0.0\n{settings}");
        let settings = SETS.parse(&text, &[]).unwrap().data;
        let loaded = load_with_notes(&settings, 1, Some(folder.path())).unwrap();
        Trained {
            folder,
            settings,
            loaded,
        }
    }

    fn read(&self, files: &[PathBuf], labels: Labels) -> Result<Patients, DataError> {
        read_patients(
            &self.settings,
            &self.loaded.inputs(),
            files,
            labels,
            Which::Test,
        )
    }

    #[track_caller]
    fn refusal(&self, files: &[PathBuf], labels: Labels) -> String {
        self.read(files, labels).unwrap_err().to_string()
    }

    /// New files with these texts.
    fn read_texts(&self, files: &[(&str, &str)]) -> Result<Patients, DataError> {
        let folder = Folder::new();
        let write = |(name, text): &(&str, &str)| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let paths: Vec<PathBuf> = files.iter().map(write).collect();
        self.read(&paths, Labels::Ignored)
    }

    fn training(&self) -> &Samples {
        &self.loaded.dataset.groups[0].samples
    }
}

const FLAT: &str = "patient,age,sex,hr,spo2,died\n\
    p10,61,f,80,97,no\n\
    p2,70,m,90,,yes\n\
    p1,50,f,100,93,no\n\
    p3,39,m,70,95,yes\n";

const TABLE: &str = "set = \"table\"\npath = \"t.csv\"\n\
    [data.table]\n\
    id = \"patient\"\n\
    label = \"died\"\n\
    hospital = [\"*\"]\n\
    device = [\"hr\", \"spo2\"]\n\
    categorical = [\"sex\"]\n";

/// Some rows in that order.
fn in_order(samples: &Samples, rows: &[usize]) -> Samples {
    let [wide1, wide2] = [&samples.x1, &samples.x2].map(|x| x.len() / samples.len());
    let mut out = Samples::default();
    for row in rows {
        let (x1, x2) = (&samples.x1[row * wide1..], &samples.x2[row * wide2..]);
        out.push(&x1[..wide1], &x2[..wide2], samples.y.classes()[*row]);
    }
    out
}

fn same(a: &Samples, b: &Samples) {
    assert_eq!((&a.x1, &a.x2), (&b.x1, &b.x2));
}

#[test]
fn a_table_is_read_as_training_read_it_with_or_without_labels() {
    let trained = Trained::new(&[("t.csv", FLAT)], TABLE);
    let again = [trained.folder.path().join("t.csv")];
    let labelled = trained.read(&again, Labels::Needed).unwrap();
    // As the file has them, while training has them by id.
    assert_eq!(labelled.ids, ["p10", "p2", "p1", "p3"]);
    let sorted = in_order(&labelled.samples, &[2, 1, 3, 0]);
    assert_eq!(&sorted, trained.training());
    assert!(labelled.oddities.is_empty() && labelled.notes.is_empty());
    // No label, columns in another order, more columns than training had, one patient.
    let text = "spo2,hr,shoe,sex,patient,age\n93,100,44,f,p1,50\n";
    let one = trained.read_texts(&[("new.csv", text)]).unwrap();
    let wide = [
        trained.training().x1.len() / 4,
        trained.training().x2.len() / 4,
    ];
    assert_eq!(one.samples.x1, trained.training().x1[..wide[0]]);
    assert_eq!(one.samples.x2, trained.training().x2[..wide[1]]);
    // Labels that are wrong do not matter to a prediction, and do to an evaluation.
    let wrong = FLAT.replace(",yes", ",perhaps");
    let all = trained.read_texts(&[("new.csv", &wrong)]).unwrap();
    same(&all.samples, &labelled.samples);
    let path = trained.folder.path().join("wrong.csv");
    fs::write(&path, wrong).unwrap();
    let message = trained.refusal(&[path], Labels::Needed);
    assert!(
        message.contains("perhaps") && message.contains("wrong.csv"),
        "{message}"
    );
}

#[test]
fn what_is_missing_new_or_out_of_range_is_told_by_name() {
    let trained = Trained::new(&[("t.csv", FLAT)], TABLE);
    let refused = |text: &str, parts: &[&str]| {
        let message = trained
            .read_texts(&[("new.csv", text)])
            .unwrap_err()
            .to_string();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    };
    refused(
        "patient,age,hr,spO2\nx,50,90,97\n",
        &["new.csv", "\"sex\", \"spo2\"", "trained with"],
    );
    refused("age,sex,hr,spo2\n50,f,90,97\n", &["new.csv", "\"patient\""]);
    refused(
        "patient,age,sex,hr,spo2\nx,old,f,90,97\n",
        &["new.csv", "line 2", "age", "\"old\""],
    );
    refused("patient,age,sex,hr,spo2\n", &["new.csv", "no rows"]);
    refused("", &["new.csv"]);
    let text = "patient,age,sex,hr,spo2\na,250,x,90,97\nb,50,f,-3,97\nc,50,f,90,\n";
    let odd = trained.read_texts(&[("new.csv", text)]).unwrap();
    let told: Vec<(usize, &str, &Odd)> = odd
        .oddities
        .iter()
        .map(|o| (o.row, o.column.as_str(), &o.odd))
        .collect();
    assert_eq!(
        told,
        [
            (0, "sex", &Odd::Category("x".into())),
            (
                0,
                "age",
                &Odd::Beyond {
                    value: 250.0,
                    range: [39.0, 70.0]
                }
            ),
            (
                1,
                "hr",
                &Odd::Beyond {
                    value: -3.0,
                    range: [70.0, 100.0]
                }
            ),
        ]
    );
    // A new category counts as not measured.
    let blank = text.replace("250,x", "250,");
    let blank = trained.read_texts(&[("new.csv", &blank)]).unwrap();
    same(&odd.samples, &blank.samples);
    // What training always had, and one patient of whom nothing is known. spo2 was missing in training too.
    let nothing = "patient,age,sex,hr,spo2\na,50,f,,\nb,,,,\n";
    let nothing = trained.read_texts(&[("new.csv", nothing)]).unwrap();
    let told: Vec<(usize, &str, &Odd)> = nothing
        .oddities
        .iter()
        .map(|o| (o.row, o.column.as_str(), &o.odd))
        .collect();
    let unmeasured = |row, column| (row, column, &Odd::Unmeasured);
    assert_eq!(
        told,
        [
            unmeasured(0, "the whole device side"),
            unmeasured(1, "the whole hospital side"),
            unmeasured(1, "the whole device side"),
        ]
    );
}

#[test]
fn series_of_which_a_new_patient_lacks_a_variable_are_read() {
    let labs = "patient,age,died\n1,60,no\n2,70,yes\n3,50,no\n";
    let vitals = "patient,hour,name,v\n1,0,hr,80\n1,1,spo2,97\n2,0,hr,90\n2,1,hr,91\n3,1,spo2,99\n3,0,hr,70\n";
    let settings = "set = \"table\"\npath = \"labs.csv\"\n[data.table]\nfiles = [\"vitals.csv\"]\nid = \"patient\"\n\
        label = \"died\"\nhospital = [\"age\"]\ndevice = [\"*\"]\ntime = \"hour\"\nvariable = \"name\"\nvalue = \"v\"\n\
        steps = 2\nmissing = \"carry\"\nmasks = true\n";
    let trained = Trained::new(&[("labs.csv", labs), ("vitals.csv", vitals)], settings);
    let files = ["labs.csv", "vitals.csv"].map(|name| trained.folder.path().join(name));
    let again = trained.read(&files, Labels::Needed).unwrap();
    assert_eq!(&again.samples, trained.training());
    let new = [
        ("labs.csv", "patient,age\n9,55\n"),
        ("vitals.csv", "patient,hour,name,v\n9,0,hr,85\n9,0,gait,3\n"),
    ];
    let new = trained.read_texts(&new).unwrap();
    assert_eq!(new.measured[1].len(), 8);
    assert!(new.oddities.is_empty(), "{:?}", new.oddities);
    let lacking = [
        ("labs.csv", "patient,agee\n9,55\n"),
        ("vitals.csv", "patient,hour,name,v\n9,0,hr,85\n"),
    ];
    let message = trained.read_texts(&lacking).unwrap_err().to_string();
    assert!(message.contains("no column \"age\""), "{message}");
    assert!(
        new.notes.iter().any(|note| note.contains("spo2")),
        "{:?}",
        new.notes
    );
}

#[test]
fn seconds_of_eeg_need_no_label() {
    let text = common::text(&common::small_file());
    let folder = Folder::with_esr(text.as_bytes());
    let settings = common::esr_settings();
    let loaded = load_with_notes(&settings, 1, Some(folder.path())).unwrap();
    let cut = |line: &str| line.rsplit_once(',').unwrap().0.to_owned();
    let unlabelled: Vec<String> = text.lines().map(cut).collect();
    let path = folder.path().join("new.csv");
    fs::write(&path, unlabelled.join("\n")).unwrap();
    let read = |path: PathBuf, labels| {
        read_patients(&settings, &loaded.inputs(), &[path], labels, Which::Test)
    };
    let new = read(path.clone(), Labels::Ignored).unwrap();
    let whole = read(folder.path().join("esr").join(NAME), Labels::Needed).unwrap();
    same(&new.samples, &whole.samples);
    assert_eq!(whole.ids.len(), text.lines().count() - 1);
    assert!(whole.samples.y.classes().contains(&4));
    assert!(read(path, Labels::Needed).is_err());
}

#[test]
fn arrays_are_what_was_written_of_patients() {
    let trained = Trained::new(&[("t.csv", FLAT)], TABLE);
    let again = trained
        .read(&[trained.folder.path().join("t.csv")], Labels::Needed)
        .unwrap();
    let mut bytes = Cursor::new(Vec::new());
    again
        .write_npz(&trained.loaded.inputs(), &mut bytes)
        .unwrap();
    let path = trained.folder.path().join("arrays.npz");
    fs::write(&path, bytes.get_ref()).unwrap();
    let read = trained
        .read(std::slice::from_ref(&path), Labels::Ignored)
        .unwrap();
    same(&read.samples, &again.samples);
    assert_eq!(read.ids, again.ids);
    let message = trained.refusal(&[path], Labels::Needed);
    assert!(message.contains("\"y\""), "{message}");
    // Of another model's shape.
    let narrow = TABLE.replace("[\"*\"]", "[\"age\"]");
    let narrow = narrow.split("categorical").next().unwrap();
    let other = Trained::new(&[("t.csv", FLAT)], narrow);
    fs::write(other.folder.path().join("a.npz"), bytes.into_inner()).unwrap();
    let refused = other.read(&[other.folder.path().join("a.npz")], Labels::Ignored);
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("\"hospital\"") && message.contains("[patients, 1]"),
        "{message}"
    );
}

fn stay(id: u32, rate: u32) -> String {
    format!(
        "Time,Parameter,Value\n00:00,RecordID,{id}\n00:00,Age,60\n00:07,HR,{rate}\n05:30,Creatinine,1.5\n"
    )
}

#[test]
fn stays_of_any_set_are_read_from_folders_or_single_files() {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut outcomes = String::from("RecordID,In-hospital_death\n");
    for id in 1..9 {
        let set = if id < 7 { 'a' } else { 'b' };
        files.push((
            format!("physionet2012/set-{set}/{id}.txt"),
            stay(id, 60 + id),
        ));
        outcomes += &format!("{id},{}\n", id % 2);
    }
    files.push(("physionet2012/Outcomes-a.txt".into(), outcomes));
    files.push(("new/set-c/100.txt".into(), stay(100, 61)));
    files.push(("new/set-c/101.txt".into(), stay(101, 250)));
    files.push((
        "new/Outcomes-c.txt".into(),
        "RecordID,In-hospital_death\n100,1\n101,0\n".into(),
    ));
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&a[..], &b[..])).collect();
    let trained = Trained::new(&files, "set = \"physionet2012\"\nsplit = \"iid\"\n");
    let at = |name: &str| vec![trained.folder.path().join(name)];
    let new = trained.read(&at("new/set-c"), Labels::Needed).unwrap();
    assert_eq!(
        (&new.ids[..], new.samples.y.classes()),
        (&["100".to_owned(), "101".into()][..], &[1, 0][..])
    );
    let first = trained.training().x2.len() / 6;
    assert_eq!(
        new.samples.x2[..first],
        trained.training().x2[..first],
        "61 beats as stay 1"
    );
    let odd = &new.oddities[0];
    assert_eq!((odd.row, odd.column.as_str()), (1, "HR"));
    // Without outcomes, as one file, or both sets, of which training saw one.
    assert_eq!(
        trained
            .read(&at("new/set-c/101.txt"), Labels::Ignored)
            .unwrap()
            .ids,
        ["101"]
    );
    let test = trained.read(&at("physionet2012"), Labels::Ignored).unwrap();
    assert_eq!(test.ids, ["7", "8"]);
    assert!(test.notes[0].contains("6 of 8"), "{:?}", test.notes);
    let inputs = trained.loaded.inputs();
    let all = read_patients(
        &trained.settings,
        &inputs,
        &at("physionet2012"),
        Labels::Ignored,
        Which::All,
    );
    assert_eq!(all.unwrap().ids.len(), 8);
    let message = trained.read(&at("new/set-c/100.txt"), Labels::Needed);
    // The outcomes lie beside the folder, not beside the file.
    assert!(
        message
            .unwrap_err()
            .to_string()
            .contains("no outcome for the stay 100")
    );
    let nothing = trained.refusal(&at("esr"), Labels::Ignored);
    assert!(nothing.contains("no stays"), "{nothing}");
    let nowhere = trained.refusal(&at("nowhere"), Labels::Ignored);
    assert!(
        nowhere.contains("nowhere") && nowhere.contains("no such file"),
        "{nowhere}"
    );
}

/// The real demo of MIMIC-III: its test stays, as the benchmark's own reading of them is compared with elsewhere.
#[test]
fn stays_of_mimic3_need_no_list() {
    let Some(folder) = common::real_data("stays_of_mimic3_need_no_list") else {
        return;
    };
    let text = "[data]\nset = \"mimic3\"\nsplit = \"iid\"\ngroups = 1\n";
    let settings = SETS.parse(text, &[]).unwrap().data;
    let loaded = load_with_notes(&settings, 1, Some(&folder)).unwrap();
    let read = |labels| {
        let files = [folder.join("mimic3-demo")];
        read_patients(&settings, &loaded.inputs(), &files, labels, Which::Test).unwrap()
    };
    let (labelled, unlabelled) = (read(Labels::Needed), read(Labels::Ignored));
    assert_eq!(&labelled.samples, &loaded.dataset.test);
    same(&unlabelled.samples, &labelled.samples);
    assert!(unlabelled.samples.y.classes().iter().all(|y| *y == 0));
}

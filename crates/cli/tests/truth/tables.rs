//! Made-up patients of two sites, whose label follows from both sides.

use crate::common::{Place, Random};
use std::fmt::Write;

/// A patient: id, site, laboratory value, pulse, and whether ill.
pub struct Patient {
    pub id: String,
    pub site: &'static str,
    pub lab: f64,
    pub pulse: f64,
    pub ill: bool,
}

pub fn patients(count: u64) -> Vec<Patient> {
    let mut random = Random(11);
    let patient = |n: u64| {
        let (lab, pulse) = (random.next() - 0.5, random.next() - 0.5);
        Patient {
            id: format!("p{n}"),
            site: ["north", "south"][n as usize % 2],
            lab,
            pulse,
            ill: lab + pulse > 0.1,
        }
    };
    (0..count).map(patient).collect()
}

/// A row for each patient, made by `row`, under a header.
pub fn csv(header: &str, patients: &[Patient], mut row: impl FnMut(&Patient) -> String) -> String {
    let mut text = format!("{header}\n");
    for patient in patients {
        writeln!(text, "{}", row(patient)).unwrap();
    }
    text
}

/// Both sides in one file, with such labels for the well and the ill.
pub fn flat(patients: &[Patient], labels: [&str; 2]) -> String {
    csv("id,site,lab,pulse,label", patients, |p| {
        let label = labels[usize::from(p.ill)];
        format!("{},{},{:.4},{:.4},{label}", p.id, p.site, p.lab, p.pulse)
    })
}

/// An experiment on it; `table` and `train` are further lines of these tables.
pub fn experiment(table: &str, train: &str) -> String {
    format!(
        "[data]\nset = \"table\"\npath = \"t.csv\"\ngroups = 1\nvalidation = 0.2\n[data.table]\nid = \"id\"\n\
         label = \"label\"\nhospital = [\"lab\"]\ndevice = [\"pulse\"]\n{table}\n\
         [train]\niterations = 100\nlearning_rate = 0.3\nparticipation = 0.3\n{train}\n"
    )
}

/// A folder with `t.csv` and `t.toml`.
pub fn place(name: &str, csv: impl AsRef<[u8]>, experiment: &str) -> Place {
    let place = Place::new(name);
    place.write("t.csv", csv);
    place.write("t.toml", experiment);
    place
}

/// The labels and the site's columns of patients whose pulse is in another file.
pub fn hospital(patients: &[Patient]) -> String {
    csv("id,site,lab,label", patients, |p| {
        let label = ["well", "ill"][usize::from(p.ill)];
        format!("{},{},{:.4},{label}", p.id, p.site, p.lab)
    })
}

/// Six hourly pulses of each, at times that `time` makes of the hour.
pub fn wearable(patients: &[Patient], time: impl Fn(u32) -> String) -> String {
    let mut text = "id,hour,variable,value\n".to_owned();
    for patient in patients {
        for hour in 0..6 {
            let pulse = patient.pulse + f64::from(hour) / 100.0;
            writeln!(text, "{},{},pulse,{pulse:.4}", patient.id, time(hour)).unwrap();
        }
    }
    text
}

/// An experiment on both files, `t.csv` and `w.csv`.
pub fn series(table: &str) -> String {
    let of_series = "files = [\"w.csv\"]\ntime = \"hour\"\nvariable = \"variable\"\nvalue = \"value\"\nsteps = 6\n";
    experiment(&format!("{of_series}{table}"), "")
        + "[model]\ndevice = [{ lstm = { hidden = 4 } }]\n"
}

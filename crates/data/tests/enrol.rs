//! Parties with files of their own enrol, and each is left with what a node reads.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use selvedge_core::enrol::{Counts, Enrolment, Terms};
use selvedge_core::protocol::{Event, Outbox, Party, Protocol};
use selvedge_data::SETS;
use selvedge_data::enrol::{self, OwnSide, Summary};
use selvedge_data::{PartyLoaded, PartyShard, PseudonymKey, read_party};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const EXPERIMENT: &str = r#"
[data]
set = "table"
groups = 2
test = 0.25
validation = 0
[data.table]
id = "id"
label = "ill"
labels = ["no", "yes"]
hospital = ["age", "lab_*"]
device = ["hr", "spo2"]
time = "hour"
variable = "variable"
value = "value"
steps = 2
missing = "MISSING"
"#;

fn folder(name: &str) -> PathBuf {
    let name = format!("selvedge-enrol-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn terms(missing: &str) -> Terms {
    let text = EXPERIMENT.replace("MISSING", missing);
    let experiment = SETS.parse(&text, &[]).unwrap();
    enrol::terms(&experiment.data, experiment.seed).unwrap()
}

/// Two groups of 20 patients; the hospitals have three files, and a patient twice; each gateway has one, that of group
/// 1 without any `spo2`.
fn write_tables(folder: &Path, gap_of: usize) {
    for m in 0..2 {
        let (mut labs, mut ages) = (
            String::from("id;ill;lab_a;lab_b\n"),
            String::from("id;age\n"),
        );
        let mut vitals = String::from("id,hour,variable,value\n");
        for patient in 0..21 {
            let ill = ["no", "yes"][(patient + m) % 2];
            let lab = match patient == gap_of {
                true => String::new(),
                false => (patient * patient).to_string(),
            };
            writeln!(labs, "{m}-{patient};{ill};{lab};{}", 100 * m + patient).unwrap();
            if patient == 7 {
                writeln!(labs, "{m}-{patient};{ill};1;1").unwrap();
            }
            writeln!(ages, "{m}-{patient};{}", 40 + patient).unwrap();
            // The last is known to the hospital alone.
            for hour in (0..2).filter(|_| patient < 20) {
                writeln!(
                    vitals,
                    "{m}-{patient},{hour},hr,{}",
                    60 + patient + 3 * hour
                )
                .unwrap();
                if m == 0 {
                    writeln!(vitals, "{m}-{patient},{hour},spo2,{}", 90 + patient % 5).unwrap();
                }
            }
        }
        fs::write(folder.join(format!("labs-{m}.csv")), labs).unwrap();
        fs::write(folder.join(format!("ages-{m}.csv")), ages).unwrap();
        fs::write(folder.join(format!("vitals-{m}.csv")), vitals).unwrap();
    }
}

fn parties(folder: &Path, terms: &Terms) -> BTreeMap<Party, Enrolment> {
    let mut parties = vec![Enrolment::cloud(terms.clone(), &[0; 32])];
    for m in 0..2 {
        let key = || PseudonymKey::new([m as u8; 32]);
        let tables = ["labs", "ages"].map(|name| folder.join(format!("{name}-{m}.csv")));
        let own = OwnSide::of(Party::Hospital(m), terms, tables.to_vec(), key()).unwrap();
        assert_eq!(own.patients(), 20);
        parties.push(Enrolment::hospital(terms.clone(), m, own, &[1; 32]));
        parties.push(Enrolment::edge(terms.clone(), m, 1, &[2; 32]));
        let tables = vec![folder.join(format!("vitals-{m}.csv"))];
        let own = OwnSide::of(Party::Gateway(m, 0), terms, tables, key()).unwrap();
        assert_eq!(own.notes().len(), m, "{:?}", own.notes());
        parties.push(Enrolment::gateway(terms.clone(), (m, 0), 1, own, &[3; 32]));
    }
    parties.into_iter().map(|p| (p.party(), p)).collect()
}

/// Lets everybody talk until nobody has news, and write when they can.
fn talk(parties: &mut BTreeMap<Party, Enrolment>, folder: &Path) -> BTreeMap<Party, Summary> {
    let mut written = BTreeMap::new();
    for _ in 0..100 {
        for from in parties.keys().copied().collect::<Vec<_>>() {
            let mut outbox = Outbox::default();
            let speaker = parties.get_mut(&from).unwrap();
            speaker.handle(Event::Retry, &mut outbox);
            let said = outbox.messages.into_iter();
            let said: Vec<(Party, Vec<u8>)> = said
                .map(|(to, message)| (to, speaker.encode(0, &message).bytes))
                .collect();
            for (to, bytes) in said {
                let party = parties.get_mut(&to).unwrap();
                let message = party.decode(0, &bytes).unwrap();
                party.handle(Event::Received(from, message), &mut Outbox::default());
                if let Some(enrolled) = party.to_write() {
                    let into = folder.join(to.to_string());
                    let summary = enrol::write(enrolled, &into, false, "now");
                    written.insert(to, summary.unwrap());
                    party.written(Ok(()));
                }
            }
        }
    }
    written
}

fn read(folder: &Path, party: Party, summary: &Summary) -> PartyLoaded {
    let shard = match party {
        Party::Cloud => PartyShard::Coordinator,
        Party::Hospital(m) => PartyShard::Hospital(m),
        Party::Edge(m) => PartyShard::Edge(m),
        Party::Gateway(group, g) => PartyShard::Gateway {
            group,
            devices: summary.gateways[g][0]..summary.gateways[g][1],
            held_out: true,
        },
    };
    read_party(&folder.join(party.to_string()), shard).unwrap()
}

#[test]
fn every_party_is_left_with_what_a_node_reads() {
    let folder = folder("files");
    write_tables(&folder, 3);
    let mut parties = parties(&folder, &terms("mean"));
    let written = talk(&mut parties, &folder);
    assert!(parties.values().all(Enrolment::is_over));
    assert_eq!(written.len(), 7);
    let expected = Counts {
        taking_part: 19,
        training: 14,
        test: 5,
        test_asked: 5,
        only_hospital: 1,
        // Whom the hospital left out, since it has them twice.
        only_devices: 1,
        doubled_at_hospital: 1,
        ..Counts::default()
    };
    assert_eq!(written[&Party::Cloud].counts, [expected, expected]);
    let loaded: BTreeMap<Party, PartyLoaded> = written
        .iter()
        .map(|(party, summary)| (*party, read(&folder, *party, summary)))
        .collect();
    let statistics = &loaded[&Party::Cloud].statistics;
    assert_eq!(statistics.hospital.names, ["age", "lab_a", "lab_b"]);
    assert_eq!(statistics.device.names, ["hr", "spo2"]);
    // One patient of 14 lacks lab_a in each group, unless it is held out; nobody of group 1 has spo2.
    assert!(statistics.hospital.missing[1] <= 1.0 / 14.0);
    assert_eq!(statistics.device.missing, [0.0, 0.5]);
    for loaded in loaded.values() {
        assert_eq!(loaded.statistics, *statistics);
        assert_eq!(loaded.fingerprint, loaded_fingerprint(&written));
        assert_eq!(loaded.held_out_of_all, [0, 10]);
    }
    // Scaled, the columns of all groups together have the mean 0 and the deviation 1.
    let mut ages = Vec::new();
    for m in 0..2 {
        let group = &loaded[&Party::Hospital(m)].dataset.groups[m];
        ages.extend(group.samples.x1.chunks(3).map(|row| f64::from(row[0])));
        let devices = &loaded[&Party::Gateway(m, 0)].dataset.groups[m];
        assert_eq!(group.samples.y.classes(), devices.samples.y.classes());
        // The age and the heart both rise with the patient's number, so the same patients are in the same places.
        let hearts = devices.samples.x2.chunks(4).map(|row| row[0]);
        let both: Vec<(f32, f32)> = group
            .samples
            .x1
            .chunks(3)
            .map(|row| row[0])
            .zip(hearts)
            .collect();
        for (a, b) in both.iter().zip(&both[1..]) {
            assert_eq!(a.0 < b.0, a.1 < b.1);
        }
    }
    let mean = ages.iter().sum::<f64>() / ages.len() as f64;
    let square = ages.iter().map(|a| a * a).sum::<f64>() / ages.len() as f64;
    assert!(
        mean.abs() < 1e-6 && (square - 1.0).abs() < 1e-6,
        "{mean} {square}"
    );
    fs::remove_dir_all(folder).unwrap();
}

fn loaded_fingerprint(written: &BTreeMap<Party, Summary>) -> String {
    written[&Party::Cloud].dataset.clone()
}

#[test]
fn a_gap_is_refused_only_where_it_counts_and_named_only_at_home() {
    let folder = folder("refused");
    // The last is known to the hospital alone: nobody minds its gap. Nobody has spo2 in group 1, so leave that out.
    let text = EXPERIMENT
        .replace("MISSING", "refuse")
        .replace(", \"spo2\"", "");
    let experiment = SETS.parse(&text, &["data.test=0".into()]).unwrap();
    let terms = enrol::terms(&experiment.data, 1).unwrap();
    for (gap_of, is_refused) in [(20, false), (3, true)] {
        write_tables(&folder, gap_of);
        let parties = &mut {
            let mut parties = BTreeMap::new();
            for m in 0..2 {
                let key = || PseudonymKey::new([m as u8; 32]);
                let tables = ["labs", "ages"].map(|name| folder.join(format!("{name}-{m}.csv")));
                let own = OwnSide::of(Party::Hospital(m), &terms, tables.to_vec(), key()).unwrap();
                parties.insert(
                    Party::Hospital(m),
                    Enrolment::hospital(terms.clone(), m, own, &[1]),
                );
                parties.insert(Party::Edge(m), Enrolment::edge(terms.clone(), m, 1, &[2]));
                let tables = vec![folder.join(format!("vitals-{m}.csv"))];
                let own = OwnSide::of(Party::Gateway(m, 0), &terms, tables, key()).unwrap();
                let gateway = Enrolment::gateway(terms.clone(), (m, 0), 1, own, &[3]);
                parties.insert(Party::Gateway(m, 0), gateway);
            }
            parties.insert(Party::Cloud, Enrolment::cloud(terms.clone(), &[4]));
            parties
        };
        let written = talk(parties, &folder.join(gap_of.to_string()));
        assert_eq!(written.is_empty(), is_refused);
        if !is_refused {
            continue;
        }
        let at_home = parties[&Party::Hospital(0)].failure().unwrap();
        assert!(at_home.contains("\"0-3\" has no \"lab_a\""), "{at_home}");
        for party in [Party::Edge(0), Party::Gateway(0, 0), Party::Cloud] {
            let told = parties[&party].failure().unwrap();
            assert!(
                told.contains(" is invalid; the reason is shown there"),
                "{told}"
            );
            assert!(!told.contains("0-3"), "{told}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

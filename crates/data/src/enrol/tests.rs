//! Whole enrolments in memory: messages that are shuffled, doubled and lost, parties that are started again, and
//! nonsense.

use super::*;
use crate::table::{self, Side};
use crate::{HeldOut, PseudonymKey, Statistics, read_party};
use selvedge_core::enrol::{Enrolled, Enrolment, Terms};
use selvedge_core::experiment::{Categorical, DataSettings, TableSettings};
use selvedge_core::outcome::{Kind, Outcome};
use selvedge_core::protocol::{Event, Outbox, Party, Protocol};
use selvedge_nn::random::{Key, Stream};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Cursor;
use std::path::{Path, PathBuf};

const GROUPS: usize = 2;
const GATEWAYS: usize = 2;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|t| (*t).to_owned()).collect()
}

fn settings(missing: &str, masks: bool) -> DataSettings {
    let sexes = BTreeMap::from([("sex".to_owned(), texts(&["f", "m"]))]);
    DataSettings {
        set: "table".into(),
        groups: GROUPS,
        test: 0.2,
        validation: 0.1,
        table: TableSettings {
            id: "id".into(),
            label: "ill".into(),
            labels: texts(&["no", "yes"]),
            group: "site".into(),
            hospital: texts(&["age", "sex", "lactate", "still"]),
            device: texts(&["hr", "spo2"]),
            categorical: Categorical::Given(sexes),
            time: "hour".into(),
            variable: "variable".into(),
            value: "value".into(),
            steps: 3,
            missing: missing.into(),
            masks,
            ..TableSettings::default()
        },
        ..DataSettings::default()
    }
}

/// The same question in other words: what is known of patients stands in other columns.
fn asking(kind: Kind, data: DataSettings) -> DataSettings {
    let label = |columns: &[&str]| serde_json::from_value(serde_json::json!(columns)).unwrap();
    let mut data = data;
    if kind != Kind::Class {
        data.outcome = kind.name().into();
        data.table.labels.clear();
    }
    match kind {
        Kind::Class => {}
        Kind::Labels => data.table.label = label(&["ill", "sepsis"]),
        Kind::Quantity => data.table.label = "days".into(),
        Kind::Survival => {
            (data.table.label, data.table.event) = ("days".into(), "ill".into());
            (data.intervals, data.horizon) = (3, Some(25.0));
        }
    }
    data
}

/// Files by name, as parties have them, and as one who had everything would.
struct Tables {
    files: BTreeMap<String, String>,
}

const HOSPITAL: &str = "id,site,age,sex,lactate,still,ill,sepsis,days\n";
const LONG: &str = "id,hour,variable,value\n";
const SERIES: &str = "id,hour,hr,spo2\n";

impl Tables {
    /// Patients of all kinds; the first gateway of a group has one measurement in each row, the second one row for each
    /// hour.
    fn new(seed: u64, odd_ones: bool) -> Self {
        let mut stream = Key::new(seed).stream();
        let mut other = Key::new(seed).with(1).stream();
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        let mut add = |file: &str, header: &str, lines: &str| {
            let text = files.entry(file.into()).or_insert_with(|| header.into());
            text.push_str(lines);
        };
        for patient in 0..120 {
            let m = patient % GROUPS;
            let kind = match odd_ones {
                true => stream.below(12),
                false => 11,
            };
            let id = format!("p{patient}");
            let mut row = String::new();
            let ill = ["no", "yes"][stream.below(2) as usize];
            let lactate = match stream.below(4) {
                0 => String::new(),
                _ => format!("{:.2}", 2.0 + stream.normal()),
            };
            let age = 30 + stream.below(50);
            writeln!(
                row,
                "{id},s{m},{age},{},{lactate},7.7,{ill},{},{:.2}",
                ["f", "m"][stream.below(2) as usize],
                ["no", "yes", ""][other.below(3) as usize],
                30.0 * other.uniform(),
            )
            .unwrap();
            let hospital = format!("hospital-{m}");
            if kind != 0 {
                add(&hospital, HOSPITAL, &row);
                add("hospital", HOSPITAL, &row);
            }
            if kind == 1 {
                add(&hospital, HOSPITAL, &row);
            }
            let g = stream.below(GATEWAYS as u64) as usize;
            for g in (0..GATEWAYS).filter(|other| kind == 3 || *other == g) {
                let (mut long, mut series) = (String::new(), String::new());
                for hour in 0..3 {
                    let hr = 80.0 + 8.0 * stream.normal();
                    let spo2 = match stream.below(3) {
                        0 => format!("{:.1}", 96.0 + stream.normal()),
                        _ => String::new(),
                    };
                    writeln!(long, "{id},{hour},hr,{hr}").unwrap();
                    if !spo2.is_empty() {
                        writeln!(long, "{id},{hour},spo2,{spo2}").unwrap();
                    }
                    writeln!(series, "{id},{hour},{hr},{spo2}").unwrap();
                }
                if kind == 2 {
                    continue;
                }
                match g {
                    0 => add(&format!("gateway-{m}-{g}"), LONG, &long),
                    _ => add(&format!("gateway-{m}-{g}"), SERIES, &series),
                }
                add("devices", LONG, &long);
            }
        }
        Tables { files }
    }

    fn side(&self, terms: &Terms, side: Side, name: &str, key: &PseudonymKey) -> OwnSide {
        let open = |path: &Path| -> std::io::Result<Box<dyn table::Bytes>> {
            let text = &self.files[path.to_str().unwrap()];
            Ok(Box::new(Cursor::new(text.clone().into_bytes())))
        };
        OwnSide::read(terms, side, vec![PathBuf::from(name)], key.clone(), &open).unwrap()
    }

    fn party(&self, terms: &Terms, party: Party, random: u64) -> Enrolment {
        let key = |m: usize| PseudonymKey::new([m as u8 + 1; 32]);
        let (terms, random) = (terms.clone(), &random.to_le_bytes()[..]);
        match party {
            Party::Cloud => Enrolment::cloud(terms, random),
            Party::Hospital(m) => {
                let name = format!("hospital-{m}");
                let own = self.side(&terms, Side::Hospital, &name, &key(m));
                Enrolment::hospital(terms, m, own, random)
            }
            Party::Edge(m) => Enrolment::edge(terms, m, GATEWAYS, random),
            Party::Gateway(m, g) => {
                let own = self.side(&terms, Side::Device, &format!("gateway-{m}-{g}"), &key(m));
                Enrolment::gateway(terms, (m, g), GATEWAYS, own, random)
            }
        }
    }
}

fn everybody() -> Vec<Party> {
    let of_group = |m: usize| {
        let own = [Party::Hospital(m), Party::Edge(m)].into_iter();
        own.chain((0..GATEWAYS).map(move |g| Party::Gateway(m, g)))
    };
    std::iter::once(Party::Cloud)
        .chain((0..GROUPS).flat_map(of_group))
        .collect()
}

/// What a party has to say, all of it.
fn says(party: &mut Enrolment) -> Vec<(Party, Vec<u8>)> {
    let mut outbox = Outbox::default();
    party.handle(Event::Retry, &mut outbox);
    let said = outbox.messages.iter();
    said.map(|(to, message)| (*to, party.encode(0, message).bytes))
        .collect()
}

/// Somebody says something to a party; what it answers at once is lost. Gives whether it is a message at all.
fn hears(party: &mut Enrolment, from: Party, bytes: &[u8]) -> bool {
    let message = party.decode(0, bytes);
    message.is_ok_and(|message| {
        party.handle(Event::Received(from, message), &mut Outbox::default());
        true
    })
}

/// All parties, and what is on its way.
struct World {
    parties: BTreeMap<Party, Enrolment>,
    mail: Vec<(Party, Party, Vec<u8>)>,
    /// What each would write.
    written: BTreeMap<Party, Enrolled>,
    /// Everything that an edge or the cloud was sent.
    seen: Vec<String>,
    stream: Stream,
}

impl World {
    fn new(tables: &Tables, terms: &Terms, seed: u64) -> Self {
        let parties = everybody().into_iter().zip(seed..);
        World {
            parties: parties
                .map(|(party, random)| (party, tables.party(terms, party, random)))
                .collect(),
            mail: Vec::new(),
            written: BTreeMap::new(),
            seen: Vec::new(),
            stream: Key::new(seed).with(1).stream(),
        }
    }

    /// Somebody speaks: some of it is lost, some is doubled.
    fn speak(&mut self, from: Party) {
        for (to, bytes) in says(self.parties.get_mut(&from).unwrap()) {
            for _ in 0..self.stream.below(3) {
                self.mail.push((from, to, bytes.clone()));
            }
        }
    }

    /// One message arrives, any of those that are on their way.
    fn deliver(&mut self) {
        if self.mail.is_empty() {
            return;
        }
        let at = self.stream.below(self.mail.len() as u64) as usize;
        let (from, to, bytes) = self.mail.swap_remove(at);
        if matches!(to, Party::Edge(_) | Party::Cloud) {
            self.seen.push(String::from_utf8(bytes.clone()).unwrap());
        }
        let party = self.parties.get_mut(&to).unwrap();
        assert!(hears(party, from, &bytes));
        if let Some(enrolled) = party.to_write() {
            self.written.insert(to, enrolled.clone());
            party.written(Ok(()));
        }
    }

    fn run(&mut self, steps: usize) -> bool {
        let parties = everybody();
        for _ in 0..steps {
            match self.stream.below(4) {
                0 => {
                    let at = self.stream.below(parties.len() as u64) as usize;
                    self.speak(parties[at]);
                }
                _ => self.deliver(),
            }
            // Old messages are lost in the end.
            if self.mail.len() > 200 {
                self.mail.drain(..100);
            }
            if self.parties.values().all(Enrolment::is_over) {
                return true;
            }
            if self.parties.values().any(|p| p.failure().is_some()) {
                return false;
            }
        }
        false
    }
}

fn folder(name: &str) -> PathBuf {
    let name = format!("selvedge-enrol-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// Enrols a party once more, where other files are: in its folder, and beside it.
fn others_stay(enrolled: &Enrolled, into: &Path) {
    let beside = ["old", "new", "partial"].map(|end| into.with_extension(end).join("inside"));
    for file in &beside {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "mine").unwrap();
    }
    for inside in [
        "ward.csv",
        "group-0",
        "group-0/ward.csv",
        "group-x/hospital.npz",
    ] {
        let other = into.join(inside);
        let folder = other.parent().unwrap();
        let is_new = !folder.exists();
        std::fs::create_dir_all(folder).unwrap();
        if other.is_dir() {
            continue;
        }
        std::fs::write(&other, "mine").unwrap();
        let refused = write(enrolled, into, true, "now").unwrap_err().to_string();
        assert!(refused.contains("move it"), "{refused}");
        assert_eq!(std::fs::read(&other).unwrap(), b"mine");
        std::fs::remove_file(&other).unwrap();
        if is_new {
            std::fs::remove_dir(folder).unwrap();
        }
    }
    write(enrolled, into, true, "now").unwrap();
    for file in &beside {
        assert_eq!(std::fs::read(file).unwrap(), b"mine");
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }
    let hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    let mut around = std::fs::read_dir(into.parent().unwrap()).unwrap().flatten();
    assert!(!around.any(|entry| hidden(&entry.file_name())));
}

#[test]
fn all_parties_write_what_fits_together() {
    for seed in 0..10 {
        let kind = Kind::ALL[(seed / 2 % 4) as usize];
        let data = asking(kind, settings("carry", seed % 2 == 0));
        let terms = super::terms(&data, seed).unwrap();
        let tables = Tables::new(seed, true);
        let mut world = World::new(&tables, &terms, 100 * seed);
        if seed >= 2 {
            // Whoever is started again has forgotten everything, and all begin anew.
            for round in 0..4 {
                world.run(150 + 60 * seed as usize);
                let all = everybody();
                let who = all[world.stream.below(all.len() as u64) as usize];
                if world.written.is_empty() {
                    let random = 7_000 + 10 * seed + round;
                    world.parties.insert(who, tables.party(&terms, who, random));
                }
            }
        }
        let mut over = world.parties.values().all(Enrolment::is_over) || world.run(100_000);
        let too_late = |p: &Enrolment| p.failure().is_some_and(|f| f.contains("start all parties"));
        if world.parties.values().any(too_late) {
            // Somebody had finished before it heard that another was started again: people are told, and do so.
            assert!(seed >= 2);
            world = World::new(&tables, &terms, 100 * seed + 50);
            over = world.run(100_000);
        }
        let told = |p: &Enrolment| format!("{}: {} {:?}", p.party(), p.doing().what, p.failure());
        let told: Vec<String> = world.parties.values().map(told).collect();
        assert!(over, "seed {seed}: {told:#?}");
        let out = folder(&format!("fit-{seed}"));
        let mut loaded = BTreeMap::new();
        for (party, enrolled) in &world.written {
            let into = out.join(party.to_string());
            let summary = write(enrolled, &into, false, "now").unwrap();
            assert_eq!(Summary::read(&into).unwrap(), Some(summary.clone()));
            // It is full now, and only replaced if that is wanted.
            assert!(write(enrolled, &into, false, "now").is_err());
            others_stay(enrolled, &into);
            let shard = written::shard(enrolled);
            loaded.insert(*party, (summary, read_party(&into, shard).unwrap()));
        }
        assert_eq!(loaded.len(), everybody().len());
        let (of_cloud, cloud) = &loaded[&Party::Cloud];
        assert_eq!(of_cloud.counts.len(), GROUPS);
        let all: usize = of_cloud.counts.iter().map(|c| c.training).sum();
        assert_eq!(
            cloud
                .dataset
                .groups
                .iter()
                .map(|g| g.devices())
                .sum::<usize>(),
            all
        );
        assert!(
            of_cloud
                .counts
                .iter()
                .all(|c| c.test > 0 && c.validation > 0)
        );
        assert!(of_cloud.counts.iter().any(|c| c.doubled_at_hospital > 0));
        assert!(of_cloud.counts.iter().any(|c| c.only_hospital > 0));
        assert!(of_cloud.counts.iter().any(|c| c.only_devices > 0));
        assert!(of_cloud.counts.iter().any(|c| c.at_several_gateways > 0));
        let mut places = [Vec::new(), Vec::new()];
        for (party, (summary, own)) in &loaded {
            assert_eq!(own.fingerprint, cloud.fingerprint);
            assert_eq!(own.statistics, cloud.statistics);
            let Party::Hospital(m) = *party else { continue };
            assert_eq!(summary.counts[0], of_cloud.counts[m]);
            for (i, held_out) in own.held_out.iter().enumerate() {
                places[i].extend(held_out.places.clone());
            }
            let mut held_out = [HeldOut::default(), HeldOut::default()];
            let mut y = own.dataset.groups[m].samples.y.none();
            for g in 0..GATEWAYS {
                let (of_gateway, gateway) = &loaded[&Party::Gateway(m, g)];
                assert_eq!(of_gateway.roster, summary.roster);
                assert_eq!(of_gateway.gateways, summary.gateways);
                y.extend(&gateway.dataset.groups[m].samples.y);
                for (all, own) in held_out.iter_mut().zip(&gateway.held_out) {
                    assert_eq!(own.from as usize, all.y.len());
                    all.y.extend(&own.y);
                    all.places.extend(&own.places);
                }
            }
            for (a, b) in own.held_out.iter().zip(&held_out) {
                assert_eq!((&a.places, &a.y), (&b.places, &b.y));
            }
            assert_eq!(own.dataset.groups[m].samples.y, y);
        }
        for (i, places) in places.iter_mut().enumerate() {
            places.sort_unstable();
            let expected: Vec<u32> = (0..cloud.held_out_of_all[i] as u32).collect();
            assert_eq!(*places, expected);
        }
        // The columns' names are no secret; ids and what was measured are.
        let mut hidden = 0;
        for text in &world.seen {
            let envelope: serde_json::Value = serde_json::from_str(text).unwrap();
            if let Some(sums) = envelope["body"]["sums"]["sums"].as_array() {
                // Only the sum of all gateways can be read: a count alone would be nearly all zeros.
                let is_count =
                    |n: &serde_json::Value| n.as_str().unwrap().starts_with("0000000000000000");
                let fields = ["measured", "count", "patients", "sum", "squares"];
                let numbers = sums.iter().flat_map(|column| fields.map(|f| &column[f]));
                assert!(
                    !sums.is_empty() && !numbers.into_iter().any(is_count),
                    "{text}"
                );
                hidden += 1;
            }
            assert!(!text.contains("\"p1\"") && !text.contains("p1,"), "{text}");
        }
        assert!(hidden >= GROUPS * GATEWAYS, "{hidden}");
        std::fs::remove_dir_all(out).unwrap();
    }
}

#[test]
fn statistics_are_those_of_the_whole_table() {
    for (missing, masks, kind) in [
        ("mean", false, Kind::Class),
        ("carry", true, Kind::Labels),
        ("zero", false, Kind::Quantity),
        ("mean", true, Kind::Survival),
    ] {
        let mut data = asking(kind, settings(missing, masks));
        // Else other patients would be drawn.
        (data.test, data.validation) = (0.0, 0.0);
        data.split = "column".into();
        let terms = super::terms(&data, 3).unwrap();
        let tables = Tables::new(11, false);
        let mut world = World::new(&tables, &terms, 5);
        assert!(world.run(100_000));
        let whole = table::read_files(
            &data,
            (crate::rows::Purpose::Training, [&[]; 2]),
            vec!["hospital".into(), "devices".into()],
            &|path: &Path| {
                let text = &tables.files[path.to_str().unwrap()];
                Ok(Box::new(Cursor::new(text.clone().into_bytes())))
            },
        );
        let whole: Statistics = whole.unwrap().deal(&data, 3).unwrap().statistics;
        let own = &world.written[&Party::Cloud].index.as_ref().unwrap().1;
        assert_eq!((own.rows, &own.classes), (whole.rows, &whole.classes));
        is_learnt_alike(&own.outcome, &whole.outcome);
        for (own, whole) in [
            (&own.hospital, &whole.hospital),
            (&own.device, &whole.device),
        ] {
            assert_eq!((&own.names, &own.shape), (&whole.names, &whole.shape));
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
            for (at, name) in own.names.iter().enumerate() {
                let (a, b) = (&own.scales[at], &whole.scales[at]);
                assert!(near(a.mean, b.mean), "{name}: {a:?} {b:?}");
                assert_eq!(a.clip.is_some(), b.clip.is_some(), "{name}: {a:?} {b:?}");
                // Where nothing varies the other one may find what rounding has left.
                if a.clip.is_none() {
                    assert!(near(a.deviation, b.deviation), "{name}: {a:?} {b:?}");
                }
                assert!(near(own.missing[at], whole.missing[at]), "{name}");
            }
        }
    }
}

/// Sums say of what is learnt what one who sees all patients would say: exactly, but for the ends of intervals, which are
/// near those.
fn is_learnt_alike(own: &Outcome, whole: &Outcome) {
    match (own, whole) {
        (
            Outcome::Quantity { mean, deviation },
            Outcome::Quantity {
                mean: of_whole,
                deviation: deviation_of_whole,
            },
        ) => {
            assert!((mean - of_whole).abs() <= 1e-12 * of_whole.abs());
            assert!((deviation - deviation_of_whole).abs() <= 1e-12 * deviation_of_whole);
        }
        (Outcome::Survival { ends: own }, Outcome::Survival { ends: whole }) => {
            assert_eq!((own.len(), own.last()), (whole.len(), whole.last()));
            let near = own.iter().zip(whole).all(|(a, b)| (a - b).abs() < 6.0);
            assert!(near && own != whole, "{own:?} {whole:?}");
            let evenly = [25.0 / 3.0, 50.0 / 3.0, 25.0];
            assert!(own.iter().zip(evenly).any(|(a, b)| (a - b).abs() > 1e-9));
        }
        _ => assert_eq!(own, whole),
    }
}

/// Tables in which something is replaced in the rows of these hospitals.
fn with_rows(of: &[usize], change: impl Fn(&mut Vec<String>)) -> Tables {
    let mut tables = Tables::new(2, true);
    for m in of {
        let text = tables.files.get_mut(&format!("hospital-{m}")).unwrap();
        let row = |line: &str| {
            let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            change(&mut cells);
            cells.join(",") + "\n"
        };
        *text = HOSPITAL.to_owned() + &text.lines().skip(1).map(row).collect::<String>();
    }
    tables
}

/// Cells of a hospital's row.
const ILL: usize = 6;
const SEPSIS: usize = 7;
const DAYS: usize = 8;

#[test]
fn what_nobody_has_cannot_be_learnt() {
    let all = [0, 1];
    for (kind, tables, expected) in [
        (
            Kind::Quantity,
            with_rows(&all, |row| row[DAYS] = "7.5".into()),
            "\"days\" is the same number for all training patients",
        ),
        (
            Kind::Survival,
            with_rows(&all, |row| row[ILL] = "no".into()),
            "no training patient has the event \"ill\"",
        ),
        (
            Kind::Survival,
            with_rows(&all, |row| row[DAYS] = format!("1{}", &row[DAYS][..1])),
            "data.horizon = 25: no training patient was seen for so long",
        ),
    ] {
        let terms = super::terms(&asking(kind, settings("mean", false)), 1).unwrap();
        let mut world = World::new(&tables, &terms, 7);
        assert!(!world.run(100_000));
        let failure = world.parties.values().find_map(|p| p.failure()).unwrap();
        assert!(failure.contains(expected), "{failure}");
    }
}

#[test]
fn what_a_group_lacks_is_said_to_who_may_know() {
    for (kind, tables, expected) in [
        (
            Kind::Class,
            with_rows(&[1], |row| row[ILL] = "no".into()),
            &["no training patient of group 1 has the label \"yes\""][..],
        ),
        (
            Kind::Labels,
            with_rows(&[1], |row| {
                (row[ILL], row[SEPSIS]) = (String::new(), String::new());
            }),
            &["no label is known of any training patient of group 1"],
        ),
        (
            Kind::Labels,
            with_rows(&[0, 1], |row| row[SEPSIS] = String::new()),
            &[
                "no training patient of any group is known to be without \"sepsis\"",
                "no training patient of any group is known to be with \"sepsis\"",
            ],
        ),
        (
            Kind::Survival,
            with_rows(&[1], |row| row[ILL] = "no".into()),
            &["no training patient of group 1 has the event"],
        ),
        (
            Kind::Survival,
            with_rows(&[1], |row| {
                let late = row[0].ends_with('1');
                row[ILL] = if late { "yes" } else { "no" }.into();
            }),
            &[
                "fewer than 10 training patients of group 1 have the event by the horizon: intervals end where it suits the others",
            ],
        ),
        (Kind::Quantity, with_rows(&[], |_| {}), &[]),
    ] {
        let terms = super::terms(&asking(kind, settings("mean", false)), 1).unwrap();
        let mut world = World::new(&tables, &terms, 7);
        assert!(world.run(100_000), "{kind:?}");
        let said = |party| &world.written[&party].notes;
        assert_eq!(said(Party::Cloud), expected);
        let own: Vec<_> = expected.iter().filter(|n| n.contains("group 1")).collect();
        for party in [Party::Hospital(1), Party::Edge(1)] {
            assert!(
                own.iter()
                    .all(|note| said(party).iter().any(|n| n == **note))
            );
        }
        // Others need not know.
        for party in [Party::Hospital(0), Party::Edge(0), Party::Gateway(1, 0)] {
            assert!(said(party).iter().all(|note| !note.contains("group 1")));
        }
    }
}

/// Whatever a hospital counts is of ten patients or more.
#[test]
fn the_cloud_is_told_of_no_few_events() {
    let terms = super::terms(&asking(Kind::Survival, settings("mean", false)), 1).unwrap();
    let mut world = World::new(&Tables::new(11, false), &terms, 5);
    assert!(world.run(100_000));
    let mut told = 0;
    for text in &world.seen {
        let envelope: serde_json::Value = serde_json::from_str(text).unwrap();
        let learnt = &envelope["body"]["totals"]["learnt"]["survival"]["events"];
        for counted in learnt.as_array().into_iter().flatten() {
            assert!(counted[1].as_u64().unwrap() >= 10, "{text}");
            told += 1;
        }
    }
    assert!(told >= 4, "{told}");
}

#[test]
fn what_cannot_work_is_told_to_everybody() {
    let data = settings("mean", false);
    let terms = super::terms(&data, 1).unwrap();
    let tables = Tables::new(2, true);
    let small = |m: usize| {
        let mut few = Tables::new(2, true);
        let text = few.files.get_mut(&format!("hospital-{m}")).unwrap();
        *text = text
            .lines()
            .take(12)
            .map(|line| format!("{line}\n"))
            .collect();
        few
    };
    let fewer_columns = || {
        let mut other = Tables::new(2, true);
        let text = other.files.get_mut("gateway-1-1").unwrap();
        *text = text.replace("hour,hr,spo2", "hour,hr,spare");
        other
    };
    let mut other_device = data.clone();
    other_device.table.device = texts(&["hr"]);
    type Case<'a> = (&'a str, Party, Box<dyn Fn() -> Enrolment + 'a>);
    let cases: [Case<'_>; 4] = [
        (
            "patients to train on: expected at least 10",
            Party::Hospital(1),
            Box::new(|| small(1).party(&terms, Party::Hospital(1), 1)),
        ),
        (
            "different pseudonym keys",
            Party::Gateway(0, 1),
            Box::new(|| {
                let key = PseudonymKey::new([99; 32]);
                let own = tables.side(&terms, Side::Device, "gateway-0-1", &key);
                Enrolment::gateway(terms.clone(), (0, 1), GATEWAYS, own, &[1; 16])
            }),
        ),
        (
            "have different columns: only the first has \"spo2\"",
            Party::Gateway(1, 1),
            Box::new(|| {
                let fewer = super::terms(&other_device, 1).unwrap();
                let (name, key) = ("gateway-1-1", PseudonymKey::new([2; 32]));
                let own = fewer_columns().side(&fewer, Side::Device, name, &key);
                Enrolment::gateway(terms.clone(), (1, 1), GATEWAYS, own, &[1; 16])
            }),
        ),
        (
            "gateway_count = 3",
            Party::Gateway(0, 0),
            Box::new(|| {
                let key = PseudonymKey::new([1; 32]);
                let own = tables.side(&terms, Side::Device, "gateway-0-0", &key);
                Enrolment::gateway(terms.clone(), (0, 0), 3, own, &[1; 16])
            }),
        ),
    ];
    for (expected, party, make) in cases {
        let mut world = World::new(&tables, &terms, 77);
        world.parties.insert(party, make());
        assert!(!world.run(100_000));
        // The first has given up; all others hear of it, whoever is in between.
        for _ in 0..20_000 {
            world.run(1);
            let at = world.stream.below(9) as usize;
            world.speak(everybody()[at]);
            world.deliver();
        }
        for (who, party) in &world.parties {
            let failure = party
                .failure()
                .unwrap_or_else(|| panic!("{who}: {}", party.doing().what));
            assert!(failure.contains(expected), "{who}: {failure}");
        }
    }
}

#[test]
fn another_experiment_is_noticed_and_waited_for() {
    let terms = super::terms(&settings("mean", false), 1).unwrap();
    let other = super::terms(&settings("mean", false), 2).unwrap();
    let tables = Tables::new(2, true);
    let mut world = World::new(&tables, &terms, 3);
    let who = Party::Hospital(0);
    world.parties.insert(who, tables.party(&other, who, 1));
    assert!(!world.run(20_000));
    assert!(
        world.parties[&Party::Edge(0)]
            .doing()
            .what
            .contains("a different experiment")
    );
    assert!(
        world.parties[&who]
            .doing()
            .what
            .contains("a different experiment")
    );
    // Put right, it goes on.
    world.parties.insert(who, tables.party(&terms, who, 2));
    assert!(world.run(100_000));
}

#[test]
fn nonsense_never_harms() {
    for kind in [Kind::Class, Kind::Survival] {
        nonsense_about(kind);
    }
}

fn nonsense_about(kind: Kind) {
    let terms = super::terms(&asking(kind, settings("carry", true)), 1).unwrap();
    let tables = Tables::new(4, true);
    // Real messages of a whole enrolment, to be spoilt.
    let mut world = World::new(&tables, &terms, 9);
    let mut real: Vec<(Party, Party, Vec<u8>)> = Vec::new();
    for _ in 0..4_000 {
        world.run(10);
        if let Some(mail) = world.mail.last().filter(|mail| !real.contains(mail)) {
            real.push(mail.clone());
        }
    }
    assert!(real.len() > 50);
    let mut stream = Key::new(6).stream();
    let mut usable = 0;
    for round in 0..60u64 {
        let mut world = World::new(&tables, &terms, 9);
        world.run(stream.below(1_500) as usize);
        for _ in 0..100 {
            let (from, to, mut bytes) = real[stream.below(real.len() as u64) as usize].clone();
            for _ in 0..=stream.below(3) {
                let at = stream.below(bytes.len() as u64) as usize;
                match stream.below(5) {
                    0 => bytes[at] = stream.next_u64() as u8,
                    1 => bytes[at] = b"0123456789-\"[]{},:ntf"[stream.below(21) as usize],
                    2 => bytes.truncate(at.max(1)),
                    3 => {
                        // A number for another: the largest and the least are where things break.
                        let texts = [
                            "0",
                            "-1",
                            "4294967296",
                            "18446744073709551615",
                            "1e999",
                            "null",
                        ];
                        let text = texts[stream.below(6) as usize].bytes();
                        if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                            bytes.splice(at + digit..=at + digit, text);
                        }
                    }
                    _ => {
                        let end = at + stream.below((bytes.len() - at) as u64 + 1) as usize;
                        let piece = bytes[at..end].to_vec();
                        bytes.splice(at..at, piece);
                    }
                }
            }
            let party = world.parties.get_mut(&to).unwrap();
            usable += usize::from(hears(party, from, &bytes));
            let _ = (says(party), party.doing(), party.failure().is_some());
        }
        // Any value for any other, in messages that are whole.
        for _ in 0..100 {
            let (from, to, bytes) = &real[stream.below(real.len() as u64) as usize];
            let mut value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
            spoil(&mut value, &mut stream);
            // As if it had come in turn, from who is there now.
            let said = |party: &mut Enrolment, to: &Party| -> serde_json::Value {
                let said = says(party).into_iter().find(|(other, _)| other == to);
                serde_json::from_slice(&said.unwrap().1).unwrap()
            };
            value["life"] = said(world.parties.get_mut(from).unwrap(), to)["life"].take();
            let party = world.parties.get_mut(to).unwrap();
            let mut known = said(party, from);
            value["number"] = known["number"].take();
            value["place"] = known["heard"].take();
            let bytes = serde_json::to_vec(&value).unwrap();
            usable += usize::from(hears(party, *from, &bytes));
            if party.failure().is_some() {
                world.parties.insert(*to, tables.party(&terms, *to, round));
            }
        }
    }
    assert!(usable > 500, "{usable}");
}

/// Changes something somewhere.
fn spoil(value: &mut serde_json::Value, stream: &mut Stream) {
    use serde_json::Value;
    match value {
        Value::Array(items) if !items.is_empty() && stream.below(6) > 0 => {
            let at = stream.below(items.len() as u64) as usize;
            match stream.below(6) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => spoil(&mut items[at], stream),
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            let at = stream.below(fields.len() as u64) as usize;
            if let Some(field) = fields.values_mut().nth(at) {
                spoil(field, stream);
            }
        }
        other => {
            *other = match stream.below(6) {
                0 => Value::Null,
                1 => u64::MAX.into(),
                2 => 0.into(),
                3 => "f".repeat(160).into(),
                4 => Value::Array(Vec::new()),
                _ => stream.below(200).into(),
            }
        }
    }
}

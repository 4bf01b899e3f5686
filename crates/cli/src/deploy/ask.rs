//! `selvedge ask`: a gateway asks for joint predictions, from its config to probabilities.

use super::answer::terms_and_key;
use super::bounds::{longest_message, turn_of_asker};
use super::config::{Kind, NodeConfig};
use super::node::{access, check, identity, shard};
use super::patients::{Patient, Patients, Who};
use super::predictions::Predictions;
use crate::args::AskArgs;
use crate::progress::Bar;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::experiment::Experiment;
use selvedge_core::positive::Positive;
use selvedge_core::role::{About, Asker, Outbox, Party, Portion};
use selvedge_core::task::Task;
use selvedge_data::enrol::Asked;
use selvedge_data::{PartyLoaded, read_party_and_patients};
use selvedge_net::credentials::random;
use selvedge_net::drive::{Options, Outcome, Patience, Settings, drive};
use selvedge_run::format::{count, counted};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What is read, as far as the config can be.
pub(crate) fn files(args: &AskArgs) -> Vec<PathBuf> {
    let mut files = args.input.clone();
    files.push(args.config.clone());
    if let Ok(config) = NodeConfig::read(&args.config) {
        files.push(config.data.clone());
        files.extend(config.files());
    }
    files
}

/// Asks, and waits for all answers; nothing if somebody wants it to stop before.
pub(crate) fn run(args: &AskArgs, stop: &AtomicBool) -> Result<Option<Predictions>> {
    let mut config = NodeConfig::read(&args.config)?;
    let in_config = || format!("{} is invalid", args.config.display());
    let (group, number) = gateway(&config).with_context(in_config)?;
    let experiment = config.start()?;
    let party = Party::Gateway(group, number);
    let (shard, _) = shard(&config, party).with_context(in_config)?;
    let first = config.gateways[number][0];
    let (loaded, pseudonyms) = read_party_and_patients(&config.data, shard)?;
    check(&experiment, &loaded)?;
    let task = Task::of_party(&experiment, &loaded.dataset, &loaded.labels)?;
    let patients = Patients::own(&loaded, &pseudonyms, (group, first));
    let patients = match args.input.is_empty() {
        true => patients.of_part(args.part),
        false => patients.of_table(read_input(args, &config, &experiment, &loaded)?),
    };
    let patients = chosen(patients, args, &config)?;
    let (asked, order) = questions(&patients);
    let first = u64::from_le_bytes(random::<8>().context("cannot read random numbers")?);
    // 0 stands for no question.
    let mut asker = Asker::new(task.networks(), (group, number), first.max(1), &asked);
    let (bar, all) = (Bar::new("ask"), patients.len() as u64);
    let settings = Settings {
        access: access(&config)?,
        neighbours: vec![Party::Edge(group)],
        longest_message: longest_message(&task, 1),
        turn: turn_of_asker(&task, party),
        most_gateways: 0,
        patience: Patience::of_asker(Duration::from_secs_f64(args.timeout)),
        options: Options {
            identity: Some(identity(&experiment, &loaded)),
            ..Options::default()
        },
        stop,
        notice: &|text| crate::say(text),
    };
    let mut show = |asker: &mut Asker<'_>, outbox: &Outbox| {
        if outbox.news {
            let done = asker.progress().0 as u64;
            bar.update(done, Some(all), || {
                format!("{}/{}", count(done), counted(all, "patient"))
            });
        }
        Ok(())
    };
    let asked = drive(&mut asker, &settings, &mut show);
    bar.close();
    if asked? == Outcome::Stopped {
        return Ok(None);
    }
    let calibration = asker.calibration().filter(|_| !args.uncalibrated).cloned();
    let mut answers = vec![None; patients.len()];
    for (place, answer) in order.into_iter().zip(asker.into_answers()) {
        let correct = |said: Vec<f32>| match &calibration {
            Some(calibration) => calibration.apply(&said),
            None => said,
        };
        answers[place] = answer.map(correct);
    }
    let ids = patients.into_iter().map(|patient| patient.id);
    let classes = loaded.dataset.classes.clone();
    let positive = Positive::of(&experiment, &classes, &loaded.labels);
    let outcome = loaded.dataset.outcome.clone();
    Ok(Some(Predictions::new(
        (outcome, classes, positive),
        calibration,
        ids.zip(answers),
    )))
}

/// Which gateway it is.
fn gateway(config: &NodeConfig) -> Result<(usize, usize)> {
    match config.party(Kind::Devices) {
        Ok(Party::Gateway(group, number)) => Ok((group, number)),
        _ => bail!(
            "group or gateway is missing: `selvedge ask` is for a gateway, which holds vital signs; expected the node.toml of a gateway"
        ),
    }
}

fn read_input(
    args: &AskArgs,
    config: &NodeConfig,
    experiment: &Experiment,
    loaded: &PartyLoaded,
) -> Result<Asked> {
    let (terms, key) = terms_and_key(config, experiment, "--input")?;
    let asked = Asked::of_gateway(&terms, args.input.clone(), &key, &loaded.statistics)?;
    for note in &asked.notes {
        crate::say(&format!("note: {note}"));
    }
    Ok(asked)
}

/// Those whom `--patient` names, all without it.
fn chosen(all: Vec<Patient>, args: &AskArgs, config: &NodeConfig) -> Result<Vec<Patient>> {
    if args.patient.is_empty() {
        if all.is_empty() {
            bail!("no patients to ask about: this gateway carries no such patients");
        }
        return Ok(all);
    }
    let key = config.pseudonyms.as_deref().map(crate::files::read_key);
    let key = key.transpose()?;
    let mut some = Vec::new();
    for name in &args.patient {
        let pseudonym = key.as_ref().map(|key| key.pseudonym(name));
        let is = |p: &&Patient| p.id == *name || pseudonym.as_ref() == Some(&p.id);
        let found = all.iter().filter(is).map(|patient| Patient {
            id: name.clone(),
            ..patient.clone()
        });
        let before = some.len();
        some.extend(found);
        if some.len() == before {
            return Err(anyhow!(
                "--patient {name}: no such patient here: expected an id in --input, or the pseudonym of a patient who takes part"
            ));
        }
    }
    Ok(some)
}

/// Patients by what they are asked about, and which one each of them is.
fn questions(patients: &[Patient]) -> (Vec<(About, Vec<f32>)>, Vec<usize>) {
    let (mut asked, mut order) = (Vec::new(), Vec::new());
    let mut ask = |about: About, places: Vec<usize>| {
        if !places.is_empty() {
            let x2 = places.iter().flat_map(|place| &patients[*place].x2);
            asked.push((about, x2.copied().collect()));
            order.extend(places);
        }
    };
    for part in [Portion::Training, Portion::Validation, Portion::Test] {
        let of_part = |(place, patient): (usize, &Patient)| match patient.who {
            Who::Row(of, row) if of == part => Some((row, place)),
            _ => None,
        };
        let (rows, places) = patients.iter().enumerate().filter_map(of_part).unzip();
        ask(About::Rows(part, rows), places);
    }
    let new = |(place, patient): (usize, &Patient)| match patient.who {
        Who::New { key, pseudonym } => Some((key, pseudonym, place)),
        Who::Row(..) => None,
    };
    let new: Vec<(u128, u128, usize)> = patients.iter().enumerate().filter_map(new).collect();
    let key = new.first().map_or(0, |(key, ..)| *key);
    let about = About::New {
        key,
        patients: new.iter().map(|(_, pseudonym, _)| *pseudonym).collect(),
    };
    ask(about, new.iter().map(|(.., place)| *place).collect());
    (asked, order)
}

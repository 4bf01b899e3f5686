//! One party's enrolment, from its config to its data folder.

use super::bounds::OF_ENROLMENT;
use super::config::{Kind, NodeConfig};
use super::journal::{LogFormat, log_line, now};
use super::node::access;
use crate::files::read_key;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::enrol::{Counts, Enrolment, Envelope, LONGEST_MESSAGE, MOST_GATEWAYS, Terms};
use selvedge_core::protocol::{Outbox, Party};
use selvedge_data::PseudonymKey;
use selvedge_data::enrol::{self, OwnSide, Summary, check_data_folder};
use selvedge_net::credentials::random;
use selvedge_net::drive::{DriveError, Options, Outcome, Patience, Settings, drive};
use selvedge_run::format::counted;
use selvedge_run::outputs::lies_in;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What the command line says.
pub(crate) struct Wishes<'a> {
    pub(crate) kind: Kind,
    /// Instead of those of the config.
    pub(crate) tables: &'a [PathBuf],
    /// Whether a data folder that is there is replaced.
    pub(crate) again: bool,
    pub(crate) format: LogFormat,
}

/// Enrols a party, and writes its data folder. Nothing if somebody wants it to stop before.
pub(crate) fn run(file: &Path, wishes: &Wishes<'_>, stop: &AtomicBool) -> Result<Option<Summary>> {
    let config = NodeConfig::read(file)?;
    let in_config = || format!("{} is invalid", file.display());
    let party = config.party(wishes.kind).with_context(in_config)?;
    let experiment = config.experiment()?;
    let terms = enrol::terms(&experiment.data, experiment.seed)
        .with_context(|| format!("{} is invalid", config.experiment.display()))?;
    check_group(party, experiment.data.groups).with_context(in_config)?;
    let gateways = gateways(&config, party).with_context(in_config)?;
    let mut files = config.files();
    files.extend(wishes.tables.iter().cloned());
    if let Some(inside) = files.iter().find(|path| lies_in(path, &config.data)) {
        bail!(
            "{} is in the data folder {}, which enrolment fills and --again replaces: expected it in another folder",
            inside.display(),
            config.data.display()
        );
    }
    check_data_folder(&config.data, wishes.again).map_err(|error| match wishes.again {
        true => anyhow!(error),
        false => anyhow!("{error}; --again replaces the earlier enrolment"),
    })?;
    let notice = |text: &str| crate::say(&log_line(wishes.format, party, "warn", text));
    let tell = |text: &str| crate::say(&log_line(wishes.format, party, "info", text));
    let random = random::<32>().context("cannot read random numbers")?;
    let own = own_side(&config, &terms, party, wishes.tables)?;
    if let Some(own) = &own {
        for note in own.notes() {
            notice(note);
        }
        tell(&format!(
            "has {}",
            counted(own.patients() as u64, "patient")
        ));
    }
    let mut enrolment = match (party, own) {
        (Party::Hospital(m), Some(own)) => Enrolment::hospital(terms, m, own, &random),
        (Party::Gateway(m, g), Some(own)) => {
            Enrolment::gateway(terms, (m, g), gateways, own, &random)
        }
        (Party::Edge(m), _) => Enrolment::edge(terms, m, gateways, &random),
        _ => Enrolment::cloud(terms, &random),
    };
    let settings = Settings {
        access: access(&config)?,
        neighbours: enrolment.neighbours(),
        longest_message: LONGEST_MESSAGE,
        turn: OF_ENROLMENT,
        most_gateways: 0,
        patience: Patience::ENROLMENT,
        options: Options::default(),
        stop,
        notice: &notice,
    };
    let mut summary = None;
    // As soon as it is known what belongs there.
    let mut write = |enrolment: &mut Enrolment, _: &Outbox<Envelope>| {
        if let Some(enrolled) = enrolment.to_write() {
            let written = enrol::write(enrolled, &config.data, wishes.again, &now());
            let done = written.map(|written| summary = Some(written));
            enrolment.written(done.map_err(|error| error.to_string()));
        }
        Ok(())
    };
    match (drive(&mut enrolment, &settings, &mut write), summary) {
        (Ok(Outcome::Over), Some(summary)) => Ok(Some(summary)),
        (Ok(_), _) => Ok(None),
        (Err(DriveError::GivenUp(why)), Some(_)) => bail!(
            "{why}. {} was written, but other parties may have none that matches: start all parties again, with --again",
            config.data.display()
        ),
        (Err(error), _) => Err(error.into()),
    }
}

/// There must be such a group.
fn check_group(party: Party, groups: usize) -> Result<()> {
    match party {
        Party::Hospital(m) | Party::Edge(m) | Party::Gateway(m, _) if m >= groups => bail!(
            "group = {m}, but the experiment has data.groups = {groups}: expected a group below that"
        ),
        _ => Ok(()),
    }
}

/// How many gateways the group has; of no use at the cloud and at a hospital.
fn gateways(config: &NodeConfig, party: Party) -> Result<usize> {
    let count = config.gateway_count.unwrap_or(1) as usize;
    if !(1..=MOST_GATEWAYS).contains(&count) {
        bail!("gateway_count = {count}: expected 1 to {MOST_GATEWAYS}");
    }
    match party {
        Party::Gateway(_, g) if g >= count => bail!(
            "gateway = {g}, but gateway_count = {count}: expected a gateway below that, counted from 0"
        ),
        Party::Edge(_) | Party::Gateway(..) if !config.gateways.is_empty() => {
            bail!(
                "gateways: enrolment determines the devices of each gateway; leave it out, and set gateway_count to their number"
            )
        }
        _ => Ok(count),
    }
}

/// What the party holds itself, if it holds anything.
fn own_side(
    config: &NodeConfig,
    terms: &Terms,
    party: Party,
    given: &[PathBuf],
) -> Result<Option<OwnSide>> {
    let tables = match given.is_empty() {
        true => config.tables.clone(),
        false => given.to_vec(),
    };
    if matches!(party, Party::Cloud | Party::Edge(_)) {
        if !tables.is_empty() || config.pseudonyms.is_some() {
            bail!(
                "tables and pseudonyms are for hospitals and gateways: the cloud and edges must have neither"
            );
        }
        return Ok(None);
    }
    if tables.is_empty() {
        bail!(
            "tables is missing: name the files of this party, like tables = [\"labs.csv\"], or give --table"
        );
    }
    Ok(Some(OwnSide::of(party, terms, tables, key(config)?)?))
}

fn key(config: &NodeConfig) -> Result<PseudonymKey> {
    match &config.pseudonyms {
        Some(path) => read_key(path),
        None => bail!(
            "pseudonyms is missing: name the file with the group's key, like pseudonyms = \"pseudonyms.key\"; `openssl rand -hex 32` generates one, for the hospital and all gateways of the group"
        ),
    }
}

/// What was decided, for people: counts and no ids.
pub(crate) fn text(summary: &Summary) -> String {
    let mut text = String::new();
    let several = summary.counts.len() > 1;
    for (m, counts) in summary.counts.iter().enumerate() {
        if several {
            text += &format!("group {m}\n");
        }
        text += &text_of(counts);
    }
    for note in &summary.notes {
        text += &format!("{note}\n");
    }
    text + &format!(
        "fingerprint of the data        {}\nfingerprint of its statistics  {}\n",
        summary.dataset, summary.statistics
    )
}

fn text_of(counts: &Counts) -> String {
    let Counts {
        taking_part,
        training,
        validation,
        test,
        ..
    } = counts;
    let mut text = format!(
        "{} {}: {training} for training, {validation} for validation, {test} for the test\n",
        counted(*taking_part as u64, "patient"),
        if *taking_part == 1 {
            "takes part"
        } else {
            "take part"
        },
    );
    for (count, what) in [
        (counts.only_hospital, "known only to the hospital"),
        (counts.only_devices, "known only to devices"),
        (counts.at_several_gateways, "at several gateways"),
        (counts.doubled_at_hospital, "twice in the hospital's files"),
        (counts.doubled_at_devices, "twice in a gateway's files"),
    ] {
        if count > 0 {
            text += &format!("  {count} left out: {what}\n");
        }
    }
    for (drawn, asked, what) in [
        (validation, counts.validation_asked, "validation"),
        (test, counts.test_asked, "the test"),
    ] {
        if *drawn < asked {
            text += &format!(
                "  {asked} were to be held out for {what}, but gateways have too few patients\n"
            );
        }
    }
    text
}

//! What a hospital or an edge needs to answer joint predictions, besides what it was left with by the run.

use super::config::{Kind, NodeConfig};
use crate::files::read_key;
use anyhow::{Context, Result, bail};
use selvedge_core::enrol::Terms;
use selvedge_core::experiment::Experiment;
use selvedge_core::role::Newcomers;
use selvedge_data::enrol::{self, Asked, Summary};
use selvedge_data::{PartyPatients, Statistics};
use std::path::PathBuf;

/// What the command line says.
#[derive(Clone, Copy)]
pub(crate) struct Answering<'a> {
    /// Whether it stays when the run is over.
    pub(crate) stays: bool,
    /// A hospital's files of patients who did not take part.
    pub(crate) tables: &'a [PathBuf],
}

impl Answering<'_> {
    /// Refuses what only others can do.
    pub(super) fn check(&self, kind: Kind) -> Result<()> {
        match kind {
            Kind::Cloud | Kind::Devices if self.stays => bail!(
                "--answer is for a hospital and its edge: the cloud is not needed for predictions, and a gateway asks for them with `selvedge ask`"
            ),
            Kind::Edge if !self.tables.is_empty() => {
                bail!("--table is for a hospital: an edge knows no patients")
            }
            _ => Ok(()),
        }
    }

    /// Patients of the tables who do not take part; nobody if there are no tables.
    pub(super) fn newcomers(
        &self,
        config: &NodeConfig,
        experiment: &Experiment,
        (statistics, patients): (&Statistics, &PartyPatients),
        notice: &dyn Fn(&str),
    ) -> Result<Option<Newcomers>> {
        if self.tables.is_empty() {
            return Ok(None);
        }
        let (terms, key) = terms_and_key(config, experiment, "--table")?;
        let asked = Asked::of_hospital(&terms, self.tables.to_vec(), &key, statistics)?;
        for note in &asked.notes {
            notice(note);
        }
        let roster = patients.iter().flatten().copied().collect();
        let newcomers = Newcomers::new(asked.key, &asked.pseudonyms, asked.x, &roster);
        Ok(Some(newcomers))
    }
}

/// How tables are read, and by what their patients become pseudonyms.
pub(super) fn terms_and_key(
    config: &NodeConfig,
    experiment: &Experiment,
    option: &str,
) -> Result<(Terms, selvedge_data::PseudonymKey)> {
    let terms = enrol::terms(&experiment.data, experiment.seed)
        .with_context(|| format!("{option} cannot be used here, since nobody has enrolled"))?;
    let Some(key) = &config.pseudonyms else {
        bail!(
            "pseudonyms is missing: {option} needs the group's key in node.toml, like pseudonyms = \"pseudonyms.key\""
        );
    };
    let (file, key) = (key, read_key(key)?);
    // By another key those who take part would be strangers, about whom anybody may ask.
    let enrolled = Summary::read(&config.data)?;
    if enrolled.is_some_and(|summary| !summary.is_named_by(&key)) {
        bail!(
            "{} is not the key that this party enrolled with: {option} needs that one, or enrol again",
            file.display()
        );
    }
    Ok((terms, key))
}

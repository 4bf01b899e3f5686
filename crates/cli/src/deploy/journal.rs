//! What a party writes down: the cloud a run directory like that of `selvedge train`, everybody who was absent.

use anyhow::{Result, bail};
use selvedge_core::role::{Absence, Outbox, Party, Role};
use selvedge_core::task::Task;
use selvedge_data::Statistics;
use selvedge_net::counters::Counters;
use selvedge_net::drive::Observer;
use selvedge_run::cloud::CloudDirectory;
use selvedge_run::files::{ABSENCES, make_folder};
use selvedge_run::lines::Lines;
use selvedge_run::manifest::DataInfo;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How a party says what people should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of plain text
    Plain,
    /// One JSON object per line
    Json,
}

/// A party's journal.
pub(crate) struct Journal<'a> {
    party: Party,
    format: LogFormat,
    folder: PathBuf,
    absences: Lines,
    known: HashSet<Absence>,
    run: Option<CloudDirectory<'a>>,
    /// Whether what is there may be discarded.
    forget: bool,
}

impl<'a> Journal<'a> {
    /// The journal of any party; what is in the folder already is gone on with.
    pub(crate) fn open(party: Party, folder: &Path, format: LogFormat) -> Result<Self> {
        make_folder(folder)?;
        let (absences, known) = Lines::reopen(folder.join(ABSENCES))?;
        Ok(Journal {
            party,
            format,
            folder: folder.into(),
            absences,
            known: known.into_iter().collect(),
            run: None,
            forget: false,
        })
    }

    /// The cloud's: with its run directory.
    pub(crate) fn of_cloud(
        task: &'a Task<'a>,
        name: &str,
        data: (DataInfo, &Statistics),
        folder: &Path,
        format: LogFormat,
    ) -> Result<Self> {
        let journal = Self::open(Party::Cloud, folder, format)?;
        let run = CloudDirectory::open(task, name, data, folder)?;
        Ok(Journal {
            run: Some(run),
            ..journal
        })
    }

    /// The same, where what is there may be discarded if it belongs to no record.
    #[must_use]
    pub(crate) fn forgetting(self, forget: bool) -> Self {
        Journal { forget, ..self }
    }

    /// There is no record: what is in the folder is of another run, or all that is left of this one.
    fn begin_anew(&mut self) -> Result<()> {
        if self.forget {
            self.known.clear();
            self.absences.clear()?;
            return Ok(self
                .run
                .as_mut()
                .map_or(Ok(()), CloudDirectory::begin_anew)?);
        }
        let Some(t) = self.run.as_ref().and_then(CloudDirectory::last_evaluated) else {
            return Ok(());
        };
        let folder = self.folder.display();
        bail!(
            "the cloud's record is lost: neither its server nor {folder} has it, and this run has come to t = {t}. Restore {folder}, or the store of the cloud's server, from a backup and start the cloud again: the groups go back to where it was. Or begin at t = 0 with `selvedge node cloud --forget`, which discards the results in {folder}"
        )
    }
}

/// A line of a log.
pub(crate) fn log_line(format: LogFormat, party: Party, level: &str, text: &str) -> String {
    let time = now();
    match format {
        LogFormat::Plain => format!("{time} {level:5} {party}: {text}"),
        LogFormat::Json => serde_json::json!({
            "time": time, "level": level, "party": party.to_string(), "text": text,
        })
        .to_string(),
    }
}

impl Journal<'_> {
    /// What was noted behind this iteration is trained again, perhaps by others.
    fn go_back(&mut self, t: u64) -> Result<()> {
        if !self.known.iter().any(|absence| absence.is_behind(t)) {
            return Ok(());
        }
        self.known.retain(|absence| !absence.is_behind(t));
        let path = self.folder.join(ABSENCES);
        let (mut lines, noted) = Lines::reopen::<Absence>(path)?;
        lines.clear()?;
        let mut kept = noted.iter().filter(|absence| !absence.is_behind(t));
        kept.try_for_each(|absence| lines.keep(absence))?;
        self.absences = lines;
        Ok(())
    }

    fn note(&mut self, role: &Role<'_>, outbox: &Outbox) -> Result<()> {
        if let Some(t) = outbox.back {
            self.go_back(t)?;
        }
        for absence in &outbox.absences {
            if self.known.insert(*absence) {
                self.absences.keep(absence)?;
            }
        }
        match (role, &mut self.run) {
            (Role::Cloud(cloud), Some(run)) if outbox.aggregated => {
                let end = (outbox.ending.as_ref(), cloud.calibrations());
                Ok(run.aggregated(cloud.state(), &outbox.evaluations, end)?)
            }
            _ => Ok(()),
        }
    }
}

impl<'a> Observer<Role<'a>> for Journal<'_> {
    fn happened(&mut self, role: &mut Role<'a>, outbox: &Outbox) -> Result<(), String> {
        let noted = self.note(role, outbox);
        noted.map_err(|error| format!("{error:#}"))
    }

    fn begins(&mut self, from_record: bool) -> Result<(), String> {
        if from_record {
            return Ok(());
        }
        self.begin_anew().map_err(|error| format!("{error:#}"))
    }

    fn counted(&mut self, counters: &Counters) {
        // Who measures looks at it; nothing else depends on it.
        if let Ok(text) = serde_json::to_vec(counters) {
            let _ = fs::write(self.folder.join("counters.json"), text);
        }
    }

    fn told(&mut self, text: &str) {
        crate::say(&log_line(self.format, self.party, "info", text));
    }
}

/// The time of day in UTC, as RFC 3339 writes it.
pub(crate) fn now() -> String {
    let now = time::OffsetDateTime::now_utc();
    let ((hour, minute, second, millisecond), month) = (now.time().as_hms_milli(), now.month());
    format!(
        "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z",
        now.year(),
        u8::from(month),
        now.day()
    )
}

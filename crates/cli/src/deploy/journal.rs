//! What a party writes down: the cloud a run directory like that of `selvedge train`, everybody who was absent.

use anyhow::Result;
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

    /// What was there is of another run, or of forgotten records.
    fn begin_anew(&mut self) -> selvedge_run::Result<()> {
        self.known.clear();
        self.absences.clear()?;
        self.run.as_mut().map_or(Ok(()), CloudDirectory::begin_anew)
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
    fn note(&mut self, role: &Role<'_>, outbox: &Outbox) -> Result<()> {
        for absence in &outbox.absences {
            if self.known.insert(*absence) {
                self.absences.keep(absence)?;
            }
        }
        match (role, &mut self.run) {
            (Role::Cloud(cloud), Some(run)) if outbox.aggregated => {
                Ok(run.aggregated(cloud.state(), &outbox.evaluations, outbox.ending.as_ref())?)
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

//! What a party writes down: the cloud a run directory like that of `selvedge train`, everybody who was absent.
//!
//! Lines are written once what they say is decided and kept. After a crash the last ones are told again, and those that are
//! there already are left out.

use crate::run_directory::{DataInfo, EndingInfo, Manifest, Timing, write_ledger};
use crate::{trained, weights};
use anyhow::{Context, Result, bail};
use selvedge_core::adaptive::Change;
use selvedge_core::role::{Absence, Outbox, Party, Role};
use selvedge_core::run::Ending;
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_data::{Inputs, SideInputs, Statistics};
use selvedge_net::counters::Counters;
use selvedge_net::drive::Observer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the ledger is written at most, but for the end.
const LEDGER_EVERY: Duration = Duration::from_secs(2);

/// A file of JSON lines that are all different.
struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    /// Opens it, without what a crash has left of a line, and gives what is there.
    fn open<T: DeserializeOwned>(path: PathBuf) -> Result<(Self, Vec<T>)> {
        let mut bytes = match path.exists() {
            true => fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?,
            false => Vec::new(),
        };
        let whole = bytes.iter().rposition(|b| *b == b'\n');
        bytes.truncate(whole.map_or(0, |end| end + 1));
        let text = String::from_utf8_lossy(&bytes);
        let parse = |(i, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("{}, line {} is damaged", path.display(), i + 1))
        };
        let found = (0..).zip(text.lines()).map(parse).collect::<Result<_>>()?;
        let open = || -> std::io::Result<File> {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.set_len(bytes.len() as u64)?;
            Ok(file)
        };
        let file = open().with_context(|| format!("cannot open {}", path.display()))?;
        Ok((Lines { path, file }, found))
    }

    fn add(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        // Records are on the disk when they are acknowledged; what is noted of them is to be there too.
        let written = self.file.write_all(&line);
        let written = written.and_then(|()| self.file.sync_data());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// How a party says what people should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Plain,
    /// One JSON object a line
    Json,
}

/// A party's journal.
pub(crate) struct Journal<'a> {
    party: Party,
    format: LogFormat,
    folder: PathBuf,
    absences: Lines,
    known: HashSet<Absence>,
    run: Option<Run<'a>>,
}

/// The cloud's run directory.
struct Run<'a> {
    task: &'a Task<'a>,
    path: PathBuf,
    manifest: Manifest,
    metrics: Lines,
    evaluated: Option<u64>,
    segments: Option<(Lines, Option<u64>)>,
    written: Option<Instant>,
    started: Instant,
    seconds_before: f64,
}

/// What a run leaves when it has ended.
const RESULTS: [&str; 3] = ["model.safetensors", "best.safetensors", "evaluation.json"];

impl<'a> Journal<'a> {
    /// The journal of any party; what is in the folder already is gone on with.
    pub(crate) fn open(party: Party, folder: &Path, format: LogFormat) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let (absences, known) = Lines::open(folder.join("absences.jsonl"))?;
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
        (data, statistics): (DataInfo, &Statistics),
        folder: &Path,
        format: LogFormat,
    ) -> Result<Self> {
        let journal = Self::open(Party::Cloud, folder, format)?;
        let mut manifest = Manifest::on_data(name, task, data)?;
        let mut seconds_before = 0.0;
        if folder.join("manifest.json").exists() {
            let there = Manifest::read(folder)?;
            if there.experiment != manifest.experiment
                || there.data.fingerprint != manifest.data.fingerprint
            {
                bail!(
                    "{} is the directory of another run: choose another one for `out`",
                    folder.display()
                );
            }
            seconds_before = there.timing.seconds;
            manifest = there;
        } else {
            let initial = task.architecture.initial(task.experiment.seed);
            let path = folder.join("initial.safetensors");
            weights::save(&path, &task.architecture, &initial)?;
            // Between which values they lie is for those who hold them to know.
            let inputs = Inputs {
                statistics: statistics.clone(),
                hospital: SideInputs::default(),
                device: SideInputs::default(),
            };
            trained::write_inputs(folder, &inputs)?;
            manifest.write(folder)?;
        }
        let (metrics, evaluations) = Lines::open::<Evaluation>(folder.join("metrics.jsonl"))?;
        let segments = match task.experiment.train.adaptive.is_off() {
            true => None,
            false => {
                let (lines, changes) = Lines::open::<Change>(folder.join("segments.jsonl"))?;
                Some((lines, changes.last().map(|change| change.t)))
            }
        };
        Ok(Journal {
            run: Some(Run {
                task,
                path: folder.into(),
                manifest,
                metrics,
                evaluated: evaluations.last().map(|e| e.t),
                segments,
                written: None,
                started: Instant::now(),
                seconds_before,
            }),
            ..journal
        })
    }
}

impl Run<'_> {
    fn aggregated(
        &mut self,
        state: &State,
        evaluations: &[Evaluation],
        ending: Option<&Ending>,
    ) -> Result<()> {
        for evaluation in evaluations {
            if self.evaluated.is_none_or(|last| evaluation.t > last) {
                self.metrics.add(evaluation)?;
                self.evaluated = Some(evaluation.t);
            }
        }
        let change = state.progress.controller.as_ref();
        let change = change.and_then(|controller| controller.change.as_ref());
        if let (Some((lines, last)), Some(change)) = (&mut self.segments, change)
            && last.is_none_or(|last| change.t > last)
        {
            lines.add(change)?;
            *last = Some(change.t);
        }
        let due = self.written.is_none_or(|at| at.elapsed() >= LEDGER_EVERY);
        if due || ending.is_some() {
            self.written = Some(Instant::now());
            write_ledger(&self.path, &state.progress.ledger)?;
            self.manifest.timing = Timing {
                iterations: state.progress.t,
                seconds: self.seconds_before + self.started.elapsed().as_secs_f64(),
            };
            self.manifest.write(&self.path)?;
        }
        if let Some(ending) = ending.filter(|_| self.manifest.ending.is_none()) {
            let architecture = &self.task.architecture;
            let save =
                |name: &str, model| weights::save(&self.path.join(name), architecture, model);
            save("model.safetensors", &state.theta)?;
            if let Some(best) = &state.best {
                save("best.safetensors", best)?;
            }
            self.manifest.ending = Some(EndingInfo::new(ending, state.progress.t));
            self.manifest.write(&self.path)?;
        }
        Ok(())
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
                self.absences.add(absence)?;
            }
        }
        match (role, &mut self.run) {
            (Role::Cloud(cloud), Some(run)) if outbox.aggregated => {
                run.aggregated(cloud.state(), &outbox.evaluations, outbox.ending.as_ref())
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
        // Nothing can have been decided before the first record: what is here is of another run, or of forgotten records.
        let clear = |lines: &mut Lines| {
            let cleared = lines.file.set_len(0);
            cleared.map_err(|e| format!("cannot write {}: {e}", lines.path.display()))
        };
        self.known.clear();
        clear(&mut self.absences)?;
        if let Some(run) = &mut self.run {
            (run.evaluated, run.manifest.ending) = (None, None);
            // The new run may have no best model, and its last one comes at its end.
            for name in RESULTS {
                match fs::remove_file(run.path.join(name)) {
                    Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                        return Err(format!("cannot remove {name} of an earlier run: {e}"));
                    }
                    _ => {}
                }
            }
            clear(&mut run.metrics)?;
            if let Some((lines, last)) = &mut run.segments {
                *last = None;
                clear(lines)?;
            }
        }
        Ok(())
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
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years that begin in March have their leap day at the end; 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!(
        "{:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        era * 400 + year + late,
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

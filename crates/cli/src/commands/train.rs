//! `selvedge train`

use super::{print, print_json};
use crate::Outcome;
use crate::args::{DataDirectory, TrainArgs};
use crate::interrupt::catch_interrupts;
use crate::load;
use crate::progress::Progress;
use crate::summary::{Summary, over_seeds};
use anyhow::{Result, anyhow, bail};
use selvedge_core::absence::Listed;
use selvedge_core::attack::backdoor;
use selvedge_core::experiment::{AttackKind, CompressionSettings, Experiment};
use selvedge_core::run::Ending;
use selvedge_core::state::Evaluation;
use selvedge_data::SETS;
use selvedge_nn::simd::Level;
use selvedge_run::files::{Claim, MODEL, SEEDS, TRACE, check_free, of_seed};
use selvedge_run::format::{exact, score, shell};
use selvedge_run::seeds::Seeds;
use selvedge_run::trained::{Trained, WhichModel};
use selvedge_run::{Manifest, Named, Training, absences, extending, has_begun};
use std::path::{Path, PathBuf};

/// How to run, whatever is run.
struct Options {
    data: DataDirectory,
    trace: bool,
    level: Level,
    absences: Listed,
}

pub(crate) fn run(args: TrainArgs) -> Result<Outcome> {
    catch_interrupts();
    let threads = load::threads(args.threads)?;
    // The loop itself runs on one of the threads: handing each phase over to them would cost more than some phases.
    threads.install(|| train_all(&args))
}

fn train_all(args: &TrainArgs) -> Result<Outcome> {
    let options = Options {
        data: args.experiment.data.clone(),
        trace: args.trace,
        level: level(args.simd.as_deref())?,
        absences: absences::read(&args.replay)?,
    };
    let (plans, _claim) = plans(args)?;
    let several = plans.len() > 1;
    let mut runs = Vec::new();
    for plan in plans {
        let finished = train(&plan, &options).inspect_err(|_| forget_unless_begun(&plan))?;
        let interrupted = finished.run.ending == Ending::Interrupted;
        if !args.json {
            print(&finished.text())?;
            print(if several { "\n" } else { "" })?;
        }
        if let Ending::Diverged { t, learning_rate } = finished.run.ending {
            let model = plan.path.join(MODEL);
            let (at, advice) = match t {
                0 => (
                    "before the first step".into(),
                    "Check the data and the model".into(),
                ),
                _ => (
                    format!(
                        "at iteration {t}, with learning rate {}",
                        exact(learning_rate)
                    ),
                    format!(
                        "Try --set train.learning_rate={}",
                        exact(learning_rate / 4.0)
                    ),
                ),
            };
            bail!(
                "training diverged: {at}, the loss or a weight is no longer a finite number. {advice}. The last good model is in {}",
                model.display()
            );
        }
        runs.push(finished);
        if interrupted {
            if args.json {
                print_runs(true, several, &runs)?;
            }
            return Ok(Outcome::Interrupted);
        }
    }
    print_runs(args.json, several, &runs)?;
    Ok(Outcome::Done)
}

/// Seeds of which none has begun leave nothing behind.
fn forget_unless_begun(plan: &Plan) {
    if plan.resume || plan.resume_by == plan.path {
        return;
    }
    let only_the_note = std::fs::read_dir(&plan.resume_by)
        .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name() == SEEDS));
    if only_the_note {
        let _ = std::fs::remove_file(plan.resume_by.join(SEEDS));
        let _ = std::fs::remove_dir(&plan.resume_by);
    }
}

/// What stands behind all runs: one JSON value, or the table over seeds.
fn print_runs(json: bool, several: bool, runs: &[Summary]) -> Result<()> {
    match (json, runs) {
        (true, [one]) if !several => print_json(&one.json()),
        (true, all) => print_json(&serde_json::Value::Array(
            all.iter().map(Summary::json).collect(),
        )),
        (false, all) if several => print(&over_seeds(all)),
        _ => Ok(()),
    }
}

/// The instructions of that name, or the fastest.
pub(super) fn level(name: Option<&str>) -> Result<Level> {
    let Some(name) = name else {
        return Ok(Level::detect());
    };
    let available = Level::available();
    available
        .iter()
        .copied()
        .find(|l| l.name() == name)
        .ok_or_else(|| {
            let names: Vec<_> = available.iter().map(|l| l.name()).collect();
            anyhow!("--simd {name}: this CPU supports {}", names.join(", "))
        })
}

/// One run to be done, or to be gone on with.
struct Plan {
    named: Named,
    path: PathBuf,
    label: String,
    /// Go on with what is in `path`, if anything is.
    resume: bool,
    /// What `--resume` is given to go on with it: for one of several seeds, the directory of all.
    resume_by: PathBuf,
}

/// What is to be done, and the folder for it if it is a new one.
fn plans(args: &TrainArgs) -> Result<(Vec<Plan>, Option<Claim>)> {
    if let Some(path) = &args.resume {
        let plans = plans_to_resume(args, path)?;
        let resumed = plans.into_iter().map(|plan| Plan {
            resume: true,
            ..plan
        });
        return Ok((resumed.collect(), None));
    }
    let named = load::experiment(&args.experiment)?;
    let (path, claim) = match &args.out {
        Some(path) => (path.clone(), None),
        None => {
            let claim = claim(&format!("{}-{}", named.name, named.experiment.seed))?;
            (claim.path().to_owned(), Some(claim))
        }
    };
    let plans = match args.seeds {
        None => vec![single(named, path)],
        Some(n) => {
            check_free(&path)?;
            plans_of_seeds(named, &path, n)?
        }
    };
    Ok((plans, claim))
}

fn single(named: Named, path: PathBuf) -> Plan {
    Plan {
        label: named.name.clone(),
        named,
        resume_by: path.clone(),
        path,
        resume: false,
    }
}

/// Notes which seeds belong together, and plans a run for each.
fn plans_of_seeds(named: Named, path: &Path, n: u64) -> Result<Vec<Plan>> {
    let seeds = load::seeds(named.experiment.seed, n)?;
    let note = Seeds {
        name: named.name.clone(),
        seeds: seeds.clone(),
        experiment: serde_json::to_value(&named.experiment)?,
    };
    note.write(path)?;
    Ok(seeds
        .iter()
        .map(|seed| plan_of_seed(&named.name, &named.experiment, *seed, path))
        .collect())
}

fn plan_of_seed(name: &str, experiment: &Experiment, seed: u64, path: &Path) -> Plan {
    Plan {
        named: Named {
            name: name.into(),
            experiment: Experiment {
                seed,
                ..experiment.clone()
            },
        },
        path: of_seed(path, seed),
        label: format!("{name} seed {seed}"),
        resume: false,
        resume_by: path.into(),
    }
}

fn plans_to_resume(args: &TrainArgs, path: &Path) -> Result<Vec<Plan>> {
    let given = match args.experiment.experiment {
        Some(_) => Some(load::experiment(&args.experiment)?),
        None => None,
    };
    if !has_begun(path) {
        let named = given.ok_or_else(|| anyhow!("there is no run in {}", path.display()))?;
        return match args.seeds {
            None => Ok(vec![single(named, path.into())]),
            Some(n) => plans_of_seeds(named, path, n),
        };
    }
    if let Some(mut note) = Seeds::read(path)? {
        let mut experiment = note.experiment(path)?;
        if let Some(n) = args.seeds.filter(|n| *n != note.seeds.len() as u64) {
            bail!(
                "--seeds {n}: {} was started with {}",
                path.display(),
                note.seeds.len()
            );
        }
        match &given {
            Some(given) => check_same(given, &experiment, path)?,
            None if args.experiment.set.is_empty() => {}
            None => {
                experiment = extended(&experiment, &args.experiment.set, path)?;
                note.experiment = serde_json::to_value(&experiment)?;
                note.write(path)?;
            }
        }
        return Ok(note
            .seeds
            .iter()
            .map(|s| plan_of_seed(&note.name, &experiment, *s, path))
            .collect());
    }
    let manifest = Manifest::read(path)?;
    if args.seeds.is_some() {
        bail!(
            "--seeds cannot be added to the run in {}: start new ones with --out",
            path.display()
        );
    }
    if args.trace && !path.join(TRACE).is_file() {
        bail!(
            "--trace cannot be added to the run in {}: start a new one with --out",
            path.display()
        );
    }
    let begun = manifest.experiment(path)?;
    let experiment = match &given {
        Some(given) => {
            check_same(given, &begun, path)?;
            begun
        }
        None => extended(&begun, &args.experiment.set, path)?,
    };
    Ok(vec![single(
        Named {
            name: manifest.name,
            experiment,
        },
        path.into(),
    )])
}

/// A run is only gone on with by the experiment that it began with.
fn check_same(given: &Named, begun: &Experiment, path: &Path) -> Result<()> {
    let Some((began, given)) = extending::difference(begun, &given.experiment) else {
        return Ok(());
    };
    bail!(
        "{0} was started with `{began}`, not `{given}`: resume it with --resume {1} alone, or start a new run with --out",
        path.display(),
        shell(path)
    )
}

/// The experiment that a run began with, given more. What follows from other keys stays as it was.
fn extended(begun: &Experiment, set: &[String], path: &Path) -> Result<Experiment> {
    if set.is_empty() {
        return Ok(begun.clone());
    }
    let given = SETS.parse(&begun.to_toml(), set)?;
    extending::check(begun, &given, path)?;
    Ok(given)
}

/// A new folder `runs/NAME`, or with a number behind it if that is taken.
pub(super) fn claim(name: &str) -> Result<Claim> {
    Ok(Claim::first(numbered_paths(name))?)
}

/// `runs/NAME`, or with a number behind it if that is taken.
pub(super) fn free_path(name: &str) -> PathBuf {
    let mut paths = numbered_paths(name);
    let free = paths.find(|path| !path.exists());
    free.unwrap_or_else(|| Path::new("runs").join(name))
}

/// `runs/NAME`, `runs/NAME-2`, …
pub(super) fn numbered_paths(name: &str) -> impl Iterator<Item = PathBuf> {
    (1..).map(move |n: u32| {
        Path::new("runs").join(match n {
            1 => name.to_owned(),
            _ => format!("{name}-{n}"),
        })
    })
}

/// With gradients of about 1, smaller steps than this are lost in the rounding of nearly every weight.
const LEAST_RATE: f64 = 1e-9;

/// The training loss before training and after it, if it has more than doubled.
pub(crate) fn gone_wrong(evaluations: &[Evaluation]) -> Option<[f64; 2]> {
    let [before, after] = [evaluations.first()?, evaluations.last()?].map(|e| e.loss_train);
    (before > 0.0 && after > 2.0 * before).then_some([before, after])
}

/// Loads the data and trains, while a person sees how far it is.
fn train(plan: &Plan, options: &Options) -> Result<Summary> {
    let experiment = &plan.named.experiment;
    let algorithm = experiment.train.algorithm;
    if experiment.compression != CompressionSettings::default() && !algorithm.compresses() {
        crate::say(&format!(
            "note: {algorithm} does not compress messages; [compression] is for c-hsgd and c-tdcd"
        ));
    }
    let rate = experiment.train.learning_rate;
    if rate < LEAST_RATE {
        crate::say(&format!(
            "note: train.learning_rate = {} is so small that hardly any weight can change: usual rates are 0.001 to 1",
            exact(rate)
        ));
    }
    let data = load::data(experiment, &options.data)?;
    absences::check(&options.absences, experiment, &data.dataset)?;
    let data_dir = options.data.as_option();
    let resume = format!(
        "selvedge train --resume {}{data_dir}",
        shell(&plan.resume_by)
    );
    let mut progress = Progress::new(&plan.label, experiment.train.iterations, &data.dataset);
    let training = Training {
        name: &plan.named.name,
        directory: Some(&plan.path),
        resume: plan.resume,
        resume_command: Some(resume.clone()),
        trace: options.trace,
        level: options.level,
        absences: options.absences.clone(),
        ..Training::new(experiment, &data)
    };
    let run = training.watched_by(&mut progress)?;
    let ended = !matches!(run.ending, Ending::Interrupted);
    if ended && let Some(untrained) = Trained::open(&plan.path, WhichModel::Usual)?.untrained() {
        crate::note(&format!(
            "{untrained} (train.learning_rate = {}, {} iterations)",
            exact(rate),
            run.state.progress.t
        ));
    }
    if let Some([before, after]) = gone_wrong(&run.evaluations) {
        crate::note(&format!(
            "the training loss was {} before training and is {} now: train.learning_rate = {} is probably too high",
            score(Some(before)),
            score(Some(after)),
            exact(rate)
        ));
    }
    let attacked = experiment.attack.kind == AttackKind::Backdoor;
    let networks = (&run.architecture, &*run.objective);
    let backdoor = attacked.then(|| backdoor(networks, &run.state.theta, &data.dataset));
    Ok(Summary {
        backdoor: backdoor.flatten(),
        next: match run.ending {
            Ending::Interrupted => resume,
            _ => format!("selvedge evaluate {}{data_dir}", shell(&plan.path)),
        },
        path: plan.path.clone(),
        run,
    })
}

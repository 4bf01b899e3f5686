//! `selvedge train`

use super::{print, print_json};
use crate::Outcome;
use crate::args::{DataDirectory, TrainArgs};
use crate::files::{read_text, write_whole};
use crate::format::bytes;
use crate::load::{self, Named};
use crate::progress::Progress;
use crate::run_directory::{Manifest, RunDirectory};
use crate::summary::{Finished, over_seeds};
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::experiment::{Compute, Experiment};
use selvedge_core::run::{self, Ending};
use selvedge_core::state::{Evaluation, State};
use selvedge_core::task::Task;
use selvedge_nn::simd::Level;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Real time between two checkpoints.
const SAVE_EVERY: Duration = Duration::from_secs(2);

/// Set by the first Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Signals that come together are one wish to stop (`timeout` sends two at once); a later one ends the process.
const ONE_WISH: Duration = Duration::from_secs(1);

fn catch_interrupts() -> Result<()> {
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        let first = *first.get_or_insert_with(Instant::now);
        if INTERRUPTED.swap(true, Ordering::SeqCst) && first.elapsed() > ONE_WISH {
            std::process::exit(130);
        }
    })
    .context("cannot catch Ctrl-C")
}

/// Seconds since the first call, for `time.compute = "measured"`.
fn stopwatch() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// How to run, whatever is run.
struct Options {
    data: DataDirectory,
    trace: bool,
    level: Level,
}

pub(crate) fn run(args: TrainArgs) -> Result<Outcome> {
    catch_interrupts()?;
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads.unwrap_or(0) as usize)
        .build()
        .context("cannot start threads")?;
    // The loop itself runs on one of the threads: handing each phase over to them would cost more than some phases.
    threads.install(|| train_all(&args))
}

fn train_all(args: &TrainArgs) -> Result<Outcome> {
    let options = Options {
        data: args.experiment.data.clone(),
        trace: args.trace,
        level: level(args.simd.as_deref())?,
    };
    let plans = plans(args)?;
    let several = plans.len() > 1;
    let mut runs = Vec::new();
    for plan in plans {
        let finished = train(&plan, &options).inspect_err(|_| forget_unless_begun(&plan))?;
        let interrupted = finished.ending == Ending::Interrupted;
        if !args.json {
            print(&finished.text())?;
            print(if several { "\n" } else { "" })?;
        }
        if let Ending::Diverged { t, learning_rate } = finished.ending {
            let model = finished.path.join("model.safetensors");
            let (at, advice) = match t {
                0 => (
                    "before the first step".into(),
                    "Look at the data and at the model".into(),
                ),
                _ => (
                    format!("at iteration {t}, with learning rate {learning_rate}"),
                    format!("Try --set train.learning_rate={}", learning_rate / 4.0),
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
        let _ = std::fs::remove_dir_all(&plan.resume_by);
    }
}

/// What stands behind all runs: one JSON value, or the table over seeds.
fn print_runs(json: bool, several: bool, runs: &[Finished]) -> Result<()> {
    match (json, runs) {
        (true, [one]) if !several => print_json(&one.json()),
        (true, all) => print_json(&serde_json::Value::Array(
            all.iter().map(Finished::json).collect(),
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
            anyhow!("--simd {name}: this CPU has {}", names.join(", "))
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

const SEEDS: &str = "seeds.json";

/// `seeds.json` of a directory that holds one run per seed.
#[derive(Serialize, Deserialize)]
struct Seeds {
    name: String,
    seeds: Vec<u64>,
    experiment: serde_json::Value,
}

fn plans(args: &TrainArgs) -> Result<Vec<Plan>> {
    if let Some(path) = &args.resume {
        let plans = plans_to_resume(args, path)?;
        return Ok(plans
            .into_iter()
            .map(|plan| Plan {
                resume: true,
                ..plan
            })
            .collect());
    }
    let named = load::experiment(&args.experiment)?;
    let path = match &args.out {
        Some(path) => path.clone(),
        None => free_path(&format!("{}-{}", named.name, named.experiment.seed)),
    };
    match args.seeds {
        None => Ok(vec![single(named, path)]),
        Some(n) => {
            if path.exists() {
                bail!(
                    "{0} is there already: choose another --out, or go on with it by --resume {0}",
                    path.display()
                );
            }
            plans_of_seeds(named, &path, n)
        }
    }
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
    let first = named.experiment.seed;
    let last = first
        .checked_add(n - 1)
        .context("--seeds: the last seed is too large")?;
    let seeds: Vec<u64> = (first..=last).collect();
    std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    let note = Seeds {
        name: named.name.clone(),
        seeds: seeds.clone(),
        experiment: serde_json::to_value(&named.experiment)?,
    };
    write_whole(
        &path.join(SEEDS),
        serde_json::to_string_pretty(&note)?.as_bytes(),
    )?;
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
        path: path.join(format!("seed-{seed}")),
        label: format!("{name} seed {seed}"),
        resume: false,
        resume_by: path.into(),
    }
}

fn plans_to_resume(args: &TrainArgs, path: &Path) -> Result<Vec<Plan>> {
    let given = match args.experiment.experiment {
        Some(_) => Some(load::experiment(&args.experiment)?),
        None if !args.experiment.set.is_empty() => {
            bail!("--set cannot change a run that is resumed: start a new one with --out")
        }
        None => None,
    };
    if !has_begun(path) {
        let named = given.ok_or_else(|| anyhow!("there is no run in {}", path.display()))?;
        return match args.seeds {
            None => Ok(vec![single(named, path.into())]),
            Some(n) => plans_of_seeds(named, path, n),
        };
    }
    let seeds_path = path.join(SEEDS);
    if seeds_path.is_file() {
        let note: Seeds = serde_json::from_str(&read_text(&seeds_path)?)
            .with_context(|| format!("{} is damaged", seeds_path.display()))?;
        let experiment = Experiment::from_json(&note.experiment)
            .with_context(|| format!("{} cannot be", seeds_path.display()))?;
        if let Some(n) = args.seeds.filter(|n| *n != note.seeds.len() as u64) {
            bail!(
                "--seeds {n}: {} was begun with {}",
                path.display(),
                note.seeds.len()
            );
        }
        check_same(given.as_ref(), &experiment, path)?;
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
    if args.trace && !path.join("trace.jsonl").is_file() {
        bail!(
            "--trace cannot be added to the run in {}: start a new one with --out",
            path.display()
        );
    }
    let experiment = manifest.experiment(path)?;
    check_same(given.as_ref(), &experiment, path)?;
    Ok(vec![single(
        Named {
            name: manifest.name,
            experiment,
        },
        path.into(),
    )])
}

/// Whether there is anything in a directory but what a process that was killed at once leaves.
fn has_begun(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(entries) => entries
            .flatten()
            .any(|e| e.file_name() != "seeds.json.partial"),
        Err(_) => path.exists(),
    }
}

/// A run is only gone on with by the experiment that it began with.
fn check_same(given: Option<&Named>, begun: &Experiment, path: &Path) -> Result<()> {
    let Some(given) = given.filter(|g| g.experiment != *begun) else {
        return Ok(());
    };
    let (given, begun) = (given.experiment.to_toml(), begun.to_toml());
    let difference = given.lines().zip(begun.lines()).find(|(a, b)| a != b);
    let difference = difference.map_or(String::new(), |(a, b)| {
        format!(" (`{a}` is given, `{b}` was begun with)")
    });
    bail!(
        "{} is a run of another experiment{difference}: resume it without naming one, or choose another --out",
        path.display()
    )
}

/// `runs/NAME`, or with a number behind it if that is taken.
fn free_path(name: &str) -> PathBuf {
    let taken = |path: &PathBuf| path.exists();
    let numbered = |n: u32| {
        Path::new("runs").join(if n == 1 {
            name.into()
        } else {
            format!("{name}-{n}")
        })
    };
    (1..)
        .map(numbered)
        .find(|p| !taken(p))
        .unwrap_or_else(|| numbered(1))
}

fn train(plan: &Plan, options: &Options) -> Result<Finished> {
    let experiment = &plan.named.experiment;
    let dataset = load::dataset(experiment, &options.data)?;
    let mut task = Task::new(experiment, &dataset)?;
    task.architecture = task.architecture.with_level(options.level);
    if experiment.time.compute == Compute::Measured {
        task.stopwatch = Some(stopwatch);
    }
    let (mut directory, mut state) = if plan.resume && has_begun(&plan.path) {
        RunDirectory::resume(&plan.path, &task)?
    } else {
        if plan.resume {
            // An empty directory of a process that was killed at once is not in the way.
            let _ = std::fs::remove_dir(&plan.path);
        }
        check_memory(&task)?;
        let state = State::initial(&task);
        let directory =
            RunDirectory::create(&plan.path, &plan.named.name, &task, &state, options.trace)?;
        (directory, state)
    };
    let (before, started) = (directory.manifest.timing.seconds, Instant::now());
    let spent = || before + started.elapsed().as_secs_f64();
    let data_dir = options.data.as_option();
    let resume_command = format!(
        "selvedge train --resume {}{data_dir}",
        plan.resume_by.display()
    );
    let advice = || format!("training stopped; go on with `{resume_command}` once that is mended");
    let ending =
        follow(&task, &mut state, &mut directory, &plan.label, &spent).with_context(advice)?;
    if let Ending::Diverged { .. } = ending {
        // The checkpoint stays at the last good state.
    } else {
        directory.save(&state, spent()).with_context(advice)?;
    }
    directory
        .finish(&task, &state, &ending, spent())
        .with_context(advice)?;
    let (last, chosen) = evaluations(&plan.path, state.progress.best.map(|b| b.t))?;
    let next = match ending {
        Ending::Interrupted => resume_command,
        _ => format!("selvedge evaluate {}{data_dir}", plan.path.display()),
    };
    Ok(Finished {
        next,
        path: plan.path.clone(),
        manifest: directory.manifest,
        ending,
        state,
        last,
        chosen,
    })
}

/// Refuses a model that this machine has no memory for, where it says how much it has.
fn check_memory(task: &Task<'_>) -> Result<()> {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else {
        return Ok(());
    };
    let available = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u128>().ok())
        .map(|kilobytes| kilobytes * 1024);
    let needed = 4 * task.numbers();
    match available {
        Some(available) if needed > available => bail!(
            "this run needs about {} for its models, but {} of memory are free: choose smaller layers, fewer groups or a lower participation",
            bytes(needed as f64),
            bytes(available as f64)
        ),
        _ => Ok(()),
    }
}

/// Trains while noting and showing what happens.
fn follow(
    task: &Task<'_>,
    state: &mut State,
    directory: &mut RunDirectory,
    label: &str,
    spent: &dyn Fn() -> f64,
) -> Result<Ending> {
    let mut progress = Progress::new(label, state.progress.t, task.experiment.train.iterations);
    let mut saved = Instant::now();
    let mut told = false;
    let result = run::train(task, state, |interval| {
        directory.record(task, &interval)?;
        progress.update(&interval);
        if INTERRUPTED.load(Ordering::SeqCst) {
            if !told {
                told = true;
                progress.say("Ctrl-C: saving …");
            }
            return Ok(ControlFlow::Break(()));
        }
        if saved.elapsed() >= SAVE_EVERY {
            directory.save(interval.state, spent())?;
            saved = Instant::now();
        }
        Ok::<_, anyhow::Error>(ControlFlow::Continue(()))
    });
    progress.close();
    result
}

/// The last evaluation of a run, and the one at `best`.
fn evaluations(run: &Path, best: Option<u64>) -> Result<(Option<Evaluation>, Option<Evaluation>)> {
    let path = run.join("metrics.jsonl");
    let (mut last, mut chosen) = (None, None);
    for (i, line) in read_text(&path)?.lines().enumerate() {
        let evaluation: Evaluation = serde_json::from_str(line)
            .with_context(|| format!("{}, line {} is damaged", path.display(), i + 1))?;
        if best == Some(evaluation.t) {
            chosen = Some(evaluation.clone());
        }
        last = Some(evaluation);
    }
    Ok((last, chosen))
}

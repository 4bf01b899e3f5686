//! A coverage-guided fuzzer for Selvedge's parsers of outside bytes. `tools/fuzz` builds and runs it.
//!
//! ```text
//! supervise ──► one process for each target ──► engine ──► mutate, execute, coverage
//!     ▲                     │
//!     └── failures ◄────────┘  also those that end the process: overflowing stacks, absurd memory, hangs
//! ```

mod allocator;
mod coverage;
mod engine;
mod execute;
mod failures;
mod mutate;
#[cfg(test)]
mod smoke;
mod supervise;

use engine::Budget;
use failures::Current;
use selvedge_data::fuzz::{TARGETS, Target};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

const USAGE: &str = "\
usage: tools/fuzz [TARGET…] [options]

Fuzzes the targets, or all of them. Exit code 1 if one failed.

  --executions N   executions of each target (200000); the same ones for the same seed
  --seconds S      rather for so long, each
  --seed N         where chance begins (1)
  --jobs N         targets at a time, 1 or 2 (1)
  --replay FILE    run the target on this input only, and show its panic
  --list           the names of the targets
";

/// What to do.
struct Options {
    targets: Vec<&'static Target>,
    budget: Budget,
    seed: u64,
    jobs: usize,
    replay: Option<PathBuf>,
    list: bool,
    help: bool,
    /// Given to the processes that fuzz: where to write what is being executed.
    current: Option<PathBuf>,
}

fn main() -> ExitCode {
    match Options::read(std::env::args().skip(1)).and_then(run) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(options: Options) -> Result<ExitCode, String> {
    if options.help {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    if options.list {
        TARGETS
            .iter()
            .for_each(|target| println!("{}", target.name));
        return Ok(ExitCode::SUCCESS);
    }
    match (&options.replay, &options.current, &options.targets[..]) {
        (Some(file), _, [target]) => replay(target, file),
        (Some(_), ..) => Err("--replay needs the name of one target".into()),
        (None, Some(current), [target]) => {
            let current = Current::create(current).map_err(|e| e.to_string())?;
            // On a thread, whose stack is as small as that of the threads which read data in the program.
            let report = std::thread::scope(|scope| {
                let work = || engine::fuzz(target, options.seed, options.budget, current);
                scope.spawn(work).join()
            });
            let report = report.map_err(|_| "the fuzzer panicked".to_owned())?;
            let report = report.map_err(|e| e.to_string())?;
            supervise::print_report(&report);
            Ok(ExitCode::SUCCESS)
        }
        (None, ..) => supervise::fuzz_all(&options).map_err(|e| e.to_string()),
    }
}

fn replay(target: &Target, file: &PathBuf) -> Result<ExitCode, String> {
    let input = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    execute::watch();
    match execute::execute(target, &input) {
        Ok(spent) => {
            println!(
                "{}: nothing is wrong with it; {} bytes held, {:?}",
                target.name, spent.memory, spent.time
            );
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            println!("{}: {}", target.name, failure.what);
            Ok(ExitCode::FAILURE)
        }
    }
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Options {
            targets: Vec::new(),
            budget: Budget::Executions(200_000),
            seed: 1,
            jobs: 1,
            replay: None,
            list: false,
            help: false,
            current: None,
        };
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| format!("{word} needs a value\n\n{USAGE}"))
            };
            match word.as_str() {
                "--executions" => options.budget = Budget::Executions(number(&word, &value()?)?),
                "--seconds" => {
                    let seconds = number(&word, &value()?)?;
                    options.budget = Budget::Time(Duration::from_secs(seconds));
                }
                "--seed" => options.seed = number(&word, &value()?)?,
                "--jobs" => options.jobs = number(&word, &value()?)?.clamp(1, 2) as usize,
                "--replay" => options.replay = Some(value()?.into()),
                "--current" => options.current = Some(value()?.into()),
                "--list" => options.list = true,
                "--help" | "-h" => options.help = true,
                name => {
                    let target = TARGETS.iter().find(|target| target.name == name);
                    let target = target.ok_or_else(|| format!("no target {name}\n\n{USAGE}"))?;
                    options.targets.push(target);
                }
            }
        }
        if options.targets.is_empty() {
            options.targets = TARGETS.iter().collect();
        }
        Ok(options)
    }
}

fn number(option: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{option} {text}: expected a whole number"))
}

//! One process for each target: what ends the process ends the fuzzing of one target, and is a failure like others.

use crate::Options;
use crate::engine::{Budget, Report};
use crate::failures::{Current, save};
use selvedge_data::fuzz::Target;
use std::io;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fuzzes the targets, a few at a time, and ends with a table of them.
pub(crate) fn fuzz_all(options: &Options) -> io::Result<ExitCode> {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(vec![Report::default(); options.targets.len()]);
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(target) = options.targets.get(number) else {
                return Ok(());
            };
            let report = fuzz_one(target, options)?;
            eprintln!("{}", row(target.name, &report));
            if let Ok(mut reports) = reports.lock() {
                reports[number] = report;
            }
        }
    };
    eprintln!("{}", heading());
    let results: Vec<io::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .map(|result| result.unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
            .collect()
    });
    results.into_iter().collect::<io::Result<()>>()?;
    let reports = reports.into_inner().unwrap_or_default();
    println!("{}", heading());
    let mut total = Report::default();
    for (target, report) in options.targets.iter().zip(&reports) {
        println!("{}", row(target.name, report));
        total.executions += report.executions;
        total.seconds += report.seconds;
        total.corpus += report.corpus;
        total.edges = total.edges.max(report.edges);
        total.failures += report.failures;
    }
    println!("{}", row("total (edges: most)", &total));
    Ok(ExitCode::from(u8::from(total.failures > 0)))
}

fn fuzz_one(target: &Target, options: &Options) -> io::Result<Report> {
    let current = std::env::temp_dir().join(format!(
        "selvedge-fuzz-{}-{}",
        std::process::id(),
        target.name
    ));
    let (option, amount) = match options.budget {
        Budget::Executions(executions) => ("--executions", executions),
        Budget::Time(time) => ("--seconds", time.as_secs()),
    };
    let start = std::time::Instant::now();
    let ended = Command::new(std::env::current_exe()?)
        .arg(target.name)
        .args([option, &amount.to_string()])
        .args(["--seed", &options.seed.to_string()])
        .arg("--current")
        .arg(&current)
        .stdout(Stdio::piped())
        .spawn()?
        .wait_with_output()?;
    let report = match ended.status.success() {
        true => parse_report(&String::from_utf8_lossy(&ended.stdout))
            .ok_or_else(|| io::Error::other(format!("{}: no report", target.name)))?,
        false => {
            let Some((executions, input)) = Current::left_behind(&current) else {
                return Err(io::Error::other(format!(
                    "{} ended with {} before its first execution",
                    target.name, ended.status
                )));
            };
            save(target.name, &format!("ended with {}", ended.status), &input)?;
            Report {
                executions,
                seconds: start.elapsed().as_secs_f64(),
                failures: 1,
                ..Report::default()
            }
        }
    };
    std::fs::remove_file(&current)?;
    Ok(report)
}

/// What the process of a target says at its end.
pub(crate) fn print_report(report: &Report) {
    println!(
        "{} {} {} {} {}",
        report.executions, report.seconds, report.corpus, report.edges, report.failures
    );
}

fn parse_report(text: &str) -> Option<Report> {
    let mut words = text.split_whitespace();
    Some(Report {
        executions: words.next()?.parse().ok()?,
        seconds: words.next()?.parse().ok()?,
        corpus: words.next()?.parse().ok()?,
        edges: words.next()?.parse().ok()?,
        failures: words.next()?.parse().ok()?,
    })
}

fn heading() -> String {
    format!(
        "{:20} {:>11} {:>9} {:>7} {:>7} {:>8} {:>9}",
        "target", "executions", "a second", "corpus", "edges", "seconds", "failures"
    )
}

fn row(name: &str, report: &Report) -> String {
    let rate = report.executions as f64 / report.seconds.max(1e-9);
    format!(
        "{name:20} {:>11} {rate:>9.0} {:>7} {:>7} {:>8.1} {:>9}",
        report.executions, report.corpus, report.edges, report.seconds, report.failures
    )
}

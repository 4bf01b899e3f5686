//! `selvedge compare` and `selvedge sweep`: variants of one experiment, side by side.

use super::train::{free_path, level, numbered_paths};
use super::{print, print_json};
use crate::Outcome;
use crate::args::{CompareArgs, ComparisonArgs, DataDirectory, MachineArgs, SweepArgs};
use crate::comparison::table::Table;
use crate::comparison::targets::{Target, check_all, has_diverged, or_usual, parse_all};
use crate::comparison::{Options, output, rates, run_all};
use crate::interrupt::catch_interrupts;
use crate::load;
use anyhow::{Result, anyhow, bail};
use selvedge_core::experiment::Algorithm;
use selvedge_data::{SETS, kind_of};
use selvedge_run::comparison::{Comparison, Variant};
use selvedge_run::format::{count, counted, word};
use selvedge_run::runs::{Series, series};
use std::path::{Path, PathBuf};

pub(crate) fn compare(args: &CompareArgs) -> Result<Outcome> {
    let algorithms = algorithms(&args.algorithms)?;
    let variant = |a: &Algorithm| {
        let set = vec![format!("train.algorithm={}", a.name())];
        Variant::new(a.name().into(), set)
    };
    let variants = algorithms.iter().map(variant).collect();
    run(&args.comparison, "compare", variants)
}

/// The algorithms of a list; `paper` and `all` stand for several.
fn algorithms(names: &[String]) -> Result<Vec<Algorithm>> {
    let mut found: Vec<Algorithm> = Vec::new();
    for name in names.iter().map(|name| name.trim()) {
        let named = match name {
            "paper" => Algorithm::PAPER.to_vec(),
            "all" => Algorithm::ALL.to_vec(),
            _ => vec![Algorithm::parse(name).map_err(|right| {
                anyhow!("--algorithms {name}: {right}, or \"paper\" or \"all\"")
            })?],
        };
        for algorithm in named {
            if !found.contains(&algorithm) {
                found.push(algorithm);
            }
        }
    }
    Ok(found)
}

pub(crate) fn sweep(args: &SweepArgs) -> Result<Outcome> {
    let mut changes: Vec<Vec<String>> = vec![Vec::new()];
    let mut keys: Vec<&str> = Vec::new();
    for over in &args.over {
        let (key, values) = over
            .split_once('=')
            .ok_or_else(|| anyhow!("--over {over}: expected KEY=VALUE,VALUE,…"))?;
        let (key, values) = (key.trim(), values_of(values));
        if keys.contains(&key) {
            bail!("--over {key} is given twice: list all its values at once");
        }
        if key == "seed" {
            bail!("--over seed: every variant has the same seeds; --seeds N sets how many");
        }
        if key == "train.learning_rate" && !args.comparison.learning_rates.is_empty() {
            bail!("--over {key} and --learning-rates both set it: leave one of them out");
        }
        keys.push(key);
        changes = changes
            .iter()
            .flat_map(|before| {
                values.iter().map(move |value| {
                    let mut after = before.clone();
                    after.push(format!("{key}={value}"));
                    after
                })
            })
            .collect();
    }
    let last_words: Vec<&str> = keys
        .iter()
        .map(|key| key.rsplit('.').next().unwrap_or(key))
        .collect();
    let variants = changes
        .into_iter()
        .map(|set| {
            let label: Vec<String> = set
                .iter()
                .zip(&last_words)
                .map(|(change, word)| {
                    let value = change.split_once('=').map_or("", |(_, value)| value);
                    format!("{word}={value}")
                })
                .collect();
            Variant::new(label.join(" "), set)
        })
        .collect();
    run(&args.comparison, "sweep", variants)
}

/// `1,5,10`, with lists and texts in one piece: `[1,2],[3,4]`.
fn values_of(text: &str) -> Vec<String> {
    let (mut values, mut depth, mut quoted) = (vec![String::new()], 0_i32, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = values.last_mut() {
            last.push(c);
        }
    }
    values.iter().map(|value| value.trim().to_owned()).collect()
}

fn run(args: &ComparisonArgs, kind: &str, variants: Vec<Variant>) -> Result<Outcome> {
    let targets = parse_all(&args.target)?;
    let grid = grid(&args.learning_rates)?;
    catch_interrupts();
    let named = load::experiment(&args.experiment)?;
    let experiment = load::for_comparison(named.experiment)?;
    if let Some(kind) = kind_of(&experiment.data) {
        check_all(&targets, kind)?;
    }
    let mut comparison = Comparison {
        name: named.name.clone(),
        kind: kind.into(),
        experiment: serde_json::to_value(&experiment)?,
        variants,
        seeds: load::seeds(experiment.seed, args.seeds)?,
        rates: None,
    };
    // What cannot be is said before anything is run.
    comparison.cells(Path::new(""))?;
    let name = format!("{kind}-{}", named.name);
    let folder = folder(args, &name, &comparison, grid.as_deref());
    comparison.check(&folder, grid.as_deref())?;
    output::check(&folder)?;
    let options = options(&args.experiment.data, &args.machine)?;
    let _lock = Comparison::lock(&folder)?;
    if let Some(grid) = grid
        && rates::choose(&mut comparison, (&grid, false), &folder, &options)?.is_none()
    {
        return stopped(&options);
    }
    comparison.write(&folder)?;
    let outcome = run_all(&comparison, &folder, &options)?;
    if let Outcome::Interrupted = outcome {
        return stopped(&options);
    }
    conclude(&comparison, &folder, &targets, args.json)?;
    check_trained(&series(&[folder], |_| {})?)?;
    Ok(outcome)
}

/// The command line as it was given: the same command goes on.
pub(crate) fn resume_command() -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.map(|w| word(&w.to_string_lossy())).collect();
    format!("selvedge {}", words.join(" "))
}

pub(crate) fn stopped(options: &Options) -> Result<Outcome> {
    crate::say(&format!(
        "interrupted and saved; resume with `{}`",
        options.resume_command
    ));
    Ok(Outcome::Interrupted)
}

/// How many runs are made here.
pub(crate) fn options(data: &DataDirectory, machine: &MachineArgs) -> Result<Options> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Options {
        data: data.clone(),
        threads: machine.threads.map_or(available, |n| n as usize),
        level: level(machine.simd.as_deref())?,
        resume_command: resume_command(),
    })
}

/// The learning rates of the grid, if one is given.
pub(crate) fn grid(rates: &[f64]) -> Result<Option<Vec<f64>>> {
    if let Some(rate) = rates.iter().find(|r| !(**r > 0.0 && r.is_finite())) {
        bail!("--learning-rates {rate}: every rate must be above 0");
    }
    let mut grid = rates.to_vec();
    grid.sort_by(f64::total_cmp);
    grid.dedup();
    Ok((!grid.is_empty()).then_some(grid))
}

/// Where it is written: `--out`, or a folder under runs/ that is free or has the same comparison in it.
fn folder(
    args: &ComparisonArgs,
    name: &str,
    comparison: &Comparison,
    grid: Option<&[f64]>,
) -> PathBuf {
    if let Some(path) = &args.out {
        return path.clone();
    }
    let goes_on = |folder: &PathBuf| {
        // What was stopped while it tried learning rates has nothing else yet.
        let there = [folder.clone(), folder.join("tuning")];
        let mut there = there.iter().filter_map(|path| Comparison::read(path).ok()?);
        let is_other = |there: Comparison| {
            there.experiment != comparison.experiment || !comparison.continues(&there)
        };
        !there.next().is_some_and(is_other) && comparison.check(folder, grid).is_ok()
    };
    let mut begun = numbered_paths(name).take_while(|path| path.exists());
    begun.find(goes_on).unwrap_or_else(|| free_path(name))
}

/// A comparison of runs of which none can be used is none.
fn check_trained(series: &[Series]) -> Result<()> {
    let mut runs = series.iter().flat_map(|s| &s.runs);
    match runs.all(has_diverged) {
        true => bail!(
            "every run diverged, so there is nothing to compare: try smaller learning rates, like --set train.learning_rate={}",
            series
                .iter()
                .map(|s| s.first().experiment.train.learning_rate / 4.0)
                .fold(f64::INFINITY, f64::min)
        ),
        false => Ok(()),
    }
}

/// Writes and prints the table, and writes the report.
fn conclude(comparison: &Comparison, folder: &Path, targets: &[Target], json: bool) -> Result<()> {
    let series = series(&[folder.to_owned()], crate::note)?;
    let table = Table::new(&series, &or_usual(targets, &series)?);
    let mut text = String::new();
    if let Some(rates) = &comparison.rates {
        text = rates::table(rates) + "\n";
    }
    text += &table.text();
    let notes = comparison.rates.as_ref().map(rates::sentences);
    let notes = notes.unwrap_or_default();
    let page = crate::report::page(&series, &table, &notes);
    output::write(folder, &text, &table, &page)?;
    if json {
        return print_json(&serde_json::json!({
            "folder": folder.display().to_string(),
            "experiment": comparison.name,
            "seeds": comparison.seeds,
            "rates": comparison.rates,
            "table": table,
        }));
    }
    let base = SETS.from_json(&comparison.experiment)?;
    print(&format!(
        "{} · {} iterations · P {}, Q {} · {}, {}{}\n\n{text}\n",
        comparison.name,
        count(base.train.iterations),
        base.train.global_interval,
        base.train.local_interval,
        counted(comparison.variants.len() as u64, "variant"),
        counted(comparison.seeds.len() as u64, "seed"),
        match comparison.seeds.len() {
            1 => "",
            _ => ", mean ± standard deviation",
        }
    ))?;
    print(&format!(
        "Bytes are per group, every byte counted; a dash marks a target that was not reached.\nFiles   {}\nReport  {}\n",
        folder.display(),
        folder.join("report.html").display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_at_commas_outside_lists_and_texts() {
        assert_eq!(values_of("1,5, 10"), ["1", "5", "10"]);
        assert_eq!(values_of("[1,2],[3,4]"), ["[1,2]", "[3,4]"]);
        assert_eq!(values_of("\"a,b\",c"), ["\"a,b\"", "c"]);
        let layers = "[{ lstm = { hidden = 8 } }],[{ linear = { out = 4 } }, \"relu\"]";
        assert_eq!(values_of(layers).len(), 2);
    }

    #[test]
    fn algorithms_are_named_once_and_in_order() {
        let names = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(|s| (*s).to_owned()).collect();
            let found = algorithms(&list).unwrap();
            found.into_iter().map(Algorithm::name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["jfl", "hsgd", "jfl"]), ["jfl", "hsgd"]);
        assert_eq!(
            names(&["paper"]),
            ["hsgd", "jfl", "tdcd", "c-hsgd", "c-tdcd"]
        );
        assert_eq!(names(&["all"]).len(), 9);
        let error = algorithms(&["jfk".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("did you mean \"jfl\"?"), "{error}");
    }
}

//! `selvedge reproduce`

use super::compare::{options, stopped};
use super::print_either;
use crate::Outcome;
use crate::args::ReproduceArgs;
use crate::interrupt::{catch_interrupts, is_interrupted};
use crate::reproduce::{self, Plan};
use anyhow::{Result, bail};
use std::collections::HashSet;

pub(crate) fn run(args: &ReproduceArgs) -> Result<Outcome> {
    let parts = reproduce::parts(&args.what)?;
    if let Some(interval) = args.intervals.iter().find(|k| **k == 0) {
        bail!("--intervals {interval}: expected P = Q of at least 1");
    }
    let mut intervals = args.intervals.clone();
    let mut seen = HashSet::new();
    intervals.retain(|interval| seen.insert(*interval));
    catch_interrupts();
    let plan = Plan {
        parts,
        sets: reproduce::sets_at_hand(&args.data, &args.directory)?,
        intervals,
        seeds: args.seeds,
        set: args.set.clone(),
        folder: args.out.clone(),
    };
    reproduce::check(&plan.folder)?;
    let options = options(&args.directory, &args.machine)?;
    let Some(runs) = reproduce::reproduce(&plan, &options)? else {
        return stopped(&options);
    };
    let sections = reproduce::sections(&plan, &runs, &options)?;
    if is_interrupted() {
        return stopped(&options);
    }
    let text = reproduce::markdown(&sections);
    reproduce::write(&plan.folder, &text, &sections)?;
    let text = format!("{text}\nFiles   {}\n", plan.folder.display());
    print_either(args.json, &sections, &text)
}

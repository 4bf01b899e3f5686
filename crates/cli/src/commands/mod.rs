//! One module per command.

mod ask;
mod bench;
mod compare;
mod dashboard;
mod data;
mod deploy;
mod evaluate;
pub(crate) mod experiments;
mod export;
mod fetch;
mod kit;
mod predict;
mod report;
mod reproduce;
pub(crate) mod train;
mod tune;

use crate::Outcome;
use crate::args::{Args, Command, DataCommand};
use crate::interrupt::leave_nothing;
use anyhow::Result;
use serde::Serialize;

/// Does what the arguments say.
pub(crate) fn run(args: Args) -> Result<Outcome> {
    leave_nothing()?;
    match args.command {
        Command::Train(args) => train::run(args),
        Command::Tune(args) => tune::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Sweep(args) => compare::sweep(&args),
        Command::Data(DataCommand::Inspect { experiment, json }) => {
            data::inspect(&experiment, json)
        }
        Command::Data(DataCommand::Stats { experiment, out }) => {
            data::stats(&experiment, out.as_deref())
        }
        Command::Data(DataCommand::Split(args)) => data::split(&args),
        Command::Data(DataCommand::Export { experiment, out }) => data::export(&experiment, &out),
        Command::Data(DataCommand::Fetch(args)) => fetch::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Dashboard(args) => dashboard::run(&args),
        Command::Experiments(args) => experiments::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Enrol(args) => deploy::run_enrol(&args),
        Command::Node(args) => deploy::run_node(&args),
        Command::Ask(args) => ask::run(&args),
        Command::Up(args) => deploy::run_up(&args),
        Command::Provision(args) => kit::provision(&args),
        Command::Kit(command) => kit::run(&command),
        Command::Doctor(args) => kit::doctor(&args),
        Command::Status(args) => deploy::run_status(&args),
        Command::Reference(args) => crate::reference::run(&args),
    }
}

/// Prints to the standard output; a reader that has gone away is reported as what it is. Names come from files of
/// others, so what would steer a terminal is not let through.
fn print(text: &str) -> Result<()> {
    use std::io::Write;
    let visible = |c: char| match c.is_control() && c != '\n' && c != '\t' {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    };
    let text: String = text.chars().map(visible).collect();
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(std::io::stdout().flush()?)
}

/// Prints one JSON value. For programs or for people, as asked for.
fn print_either(json: bool, value: &impl Serialize, text: &str) -> Result<Outcome> {
    match json {
        true => print_json(&serde_json::to_value(value)?)?,
        false => print(text)?,
    }
    Ok(Outcome::Done)
}

fn print_json(value: &serde_json::Value) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

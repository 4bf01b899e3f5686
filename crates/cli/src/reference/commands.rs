//! Every command, its arguments and its examples.

use super::NOTE;
use clap::{Arg, ArgAction, Command};
use std::fmt::Write;

/// The page.
pub(super) fn page(mut root: Command) -> String {
    root.build();
    let mut commands = Vec::new();
    collect(&root, "", &mut commands);
    let mut out = format!("# Commands\n\n{NOTE}\n\n");
    for (name, command) in &commands {
        let about = about(command);
        let _ = writeln!(out, "- [`{name}`](#{}): {about}", anchor(name));
    }
    out += "\nEvery command has `--help`, and `selvedge --version` prints the version. Exit codes: 0 done, 2 something was wrong (the \
        message says what, and what would be right), 130 stopped by Ctrl-C after saving.\n";
    if let Some(examples) = root.get_after_help() {
        let _ = write!(out, "\n```text\n{examples}\n```\n");
    }
    for (name, command) in &commands {
        out += &section(name, command);
    }
    out
}

/// All commands that do something, by their full names.
fn collect<'a>(command: &'a Command, above: &str, found: &mut Vec<(String, &'a Command)>) {
    let name = format!("{above} {}", command.get_name());
    let name = name.trim_start();
    let children = || command.get_subcommands().filter(|c| is_shown(c));
    if children().next().is_none() {
        found.push((name.to_owned(), command));
    }
    children().for_each(|child| collect(child, name, found));
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// What a heading is linked by.
fn anchor(heading: &str) -> String {
    heading.replace(' ', "-")
}

fn about(command: &Command) -> String {
    let text = command.get_long_about().or_else(|| command.get_about());
    on_one_line(&text.map(ToString::to_string).unwrap_or_default())
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn section(name: &str, command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let mut out = format!(
        "\n## {name}\n\n{}\n\n```text\n{usage}\n```\n",
        about(command)
    );
    let arguments: Vec<String> = command
        .get_arguments()
        .filter(|a| !a.is_hide_set() && !matches!(a.get_id().as_str(), "help" | "version"))
        .map(|a| argument(command, a))
        .collect();
    if !arguments.is_empty() {
        let _ = write!(out, "\n{}", arguments.concat());
    }
    if let Some(examples) = command.get_after_help() {
        let _ = write!(out, "\n```text\n{examples}\n```\n");
    }
    out
}

/// One line of the list of arguments.
fn argument(command: &Command, argument: &Arg) -> String {
    let help = argument
        .get_long_help()
        .or_else(|| argument.get_help())
        .map(|help| on_one_line(&help.to_string()));
    let mut line = format!("- `{}`: {}", name(argument), help.unwrap_or_default());
    let mut add = |label: &str, text: String| line += &format!(". {label}{text}");
    let takes_values = argument.get_action().takes_values();
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if takes_values && !defaults.is_empty() {
        add("Default: ", defaults.join(", "));
    }
    let choices: Vec<String> = match takes_values {
        true => argument.get_possible_values().iter().map(choice).collect(),
        false => Vec::new(),
    };
    if !choices.is_empty() {
        add("One of: ", choices.join(", "));
    }
    if let Some(variable) = argument.get_env() {
        add("Environment: ", format!("`{}`", variable.to_string_lossy()));
    }
    let others: Vec<String> = command
        .get_arg_conflicts_with(argument)
        .into_iter()
        .map(|other| format!("`{}`", name(other)))
        .collect();
    if !others.is_empty() {
        add("Not with: ", others.join(", "));
    }
    line + ".\n"
}

fn choice(value: &clap::builder::PossibleValue) -> String {
    match value.get_help() {
        Some(help) => format!(
            "`{}` ({})",
            value.get_name(),
            on_one_line(&help.to_string())
        ),
        None => format!("`{}`", value.get_name()),
    }
}

/// As one types it, with what stands for its value.
fn name(argument: &Arg) -> String {
    let values: Vec<String> = match argument.get_value_names() {
        Some(names) if argument.get_action().takes_values() => {
            names.iter().map(|name| format!("<{name}>")).collect()
        }
        _ => Vec::new(),
    };
    let values = values.join(" ");
    let many = matches!(argument.get_action(), ArgAction::Append);
    match argument.get_long() {
        Some(long) if values.is_empty() => format!("--{long}"),
        Some(long) => format!("--{long} {values}"),
        None if many => format!("{values}…"),
        None => values,
    }
}

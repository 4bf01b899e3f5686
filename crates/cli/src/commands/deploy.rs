//! `selvedge enrol`, `selvedge node`, `selvedge up` and `selvedge status`

use super::print_either;
use crate::Outcome;
use crate::args::{EnrolArgs, NodeArgs, StatusArgs, UpArgs};
use crate::deploy::answer::Answering;
use crate::deploy::kit::Deployment;
use crate::deploy::kit::local::Wishes;
use crate::deploy::{enrol, node, status, up};
use crate::interrupt::{catch_interrupts, interrupted_flag, is_terminated, tell_termination_apart};
use crate::load;
use anyhow::{Context, Result, anyhow, bail};
use selvedge_core::experiment::Experiment;
use selvedge_net::deadlines::Deadlines;
use std::net::SocketAddr;

pub(crate) fn run_node(args: &NodeArgs) -> Result<Outcome> {
    catch_interrupts();
    tell_termination_apart();
    let stop = interrupted_flag();
    let answering = Answering {
        stays: args.answer.answer,
        tables: &args.answer.table,
    };
    let wishes = node::Wishes {
        format: args.log,
        forget: args.forget,
        pardon: &args.pardon,
        answering,
    };
    let ended = node::run(args.kind, &args.config, wishes, stop)?;
    Ok(match ended {
        selvedge_net::drive::Outcome::Over => Outcome::Done,
        // What it was told is kept: to a service manager, a node that it stops has not failed.
        selvedge_net::drive::Outcome::Stopped if is_terminated() => Outcome::Done,
        selvedge_net::drive::Outcome::Stopped => Outcome::Interrupted,
    })
}

pub(crate) fn run_enrol(args: &EnrolArgs) -> Result<Outcome> {
    catch_interrupts();
    let wishes = enrol::Wishes {
        kind: args.kind,
        tables: &args.table,
        again: args.again,
        format: args.log,
    };
    let Some(summary) = enrol::run(&args.config, &wishes, interrupted_flag())? else {
        return Ok(Outcome::Interrupted);
    };
    print_either(args.json, &summary, &enrol::text(&summary))
}

pub(crate) fn run_up(args: &UpArgs) -> Result<Outcome> {
    catch_interrupts();
    let (folder, deployment, _claim) = match &args.resume {
        Some(folder) => {
            if args.experiment.experiment.is_some() || !args.experiment.set.is_empty() {
                bail!("--resume continues what was started: leave out the experiment and --set");
            }
            if args.deadline.is_some() || args.group_deadline.is_some() {
                bail!("--resume keeps the deadlines in each party's node.toml: change them there");
            }
            (folder.clone(), Deployment::read(folder)?, None)
        }
        None => {
            let named = load::experiment(&args.experiment)?;
            load::check_directory_of(&named.experiment, &args.experiment.data)?;
            let (folder, claim) = match &args.out {
                Some(folder) => (folder.clone(), None),
                None => {
                    let name = format!("{}-{}-up", named.name, named.experiment.seed);
                    let claim = super::train::claim(&name)?;
                    (claim.path().to_owned(), Some(claim))
                }
            };
            let wishes = Wishes {
                name: &named.name,
                experiment: &named.experiment,
                data_dir: args.experiment.data.data_dir.as_deref(),
                gateways: args.gateways as usize,
                cloud_servers: args.cloud_servers,
                deadlines: deadlines(args, &named.experiment)?,
                durable: !args.no_sync,
                links: links(&args.link_through)?,
                threads: args.threads as usize,
            };
            let deployment = up::prepare(&folder, &wishes)?;
            (folder, deployment, claim)
        }
    };
    let ended = up::run(&folder, &deployment, args.answer)?;
    print_either(args.json, &ended.json(), &ended.text())?;
    if let Some(("diverged", t)) = ended.ending() {
        bail!(
            "training diverged: at iteration {t} the loss or a weight is no longer a finite number. Try a smaller train.learning_rate. The last good model is in {}",
            folder.join("run/model.safetensors").display()
        );
    }
    Ok(match ended.interrupted() {
        true => Outcome::Interrupted,
        false => Outcome::Done,
    })
}

fn deadlines(args: &UpArgs, experiment: &Experiment) -> Result<Deadlines> {
    // A group that waits for devices in each phase of each of its intervals is not late itself.
    let train = &experiment.train;
    let waits = 2 * train.global_interval / train.local_interval + 1;
    let of_groups = args.deadline.map(|seconds| seconds * waits as f64);
    let deadlines = Deadlines {
        exchange: args.deadline,
        upload: args.deadline,
        global: args.group_deadline.or(of_groups),
        evaluation: args.group_deadline.or(of_groups),
        device_quorum: args.quorum,
        group_quorum: args.quorum,
    };
    deadlines.check().map_err(|problem| anyhow!(problem))?;
    Ok(deadlines)
}

fn links(given: &[String]) -> Result<Vec<(usize, SocketAddr)>> {
    let parse = |text: &String| -> Option<(usize, SocketAddr)> {
        let (group, address) = text.split_once('=')?;
        Some((group.parse().ok()?, address.parse().ok()?))
    };
    given
        .iter()
        .map(|text| {
            parse(text).with_context(|| {
                format!("--link-through {text}: expected GROUP=ADDRESS, like 0=127.0.0.1:7422")
            })
        })
        .collect()
}

pub(crate) fn run_status(args: &StatusArgs) -> Result<Outcome> {
    let snapshot = status::ask_node(status::address(&args.whom)?)?;
    print_either(args.json, &snapshot, &status::text(&snapshot))
}

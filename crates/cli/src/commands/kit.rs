//! `selvedge provision`, `selvedge kit` and `selvedge doctor`

use super::{print, print_either};
use crate::Outcome;
use crate::args::{AddArgs, DoctorArgs, KitArgs, KitCommand, ProvisionArgs};
use crate::deploy::config::check_deployable;
use crate::deploy::consortium::{Consortium, Hospital};
use crate::deploy::doctor;
use crate::deploy::kit::{Changed, Deployment, Stock};
use crate::load;
use anyhow::{Context, Result, bail};
use selvedge_core::experiment::DefenceSettings;
use selvedge_data::enrol;
use selvedge_data::{PartyShard, read_party};
use selvedge_net::credentials::Identity;
use selvedge_run::format::{counted, table};
use selvedge_run::outputs::{Kind, Output};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

pub(crate) fn provision(args: &ProvisionArgs) -> Result<Outcome> {
    let consortium = Consortium::read(&args.consortium)?;
    let path = &consortium.experiment.clone();
    let mut experiment = load::experiment_file(path, args.shards.as_deref())?;
    let has_own = load::says(path, "defence", None)?;
    if !has_own {
        experiment.defence = DefenceSettings::of_a_consortium();
    }
    check_deployable(&experiment)?;
    let hospitals = consortium.hospitals.len();
    let groups = match &args.shards {
        Some(shards) => read_party(shards, PartyShard::Coordinator)?
            .dataset
            .groups
            .len(),
        None => experiment.data.groups,
    };
    if groups != hospitals {
        let of = match &args.shards {
            Some(shards) => format!(
                "{} has {}",
                shards.display(),
                counted(groups as u64, "group")
            ),
            None => format!("{} has data.groups = {groups}", path.display()),
        };
        bail!(
            "{of}, but {} has {}: expected the same number, since each hospital is a group",
            args.consortium.display(),
            counted(hospitals as u64, "hospital")
        );
    }
    if args.shards.is_none() && experiment.data.set != "table" {
        bail!(
            "data.set = {:?}: expected \"table\", since parties enrol with their own tables; or give each party its shard of a data set with --shards, cut by `selvedge data split`",
            experiment.data.set
        );
    }
    if args.shards.is_none() {
        // What enrolment would refuse is better known now.
        enrol::terms(&experiment.data, experiment.seed)
            .with_context(|| format!("{} is invalid", path.display()))?;
        let names_a_tower = load::says(path, "model", Some("hospital"))?
            || load::says(path, "model", Some("device"))?;
        if !experiment.data.table.time.is_empty() && !names_a_tower {
            bail!(
                "{}: data.table.time = {:?}, and no [model]: nobody sees both tables, and so which side has the time series; name the layers of both, like [model] hospital = [{{ linear = {{ out = 16 }} }}, \"tanh\"] and device = [{{ lstm = {{ hidden = 16 }} }}]",
                path.display(),
                experiment.data.table.time
            );
        }
    }
    let stock = Stock {
        shards: args.shards.as_deref(),
        run: "run",
    };
    let kit = Deployment::create(&args.out, consortium, &experiment, &stock)?;
    let folders: Vec<String> = kit
        .servers()
        .into_iter()
        .map(|server| server.folder)
        .chain(kit.nodes().into_iter().map(|node| node.folder))
        .collect();
    let out = args.out.display();
    let mut text = format!("Kit     {out}, with a folder and a README to hand over to each:\n");
    for folder in &folders {
        text += &format!("        {out}/{folder}\n");
    }
    if !has_own {
        text += &format!(
            "Defence {} has no [defence], so the usual ones of a consortium are in experiment.toml (docs/defences.md)\n",
            path.display()
        );
    }
    text += &format!(
        "Secret  {out}/authority stays with you: it signs server certificates\nNext    hand over the folders; then run `selvedge doctor` at each, as its README says\n"
    );
    let value = json!({ "kit": out.to_string(), "folders": folders });
    print_either(args.json, &value, &text)
}

pub(crate) fn run(command: &KitCommand) -> Result<Outcome> {
    match command {
        KitCommand::List(args) => list(args),
        KitCommand::Add(args) => add(args),
        KitCommand::Rotate(args) => {
            let (mut kit, _lock) = Deployment::lock(&args.kit.kit)?;
            let changed = kit.rotate(&args.kit.kit, &args.who, args.public.as_deref())?;
            tell(&args.kit, &format!("{} has a new key", args.who), &changed)
        }
        KitCommand::Revoke(args) => {
            let (mut kit, _lock) = Deployment::lock(&args.kit.kit)?;
            let changed = kit.revoke(&args.kit.kit, &args.who)?;
            tell(&args.kit, &format!("{} is revoked", args.who), &changed)?;
            if !args.kit.json && kit.knows_pseudonyms(&args.who) {
                print(
                    "It still has the pseudonym key: before the next enrolment, give the others a new one with `selvedge kit pseudonyms`\n",
                )?;
            }
            Ok(Outcome::Done)
        }
        KitCommand::Pseudonyms(args) => {
            let (kit, _lock) = Deployment::lock(&args.kit.kit)?;
            let changed = kit.renew_pseudonyms(&args.kit.kit, &args.who)?;
            let what = format!("{} has a new pseudonym key; enrol again with it", args.who);
            tell(&args.kit, &what, &changed)
        }
        KitCommand::Key(args) => {
            let output = Output {
                option: "",
                path: &args.file,
                kind: Kind::New("a key"),
            };
            output.check(&[])?;
            let identity = Identity::generate()?;
            output.write_with(|file| {
                file.set_permissions(Permissions::from_mode(0o600))?;
                file.write_all(identity.seed.as_bytes())
            })?;
            print(&format!("{}\n", identity.public))?;
            Ok(Outcome::Done)
        }
    }
}

fn list(args: &KitArgs) -> Result<Outcome> {
    let kit = Deployment::read(&args.kit)?;
    let all = kit.list();
    let mut rows = vec![vec!["who".to_owned(), "key".to_owned()]];
    for (name, key) in &all {
        rows.push(vec![name.clone(), key.unwrap_or("revoked").to_owned()]);
    }
    let keys: BTreeMap<_, _> = all.into_iter().collect();
    let value = json!({ "name": kit.consortium.name, "keys": keys });
    print_either(args.json, &value, &table(&rows))
}

fn add(args: &AddArgs) -> Result<Outcome> {
    let (mut kit, _lock) = Deployment::lock(&args.kit.kit)?;
    let hospital = Hospital {
        name: args.name.clone(),
        host: args.host.clone(),
        listen: args.listen,
        client: args.client,
        monitor: args.monitor,
        gateways: args.gateways,
        http: args.http,
        dial: Vec::new(),
    };
    let changed = kit.add(&args.kit.kit, hospital)?;
    tell(&args.kit, &format!("{} is added", args.name), &changed)
}

fn tell(args: &KitArgs, what: &str, changed: &Changed) -> Result<Outcome> {
    let kit = args.kit.display();
    let mut text = format!("{what}\n");
    for file in &changed.files {
        text += &format!("Hand over  {kit}/{file}\n");
    }
    for server in &changed.restart {
        text += &format!("Restart    {server}, once it has its new files\n");
    }
    print_either(args.json, changed, &text)
}

pub(crate) fn doctor(args: &DoctorArgs) -> Result<Outcome> {
    let findings = doctor::run(args.kind, &args.config);
    let wrong = findings.iter().filter(|finding| !finding.fine).count();
    let line = |finding: &doctor::Finding| {
        let word = if finding.fine { "ok  " } else { "FAIL" };
        format!("{word}  {:<10} {}\n", finding.what, finding.text)
    };
    let text: String = findings.iter().map(line).collect();
    let value = json!({ "fine": wrong == 0, "findings": findings });
    print_either(args.json, &value, &text)?;
    match wrong {
        0 => Ok(Outcome::Done),
        1 => bail!("one check failed: see above"),
        _ => bail!("{wrong} checks failed: see above"),
    }
}

//! `selvedge data fetch`

mod catalogue;
mod checksum;
mod download;
mod http;
mod status;

use super::{print, print_json};
use crate::Outcome;
use crate::args::FetchArgs;
use crate::interrupt::say_when_interrupted;
use anyhow::{Context, Result, bail};
use catalogue::{Catalogue, Set};
use checksum::Checksum;
use download::Download;
use http::Client;
use selvedge_run::files::make_folder;
use selvedge_run::format::bytes;
use serde_json::{Value, json};
use status::Status;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where sets go if nobody says where.
const USUAL_FOLDER: &str = "data";

pub(crate) fn run(args: &FetchArgs) -> Result<Outcome> {
    let catalogue = match &args.catalogue {
        Some(path) => Catalogue::read(path)?,
        None => Catalogue::own()?,
    };
    if let Some(mirror) = &args.mirror {
        catalogue::check_address(mirror).context("--mirror")?;
    }
    let given = args.data.data_dir.as_deref();
    let given = given.filter(|path| !path.as_os_str().is_empty());
    let fetch = Fetch {
        args,
        data_dir: given.unwrap_or(Path::new(USUAL_FOLDER)),
    };
    let set = match &args.set {
        Some(name) => catalogue.find(name)?,
        None => {
            fetch.list(&catalogue)?;
            return Ok(Outcome::Done);
        }
    };
    match args.json {
        true => print_json(&fetch.as_json(set)?)?,
        false => print(&fetch.describe(set)?)?,
    }
    if !args.show {
        match set.files.is_empty() {
            true => fetch.by_hand(set)?,
            false => fetch.download(set)?,
        }
    }
    Ok(Outcome::Done)
}

/// What was asked for.
struct Fetch<'a> {
    args: &'a FetchArgs,
    data_dir: &'a Path,
}

impl Fetch<'_> {
    fn mirror(&self) -> Option<&str> {
        self.args.mirror.as_deref()
    }

    fn targets(&self, set: &Set) -> Vec<PathBuf> {
        let folder = set.folder(self.data_dir);
        set.files
            .iter()
            .map(|file| folder.join(&file.name))
            .collect()
    }

    fn list(&self, catalogue: &Catalogue) -> Result<()> {
        if self.args.json {
            let sets: Result<Vec<Value>> =
                catalogue.sets.iter().map(|set| self.as_json(set)).collect();
            return print_json(&Value::Array(sets?));
        }
        let there = |set: &Set| status::at_a_glance(set, self.data_dir);
        let size = |set: &Set| match (set.files.is_empty(), set.size()) {
            (true, _) => "by hand".into(),
            (false, Some(size)) => size,
            (false, None) => "?".into(),
        };
        let mut rows = vec![["set", "size", "present", "licence"].map(str::to_owned)];
        rows.extend(
            catalogue
                .sets
                .iter()
                .map(|set| [set.name.clone(), size(set), there(set), set.licence.clone()]),
        );
        let width = |column: usize| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths = [0, 1, 2].map(width);
        let mut text = String::new();
        for [name, size, there, licence] in &rows {
            text += &format!(
                "{name:<0$}  {size:<1$}  {there:<2$}  {licence}\n",
                widths[0], widths[1], widths[2]
            );
        }
        text += &format!(
            "\n`selvedge data fetch SET` downloads one to {}/, `--show` only shows where it comes from\n",
            self.data_dir.display()
        );
        print(&text)
    }

    fn describe(&self, set: &Set) -> Result<String> {
        let mut text = format!(
            "{}: {}\n  page     {}\n  licence  {}\n",
            set.name, set.title, set.page, set.licence
        );
        if !set.files.is_empty() {
            let size = set.size();
            let size = size.unwrap_or_else(|| "unknown until the download".into());
            text += &format!(
                "  size     {size}\n  to       {}\n",
                set.folder(self.data_dir).display()
            );
        }
        for (file, target) in set.files.iter().zip(self.targets(set)) {
            let size = file
                .bytes
                .map_or(String::new(), |size| format!("{}, ", bytes(size as f64)));
            let checksum = match file.checksum() {
                Some(checksum) => checksum.to_string(),
                None => "no published checksum known".into(),
            };
            text += &format!(
                "  from     {}\n           {size}{checksum}, {}\n",
                file.address(self.mirror()),
                Status::of(file, &target)?
            );
        }
        let steps = match self.args.show || !status::is_there(set, self.data_dir) {
            true => set.steps(self.data_dir),
            false => Vec::new(),
        };
        for (index, step) in steps.iter().enumerate() {
            text += &format!("  step {}   {step}\n", index + 1);
        }
        Ok(text)
    }

    fn as_json(&self, set: &Set) -> Result<Value> {
        let mut files = Vec::new();
        for (file, target) in set.files.iter().zip(self.targets(set)) {
            let checksum = file.checksum();
            files.push(json!({
                "name": file.name,
                "address": file.address(self.mirror()),
                "path": target,
                "bytes": file.bytes,
                "checksum": checksum.map(|sum| json!({ "kind": sum.kind.to_string(), "digits": sum.digits })),
                "status": Status::of(file, &target)?.word(),
            }));
        }
        Ok(json!({
            "set": set.name,
            "title": set.title,
            "page": set.page,
            "licence": set.licence,
            "folder": set.folder(self.data_dir),
            "bytes": set.bytes(),
            "there": status::is_there(set, self.data_dir),
            "files": files,
            "steps": set.steps(self.data_dir),
        }))
    }

    /// A set that a person has to get.
    fn by_hand(&self, set: &Set) -> Result<()> {
        if status::is_there(set, self.data_dir) {
            let folder = set.folder(self.data_dir);
            print(&format!("already there, in {}\n", folder.display()))?;
            return self.say_next(set);
        }
        bail!(
            "{} cannot be downloaded automatically: the steps above say how to get it and where to put it",
            set.name
        )
    }

    fn download(&self, set: &Set) -> Result<()> {
        let folder = set.folder(self.data_dir);
        let targets = self.targets(set);
        let mut wanted = Vec::new();
        // All files are looked at before the first is downloaded: a refusal should not come after an hour.
        for (file, target) in set.files.iter().zip(targets) {
            match Status::of(file, &target)? {
                Status::There => print(&format!("{}: already there\n", target.display()))?,
                Status::Unverified if !self.args.force => {
                    print(&format!(
                        "{}: already there (no checksum to verify it with; --force fetches it again)\n",
                        target.display()
                    ))?;
                }
                Status::Other(problem) if !self.args.force => bail!(
                    "{} exists, but it is a different file: {problem}. Nothing was changed; --force replaces it",
                    target.display()
                ),
                _ => wanted.push((file, target)),
            }
        }
        let new_data_dir = !self.data_dir.exists();
        if !wanted.is_empty() {
            // Every byte that came is in the file already, so that there is nothing left to do but to say so.
            say_when_interrupted(
                "\nstopped; the partial download is kept: run the command again to resume",
            );
            make_folder(&folder)?;
        }
        let client = Client::new(Duration::from_secs_f64(self.args.timeout));
        for (file, target) in wanted {
            let download = Download {
                client: &client,
                file,
                address: file.address(self.mirror()),
                target,
            };
            let found = download.run().inspect_err(|_| {
                // An empty folder would be taken for a set without files.
                let _ = fs::remove_dir(&folder);
                if new_data_dir {
                    let _ = fs::remove_dir(self.data_dir);
                }
            });
            print(&fetched(&download, file.checksum().is_some(), &found?))?;
        }
        self.say_next(set)
    }

    /// What to do with a set that is there.
    fn say_next(&self, set: &Set) -> Result<()> {
        let Some(next) = &set.next else {
            return Ok(());
        };
        let option = match &self.args.data.data_dir {
            Some(_) => self.args.data.as_option(),
            None => format!(" --data-dir {USUAL_FOLDER}"),
        };
        print(&format!("next: selvedge {next}{option}\n"))
    }
}

fn fetched(download: &Download<'_>, known: bool, found: &Checksum) -> String {
    let target = download.target.display();
    match known {
        true => format!("{target}: fetched, {} as expected\n", found.kind),
        false => format!(
            "{target}: fetched; no published checksum known; {} of the download: {}\n",
            found.kind, found.digits
        ),
    }
}

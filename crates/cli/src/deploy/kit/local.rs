//! A kit for this machine alone: free ports of the loopback address, and shards of a set that is here.

use super::{Deployment, Stock, write};
use crate::deploy::consortium::{CloudServer, Consortium, Hospital};
use anyhow::{Context, Result, bail};
use selvedge_core::experiment::Experiment;
use selvedge_data::{PartyShard, cut, read_party};
use selvedge_net::broker::{free_port, free_ports};
use selvedge_net::deadlines::Deadlines;
use selvedge_net::subjects::group_name;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// What a deployment is to be like.
pub(crate) struct Wishes<'a> {
    pub(crate) name: &'a str,
    pub(crate) experiment: &'a Experiment,
    pub(crate) data_dir: Option<&'a Path>,
    /// Gateways of each group.
    pub(crate) gateways: usize,
    /// Servers of the cloud: 1 or 3.
    pub(crate) cloud_servers: usize,
    pub(crate) deadlines: Deadlines,
    /// Whether servers have records on the disk before they acknowledge them.
    pub(crate) durable: bool,
    /// Where some groups' links dial to instead of the hub.
    pub(crate) links: Vec<(usize, SocketAddr)>,
    /// Threads of each node.
    pub(crate) threads: usize,
}

/// Writes all files into a new folder, which appears once it is whole.
pub(crate) fn create(folder: &Path, wishes: &Wishes<'_>) -> Result<Deployment> {
    write::whole(folder, |partial| {
        let Experiment { data, seed, .. } = wishes.experiment;
        let (shards, key) = (partial.join("shards"), write::new_pseudonyms()?);
        let cut = cut(data, *seed, wishes.data_dir, &key, &shards)?;
        cut.notes.iter().for_each(|note| crate::note(note));
        let consortium = consortium(wishes, &shards)?;
        let stock = Stock {
            shards: Some(&shards),
            run: "../run",
        };
        let made = Deployment::create_in(partial, consortium, wishes.experiment, &stock)?;
        fs::remove_dir_all(&shards).context("cannot remove the shards of all parties")?;
        Ok(made)
    })
}

fn consortium(wishes: &Wishes<'_>, shards: &Path) -> Result<Consortium> {
    let groups = read_party(shards, PartyShard::Coordinator)?.dataset.groups;
    let there = groups.len();
    if let Some((group, _)) = wishes.links.iter().find(|(group, _)| *group >= there) {
        bail!(
            "--link-through {group}=…: expected a group from 0 to {}",
            there - 1
        );
    }
    let (host, listen) = ("127.0.0.1".to_owned(), Ipv4Addr::LOCALHOST.into());
    let server = |_| {
        Ok(CloudServer {
            host: host.clone(),
            listen,
            client: free_port()?,
            links: free_port()?,
            cluster: free_port()?,
            monitor: free_port()?,
        })
    };
    let hospital = |(m, group): (usize, &selvedge_core::dataset::Group)| {
        let gateways = wishes.gateways.clamp(1, group.devices()) as u32;
        let dial = wishes.links.iter().filter(|(of, _)| *of == m);
        Ok(Hospital {
            name: group_name(m),
            host: host.clone(),
            listen,
            client: free_port()?,
            monitor: free_port()?,
            gateways,
            http: free_ports(2 + gateways as u16)?,
            dial: dial.map(|(_, at)| at.to_string()).collect(),
        })
    };
    Ok(Consortium {
        name: wishes.name.into(),
        experiment: super::EXPERIMENT.into(),
        http: free_port()?,
        threads: Some(wishes.threads),
        durable: wishes.durable,
        cloud: (0..wishes.cloud_servers)
            .map(server)
            .collect::<Result<_>>()?,
        hospitals: groups
            .iter()
            .enumerate()
            .map(hospital)
            .collect::<Result<_>>()?,
        deadlines: wishes.deadlines,
    })
}

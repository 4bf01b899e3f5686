//! What is written for people and for systemd into each folder.

use crate::deploy::consortium::{Consortium, group_of};
use anyhow::Result;
use selvedge_core::role::Party;
use std::fs;
use std::path::Path;

const NODE: &str = include_str!("../handover/node.md");
const SERVER: &str = include_str!("../handover/server.md");
const NODE_UNIT: &str = include_str!("../handover/node.service");
const SERVER_UNIT: &str = include_str!("../handover/server.service");

fn fill(template: &str, values: &[(&str, &str)]) -> String {
    values
        .iter()
        .fold(template.to_owned(), |text, (key, value)| {
            text.replace(&format!("{{{key}}}"), value)
        })
}

fn unit(consortium: &Consortium, folder: &str) -> String {
    format!(
        "selvedge-{}-{}.service",
        consortium.name,
        folder.replace('/', "-")
    )
}

pub(super) fn node(folder: &Path, c: &Consortium, party: Party, pseudonyms: bool) -> Result<()> {
    let name = c.folder_of(party);
    let (kind, command) = match party {
        Party::Cloud => ("cloud", "cloud"),
        Party::Hospital(_) => ("hospital", "hospital"),
        Party::Edge(_) => ("edge", "edge"),
        Party::Gateway(..) => ("gateway", "devices"),
    };
    let place = group_of(party).map_or(c.name.as_str(), |m| c.hospitals[m].name.as_str());
    let table = match party {
        Party::Hospital(_) => {
            "Put your table next to this file, for example as `labs.csv`, and name it in `node.toml`: `tables = [\"labs.csv\"]`. "
        }
        Party::Gateway(..) => {
            "Put your table next to this file, for example as `vitals.csv`, and name it in `node.toml`: `tables = [\"vitals.csv\"]`. "
        }
        _ => "",
    };
    let enrol = format!(
        "Enrol once, at the same time as all other parties, to match patients and decide who takes part. {table}Then run\n\n    selvedge enrol {command} --config node.toml\n\n"
    );
    let has_data = folder.join("data").is_dir();
    let values = [
        ("party", name.as_str()),
        ("name", &c.name),
        ("kind", kind),
        ("place", place),
        ("command", command),
        ("folder", &format!("{}/{name}", c.name)),
        ("unit", &unit(c, &name)),
        ("http", &c.http_of(party).to_string()),
        (
            "secrets",
            if pseudonyms {
                "`key.nk` and `pseudonyms.key` are secrets."
            } else {
                "`key.nk` is a secret."
            },
        ),
        (
            "pseudonyms",
            if pseudonyms {
                "| `pseudonyms.key` | turns patients' ids into pseudonyms, shared by the hospital and its gateways: a secret |\n"
            } else {
                ""
            },
        ),
        ("enrol", if has_data { "" } else { &enrol }),
    ];
    fs::write(folder.join("README.md"), fill(NODE, &values))?;
    fs::write(folder.join("selvedge.service"), fill(NODE_UNIT, &values))?;
    Ok(())
}

pub(super) fn hub(folder: &Path, c: &Consortium, at: usize) -> Result<()> {
    let server = &c.cloud[at];
    let mut ports = format!(
        "It listens on {}: port {} for the cloud's node, {} for the hospitals' servers",
        server.listen, server.client, server.links
    );
    if c.cloud.len() > 1 {
        ports += &format!(", {} for the other servers of the cloud", server.cluster);
    }
    ports += ". Nobody else needs to reach it.";
    let place = match c.cloud.len() {
        1 => "the cloud".to_owned(),
        all => format!("the cloud ({} of {all})", at + 1),
    };
    self::server(folder, c, (&place, &c.hub_folder(at)), (&ports, false))
}

pub(super) fn site(folder: &Path, c: &Consortium, m: usize) -> Result<()> {
    let hospital = &c.hospitals[m];
    let ports = format!(
        "It listens on {}: port {} for the hospital, edge and gateways. It dials out to {}, and nobody outside the hospital needs to reach it.",
        hospital.listen,
        hospital.client,
        c.dialled_by(hospital).join(", ")
    );
    self::server(
        folder,
        c,
        (&hospital.name, &c.site_folder(m)),
        (&ports, true),
    )
}

fn server(
    folder: &Path,
    c: &Consortium,
    (place, name): (&str, &str),
    (ports, has_link): (&str, bool),
) -> Result<()> {
    let values = [
        ("name", c.name.as_str()),
        ("place", place),
        ("folder", &format!("{}/{name}", c.name)),
        ("unit", &unit(c, name)),
        ("ports", ports),
        (
            "link",
            if has_link {
                " and `link.conf` are each"
            } else {
                " is"
            },
        ),
        (
            "link_file",
            if has_link {
                "| `link.conf` | the key of its link to the cloud: a secret |\n"
            } else {
                ""
            },
        ),
    ];
    fs::write(folder.join("README.md"), fill(SERVER, &values))?;
    fs::write(folder.join("selvedge.service"), fill(SERVER_UNIT, &values))?;
    Ok(())
}

//! Arguments of what makes and checks the folders of a consortium.

use clap::{Args as Arguments, Subcommand};
use std::path::PathBuf;

#[derive(Arguments)]
#[command(after_help = include_str!("help/provision.txt").trim_end())]
pub(crate) struct ProvisionArgs {
    /// The description of the consortium
    pub(crate) consortium: PathBuf,
    /// The folder to write, which must be new
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Give each party its part of these shards, instead of enrolment
    #[arg(long, value_name = "DIR")]
    pub(crate) shards: Option<PathBuf>,
    /// Print what was made as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum KitCommand {
    /// List who has a key, and who was revoked
    List(KitArgs),
    /// Add a hospital, as the last group: another run begins, which all enrol for
    Add(AddArgs),
    /// Give a party or a server a new key; the old one is good for nothing
    Rotate(RotateArgs),
    /// Shut out a party, or with its name a whole hospital
    Revoke(RevokeArgs),
    /// Give a hospital and its gateways a new key of pseudonyms, for the next enrolment
    Pseudonyms(PseudonymsArgs),
    /// Make a key at the party itself; only its public half leaves the machine, for `rotate --public`
    Key(KeyArgs),
}

#[derive(Arguments)]
pub(crate) struct KitArgs {
    /// The folder of `selvedge provision`
    pub(crate) kit: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/add.txt").trim_end())]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) kit: KitArgs,
    /// What the hospital is called
    pub(crate) name: String,
    /// The name or address by which its edge and gateways reach its server
    #[arg(long, value_name = "HOST")]
    pub(crate) host: String,
    /// How many gateways carry its patients' devices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) gateways: u32,
    /// Where its parties connect
    #[arg(long, value_name = "PORT", default_value_t = 4222)]
    pub(crate) client: u16,
    /// Where its server's health is read, on its own machine
    #[arg(long, value_name = "PORT", default_value_t = 8222)]
    pub(crate) monitor: u16,
    /// The first of its parties' ports for HTTP, each on its own machine
    #[arg(long, value_name = "PORT", default_value_t = 9101)]
    pub(crate) http: u16,
    /// The address that its server listens at
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    pub(crate) listen: std::net::IpAddr,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/rotate.txt").trim_end())]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    pub(crate) kit: KitArgs,
    /// Who: cloud, north/hospital, north/edge, north/gateway-0, a hospital's name for its server, hub
    pub(crate) who: String,
    /// The public half of a key that the party has made itself
    #[arg(long, value_name = "KEY")]
    pub(crate) public: Option<String>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/revoke.txt").trim_end())]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    pub(crate) kit: KitArgs,
    /// Who: north/hospital, north/edge, north/gateway-0, or a hospital's name
    pub(crate) who: String,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/pseudonyms.txt").trim_end())]
pub(crate) struct PseudonymsArgs {
    #[command(flatten)]
    pub(crate) kit: KitArgs,
    /// Which hospital
    pub(crate) who: String,
}

#[derive(Arguments)]
pub(crate) struct KeyArgs {
    /// The file to write, which must be new: `key.nk` of the party's folder
    pub(crate) file: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Patient {
    /// The cloud's node
    Cloud,
    /// A hospital's node
    Hospital,
    /// An edge
    Edge,
    /// A gateway
    Devices,
    /// A NATS server: --config is its server.conf
    Server,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/doctor.txt").trim_end())]
pub(crate) struct DoctorArgs {
    /// Which party, or server
    pub(crate) kind: Patient,
    /// Its node.toml, or server.conf
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Print all findings as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

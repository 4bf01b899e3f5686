//! Arguments of what makes and checks the folders of a consortium.

use clap::{Args as Arguments, Subcommand};
use std::path::PathBuf;

#[derive(Arguments)]
#[command(after_help = include_str!("help/provision.txt").trim_end())]
pub(crate) struct ProvisionArgs {
    /// The description of the consortium
    pub(crate) consortium: PathBuf,
    /// The folder to write, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Give each party its shard from this folder, instead of enrolling
    #[arg(long, value_name = "DIR")]
    pub(crate) shards: Option<PathBuf>,
    /// Print the list of folders as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum KitCommand {
    /// List who has a key and who was revoked
    List(KitArgs),
    /// Add a hospital as the last group: this starts a new run, for which all parties must enrol again
    Add(AddArgs),
    /// Give a party or a server a new key; the old one becomes invalid
    Rotate(RotateArgs),
    /// Revoke a party or, by its name, a whole hospital
    Revoke(RevokeArgs),
    /// Give a hospital and its gateways a new pseudonym key, for the next enrolment
    Pseudonyms(PseudonymsArgs),
    /// Generate a key at the party itself; only its public half leaves the machine, for `rotate --public`
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
    /// The hospital's name
    pub(crate) name: String,
    /// The name or address by which its edge and gateways reach its server
    #[arg(long, value_name = "HOST")]
    pub(crate) host: String,
    /// How many gateways carry its patients' devices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) gateways: u32,
    /// The port that its parties connect to
    #[arg(long, value_name = "PORT", default_value_t = 4222)]
    pub(crate) client: u16,
    /// The port for its server's health checks, on its own machine
    #[arg(long, value_name = "PORT", default_value_t = 8222)]
    pub(crate) monitor: u16,
    /// The first of its parties' HTTP ports, each on its own machine
    #[arg(long, value_name = "PORT", default_value_t = 9101)]
    pub(crate) http: u16,
    /// The address that its server listens on
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    pub(crate) listen: std::net::IpAddr,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/rotate.txt").trim_end())]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    pub(crate) kit: KitArgs,
    /// Who: cloud, north/hospital, north/edge, north/gateway-0, `north` for its server, `hub` for the cloud's
    pub(crate) who: String,
    /// The public half of a key that the party generated itself
    #[arg(long, value_name = "KEY")]
    pub(crate) public: Option<String>,
}

#[derive(Arguments)]
#[command(after_help = include_str!("help/revoke.txt").trim_end())]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    pub(crate) kit: KitArgs,
    /// Who: north/hospital, north/edge, north/gateway-0, or `north` for the whole hospital
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
    /// The file to write, which must not exist yet: `key.nk` in the party's folder
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
    /// The party's node.toml, or the server's server.conf
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Print all findings as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

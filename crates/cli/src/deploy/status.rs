//! `selvedge status`: who is there, who is missing and why, how far a run is.

use super::kit::Deployment;
use anyhow::{Context, Result, bail};
use selvedge_core::role::Party;
use selvedge_net::broker::ask;
use selvedge_net::counters::Dropped;
use selvedge_net::drive::{Presence, Snapshot};
use selvedge_run::format::{bytes, counted, score};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

/// Whoever was silent for longer is missing.
const SILENT: f64 = 10.0;

/// What a node shows of itself.
pub(crate) fn ask_node(address: SocketAddr) -> Result<Snapshot> {
    let (status, body) =
        ask(address, "/status").with_context(|| format!("no answer from {address}"))?;
    if status != 200 {
        bail!("{address} answers with status {status}");
    }
    serde_json::from_str(&body)
        .with_context(|| format!("{address} is not a node of this version of selvedge"))
}

/// The address of whoever is asked: a node's own, or that of the cloud of a deployment on this machine.
pub(crate) fn address(whom: &str) -> Result<SocketAddr> {
    let whom = whom.trim_start_matches("http://").trim_end_matches('/');
    if let Ok(address) = whom.parse() {
        return Ok(address);
    }
    let folder = Path::new(whom);
    if !Deployment::is_at(folder) {
        bail!("{whom} is neither an address, like 127.0.0.1:9100, nor a folder of `selvedge up`");
    }
    Ok(Deployment::read(folder)?.cloud_http())
}

/// A page for people.
pub(crate) fn text(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(snapshot, &mut out);
    out
}

fn write(snapshot: &Snapshot, out: &mut String) -> std::fmt::Result {
    let Snapshot {
        party,
        doing,
        connected,
        trouble,
        evaluation,
        iterations,
        present,
        missing,
        counters,
    } = snapshot;
    let link = if *connected {
        "connected"
    } else {
        "cannot reach its server"
    };
    writeln!(out, "{party} · t {} of {iterations} · {link}", doing.t)?;
    if let Some(trouble) = trouble {
        writeln!(out, "Trouble {trouble}")?;
    }
    let quorum = if doing.below_quorum {
        " (below quorum: waiting)"
    } else {
        ""
    };
    writeln!(out, "Doing   {}{quorum}", doing.what)?;
    if let Some(e) = evaluation {
        writeln!(
            out,
            "Model   t {}: training loss {:.4}, test AUC {}, {} per group",
            e.t,
            e.loss_train,
            score(e.test.auc),
            bytes(e.bytes_exact)
        )?;
    }
    writeln!(
        out,
        "Sent    {} in {} messages, {} of it resent; received {}",
        bytes(counters.sent_bytes as f64),
        counters.sent,
        bytes(counters.again_bytes as f64),
        bytes(counters.received_bytes as f64)
    )?;
    if counters.predictions > 0 {
        writeln!(out, "Asked   {} predictions answered", counters.predictions)?;
    }
    if !counters.refused.is_empty() {
        let refused: Vec<String> = counters
            .refused
            .iter()
            .map(|(why, count)| format!("{count} {why}"))
            .collect();
        writeln!(out, "Refused {}", refused.join(", "))?;
    }
    for (whose, messages) in &counters.left_out {
        writeln!(out, "Left out {whose}: {}", counted(*messages, "message"))?;
    }
    for (from, dropped) in &counters.dropped {
        let Dropped {
            messages,
            bytes: size,
            cut_off,
            is_cut_off,
        } = dropped;
        let now = if *is_cut_off { ", and is now" } else { "" };
        writeln!(
            out,
            "Flood   {from} was cut off {cut_off} times{now}; {} of it in {messages} messages dropped here",
            bytes(*size as f64)
        )?;
    }
    let (there, silent): (Vec<&Presence>, Vec<&Presence>) =
        present.iter().partition(|p| p.silent < SILENT);
    let parties = if there.len() == 1 { "party" } else { "parties" };
    writeln!(out, "Present {} {parties}", there.len())?;
    for presence in there {
        let Presence { party, doing, .. } = presence;
        let party = party.to_string();
        let mut line = format!("  {party:<14} t {:<8} {}", doing.t, doing.what);
        if !doing.missing.is_empty() {
            let names: Vec<String> = doing.missing.iter().take(4).map(Party::to_string).collect();
            line += &format!(" (waiting for {})", names.join(", "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    for party in &doing.gone {
        writeln!(
            out,
            "Missing {party}: it has missed several deadlines in a row, and is not waited for until it is heard from"
        )?;
    }
    for presence in &silent {
        let Presence {
            party,
            silent,
            doing,
            ..
        } = presence;
        writeln!(
            out,
            "Missing {party}: silent for {silent:.0} s; it was at t {}, {}",
            doing.t, doing.what
        )?;
    }
    for party in missing {
        writeln!(out, "Missing {party}: never heard from")?;
    }
    Ok(())
}

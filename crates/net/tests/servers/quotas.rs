//! What a party may take up of its server: a share of its disk, none of its memory, some connections.

use crate::deployment::{Deployment, LONG, QUOTAS};
use crate::stream_of;
use async_nats::jetstream::{self, Context, stream::StorageType};
use selvedge_net::subjects::{EDGE, HOSPITAL};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Writes pieces of records until the server refuses, but not for ever; how many bytes it has taken, and what it said.
async fn fill(streams: &Context) -> (u64, String) {
    let began = Instant::now();
    let mut taken = 0;
    for number in 0u32.. {
        assert!(began.elapsed() < LONG, "{taken} bytes were taken");
        let piece = vec![7; 512 << 10];
        let length = piece.len() as u64;
        let sent = streams.publish(format!("record.edge.1.2.{number}"), piece.into());
        match sent.await.unwrap().await {
            Ok(_) => taken += length,
            Err(error) => return (taken, error.to_string()),
        }
    }
    unreachable!("numbers end later");
}

/// Bytes of all files below a folder.
fn on_disk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(there) if there.is_dir() => on_disk(&entry.path()),
        there => there.map_or(0, |there| there.len()),
    });
    sizes.sum()
}

async fn hospital_writes(all: &Deployment) {
    let streams = jetstream::new(all.connect(HOSPITAL).await.client);
    let stream = streams.get_or_create_stream(stream_of(HOSPITAL));
    stream.await.unwrap();
    let record = streams.publish("record.hospital", "a record".into());
    record.await.unwrap().await.unwrap();
}

/// 522 MB in two seconds, once.
#[tokio::test]
async fn a_partys_records_have_a_quota_and_others_go_on_writing() {
    let Some(mut all) = Deployment::started("quota").await else {
        return;
    };
    let edge = jetstream::new(all.connect(EDGE).await.client);
    // A party makes its stream what it likes.
    let mut config = stream_of(EDGE);
    config.max_messages_per_subject = -1;
    edge.create_stream(config.clone()).await.unwrap();
    let (taken, why) = fill(&edge).await;
    assert!(
        (QUOTAS.store / 2..=QUOTAS.store).contains(&taken),
        "{taken} bytes were taken"
    );
    assert!(why.contains("resource"), "{why}");
    hospital_writes(&all).await;
    // It writes the same again and again, which is never more than it may have.
    for _ in 0..8 {
        edge.get_stream(EDGE).await.unwrap().purge().await.unwrap();
        fill(&edge).await;
    }
    let there = on_disk(&all.sites[0].store);
    assert!(there < 2 * QUOTAS.store, "{there} bytes on the disk");

    // The server knows it when it was started again, and what is removed is free.
    all.site_servers[0].take().unwrap().stop().unwrap();
    all.start_site();
    let edge = jetstream::new(all.connect(EDGE).await.client);
    let (taken, why) = fill(&edge).await;
    assert!(taken <= 1 << 20, "{taken} bytes more were taken: {why}");
    edge.get_stream(EDGE).await.unwrap().purge().await.unwrap();
    assert!(fill(&edge).await.0 > QUOTAS.store / 2);
    hospital_writes(&all).await;
}

#[tokio::test]
async fn nothing_is_kept_in_a_servers_memory() {
    let Some(all) = Deployment::started("memory-quota").await else {
        return;
    };
    let edge = jetstream::new(all.connect(EDGE).await.client);
    let mut config = stream_of(EDGE);
    config.storage = StorageType::Memory;
    let taken = match edge.create_stream(config).await {
        Ok(_) => fill(&edge).await.0,
        Err(_) => 0,
    };
    assert_eq!(taken, 0, "bytes in the server's memory");
}

#[tokio::test]
async fn a_party_connects_so_often_and_listens_to_so_much() {
    let Some(all) = Deployment::started("connections").await else {
        return;
    };
    let mut open = Vec::new();
    let refused = loop {
        match all.try_connect((0, EDGE), all.sites[0].listen).await {
            Ok(party) => open.push(party),
            Err(error) => break error.to_string(),
        }
        assert!(open.len() < 100, "any number of connections");
    };
    assert!(refused.contains("connection"), "{refused}");
    // Its place is free when one of them is gone, and others have places of their own.
    all.connect(HOSPITAL).await;
    drop(open.pop());
    let again = async {
        while all
            .try_connect((0, EDGE), all.sites[0].listen)
            .await
            .is_err()
        {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, again).await.expect("it connects again");
    let party = &mut open[0];
    for number in 0..100 {
        let inbox = format!("_INBOX_edge.{number}");
        let inbox = party.client.subscribe(inbox).await.unwrap();
        // It stays.
        std::mem::forget(inbox);
    }
    party.told(&["maximum subscriptions exceeded"]).await;
}

/// Bytes of memory of a process.
fn memory(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().next().unwrap();
    1024 * kilobytes.parse::<u64>().unwrap()
}

/// Every party may ask its server who it is, and who keeps records may ask for its stream.
#[tokio::test]
async fn questions_to_a_server_do_not_fill_its_memory() {
    let Some(all) = Deployment::started("asked").await else {
        return;
    };
    let pid = all.site_servers[0].as_ref().unwrap().pid();
    for (name, subject) in [
        (crate::deployment::GATEWAYS[0], "$SYS.REQ.USER.INFO"),
        (EDGE, "$JS.API.STREAM.INFO.edge"),
    ] {
        let asker = all.connect(name).await;
        let (began, mut asked, mut most) = (Instant::now(), 0u64, 0);
        while began.elapsed() < Duration::from_secs(2) {
            let inbox = format!("_INBOX_{name}.{asked}");
            let sent = asker.client.publish_with_reply(subject, inbox, "".into());
            sent.await.unwrap();
            asked += 1;
            if asked.is_multiple_of(5000) {
                most = memory(pid).max(most);
            }
        }
        println!("{name} asked {asked} times: {:.0} MB", most as f64 / 1e6);
        assert!(most < 400 << 20, "{most} bytes");
    }
}

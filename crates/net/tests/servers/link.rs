//! What crosses the link between a site and the hub, and what a crash leaves.

use crate::deployment::{Deployment, LONG};
use crate::{SHORT, is_silent, send_until_heard, stream_of};
use async_nats::RequestErrorKind;
use async_nats::jetstream;
use futures_util::StreamExt;
use selvedge_net::subjects::{self, CLOUD, EDGE, HOSPITAL, down, inside, up};
use std::io::{Read, Write};
use std::net::TcpStream;
use tokio::time::{sleep, timeout};

/// What the hub has been told that the site wants.
fn interests_of_the_site(all: &Deployment) -> Vec<String> {
    let mut monitor = TcpStream::connect(all.hub.monitor).unwrap();
    monitor
        .write_all(b"GET /leafz?subs=1 HTTP/1.0\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    monitor.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let page: serde_json::Value = serde_json::from_str(body).unwrap();
    let list = page["leafs"][0]["subscriptions_list"].as_array().unwrap();
    list.iter()
        .map(|subject| subject.as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn messages_for_and_from_the_cloud_cross_the_link() {
    let Some(all) = Deployment::started("cross").await else {
        return;
    };
    let cloud = all.connect(CLOUD).await.client;
    let mut at_cloud = cloud.subscribe(subjects::all_to_cloud()).await.unwrap();
    for name in [HOSPITAL, EDGE] {
        let party = all.connect(name).await.client;
        let mut at_party = party.subscribe(down(0, name)).await.unwrap();
        send_until_heard(&party, &up(0, name), &mut at_cloud).await;
        send_until_heard(&cloud, &down(0, name), &mut at_party).await;
        // A whole message of the largest size.
        let largest = vec![7; 1 << 20];
        party
            .publish(up(0, name), largest.clone().into())
            .await
            .unwrap();
        let heard = timeout(LONG, at_cloud.next()).await.unwrap().unwrap();
        assert_eq!(heard.payload, largest);
    }
    let site = all.site_servers[0].as_ref().unwrap().counters().unwrap();
    let hub = all.hub_server.as_ref().unwrap().counters().unwrap();
    assert!(
        site.link_out_bytes >= 2 << 20 && hub.link_in_bytes == site.link_out_bytes,
        "{site:?} {hub:?}"
    );
    assert!(
        site.link_in_bytes > 0 && site.in_messages > 0 && site.out_bytes >= 2 << 20,
        "{site:?}"
    );
}

#[tokio::test]
async fn nothing_else_crosses_even_if_the_hub_allows_everything() {
    let Some(all) = Deployment::started_open("isolation").await else {
        return;
    };
    let cloud = all.connect(CLOUD).await.client;
    let hospital = all.connect(HOSPITAL).await.client;
    let edge = all.connect(EDGE).await.client;

    // Outwards: the cloud listens to everything there is.
    let mut spy = cloud.subscribe(">").await.unwrap();
    let mut spies = Vec::new();
    for subject in [
        "group.>",
        "record.>",
        "_INBOX_hospital.>",
        "_INBOX.>",
        "$JS.>",
        "$SYS.>",
        "$KV.>",
        "up.1.>",
    ] {
        spies.push(cloud.subscribe(subject).await.unwrap());
    }
    send_until_heard(&hospital, &up(0, HOSPITAL), &mut spy).await;
    let streams = jetstream::new(hospital.clone());
    let mut stream = streams.create_stream(stream_of(HOSPITAL)).await.unwrap();
    streams
        .publish("record.hospital.0", "secret".into())
        .await
        .unwrap()
        .await
        .unwrap();
    stream
        .direct_get_last_for_subject("record.hospital.0")
        .await
        .unwrap();
    stream.info().await.unwrap();
    let mut at_edge = edge.subscribe(inside(0, HOSPITAL, EDGE)).await.unwrap();
    send_until_heard(&hospital, &inside(0, HOSPITAL, EDGE), &mut at_edge).await;
    hospital
        .publish(up(0, HOSPITAL), "last".into())
        .await
        .unwrap();
    let heard = timeout(LONG, spy.next()).await.unwrap().unwrap();
    assert_eq!(
        (heard.subject.as_str(), &heard.payload[..]),
        (up(0, HOSPITAL).as_str(), &b"last"[..])
    );
    assert!(is_silent(&mut spy).await);
    for mut spy in spies {
        assert!(is_silent(&mut spy).await);
    }

    // Inwards: the cloud sends everything there is. Nobody listens on the hub any more, so a request that it does not
    // pass on has nobody to answer it.
    drop(spy);
    cloud.flush().await.unwrap();
    let mut silent = Vec::new();
    for subject in [inside(0, EDGE, HOSPITAL), "_INBOX_hospital.>".to_owned()] {
        silent.push(hospital.subscribe(subject).await.unwrap());
    }
    let mut at_hospital = hospital.subscribe(down(0, HOSPITAL)).await.unwrap();
    send_until_heard(&cloud, &down(0, HOSPITAL), &mut at_hospital).await;
    // The hub is told of nothing else that anybody on the site listens to; $LDS is how servers notice circles of links.
    let interests = interests_of_the_site(&all);
    let known = ["$LDS.", "down.0."];
    assert!(
        interests
            .iter()
            .any(|subject| *subject == down(0, HOSPITAL)),
        "{interests:?}"
    );
    for subject in interests {
        assert!(
            known.iter().any(|known| subject.starts_with(known)),
            "{subject}"
        );
    }
    for subject in [
        "group.0.edge.hospital",
        "_INBOX_hospital.x",
        "record.hospital.0",
        "record.hospital.1",
    ] {
        cloud.publish(subject, "forged".into()).await.unwrap();
    }
    for call in [
        "STREAM.INFO.hospital",
        "STREAM.MSG.GET.hospital",
        "STREAM.PURGE.hospital",
        "STREAM.DELETE.hospital",
    ] {
        // The hub has a JetStream of its own, which knows no such stream.
        let answer = cloud
            .request(format!("$JS.API.{call}"), "".into())
            .await
            .unwrap();
        assert!(
            String::from_utf8_lossy(&answer.payload).contains("\"error\""),
            "{answer:?}"
        );
        let nobody = cloud
            .request(format!("$JS.group-0.API.{call}"), "".into())
            .await
            .unwrap_err();
        assert_eq!(nobody.kind(), RequestErrorKind::NoResponders);
    }
    // What servers answer themselves: only the hub does.
    let mut answers = cloud.subscribe("answers").await.unwrap();
    for call in [
        "USER.INFO",
        "SERVER.PING.CONNZ",
        "ACCOUNT.PING.CONNZ",
        "ACCOUNT.PING.STATZ",
    ] {
        cloud
            .publish_with_reply(format!("$SYS.REQ.{call}"), "answers", "".into())
            .await
            .unwrap();
        let answer = timeout(LONG, answers.next()).await.unwrap().unwrap();
        assert!(
            answer.payload.starts_with(br#"{"server":{"name":"hub""#),
            "{answer:?}"
        );
        assert!(is_silent(&mut answers).await);
    }
    cloud
        .publish(down(0, HOSPITAL), "last".into())
        .await
        .unwrap();
    assert_eq!(
        timeout(LONG, at_hospital.next())
            .await
            .unwrap()
            .unwrap()
            .payload,
        "last"
    );
    for mut subscriber in silent {
        assert!(is_silent(&mut subscriber).await);
    }
    let state = stream.info().await.unwrap().state.clone();
    assert_eq!((state.messages, state.last_sequence), (1, 1));
}

#[tokio::test]
async fn a_hub_gives_each_link_its_own_group_only() {
    let Some(mut all) = Deployment::new("other-group") else {
        return;
    };
    // A site that says it is another group than its key's.
    all.sites[0].group = 1;
    all.start_hub();
    all.start_site();
    all.linked().await;
    let cloud = all.connect(CLOUD).await.client;
    let hospital = all.connect(HOSPITAL).await.client;
    let mut at_cloud = cloud.subscribe(subjects::all_to_cloud()).await.unwrap();
    let mut at_hospital = hospital.subscribe(down(1, HOSPITAL)).await.unwrap();
    sleep(SHORT).await;
    hospital
        .publish(up(1, HOSPITAL), "forged".into())
        .await
        .unwrap();
    cloud
        .publish(down(1, HOSPITAL), "for another".into())
        .await
        .unwrap();
    hospital.flush().await.unwrap();
    cloud.flush().await.unwrap();
    assert!(is_silent(&mut at_cloud).await && is_silent(&mut at_hospital).await);
}

#[tokio::test]
async fn a_site_that_was_killed_comes_back_with_its_records() {
    let Some(mut all) = Deployment::started("restart").await else {
        return;
    };
    let cloud = all.connect(CLOUD).await.client;
    let mut at_cloud = cloud.subscribe(subjects::all_to_cloud()).await.unwrap();
    let mut hospital = all.connect(HOSPITAL).await;
    let mut at_hospital = hospital.client.subscribe(down(0, HOSPITAL)).await.unwrap();
    let streams = jetstream::new(hospital.client.clone());
    streams.create_stream(stream_of(HOSPITAL)).await.unwrap();
    streams
        .publish("record.hospital.0", "kept".into())
        .await
        .unwrap()
        .await
        .unwrap();

    all.site_servers[0].take().unwrap().kill().unwrap();
    hospital.told(&["disconnected"]).await;
    all.start_site();
    hospital.told(&["connected"]).await;
    let stream = streams.get_stream(HOSPITAL).await.unwrap();
    let record = stream
        .direct_get_last_for_subject("record.hospital.0")
        .await
        .unwrap();
    assert_eq!(record.payload, "kept");
    assert!(
        all.site_servers[0]
            .as_ref()
            .unwrap()
            .counters()
            .unwrap()
            .stored_bytes
            > 0
    );
    // The link comes back too, in both directions.
    send_until_heard(&hospital.client, &up(0, HOSPITAL), &mut at_cloud).await;
    send_until_heard(&cloud, &down(0, HOSPITAL), &mut at_hospital).await;
    all.site_servers[0].take().unwrap().stop().unwrap();
}

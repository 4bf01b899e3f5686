//! Real keys of the wrong party: what each may not read or send, and that its server writes it down.

use crate::deployment::{Deployment, GATEWAYS, LONG, site_name};
use crate::{is_silent, refused_to_listen, refused_to_send, send_until_heard, stream_of};
use async_nats::ConnectErrorKind;
use async_nats::jetstream;
use futures_util::StreamExt;
use selvedge_net::subjects::{CLOUD, EDGE, HOSPITAL, WHO_AM_I, down, inside, up};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn neither_hospital_nor_edge_reads_another_group() {
    let Some(mut all) = Deployment::new("other-group-reads") else {
        return;
    };
    all.start_all().await;
    let cloud = all.connect(CLOUD).await.client;
    let theirs = all.connect_of(1, HOSPITAL).await.client;
    let their_edge = all.connect_of(1, EDGE).await.client;
    let mut at_theirs = theirs.subscribe(inside(1, EDGE, HOSPITAL)).await.unwrap();
    let mut from_cloud = theirs.subscribe(down(1, HOSPITAL)).await.unwrap();
    for (name, other) in [(HOSPITAL, EDGE), (EDGE, HOSPITAL)] {
        // On its own server, where the other group is not, and where its neighbours are.
        let mut party = all.connect(name).await;
        let log = all.log("site-0");
        let mut refused = Vec::new();
        let subjects = [
            "group.1.>",
            "up.1.>",
            "down.1.>",
            "record.>",
            "_INBOX.>",
            ">",
        ];
        let subjects = subjects.map(str::to_owned).into_iter().chain([
            inside(1, EDGE, HOSPITAL),
            inside(1, GATEWAYS[0], EDGE),
            up(1, name),
            down(1, name),
            down(0, other),
            up(0, other),
            format!("record.{other}"),
            format!("record.{other}.>"),
            format!("_INBOX_{other}.>"),
        ]);
        for subject in subjects {
            refused.push(refused_to_listen(&mut party, &log, &subject).await);
        }
        // On the other group's server, and on the hub: nobody knows its key.
        for (server, address) in [("site-1", all.sites[1].listen), ("hub", all.hub.listen)] {
            let log = all.log(server);
            let error = all.try_connect((0, name), address).await.err().unwrap();
            assert_eq!(error.kind(), ConnectErrorKind::AuthorizationViolation);
            log.has(&["authentication error", &all.key(0, name).public])
                .await;
        }
        // What they would have read.
        send_until_heard(&their_edge, &inside(1, EDGE, HOSPITAL), &mut at_theirs).await;
        send_until_heard(&cloud, &down(1, HOSPITAL), &mut from_cloud).await;
        for mut refused in refused {
            assert!(is_silent(&mut refused).await);
        }
    }
}

#[tokio::test]
async fn nobody_sends_in_the_name_of_another() {
    let Some(mut all) = Deployment::new("names") else {
        return;
    };
    all.start_all().await;
    let log = all.log("site-0");
    let cloud = all.connect(CLOUD).await.client;
    let mut at_cloud = cloud.subscribe("up.*.*.cloud").await.unwrap();
    for (name, other) in [(EDGE, HOSPITAL), (HOSPITAL, EDGE)] {
        let mut party = all.connect(name).await;
        for subject in [
            up(0, other),
            up(1, name),
            up(1, other),
            inside(1, name, other),
            inside(0, other, name),
            inside(0, GATEWAYS[0], EDGE),
            down(0, other),
            down(0, name),
            down(1, name),
            format!("record.{other}"),
            format!("record.{other}.0"),
            format!("$JS.API.STREAM.CREATE.{other}"),
            format!("$JS.API.STREAM.MSG.GET.{other}"),
            format!("$JS.API.CONSUMER.CREATE.{other}"),
            // Not even of its own stream, whose consumer could be given any subject to deliver to.
            format!("$JS.API.CONSUMER.CREATE.{name}"),
        ] {
            refused_to_send(&mut party, &log, &subject).await;
        }
        send_until_heard(&party.client, &up(0, name), &mut at_cloud).await;
    }
    assert!(is_silent(&mut at_cloud).await);
    // The cloud speaks to groups, and never for one.
    let log = all.log("hub");
    let mut cloud = all.connect(CLOUD).await;
    for subject in [up(0, EDGE), inside(0, EDGE, HOSPITAL), "record.edge".into()] {
        refused_to_send(&mut cloud, &log, &subject).await;
    }
    for subject in [
        inside(0, GATEWAYS[0], EDGE),
        inside(0, EDGE, HOSPITAL),
        "group.>".into(),
    ] {
        refused_to_listen(&mut cloud, &log, &subject).await;
    }
}

#[tokio::test]
async fn a_gateway_may_talk_to_its_edge_and_do_nothing_else() {
    let Some(mut all) = Deployment::started("gateway").await else {
        return;
    };
    let log = all.log(&site_name(0));
    let [mine, others] = GATEWAYS;
    let edge = all.connect(EDGE).await.client;
    let other = all.connect(others).await.client;
    let mut gateway = all.connect(mine).await;
    let mut at_edge = edge.subscribe(inside(0, mine, EDGE)).await.unwrap();
    let mut at_other = other.subscribe(inside(0, EDGE, others)).await.unwrap();
    let mut from_other = edge.subscribe(inside(0, others, EDGE)).await.unwrap();
    let mut at_gateway = gateway
        .client
        .subscribe(inside(0, EDGE, mine))
        .await
        .unwrap();
    send_until_heard(&gateway.client, &inside(0, mine, EDGE), &mut at_edge).await;
    send_until_heard(&edge, &inside(0, EDGE, mine), &mut at_gateway).await;

    let mut refused = Vec::new();
    for subject in [
        inside(0, EDGE, others),
        inside(0, others, EDGE),
        inside(0, EDGE, HOSPITAL),
        inside(0, HOSPITAL, EDGE),
        down(0, EDGE),
    ]
    .into_iter()
    .chain(
        [
            "group.>",
            "_INBOX_edge.>",
            "_INBOX_gateway-1.>",
            "record.>",
            "$JS.>",
            "$SYS.>",
            ">",
        ]
        .map(str::to_owned),
    ) {
        refused.push(refused_to_listen(&mut gateway, &log, &subject).await);
    }
    for subject in [
        inside(0, others, EDGE),
        inside(0, EDGE, others),
        inside(0, EDGE, HOSPITAL),
        up(0, mine),
        up(0, EDGE),
    ]
    .into_iter()
    .chain(
        [
            "record.edge",
            "record.gateway-0",
            "$JS.API.INFO",
            "$JS.API.STREAM.NAMES",
            "$JS.API.STREAM.CREATE.gateway-0",
            "$JS.API.STREAM.CREATE.edge",
            "$JS.API.STREAM.INFO.edge",
            "$JS.API.STREAM.MSG.GET.edge",
            "$JS.API.DIRECT.GET.edge.record.edge",
            "$JS.API.CONSUMER.CREATE.edge",
        ]
        .map(str::to_owned),
    ) {
        refused_to_send(&mut gateway, &log, &subject).await;
    }
    let mut streams = jetstream::new(gateway.client.clone());
    streams.set_timeout(Duration::from_secs(1));
    assert!(streams.create_stream(stream_of(mine)).await.is_err());
    // What it would have read, and what it has not sent.
    send_until_heard(&edge, &inside(0, EDGE, others), &mut at_other).await;
    send_until_heard(&other, &inside(0, others, EDGE), &mut from_other).await;
    for mut refused in refused {
        assert!(is_silent(&mut refused).await);
    }
    assert!(is_silent(&mut from_other).await && is_silent(&mut at_other).await);
    // Its neighbour's key is of no use on another site.
    all.start_site_of(1);
    let log = all.log("site-1");
    let error = all.try_connect((0, mine), all.sites[1].listen).await.err();
    assert_eq!(
        error.unwrap().kind(),
        ConnectErrorKind::AuthorizationViolation
    );
    log.has(&["authentication error"]).await;
}

/// A question names where its answer goes, and the server that answers asks for no right there. Nothing is logged: the
/// question is allowed.
#[tokio::test]
async fn an_answer_goes_nowhere_where_the_asker_could_not_send() {
    let Some(all) = Deployment::started("answers").await else {
        return;
    };
    let cloud = all.connect(CLOUD).await.client;
    let mut at_cloud = cloud.subscribe("up.*.*.cloud").await.unwrap();
    let edge = all.connect(EDGE).await.client;
    let gateway = all.connect(GATEWAYS[0]).await.client;
    let streams = jetstream::new(edge.clone());
    let mut stream = streams.create_stream(stream_of(EDGE)).await.unwrap();
    let record = streams.publish("record.edge", "kept".into()).await.unwrap();
    record.await.unwrap();
    let mut silent = Vec::new();
    for name in [GATEWAYS[1], HOSPITAL] {
        let client = all.connect(name).await.client;
        silent.push(client.subscribe(inside(0, EDGE, name)).await.unwrap());
    }
    for name in [GATEWAYS[1], HOSPITAL] {
        silent.push(edge.subscribe(inside(0, name, EDGE)).await.unwrap());
    }
    silent.push(edge.subscribe(down(0, EDGE)).await.unwrap());
    silent.push(edge.subscribe("_INBOX_edge.somewhere").await.unwrap());
    let mut last = gateway.subscribe("_INBOX_gateway-0.last").await.unwrap();
    edge.flush().await.unwrap();
    for answer in [
        "record.edge".to_owned(),
        "record.edge.0".to_owned(),
        "_INBOX_edge.somewhere".to_owned(),
        "$JS.API.STREAM.PURGE.edge".to_owned(),
        inside(0, EDGE, GATEWAYS[1]),
        inside(0, GATEWAYS[1], EDGE),
        inside(0, EDGE, HOSPITAL),
        inside(0, HOSPITAL, EDGE),
        up(0, EDGE),
        down(0, EDGE),
        // This one comes, and all before it have been answered.
        "_INBOX_gateway-0.last".to_owned(),
    ] {
        gateway
            .publish_with_reply(WHO_AM_I, answer, "".into())
            .await
            .unwrap();
    }
    let heard = timeout(LONG, last.next()).await.unwrap().unwrap();
    assert!(heard.payload.starts_with(b"{\"server\""), "{heard:?}");
    for mut subscriber in silent {
        assert!(is_silent(&mut subscriber).await);
    }
    assert!(is_silent(&mut at_cloud).await);
    let state = stream.info().await.unwrap().state.clone();
    assert_eq!((state.messages, state.last_sequence), (1, 1));
}

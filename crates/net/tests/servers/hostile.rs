//! Servers whose operator is hostile: a hub that wants a group's own messages, a site that says it is another, and one
//! that wants to be a server of the hub's cluster.

use crate::deployment::{Deployment, GATEWAYS, LONG, Party, open, without_tls_on_the_link};
use crate::protocol::RawLink;
use crate::{is_silent, send_until_heard};
use futures_util::StreamExt;
use selvedge_net::broker::ask;
use selvedge_net::credentials::Authority;
use selvedge_net::server::{Cluster, Hub};
use selvedge_net::subjects::{self, CLOUD, EDGE, HOSPITAL, down, inside, up};
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// What is known at a server of what the other sides of its links want.
fn wanted_over_links(monitor: SocketAddr) -> Vec<String> {
    let (_, page) = ask(monitor, "/leafz?subs=1").unwrap();
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    let links = page["leafs"].as_array().cloned().unwrap_or_default();
    links
        .iter()
        .flat_map(|link| link["subscriptions_list"].as_array().cloned())
        .flatten()
        .map(|subject| subject.as_str().unwrap().to_owned())
        .collect()
}

/// Waits until a server knows that somebody behind a link wants a subject.
async fn is_wanted(monitor: SocketAddr, subject: &str) {
    let wait = async {
        while !wanted_over_links(monitor).iter().any(|s| s == subject) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let came = timeout(LONG, wait).await;
    came.unwrap_or_else(|_| panic!("{subject} is not in {:?}", wanted_over_links(monitor)));
}

/// A site does not log what its hub asks for: on the side that dials, `nats-server` passes over such a violation in
/// silence. With `deny_exports` of these subjects it is as silent, and its monitoring shows only those with wildcards.
/// So they are not denied there: the accounts keep them in, and the attempt is to be seen.
#[tokio::test]
async fn a_hub_that_asks_for_a_groups_own_messages_gets_none_and_is_seen() {
    let Some(all) = Deployment::started_open("asking-hub").await else {
        return;
    };
    let cloud = all.connect(CLOUD).await.client;
    let mut spies = Vec::new();
    let gateway = GATEWAYS[0];
    let own = [
        inside(0, gateway, EDGE),
        inside(0, EDGE, gateway),
        inside(0, EDGE, HOSPITAL),
        inside(0, HOSPITAL, EDGE),
        "record.hospital".to_owned(),
        "record.edge".to_owned(),
        "group.>".to_owned(),
        "record.>".to_owned(),
        "_INBOX_edge.>".to_owned(),
    ];
    for subject in &own {
        spies.push(cloud.subscribe(subject.clone()).await.unwrap());
    }
    let mut at_cloud = cloud.subscribe(subjects::all_to_cloud()).await.unwrap();
    for subject in &own {
        is_wanted(all.sites[0].monitor, subject).await;
    }
    let [hospital, edge] = [HOSPITAL, EDGE].map(|name| all.connect(name));
    let (hospital, edge) = (hospital.await.client, edge.await.client);
    let devices = all.connect(gateway).await.client;
    let streams = async_nats::jetstream::new(hospital.clone());
    streams
        .create_stream(crate::stream_of(HOSPITAL))
        .await
        .unwrap();
    let record = streams.publish("record.hospital", "secret".into()).await;
    record.unwrap().await.unwrap();
    for (from, to, sender, receiver) in [
        (gateway, EDGE, &devices, &edge),
        (EDGE, gateway, &edge, &devices),
        (EDGE, HOSPITAL, &edge, &hospital),
        (HOSPITAL, EDGE, &hospital, &edge),
    ] {
        let mut heard = receiver.subscribe(inside(0, from, to)).await.unwrap();
        send_until_heard(sender, &inside(0, from, to), &mut heard).await;
    }
    send_until_heard(&edge, &up(0, EDGE), &mut at_cloud).await;
    for mut spy in spies {
        assert!(is_silent(&mut spy).await);
    }
}

/// Waits for the next message at a party.
async fn next(subscriber: &mut async_nats::Subscriber) -> async_nats::Message {
    timeout(LONG, subscriber.next()).await.unwrap().unwrap()
}

/// A link in plain text has the same rights, and a test can speak it without a server that keeps to them.
#[tokio::test]
async fn a_site_cannot_be_another_group() {
    let Some(mut all) = Deployment::new("hostile-site") else {
        return;
    };
    let text = without_tls_on_the_link(&all.hub.to_text().unwrap());
    all.hub_server = Some(all.start("hub", &text, all.hub.monitor));
    let log = all.log("hub");
    let Party { client: cloud, .. } = all.connect(CLOUD).await;
    let mut at_cloud = cloud.subscribe(subjects::all_to_cloud()).await.unwrap();
    cloud.flush().await.unwrap();
    let key = all.key(0, "link").clone();
    let dial = |is_hub| {
        let mut link = RawLink::connect(all.hub.leaf, &key, is_hub);
        link.until(|said| said.verb == "PONG")
            .expect("it is let in");
        link
    };

    // What it may say is heard, so what follows is not for want of a link.
    let mut link = dial(false);
    link.say("LMSG up.0.edge.cloud 4\r\nmine\r\n");
    assert_eq!(next(&mut at_cloud).await.payload, "mine");
    link.say("LMSG up.1.edge.cloud 6\r\nforged\r\n");
    log.has(&["Publish Violation", "\"up.1.edge.cloud\""]).await;
    assert!(link.ends());

    // Other subjects of the cloud's account.
    for subject in [
        "record.cloud",
        "_INBOX_cloud.x",
        "$JS.API.STREAM.INFO.cloud",
    ] {
        let mut link = dial(false);
        link.say(&format!("LMSG {subject} 6\r\nforged\r\n"));
        log.has(&["Publish Violation", &format!("\"{subject}\"")])
            .await;
        assert!(link.ends());
    }
    for subject in ["down.1.cloud.edge", "up.1.edge.cloud", "record.cloud"] {
        let mut link = dial(false);
        link.say(&format!("LS+ {subject}\r\n"));
        log.has(&["Subscription Violation", &format!("\"{subject}\"")])
            .await;
        assert!(link.ends());
    }

    // A wildcard is taken, and each message is looked at: nothing is logged, but monitoring shows it. And a site that
    // says it is the hub of the two is refused in silence.
    for is_hub in [false, true] {
        let mut link = dial(is_hub);
        if is_hub {
            link.say("LS+ down.1.cloud.edge\r\nLMSG up.1.edge.cloud 6\r\nforged\r\n");
        }
        link.say("LS+ down.1.>\r\nLS+ down.>\r\nLS+ up.>\r\nLS+ record.>\r\nLS+ >\r\n");
        is_wanted(all.hub.monitor, ">").await;
        is_wanted(all.hub.monitor, "down.1.>").await;
        cloud.publish(down(1, EDGE), "theirs".into()).await.unwrap();
        cloud.publish(down(0, EDGE), "mine".into()).await.unwrap();
        cloud.flush().await.unwrap();
        let came = link.until(|said| said.verb.ends_with("MSG")).unwrap();
        assert_eq!(
            (came.subject.as_str(), &came.payload[..]),
            ("down.0.cloud.edge", &b"mine"[..])
        );
        link.say("LMSG up.0.edge.cloud 4\r\nlast\r\n");
        assert_eq!(next(&mut at_cloud).await.payload, "last");
        let foreign = |said: &crate::protocol::Said| {
            said.verb.ends_with("MSG") && !said.subject.starts_with("down.0.")
        };
        assert!(!link.heard().iter().any(foreign), "{:?}", link.heard());
    }

    // Keys of parties are not for links.
    for (group, name) in [(0, HOSPITAL), (0, EDGE), (0, CLOUD), (1, GATEWAYS[0])] {
        let log = all.log("hub");
        let mut link = RawLink::connect(all.hub.leaf, all.key(group, name), false);
        assert_eq!(link.until(|said| said.verb == "PONG"), None, "{name}");
        log.has(&["authentication error"]).await;
    }
    assert!(is_silent(&mut at_cloud).await);
}

/// The same with a server: it keeps to the rights that the hub names, whatever its own configuration says.
#[tokio::test]
async fn an_open_site_brings_the_hub_nothing_of_another_group() {
    let Some(mut all) = Deployment::new("open-site") else {
        return;
    };
    all.start_hub();
    all.start_site_of(1);
    // With the link's key of group 0, it says that it is group 1.
    all.sites[0].group = 1;
    let text = open(&all.sites[0].to_text().unwrap()).replace("group-1", "group-0");
    all.start_site_with(0, &text);
    all.linked().await;
    all.linked_of(1).await;
    let cloud = all.connect(CLOUD).await.client;
    let mut at_cloud = cloud.subscribe(subjects::all_to_cloud()).await.unwrap();
    let real = all.connect_of(1, EDGE).await.client;
    let mut at_real = real.subscribe(down(1, EDGE)).await.unwrap();
    let hostile = all.connect(EDGE).await.client;
    let mut at_hostile = hostile.subscribe(down(1, EDGE)).await.unwrap();
    hostile.publish(up(1, EDGE), "forged".into()).await.unwrap();
    hostile.flush().await.unwrap();
    send_until_heard(&cloud, &down(1, EDGE), &mut at_real).await;
    hostile.publish(up(1, EDGE), "forged".into()).await.unwrap();
    hostile.flush().await.unwrap();
    real.publish(up(1, EDGE), "real".into()).await.unwrap();
    assert_eq!(next(&mut at_cloud).await.payload, "real");
    assert!(is_silent(&mut at_cloud).await && is_silent(&mut at_hostile).await);
}

#[tokio::test]
async fn a_site_cannot_join_the_hubs_cluster() {
    let Some(all) = Deployment::new("cluster") else {
        return;
    };
    let authority = Authority::load(&all.dir).unwrap();
    let hosts = ["127.0.0.1".to_owned()];
    let mut issued = Vec::new();
    for name in ["one", "two"] {
        let certificate = authority.issue_server(&hosts).unwrap();
        let mut tls = all.hub.tls.clone();
        tls.certificate = all.dir.join(format!("{name}.pem"));
        tls.key = all.dir.join(format!("{name}-key.pem"));
        fs::write(&tls.certificate, &certificate.certificate).unwrap();
        selvedge_net::credentials::write_secret(&tls.key, &certificate.key).unwrap();
        issued.push((tls, certificate.fingerprint));
    }
    let fingerprints: Vec<String> = issued.iter().map(|(_, print)| print.clone()).collect();
    let routes: Vec<SocketAddr> = (0..3).map(|_| crate::deployment::free_address()).collect();
    let hub = |name: &str, tls, own: usize, others: &[usize]| Hub {
        name: name.to_owned(),
        listen: crate::deployment::free_address(),
        leaf: crate::deployment::free_address(),
        monitor: crate::deployment::free_address(),
        store: all.dir.join(name),
        tls,
        cluster: Some(Cluster {
            name: "cloud".to_owned(),
            listen: routes[own],
            others: others.iter().map(|i| routes[*i].to_string()).collect(),
            fingerprints: fingerprints.clone(),
        }),
        ..all.hub.clone()
    };
    let launch = |name: &str, hub: &Hub, text: &str| {
        let config = all.dir.join(format!("{name}.conf"));
        fs::write(&config, text).unwrap();
        let log = all.dir.join(format!("{name}.log"));
        all.program.launch(&config, hub.monitor, &log).unwrap()
    };
    let (log, site_log) = (all.log("one"), all.log("hostile"));
    let one = hub("one", issued[0].0.clone(), 0, &[1]);
    let _one = launch("one", &one, &one.to_text().unwrap());
    log.has(&["Listening for route connections"]).await;

    // The site's own certificate, of the same authority; its operator leaves out what would hinder itself.
    let site = hub("hostile", all.sites[0].tls.clone(), 2, &[0]);
    let text = site.to_text().unwrap();
    let text: String = text
        .lines()
        .filter(|line| !line.contains("pinned_certs"))
        .map(|line| format!("{line}\n"))
        .collect();
    let _site = launch("hostile", &site, &text);
    log.has(&["handshake error", "certificate not pinned"])
        .await;
    // A real one is let in.
    let two = hub("two", issued[1].0.clone(), 1, &[0]);
    let _two = launch("two", &two, &two.to_text().unwrap());
    log.has(&["Route connection created"]).await;
    // It is said before it is there.
    let joined = async {
        loop {
            let (_, page) = ask(one.monitor, "/routez").unwrap();
            let page: serde_json::Value = serde_json::from_str(&page).unwrap();
            match page["routes"].as_array() {
                Some(routes) if !routes.is_empty() => return routes.clone(),
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let joined = timeout(LONG, joined).await.expect("a route");
    let is_real = |route: &serde_json::Value| route["remote_name"] == "two";
    assert!(joined.iter().all(is_real), "{joined:?}");
    assert!(!site_log.has_by_now(&["JetStream cluster new metadata leader"]));
}

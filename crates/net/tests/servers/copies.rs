//! A party may make its own stream what it likes: a copy of another, or one that sends on what it gets. This is why
//! everybody on a site has an account.

use crate::deployment::Deployment;
use crate::{is_silent, send_until_heard};
use async_nats::jetstream::stream::{Config, External, Republish, Source};
use async_nats::jetstream::{self, Context};
use selvedge_net::subjects::{CLOUD, EDGE, HOSPITAL, down, inside, up};
use std::time::Duration;

fn source(name: &str, external: Option<&str>) -> Source {
    Source {
        name: name.to_owned(),
        external: external.map(|prefix| External {
            api_prefix: prefix.to_owned(),
            delivery_prefix: None,
        }),
        ..Default::default()
    }
}

/// Streams that somebody makes of its own name to have what another keeps.
fn copies(own: &str, other: &str) -> Vec<Config> {
    let config = || Config {
        name: own.to_owned(),
        ..Default::default()
    };
    let mut all = Vec::new();
    for external in [None, Some("$JS.group-0.API"), Some("$JS.hub.API")] {
        all.push(Config {
            mirror: Some(source(other, external)),
            ..config()
        });
        all.push(Config {
            sources: Some(vec![source(other, external)]),
            ..config()
        });
    }
    // The subjects of the other's records, and of all that it says to the cloud or hears from it.
    for subjects in [
        vec![format!("record.{other}"), format!("record.{other}.>")],
        vec!["record.>".to_owned(), up(0, other), down(0, other)],
    ] {
        all.push(Config {
            subjects,
            ..config()
        });
    }
    all
}

async fn stored(streams: &Context, name: &str) -> u64 {
    let mut stream = streams.get_stream(name).await.unwrap();
    stream.info().await.unwrap().state.messages
}

/// Makes every such stream, and looks into it after the other has written.
async fn copies_nothing(test: &str, own: &'static str, other: &'static str) {
    let Some(mut all) = Deployment::new(test) else {
        return;
    };
    all.start_hub();
    let cloud = all.connect(CLOUD).await.client;
    let mut at_cloud = cloud.subscribe(up(0, other)).await.unwrap();
    let mut made = 0;
    for (number, config) in copies(own, other).into_iter().enumerate() {
        // Nobody may delete a stream, so each begins with a new server.
        all.sites[0].store = all.dir.join(format!("store-{number}"));
        all.start_site();
        all.linked().await;
        let log = all.log("site-0");
        let victim = all.connect(other).await.client;
        let theirs = jetstream::new(victim.clone());
        let subjects = vec![format!("record.{other}"), format!("record.{other}.>")];
        let stream = Config {
            name: other.to_owned(),
            subjects,
            ..Default::default()
        };
        theirs.create_stream(stream).await.unwrap();
        let write = async || {
            let record = theirs.publish(format!("record.{other}.0"), "secret".into());
            record.await.unwrap().await.unwrap();
        };
        write().await;
        let party = all.connect(own).await.client;
        let mut streams = jetstream::new(party.clone());
        streams.set_timeout(Duration::from_secs(5));
        let is_copy = config.mirror.is_some() || config.sources.is_some();
        match streams.create_stream(config.clone()).await {
            // The server looks for what is to be copied, and finds nothing of that name.
            Err(error) => assert!(is_copy, "{error}"),
            Ok(_) => {
                made += 1;
                write().await;
                send_until_heard(&victim, &up(0, other), &mut at_cloud).await;
                assert_eq!(stored(&streams, own).await, 0, "{config:?}");
            }
        }
        // Others' streams are not even seen: the calls for them are refused.
        party
            .publish(format!("$JS.API.STREAM.INFO.{other}"), "".into())
            .await
            .unwrap();
        log.has(&["Publish Violation", &format!("STREAM.INFO.{other}")])
            .await;
        all.site_servers[0] = None;
    }
    // At least those that need no other stream could be made.
    assert!(made >= 2, "{made}");
}

#[tokio::test]
async fn an_edge_cannot_copy_what_its_hospital_keeps() {
    copies_nothing("edge-copies", EDGE, HOSPITAL).await;
}

#[tokio::test]
async fn a_hospital_cannot_copy_what_its_edge_keeps() {
    copies_nothing("hospital-copies", HOSPITAL, EDGE).await;
}

/// A server that sends on for a stream asks for no right. Nothing is logged: the stream is the party's own.
#[tokio::test]
async fn a_stream_cannot_speak_in_the_name_of_another() {
    let Some(all) = Deployment::started("republish").await else {
        return;
    };
    let cloud = all.connect(CLOUD).await.client;
    let mut at_cloud = cloud.subscribe("up.*.*.cloud").await.unwrap();
    let [hospital, edge] = [HOSPITAL, EDGE].map(|name| all.connect(name));
    let (hospital, edge) = (hospital.await.client, edge.await.client);
    for (own, other, party, victim) in [
        (EDGE, HOSPITAL, &edge, &hospital),
        (HOSPITAL, EDGE, &hospital, &edge),
    ] {
        send_until_heard(party, &up(0, own), &mut at_cloud).await;
        let mut at_victim = victim.subscribe(down(0, other)).await.unwrap();
        let mut to_victim = victim.subscribe(inside(0, own, other)).await.unwrap();
        let mut inbox = victim.subscribe(format!("_INBOX_{other}.x")).await.unwrap();
        send_until_heard(&cloud, &down(0, other), &mut at_victim).await;
        let streams = jetstream::new(party.clone());
        let targets = [
            up(0, other),
            up(1, own),
            down(0, other),
            format!("record.{other}.0"),
            format!("_INBOX_{other}.x"),
            // What it may say anyway comes, after all the others.
            inside(0, own, other),
        ];
        for (number, destination) in targets.into_iter().enumerate() {
            let config = Config {
                name: own.to_owned(),
                subjects: vec![format!("record.{own}.>")],
                republish: Some(Republish {
                    source: format!("record.{own}.0"),
                    destination,
                    headers_only: false,
                }),
                ..Default::default()
            };
            if number == 0 {
                streams.create_stream(config).await.unwrap();
            } else {
                streams.update_stream(config).await.unwrap();
            }
            let record = streams.publish(format!("record.{own}.0"), "forged".into());
            record.await.unwrap().await.unwrap();
        }
        let heard = futures_util::StreamExt::next(&mut to_victim);
        let heard = tokio::time::timeout(crate::LONG, heard).await.unwrap();
        assert_eq!(heard.unwrap().payload, "forged");
        for subscriber in [&mut at_cloud, &mut at_victim, &mut inbox] {
            assert!(is_silent(subscriber).await);
        }
    }
}

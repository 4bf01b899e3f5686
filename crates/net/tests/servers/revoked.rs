//! A key that is taken out of the configuration: the server is restarted, and whoever had it stays out.
//!
//! A reload (SIGHUP) is not enough: it drops a client whose key is gone, and leaves a link alive.

use crate::deployment::{Deployment, GATEWAYS, LONG, Log, Party};
use crate::send_until_heard;
use async_nats::ConnectErrorKind;
use async_nats::connection::State;
use selvedge_net::subjects::{self, CLOUD, EDGE, HOSPITAL, inside, up};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Waits until somebody who had been connected has tried again and was refused.
async fn is_out(all: &Deployment, log: &Log, party: &Party, name: &'static str) {
    log.has(&["authentication error", &all.key(0, name).public])
        .await;
    assert_ne!(party.client.connection_state(), State::Connected);
    let error = all.try_connect((0, name), all.sites[0].listen).await.err();
    assert_eq!(
        error.unwrap().kind(),
        ConnectErrorKind::AuthorizationViolation
    );
}

#[tokio::test]
async fn who_was_revoked_is_off_and_stays_off() {
    let Some(mut all) = Deployment::started("revoked-client").await else {
        return;
    };
    let gateway = GATEWAYS[0];
    let mut hospital = all.connect(HOSPITAL).await;
    let mut revoked = all.connect(gateway).await;
    let mut edge = all.connect(EDGE).await;
    let mut at_edge = edge
        .client
        .subscribe(inside(0, HOSPITAL, EDGE))
        .await
        .unwrap();
    send_until_heard(&hospital.client, &inside(0, HOSPITAL, EDGE), &mut at_edge).await;

    // A gateway is taken out, and the server restarted.
    all.sites[0].gateways.remove(0);
    let log = all.log("site-0");
    all.site_servers[0].take().unwrap().stop().unwrap();
    for party in [&mut hospital, &mut edge, &mut revoked] {
        party.told(&["disconnected"]).await;
    }
    all.start_site();
    is_out(&all, &log, &revoked, gateway).await;
    // The others come back by themselves.
    for party in [&mut hospital, &mut edge] {
        party.told(&["connected"]).await;
    }
    send_until_heard(&hospital.client, &inside(0, HOSPITAL, EDGE), &mut at_edge).await;
    assert_ne!(revoked.client.connection_state(), State::Connected);

    // A reload would have done for a client, and for those who are still there it is as if nothing had been.
    all.sites[0].hospital = None;
    let text = all.sites[0].to_text().unwrap();
    let log = all.log("site-0");
    all.reload("site-0", &text, all.site_servers[0].as_ref().unwrap())
        .await;
    hospital.told(&["disconnected"]).await;
    is_out(&all, &log, &hospital, HOSPITAL).await;
    assert_eq!(edge.client.connection_state(), State::Connected);
}

#[tokio::test]
async fn a_site_that_was_revoked_has_no_link_any_more() {
    let Some(mut all) = Deployment::new("revoked-link") else {
        return;
    };
    all.start_all().await;
    let mut cloud = all.connect(CLOUD).await;
    let mut at_cloud = cloud
        .client
        .subscribe(subjects::all_to_cloud())
        .await
        .unwrap();
    let revoked = all.connect_of(0, EDGE).await.client;
    let stays = all.connect_of(1, EDGE).await.client;
    send_until_heard(&revoked, &up(0, EDGE), &mut at_cloud).await;
    send_until_heard(&stays, &up(1, EDGE), &mut at_cloud).await;

    // A reload leaves the link of a key that is gone, and all that comes over it.
    all.hub.sites.remove(0);
    let text = all.hub.to_text().unwrap();
    let hub = all.hub_server.as_ref().unwrap();
    all.reload("hub", &text, hub).await;
    send_until_heard(&revoked, &up(0, EDGE), &mut at_cloud).await;
    assert_eq!(hub.counters().unwrap().links, 2);

    // A restart does not.
    let log = all.log("hub");
    all.hub_server.take().unwrap().stop().unwrap();
    cloud.told(&["disconnected"]).await;
    all.start_hub();
    cloud.told(&["connected"]).await;
    log.has(&["authentication error", "lid:"]).await;
    send_until_heard(&stays, &up(1, EDGE), &mut at_cloud).await;
    let hub = all.hub_server.as_ref().unwrap();
    let only_one = async {
        // It has tried again, and again.
        while hub.counters().unwrap().links != 1 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, only_one).await.expect("one link");
    revoked.publish(up(0, EDGE), "more".into()).await.unwrap();
    revoked.flush().await.unwrap();
    let again = all.log("hub");
    again.has(&["authentication error", "lid:"]).await;
    assert_eq!(hub.counters().unwrap().links, 1);
    assert!(crate::is_silent(&mut at_cloud).await);
}

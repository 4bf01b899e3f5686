//! Joint predictions on real servers: a question and its answer are heard by those on the way and by nobody else, and
//! nobody else can ask.

use crate::deployment::{Deployment, GATEWAYS, LONG, site_name};
use crate::{is_silent, refused_to_listen, refused_to_send};
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use selvedge_core::role::wire::{decode, encode};
use selvedge_core::role::{About, Message, Numbers, Party, Portion};
use selvedge_net::subjects::{CLOUD, EDGE, HOSPITAL, down, inside, up};
use selvedge_net::transport::subject;
use tokio::time::timeout;

const RUN: u64 = 7;

/// Sends a message of one party to another, who hears just that.
async fn says(from: (&Client, Party), to: (&mut Subscriber, Party), message: &Message) {
    let name = subject(from.1, to.1).expect("they talk");
    let bytes = encode(RUN, message);
    from.0.publish(name.clone(), bytes.into()).await.unwrap();
    let heard = timeout(LONG, to.0.next()).await.unwrap().unwrap();
    assert_eq!(heard.subject.as_str(), name);
    assert_eq!(decode(RUN, &heard.payload).as_ref(), Ok(message));
}

#[tokio::test]
async fn a_question_and_its_answer_are_nobody_elses() {
    let Some(mut all) = Deployment::new("joint") else {
        return;
    };
    all.start_all().await;
    let [mine, other] = GATEWAYS;
    let (gateway, edge) = (
        all.connect(mine).await.client,
        all.connect(EDGE).await.client,
    );
    let hospital = all.connect(HOSPITAL).await.client;
    let mut at_edge = edge.subscribe(inside(0, mine, EDGE)).await.unwrap();
    let mut from_hospital = edge.subscribe(inside(0, HOSPITAL, EDGE)).await.unwrap();
    let mut at_hospital = hospital.subscribe(inside(0, EDGE, HOSPITAL)).await.unwrap();
    let mut at_gateway = gateway.subscribe(inside(0, EDGE, mine)).await.unwrap();

    // Everybody else listens to all that it may, and tries what it may not.
    let mut silent = Vec::new();
    let log = all.log(&site_name(0));
    let mut neighbour = all.connect(other).await;
    let own = inside(0, EDGE, other);
    silent.push(neighbour.client.subscribe(own).await.unwrap());
    for name in [
        inside(0, mine, EDGE),
        inside(0, EDGE, mine),
        inside(0, EDGE, HOSPITAL),
        inside(0, HOSPITAL, EDGE),
    ] {
        silent.push(refused_to_listen(&mut neighbour, &log, &name).await);
    }
    let elsewhere = all.log(&site_name(1));
    for name in [HOSPITAL, EDGE, mine] {
        let mut stranger = all.connect_of(1, name).await;
        for heard in [inside(0, EDGE, HOSPITAL), inside(0, HOSPITAL, EDGE)] {
            silent.push(refused_to_listen(&mut stranger, &elsewhere, &heard).await);
        }
        refused_to_send(&mut stranger, &elsewhere, &inside(0, EDGE, HOSPITAL)).await;
        refused_to_send(&mut stranger, &elsewhere, &inside(0, mine, EDGE)).await;
    }
    let hub = all.log("hub");
    let mut cloud = all.connect(CLOUD).await;
    silent.push(cloud.client.subscribe("up.*.*.cloud").await.unwrap());
    silent.push(refused_to_listen(&mut cloud, &hub, "group.>").await);
    for name in [inside(0, mine, EDGE), inside(0, EDGE, HOSPITAL)] {
        refused_to_send(&mut cloud, &hub, &name).await;
    }
    // A gateway speaks for itself, and to its edge alone.
    for name in [
        inside(0, mine, EDGE),
        inside(0, EDGE, HOSPITAL),
        inside(0, other, HOSPITAL),
        inside(0, HOSPITAL, EDGE),
    ] {
        refused_to_send(&mut neighbour, &log, &name).await;
    }

    let (g, e, h) = (Party::Gateway(0, 0), Party::Edge(0), Party::Hospital(0));
    let question = Message::Question {
        number: 11,
        t: 4,
        gateway: 0,
        about: About::Rows(Portion::Test, vec![0]),
        zeta2: Numbers::Dense([0.5, -0.5].into()),
    };
    let answer = Message::Answer {
        number: 11,
        gateway: 0,
        unknown: Vec::new(),
        probabilities: Numbers::Dense([0.25, 0.75].into()),
        calibration: None,
    };
    says((&gateway, g), (&mut at_edge, e), &Message::Fetch).await;
    says((&gateway, g), (&mut at_edge, e), &question).await;
    says((&edge, e), (&mut at_hospital, h), &question).await;
    says((&hospital, h), (&mut from_hospital, e), &answer).await;
    says((&edge, e), (&mut at_gateway, g), &answer).await;
    for mut subscriber in silent {
        assert!(is_silent(&mut subscriber).await);
    }
    // Nor can the parties on the way say it anywhere else.
    assert!(subject(g, h).is_none() && subject(h, g).is_none());
    let mut hospital = all.connect(HOSPITAL).await;
    for name in [
        inside(0, HOSPITAL, mine),
        inside(0, EDGE, mine),
        up(1, HOSPITAL),
    ] {
        refused_to_send(&mut hospital, &log, &name).await;
    }
    let mut edge = all.connect(EDGE).await;
    for name in [inside(1, EDGE, HOSPITAL), down(0, HOSPITAL)] {
        refused_to_send(&mut edge, &log, &name).await;
    }
}

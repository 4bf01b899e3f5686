//! Who gets in, and what each may do there.

use crate::deployment::{Deployment, GATEWAYS, LONG};
use crate::{is_silent, send_until_heard, stream_of};
use async_nats::jetstream;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::{ConnectErrorKind, ConnectOptions};
use selvedge_net::credentials::{Authority, Identity};
use selvedge_net::subjects::{CLOUD, EDGE, HOSPITAL, down, inside, up};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[tokio::test]
async fn strangers_are_refused() {
    let Some(mut all) = Deployment::new("strangers") else {
        return;
    };
    all.start_hub();
    all.start_site();
    for address in [all.site.listen, all.hub.listen, all.hub.leaf] {
        // Without TLS: the server says that it wants it, and hangs up on whoever goes on in plain text.
        let mut plain = TcpStream::connect(address).unwrap();
        plain.set_read_timeout(Some(LONG)).unwrap();
        plain
            .write_all(b"CONNECT {\"verbose\":false}\r\nPING\r\n")
            .unwrap();
        let mut answer = Vec::new();
        // It may end the connection in either way.
        let _ = plain.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.contains("\"tls_required\":true") && !answer.contains("PONG"),
            "{answer}"
        );
    }
    let address = format!("tls://{}", all.site.listen);

    let other = all.dir.join("other.pem");
    std::fs::write(&other, Authority::new("other").unwrap().certificate()).unwrap();
    let seed = all.keys[HOSPITAL].seed.clone();
    let options = ConnectOptions::with_nkey(seed)
        .require_tls(true)
        .add_root_certificates(other);
    let error = options
        .connect(&address)
        .await
        .expect_err("the server is not of that authority");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");

    let unknown = Identity::generate().unwrap().seed;
    let link = all.keys["link"].seed.clone();
    let cloud = all.keys[CLOUD].seed.clone();
    let hub = format!("tls://{}", all.hub.listen);
    // The cloud's key means nothing on a site, and a link's key is for links.
    for (seed, address) in [(unknown, &address), (cloud, &address), (link, &hub)] {
        let error = all
            .options(HOSPITAL)
            .nkey(seed)
            .connect(address)
            .await
            .expect_err("the key is not for this");
        assert_eq!(
            error.kind(),
            ConnectErrorKind::AuthorizationViolation,
            "{error}"
        );
    }
    let error = all
        .options(HOSPITAL)
        .connect(&address)
        .await
        .expect_err("there is no key");
    assert_eq!(
        error.kind(),
        ConnectErrorKind::AuthorizationViolation,
        "{error}"
    );
}

#[tokio::test]
async fn a_gateway_may_talk_to_its_edge_and_do_nothing_else() {
    let Some(mut all) = Deployment::new("gateway") else {
        return;
    };
    all.start_site();
    let [mine, others] = GATEWAYS;
    let edge = all.connect(EDGE).await.client;
    let mut gateway = all.connect(mine).await;
    let mut at_edge = edge.subscribe(inside(0, mine, EDGE)).await.unwrap();
    let mut at_gateway = gateway
        .client
        .subscribe(inside(0, EDGE, mine))
        .await
        .unwrap();
    send_until_heard(&gateway.client, &inside(0, mine, EDGE), &mut at_edge).await;
    send_until_heard(&edge, &inside(0, EDGE, mine), &mut at_gateway).await;

    let foreign = [
        inside(0, EDGE, others),
        inside(0, EDGE, HOSPITAL),
        down(0, EDGE),
        "group.>".to_owned(),
    ];
    let foreign = foreign
        .into_iter()
        .chain(["_INBOX_edge.>", "$SYS.>", ">"].map(str::to_owned));
    for subject in foreign {
        let mut refused = gateway.client.subscribe(subject.clone()).await.unwrap();
        gateway
            .told(&["Permissions Violation for Subscription", &subject])
            .await;
        assert!(is_silent(&mut refused).await);
    }
    let foreign = [
        inside(0, others, EDGE),
        inside(0, EDGE, others),
        up(0, mine),
        up(0, EDGE),
    ];
    let foreign = foreign
        .into_iter()
        .chain(["record.edge", "record.gateway-0", "$JS.API.INFO"].map(str::to_owned));
    for subject in foreign {
        gateway
            .client
            .publish(subject.clone(), "forged".into())
            .await
            .unwrap();
        gateway
            .told(&["Permissions Violation for Publish", &subject])
            .await;
    }
    let mut streams = jetstream::new(gateway.client.clone());
    streams.set_timeout(Duration::from_secs(1));
    assert!(streams.create_stream(stream_of(mine)).await.is_err());
    gateway
        .told(&[
            "Permissions Violation for Publish",
            "STREAM.CREATE.gateway-0",
        ])
        .await;
}

#[tokio::test]
async fn a_hospital_keeps_records_in_its_own_stream_only() {
    let Some(mut all) = Deployment::new("records") else {
        return;
    };
    all.start_site();
    let mut hospital = all.connect(HOSPITAL).await;
    let mut streams = jetstream::new(hospital.client.clone());
    streams.set_timeout(Duration::from_secs(2));
    let mut stream = streams.create_stream(stream_of(HOSPITAL)).await.unwrap();

    let write = async |subject: &'static str, expected: u64, text: &'static str| {
        let message = PublishMessage::build()
            .payload(text.into())
            .expected_last_subject_sequence(expected);
        streams.send_publish(subject, message).await.unwrap().await
    };
    let first = write("record.hospital.1", 0, "one").await.unwrap();
    write("record.hospital.2", 0, "two").await.unwrap();
    let refused = write("record.hospital.1", 0, "other").await.unwrap_err();
    assert_eq!(refused.kind(), PublishErrorKind::WrongLastSequence);
    write("record.hospital.1", first.sequence, "newer")
        .await
        .unwrap();

    let direct = stream
        .direct_get_last_for_subject("record.hospital.1")
        .await
        .unwrap();
    assert_eq!(direct.payload, "newer");
    let raw = stream
        .get_last_raw_message_by_subject("record.hospital.*")
        .await
        .unwrap();
    assert_eq!(
        (raw.payload, raw.sequence),
        ("newer".into(), direct.sequence)
    );
    stream.delete_message(2).await.unwrap();
    assert_eq!(
        stream
            .purge()
            .filter("record.hospital.1")
            .await
            .unwrap()
            .purged,
        1
    );
    assert_eq!(stream.info().await.unwrap().state.messages, 0);
    streams.update_stream(stream_of(HOSPITAL)).await.unwrap();

    assert!(streams.create_stream(stream_of(EDGE)).await.is_err());
    hospital
        .told(&["Permissions Violation for Publish", "STREAM.CREATE.edge"])
        .await;
    assert!(streams.delete_stream(HOSPITAL).await.is_err());
    hospital
        .told(&[
            "Permissions Violation for Publish",
            "STREAM.DELETE.hospital",
        ])
        .await;
}

//! Who gets in, and what each may do there.

use crate::deployment::{Deployment, LONG};
use crate::stream_of;
use async_nats::jetstream;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::{ConnectErrorKind, ConnectOptions};
use selvedge_net::broker::ask;
use selvedge_net::credentials::{Authority, Identity};
use selvedge_net::subjects::{CLOUD, EDGE, HOSPITAL};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn strangers_are_refused() {
    let Some(mut all) = Deployment::new("strangers") else {
        return;
    };
    all.start_hub();
    all.start_site();
    for (address, monitor) in [
        (all.sites[0].listen, all.sites[0].monitor),
        (all.hub.listen, all.hub.monitor),
        (all.hub.leaf, all.hub.monitor),
    ] {
        let failed = || {
            let (_, page) = ask(monitor, "/connz?state=closed").unwrap();
            page.matches("TLS Handshake Failure").count()
        };
        let before = failed();
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
        // Servers do not log it, since whoever looks for open ports does that; their monitoring shows it.
        let wait = async {
            while failed() == before {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, wait).await.expect("it is to be seen");
    }
    let log = all.log("site-0");
    let address = format!("tls://{}", all.sites[0].listen);

    let other = all.dir.join("other.pem");
    std::fs::write(&other, Authority::new("other").unwrap().certificate()).unwrap();
    let seed = all.key(0, HOSPITAL).seed.clone();
    let options = ConnectOptions::with_nkey(seed)
        .require_tls(true)
        .add_root_certificates(other);
    let error = options
        .connect(&address)
        .await
        .expect_err("the server is not of that authority");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    log.has(&["TLS handshake error"]).await;

    let unknown = Identity::generate().unwrap().seed;
    let link = all.key(0, "link").seed.clone();
    let cloud = all.key(0, CLOUD).seed.clone();
    let hub = format!("tls://{}", all.hub.listen);
    // The cloud's key means nothing on a site, and a link's key is for links.
    for (seed, address, server) in [
        (unknown, &address, "site-0"),
        (cloud, &address, "site-0"),
        (link, &hub, "hub"),
    ] {
        let log = all.log(server);
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
        log.has(&["authentication error"]).await;
    }
    let log = all.log("site-0");
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
    log.has(&["authentication error"]).await;
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

    let log = all.log("site-0");
    assert!(streams.create_stream(stream_of(EDGE)).await.is_err());
    log.has(&["Publish Violation", "STREAM.CREATE.edge"]).await;
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

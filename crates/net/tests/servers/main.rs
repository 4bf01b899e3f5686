//! Real servers with the configurations of this crate: what crosses the link, who gets in, and what each may do.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod capture;
mod copies;
mod deployment;
mod hostile;
mod isolation;
mod joint;
mod life;
mod link;
mod protocol;
mod quotas;
mod revoked;
mod rights;

use async_nats::jetstream::stream;
use async_nats::{Client, Subscriber};
use deployment::{LONG, Log, Party};
use futures_util::StreamExt;
use selvedge_net::subjects;
use std::time::Duration;
use tokio::time::timeout;

/// How long a test waits for what must not come, after something that was sent later has come.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) fn stream_of(name: &str) -> stream::Config {
    stream::Config {
        name: name.to_owned(),
        subjects: vec![subjects::record(name), subjects::all_records(name)],
        max_messages_per_subject: 1,
        allow_direct: true,
        ..Default::default()
    }
}

/// Sends until it comes, since nobody knows when interest has crossed a link; then nothing more is on its way.
pub(crate) async fn send_until_heard(from: &Client, subject: &str, to: &mut Subscriber) {
    let wait = async {
        for number in 0u32.. {
            let payload = number.to_string();
            from.publish(subject.to_owned(), payload.clone().into())
                .await
                .unwrap();
            // What comes first may be one of before; the last one sent comes last.
            while let Ok(heard) = timeout(SHORT, to.next()).await {
                let heard = heard.expect("still subscribed");
                assert_eq!(heard.subject.as_str(), subject);
                if heard.payload == payload {
                    return;
                }
            }
        }
    };
    timeout(LONG, wait)
        .await
        .unwrap_or_else(|_| panic!("{subject} does not arrive"));
}

pub(crate) async fn is_silent(subscriber: &mut Subscriber) -> bool {
    match timeout(SHORT, subscriber.next()).await {
        Ok(message) => panic!("{:?} should not have come", message.map(|m| m.subject)),
        Err(_) => true,
    }
}

/// Somebody listens where it may not: its server says so, to it and in the log. What it has got is for the caller to
/// see.
pub(crate) async fn refused_to_listen(party: &mut Party, log: &Log, subject: &str) -> Subscriber {
    let refused = party.client.subscribe(subject.to_owned()).await.unwrap();
    let quoted = format!("\"{subject}\"");
    party
        .told(&["Permissions Violation for Subscription", &quoted])
        .await;
    log.has(&["Subscription Violation", &quoted]).await;
    refused
}

/// Somebody sends what it may not.
pub(crate) async fn refused_to_send(party: &mut Party, log: &Log, subject: &str) {
    party
        .client
        .publish(subject.to_owned(), "forged".into())
        .await
        .unwrap();
    let quoted = format!("\"{subject}\"");
    party
        .told(&["Permissions Violation for Publish", &quoted])
        .await;
    log.has(&["Publish Violation", &quoted]).await;
}

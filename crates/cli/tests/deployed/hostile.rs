//! A hostile client: a real connection with the real key of one party, that says as much as it can.

use crate::common::run::{Run, number};
use crate::deployment::{FORTY_INTERVALS, LONG, Up, place_alone, read, simulated};
use crate::kit::{addresses, status};
use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt;
use selvedge_core::role::wire::encode;
use selvedge_core::role::{Message, Numbers};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Connects as the party whose folder this is.
pub(crate) async fn connect(folder: &Path, name: &str) -> Client {
    let key = read(&folder.join("key.nk"));
    let config: toml::Table = read(&folder.join("node.toml")).parse().unwrap();
    let server = config["servers"][0].as_str().unwrap().to_owned();
    ConnectOptions::with_nkey(key.trim().to_owned())
        .add_root_certificates(folder.join("authority.pem"))
        .require_tls(true)
        .custom_inbox_prefix(format!("_INBOX_{name}"))
        .connect(format!("tls://{server}"))
        .await
        .unwrap()
}

/// What a party is told of its run by a neighbour: the run's number, and where it is.
async fn overheard(client: &Client, subject: &str) -> (u64, u64) {
    let mut heard = client.subscribe(subject.to_owned()).await.unwrap();
    let wait = async {
        loop {
            let message = heard.next().await.expect("a greeting");
            let json: serde_json::Value =
                serde_json::from_slice(&message.payload).unwrap_or_default();
            if let Some(run) = json["Greeting"]["run"].as_str() {
                let run = u64::from_str_radix(run, 16).unwrap();
                return (run, json["Greeting"]["doing"]["t"].as_u64().unwrap());
            }
        }
    };
    let heard = tokio::time::timeout(Duration::from_secs(30), wait).await;
    heard.expect("a neighbour greets")
}

/// All kinds of things that are of no use, each another one.
fn nuisance(kind: u128, number: u64, (run, t): (u64, u64)) -> Vec<u8> {
    match kind % 6 {
        0 => format!("garbage {number}").into(),
        1 => [&number.to_le_bytes()[..], &[7; 512 << 10]].concat(),
        // The first piece of a message that never ends.
        2 => {
            let head = [&b"C"[..], &number.to_le_bytes(), &[0; 4], &[9, 0, 0, 0]].concat();
            [head, vec![0; 512 << 10]].concat()
        }
        // Somebody who dies all the time.
        3 => serde_json::to_vec(&serde_json::json!({"Greeting": {
            "run": format!("{run:016x}"), "incarnation": number, "heard": [],
            "doing": {"t": t, "what": "x".repeat(1000), "missing": [], "below_quorum": false},
        }}))
        .unwrap(),
        // Messages of this run, with nonsense in them.
        4 => {
            let (edge, hospital) = (Some(number), Some(t));
            let global = number / 2;
            encode(
                run,
                &Message::Astray {
                    edge,
                    hospital,
                    global,
                },
            )
        }
        _ => encode(run, &Message::Fetch),
    }
}

/// What it has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flood {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// Who floods whom: a folder, a name on the server, a subject on which somebody greets it, and where it sends.
#[derive(Clone, Debug)]
pub(crate) struct Flooder {
    pub(crate) folder: String,
    pub(crate) name: &'static str,
    pub(crate) greeted_at: String,
    pub(crate) floods: Vec<String>,
}

impl Flooder {
    /// One processor's worth, for so long, as fast as it can.
    pub(crate) fn floods_for(&self, deployment: &Path, time: Duration) -> Flood {
        self.speaks(deployment, |flood, elapsed| {
            (elapsed < time).then_some((elapsed.as_millis() / 50, flood.messages))
        })
    }

    /// A little of everything.
    pub(crate) fn says_nonsense(&self, deployment: &Path, messages: u64) -> Flood {
        self.speaks(deployment, |flood, _| {
            let number = flood.messages;
            (number < messages).then(|| (u128::from(number), number))
        })
    }

    /// Says one nuisance after the other, until there is none.
    fn speaks(
        &self,
        deployment: &Path,
        next: impl Fn(&Flood, Duration) -> Option<(u128, u64)>,
    ) -> Flood {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client = connect(&deployment.join(&self.folder), self.name).await;
            let known = overheard(&client, &self.greeted_at).await;
            let (began, mut flood) = (Instant::now(), Flood::default());
            while let Some((kind, number)) = next(&flood, began.elapsed()) {
                let payload = nuisance(kind, number, known);
                let to = &self.floods[flood.messages as usize % self.floods.len()];
                flood.messages += 1;
                flood.bytes += payload.len() as u64;
                client.publish(to.clone(), payload.into()).await.unwrap();
            }
            // Of a flood, what is not sent soon is not sent.
            let _ = tokio::time::timeout(Duration::from_millis(200), client.flush()).await;
            flood
        })
    }
}

/// Sends the cloud θ0 and θ1 that are not numbers, as a hospital, whenever it has come further. So often until it is over.
fn sends_nan(folder: &Path, cloud: SocketAddr, sizes: [usize; 2], period: u64) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = connect(&folder.join("group-0/hospital"), "hospital").await;
        let (run, _) = overheard(&client, "group.0.edge.hospital").await;
        let [theta0, theta1] = sizes.map(|count| Numbers::Dense(vec![f32::NAN; count].into()));
        let (began, mut sent, mut last) = (Instant::now(), 0, None);
        while began.elapsed() < LONG && sent < 40 {
            let Some(t) = status(cloud)["doing"]["t"].as_u64() else {
                break;
            };
            if last == Some(t) {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            let message = Message::HospitalModel {
                t: t + period,
                theta0: theta0.clone(),
                theta1: theta1.clone(),
                report: None,
            };
            let bytes = encode(run, &message);
            let said = client.publish("up.0.hospital.cloud", bytes.into()).await;
            said.unwrap();
            client.flush().await.unwrap();
            (sent, last) = (sent + 1, Some(t));
        }
        sent
    })
}

#[test]
fn a_hospital_that_sends_what_is_not_a_number_is_left_out_and_named() {
    let Some(place) = place_alone("up-nan") else {
        return;
    };
    let experiment = FORTY_INTERVALS.replace("iterations = 80", "iterations = 2400");
    let experiment = experiment.replace("groups = 2", "groups = 3");
    let expected = simulated(&place, &experiment, &[]);
    let sizes = ["n0", "n1"].map(|n| expected.manifest()["sizes"][n].as_u64().unwrap() as usize);
    let up = Up::start(&place, "up", &[]);
    up.processes();
    let folder = up.folder();
    let cloud = addresses(&folder).1["cloud"];
    assert!(sends_nan(&folder, cloud, sizes, 4) > 10);
    let counted = &status(cloud)["counters"]["left_out"]["group 0, not finite"];
    assert!(counted.as_u64() > Some(10), "{counted}");
    let said = place.succeeds(&["status", "up"]).stdout;
    assert!(said.contains("Left out group 0, not finite: "), "{said}");
    let ended = up.ends();
    let auc = |run: &Run| number(run.metrics().last().unwrap(), "auc");
    let (honest, attacked) = (auc(&expected), auc(&ended.run));
    assert!(attacked > honest - 0.05, "{attacked} beside {honest}");
    let absences = read(&folder.join("run/absences.jsonl"));
    let is_named = |line: &str| {
        let parts = [
            r#""phase":"global""#,
            r#""group":0"#,
            r#""reason":"not-finite""#,
        ];
        parts.iter().all(|part| line.contains(part))
    };
    let left_out = absences.lines().filter(|line| is_named(line)).count();
    assert!(left_out > 10, "{absences}");
    let log = read(&folder.join("cloud/log"));
    assert!(log.contains("group 0 is left out, not finite"), "{log}");
    // What it has decided can be replayed, to the bit.
    place.succeeds(&[
        "train",
        "experiment.toml",
        "--replay",
        "up",
        "--out",
        "replayed",
    ]);
    let replayed = Run::at(&place, "replayed");
    let model = |run: &Run| std::fs::read(run.file("model.safetensors")).unwrap();
    assert!(model(&replayed) == model(&ended.run));
}

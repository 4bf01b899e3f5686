//! What a wire between a site and the hub carries, byte by byte: the link is recorded in plain text, for these tests
//! alone.

use crate::deployment::{Deployment, GATEWAYS, LONG, free_address, open, without_tls_on_the_link};
use crate::protocol::{Said, parse};
use crate::{send_until_heard, stream_of};
use async_nats::{Client, Subscriber, jetstream};
use futures_util::StreamExt;
use selvedge_core::adaptive::Report;
use selvedge_core::calibration::{Calibration, Sums};
use selvedge_core::objective::Softmax;
use selvedge_core::role::wire::encode;
use selvedge_core::role::{Counted, Message, Numbers, Portion};
use selvedge_core::schedule::Segment;
use selvedge_core::scores::Scores;
use selvedge_net::chunks::{PIECE, split};
use selvedge_net::subjects::{CLOUD, EDGE, HOSPITAL, down, inside, up};
use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use tokio::time::timeout;

/// So many bytes in a row of a group's own are a leak: four numbers.
const WINDOW: usize = 16;

/// The bytes of each direction of each connection that was made.
type Recording = Arc<Mutex<Vec<Vec<u8>>>>;

/// Passes on what comes to an address, and keeps a copy.
fn record(to: SocketAddr) -> (SocketAddr, Recording) {
    let listener = TcpListener::bind(free_address()).unwrap();
    let (address, recording) = (listener.local_addr().unwrap(), Recording::default());
    let kept = recording.clone();
    let pass_on = |mut from: TcpStream, mut to: TcpStream, kept: Recording| {
        let number = kept.lock().unwrap().len();
        kept.lock().unwrap().push(Vec::new());
        thread::spawn(move || {
            let mut some = vec![0; 65536];
            while let Ok(count @ 1..) = from.read(&mut some) {
                // Kept before it is passed on: what has arrived is in the recording.
                kept.lock().unwrap()[number].extend_from_slice(&some[..count]);
                if to.write_all(&some[..count]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(std::net::Shutdown::Both);
            let _ = from.shutdown(std::net::Shutdown::Both);
        });
    };
    thread::spawn(move || {
        for site in listener.incoming() {
            let (Ok(site), Ok(hub)) = (site, TcpStream::connect(to)) else {
                continue;
            };
            let copies = (site.try_clone().unwrap(), hub.try_clone().unwrap());
            pass_on(site, hub, kept.clone());
            pass_on(copies.1, copies.0, kept.clone());
        }
    });
    (address, recording)
}

/// Numbers that are nowhere twice.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn numbers(&mut self, count: usize) -> Numbers {
        let number = |_| 1.0 + (self.next() >> 41) as f32 / (1 << 23) as f32;
        Numbers::Dense((0..count).map(number).collect())
    }

    /// As a codec packs them.
    fn packed(&mut self, count: usize) -> Numbers {
        Numbers::Frame((0..count).map(|_| self.next() as u8).collect())
    }

    fn rows(&mut self) -> Vec<Numbers> {
        vec![self.numbers(64), self.packed(64)]
    }

    fn segment(&mut self) -> Segment {
        Segment {
            start: self.next(),
            global_interval: self.next(),
            local_interval: self.next(),
            learning_rate: f64::from_bits(self.next() >> 2),
            halve_every: Some(self.next()),
        }
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// What the parties of a group say to each other, and to the cloud: from, to, message. Every kind is there.
fn conversation(random: &mut Random) -> Vec<(&'static str, &'static str, Message)> {
    let [gateway, other] = GATEWAYS;
    let mut scores = Scores::new(&Softmax::new(2));
    for losses in [
        &mut scores.training,
        &mut scores.validation.losses,
        &mut scores.test.losses,
    ] {
        losses.add(random.next() as f64 / 1e19);
    }
    scores.test.tally.add(&[0.25, 0.75, 0.5, 0.5], &[1, 0]);
    let mut all = Vec::new();
    for gateway in [gateway, other] {
        let from_edge = [
            Message::Invite {
                t: random.next(),
                segment: random.segment(),
                theta2: random.numbers(300),
                devices: vec![3, 4],
            },
            Message::Lesson {
                t: random.next(),
                theta0: random.numbers(100),
                zeta1: vec![(3, random.rows()), (4, random.rows())],
            },
            Message::Embed {
                number: random.next(),
                theta2: random.numbers(300),
            },
            Message::End,
        ];
        let from_gateway = [
            Message::Zeta2 {
                t: random.next(),
                zeta2: vec![(3, random.rows()), (4, random.rows())],
            },
            Message::Models {
                t: random.next(),
                theta2: vec![(3, random.numbers(300)), (4, random.packed(300))],
            },
            Message::Embedded {
                number: random.next(),
                part: Portion::Test,
                rows: vec![random.next() as u32; 3],
                zeta2: random.numbers(200),
            },
            Message::Done,
        ];
        all.extend(from_edge.map(|message| (EDGE, gateway, message)));
        all.extend(from_gateway.map(|message| (gateway, EDGE, message)));
    }
    let large = random.numbers(PIECE / 4 + 1000);
    let correction = Calibration {
        scale: 0.5,
        bias: vec![0.25, -0.25],
        each: false,
    };
    all.extend([
        (
            EDGE,
            HOSPITAL,
            Message::Batch {
                t: random.next(),
                // One that goes in pieces.
                zeta2: vec![Some(random.rows()), None, Some(vec![large])],
            },
        ),
        (
            EDGE,
            HOSPITAL,
            Message::Embedded {
                number: random.next(),
                part: Portion::Validation,
                rows: vec![random.next() as u32; 2],
                zeta2: random.numbers(200),
            },
        ),
        (
            HOSPITAL,
            EDGE,
            Message::Frozen {
                t: random.next(),
                theta0: Some(random.numbers(100)),
                zeta1: vec![Some(random.rows()), None],
            },
        ),
        (
            HOSPITAL,
            CLOUD,
            Message::HospitalModel {
                t: random.next(),
                theta0: random.numbers(100),
                theta1: random.packed(300),
                report: None::<Report>,
            },
        ),
        (
            HOSPITAL,
            CLOUD,
            Message::Evaluated {
                number: random.next(),
                scores: Box::new(scores),
            },
        ),
        (
            CLOUD,
            HOSPITAL,
            Message::Calibrate {
                number: random.next(),
                corrections: vec![correction.clone()],
            },
        ),
        (
            HOSPITAL,
            CLOUD,
            Message::Calibrated {
                number: random.next(),
                sums: Some(vec![Sums::of(&correction, &[0.25, 0.75], &vec![1].into())]),
                corrections: vec![correction],
            },
        ),
        (
            EDGE,
            CLOUD,
            Message::EdgeModel {
                t: random.next(),
                theta2: random.numbers(300),
                counted: Counted::default(),
            },
        ),
    ]);
    for to in [HOSPITAL, EDGE] {
        all.push((
            CLOUD,
            to,
            Message::Global {
                t: random.next(),
                parts: vec![random.numbers(100), random.numbers(300)],
                since: Some(random.next()),
                segment: random.segment(),
                anew: false,
                ended: false,
                calibration: None,
            },
        ));
        all.push((
            CLOUD,
            to,
            Message::Evaluate {
                number: random.next(),
                parts: vec![random.numbers(100)],
            },
        ));
    }
    all
}

fn subject(from: &str, to: &str) -> String {
    match (from, to) {
        (CLOUD, _) => down(0, to),
        (_, CLOUD) => up(0, from),
        _ => inside(0, from, to),
    }
}

/// What was found in a recording.
struct Found {
    /// Subjects of all messages, in both directions.
    subjects: BTreeSet<String>,
    /// Messages and records of the group's own of which a part is there, by subject.
    leaked: BTreeSet<String>,
    /// Messages to and from the cloud that are there as a whole, and how many were sent.
    crossed: (usize, usize),
}

fn windows(bytes: &[u8]) -> impl Iterator<Item = [u8; WINDOW]> {
    bytes
        .windows(WINDOW)
        .map(|window| window.try_into().unwrap())
}

/// Looks for everything that was sent in everything that was recorded.
fn look(recording: &[Vec<u8>], sent: &[(String, Vec<u8>)]) -> Found {
    let mut said: Vec<Said> = Vec::new();
    for direction in recording {
        let (all, rest) = parse(direction);
        assert_eq!(rest, 0, "every byte is understood");
        said.extend(all);
    }
    let there: HashSet<_> = recording.iter().flat_map(|bytes| windows(bytes)).collect();
    let (own, to_cross): (Vec<_>, Vec<_>) = sent
        .iter()
        .partition(|(subject, _)| subject.starts_with("group.") || subject.starts_with("record."));
    let leaked = own
        .iter()
        .filter(|(_, bytes)| windows(bytes).any(|window| there.contains(&window)));
    let messages: Vec<&Said> = said.iter().filter(|s| s.verb.ends_with("MSG")).collect();
    let crossed = to_cross.iter().filter(|(subject, bytes)| {
        let is = |said: &&Said| said.subject == *subject && said.payload == *bytes;
        messages.iter().copied().any(|said| is(&said))
    });
    Found {
        subjects: messages.iter().map(|said| said.subject.clone()).collect(),
        leaked: leaked.map(|(subject, _)| subject.clone()).collect(),
        crossed: (crossed.count(), to_cross.len()),
    }
}

/// Waits until these bytes arrive.
async fn wait_for(receiver: &mut Subscriber, bytes: &[u8]) {
    while timeout(LONG, receiver.next())
        .await
        .unwrap()
        .unwrap()
        .payload
        != bytes
    {}
}

/// A day in the life of a group, with a hub that asks for all of it; what its link carried.
async fn a_day(test: &str, change: impl Fn(&str) -> String) -> Option<Found> {
    let mut all = Deployment::new(test)?;
    let (proxy, recording) = record(all.hub.leaf);
    let text = without_tls_on_the_link(&open(&all.hub.to_text().unwrap()));
    all.hub_server = Some(all.start("hub", &text, all.hub.monitor));
    let text = without_tls_on_the_link(&all.sites[0].to_text().unwrap());
    let dialled = format!("tls://{}", all.hub.leaf);
    assert!(text.contains(&dialled), "{text}");
    let text = text.replace(&dialled, &format!("nats-leaf://{proxy}"));
    all.start_site_with(0, &change(&text));
    all.linked().await;

    let cloud = all.connect(CLOUD).await.client;
    let mut spies = Vec::new();
    for subject in [">", "group.>", "record.>", "_INBOX_edge.>", "$JS.>"] {
        spies.push(cloud.subscribe(subject).await.unwrap());
    }
    let mut clients: Vec<(&str, Client)> = vec![(CLOUD, cloud.clone())];
    for name in [HOSPITAL, EDGE, GATEWAYS[0], GATEWAYS[1]] {
        clients.push((name, all.connect(name).await.client));
    }
    let client = |name: &str| &clients.iter().find(|(n, _)| *n == name).unwrap().1;
    // The link is used before it counts, in both directions: interest has crossed it then.
    let mut at_cloud = cloud.subscribe("up.*.*.cloud").await.unwrap();
    for name in [HOSPITAL, EDGE] {
        let mut at_party = client(name).subscribe(down(0, name)).await.unwrap();
        send_until_heard(client(name), &up(0, name), &mut at_cloud).await;
        send_until_heard(&cloud, &down(0, name), &mut at_party).await;
    }

    let mut random = Random(0x5e1_7ed6e);
    let run = random.next();
    let mut sent = Vec::new();
    for (from, to, message) in conversation(&mut random) {
        let subject = subject(from, to);
        let mut receiver = client(to).subscribe(subject.clone()).await.unwrap();
        client(to).flush().await.unwrap();
        // Its interest may still be on its way over the link.
        let first = split(encode(run, &message))[0].clone();
        let wait = async {
            loop {
                let sending = client(from).publish(subject.clone(), first.clone());
                sending.await.unwrap();
                if let Ok(heard) = timeout(crate::SHORT, receiver.next()).await {
                    assert_eq!(heard.unwrap().payload, first);
                    break;
                }
            }
        };
        timeout(LONG, wait).await.expect("it arrives");
        for piece in split(encode(run, &message)) {
            let sending = client(from).publish(subject.clone(), piece.clone());
            sending.await.unwrap();
            wait_for(&mut receiver, &piece).await;
            sent.push((subject.clone(), piece.to_vec()));
        }
    }
    for name in [HOSPITAL, EDGE] {
        let streams = jetstream::new(client(name).clone());
        let mut stream = streams.create_stream(stream_of(name)).await.unwrap();
        for record in [format!("record.{name}"), format!("record.{name}.0")] {
            let bytes = random.bytes(5000);
            let kept = streams.publish(record.clone(), bytes.clone().into()).await;
            kept.unwrap().await.unwrap();
            let read = stream.direct_get_last_for_subject(&*record).await.unwrap();
            assert_eq!(read.payload, bytes);
            sent.push((record, bytes));
        }
        stream.info().await.unwrap();
    }
    // What is sent last is behind all the rest, and then nothing is on its way.
    for name in [HOSPITAL, EDGE] {
        let last = random.bytes(100);
        let sending = client(name).publish(up(0, name), last.clone().into());
        sending.await.unwrap();
        wait_for(&mut at_cloud, &last).await;
        sent.push((up(0, name), last));
    }
    all.site_servers[0].take().unwrap().stop().unwrap();
    let recording = recording.lock().unwrap().clone();
    Some(look(&recording, &sent))
}

#[tokio::test]
async fn nothing_of_a_groups_own_is_on_the_wire_to_the_hub() {
    let Some(found) = a_day("capture", str::to_owned).await else {
        return;
    };
    let allowed = [
        up(0, HOSPITAL),
        up(0, EDGE),
        down(0, HOSPITAL),
        down(0, EDGE),
    ];
    assert_eq!(found.subjects, BTreeSet::from(allowed));
    assert_eq!(found.leaked, BTreeSet::new());
    // What may cross has crossed, and is found.
    assert_eq!(found.crossed.0, found.crossed.1);
    assert!(found.crossed.1 >= 9, "{}", found.crossed.1);
}

/// The test above can fail: with one more subject that the link is given, all of what goes there is found.
#[tokio::test]
async fn a_leak_would_be_seen_on_the_wire() {
    let leak = inside(0, EDGE, HOSPITAL);
    let one_more = |text: &str| {
        let (before, link) = text.split_once("  LINK {").unwrap();
        let export = format!("{{ stream: \"{leak}\", accounts: [\"HOSPITAL\"] }}");
        assert!(before.contains(&export), "{before}");
        let wider = format!("{{ stream: \"{leak}\", accounts: [\"HOSPITAL\", \"LINK\"] }}");
        let import = format!("{{ stream: {{ account: EDGE, subject: \"{leak}\" }} }}");
        let link = link.replacen("imports: [", &format!("imports: [\n      {import}"), 1);
        format!("{}  LINK {{{link}", before.replace(&export, &wider))
    };
    let Some(found) = a_day("leak", one_more).await else {
        return;
    };
    assert!(found.subjects.contains(&leak), "{:?}", found.subjects);
    assert_eq!(found.leaked, BTreeSet::from([leak]));
    assert_eq!(found.crossed.0, found.crossed.1);
}

//! A hospital's uplink is cut for a while: the others do not stop, it catches up, and the replay agrees.

use crate::common::Place;
use crate::common::run::Run;
use crate::deployment::{LONG, Up, place_with_server, read, simulated};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A proxy that can stop passing anything on, without a word, as a cut cable does.
struct Proxy {
    address: SocketAddr,
    cut: Arc<AtomicBool>,
}

impl Proxy {
    /// In front of the hub of a deployment, which need not be there yet.
    fn start(deployment: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, cut) = (
            listener.local_addr().unwrap(),
            Arc::new(AtomicBool::new(false)),
        );
        let is_cut = Arc::clone(&cut);
        std::thread::spawn(move || {
            for here in listener.incoming().flatten() {
                let text = std::fs::read_to_string(&deployment).unwrap_or_default();
                let Ok(said) = serde_json::from_str::<serde_json::Value>(&text) else {
                    continue;
                };
                let port = said["consortium"]["cloud"][0]["links"].as_u64();
                let port = u16::try_from(port.unwrap_or_default()).unwrap_or_default();
                let Ok(there) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                // Else small messages wait for each other, which is not what is tried here.
                here.set_nodelay(true).unwrap();
                there.set_nodelay(true).unwrap();
                let back = (there.try_clone().unwrap(), here.try_clone().unwrap());
                for (from, to) in [(here, there), back] {
                    let is_cut = Arc::clone(&is_cut);
                    std::thread::spawn(move || pass(from, to, &is_cut));
                }
            }
        });
        Proxy { address, cut }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut some = vec![0; 1 << 16];
    while let Ok(read) = from.read(&mut some) {
        while is_cut.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if read == 0 || to.write_all(&some[..read]).is_err() {
            return;
        }
    }
}

const ITERATIONS: u64 = 3000;

const EXPERIMENT: &str = "
seed = 3
[data]
set = \"synthetic\"
groups = 3
devices = 20
[train]
iterations = 3000
global_interval = 2
local_interval = 1
learning_rate = 0.2
participation = 0.5
evaluate_every = 100
";

/// How long the cut lasts: a few seconds, or what SELVEDGE_CUT says.
fn cut_time() -> Duration {
    let seconds = std::env::var("SELVEDGE_CUT").ok();
    Duration::from_secs(seconds.map_or(4, |text| text.parse().unwrap()))
}

#[test]
fn a_group_that_is_cut_off_catches_up_and_the_others_do_not_stop() {
    let Some(place) = place_with_server("up-cut") else {
        return;
    };
    place.write("experiment.toml", EXPERIMENT);
    let proxy = Proxy::start(place.join("up/deployment.json"));
    let through = format!("1={}", proxy.address);
    let up = Up::start(
        &place,
        "up",
        &["--group-deadline", "1", "--link-through", &through],
    );
    up.processes();
    let t = || {
        let status = place.selvedge(&["status", "up", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap_or_default();
        status["doing"]["t"].as_u64().unwrap_or(0)
    };
    let began = Instant::now();
    while t() < 10 {
        assert!(began.elapsed() < LONG, "it does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    proxy.cut.store(true, Ordering::SeqCst);
    let (at_cut, began) = (t(), Instant::now());
    std::thread::sleep(cut_time());
    let at_end = t();
    proxy.cut.store(false, Ordering::SeqCst);
    assert!(
        at_end >= at_cut + 4,
        "the others stopped: t = {at_cut}, and {at_end} after {:?}",
        began.elapsed()
    );
    let ended = up.ends();
    let absences = read(&ended.run.file("absences.jsonl"));
    let absent: Vec<u64> = absences
        .lines()
        .filter(|line| line.contains("\"global\"") && line.contains("\"group\":1"))
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["t"]
                .as_u64()
                .unwrap()
        })
        .collect();
    let last = absent.iter().max().copied().unwrap_or(0);
    assert!(last > at_cut, "it was not absent: {absences}");
    assert!(
        last + 100 < ITERATIONS,
        "it did not come back: last absent at {last}"
    );
    let replayed = simulated(&place, EXPERIMENT, &["--replay", "up"]);
    let model = |run: &Run| std::fs::read(run.file("model.safetensors")).unwrap();
    assert!(
        model(&replayed) == model(&ended.run),
        "the replay has another model"
    );
    let calm = Place::new("up-calm");
    let calm = simulated(&calm, EXPERIMENT, &[]);
    assert!(
        model(&calm) != model(&ended.run),
        "the absence changed nothing"
    );
    println!(
        "cut for {:?} at t = {at_cut}: the others went on to {at_end}; absent {} times, the last time at {last}",
        cut_time(),
        absent.len()
    );
}

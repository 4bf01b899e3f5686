//! Each pass of the networks of the three work sizes against the machine's own peak, measured in the same run.
//!
//! `cargo bench -p selvedge-nn [-- FILTER]`

use selvedge_nn::simd::{Kernel, LANES, Lanes, Level};
use selvedge_nn::{LayerSpec, Network, Shape, Update, random::Key};
use std::hint::black_box;
use std::time::Instant;

/// Twelve chains of multiply-adds, which no memory and no latency holds back.
struct Peak(u32);

impl Kernel for Peak {
    type Output = f32;
    #[inline(always)]
    fn run<L: Lanes>(self) -> f32 {
        // Different numbers in every lane of every chain, all of them used: else a compiler would leave some out.
        let mut start = [0.0; LANES];
        for (i, x) in start.iter_mut().enumerate() {
            *x = i as f32;
        }
        let mut sums = [L::load(black_box(&start)); 12];
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = sum.add(L::splat(black_box(i as f32)));
        }
        let (a, b) = (L::splat(black_box(0.999)), L::splat(black_box(0.001)));
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = sum.mul_add(a, b);
            }
        }
        let mut total = sums[0];
        for sum in sums {
            total = total.add(sum);
        }
        let mut out = [0.0; LANES];
        total.store(&mut out);
        out.iter().sum()
    }
}

/// The fastest of several repetitions, in seconds a call.
fn time(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..15 {
        let mut calls = 0u32;
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < 0.01 {
            for _ in 0..8 {
                work();
            }
            calls += 8;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(calls));
    }
    best
}

fn peak(level: Level) -> f64 {
    let rounds = 20_000;
    let seconds = time(|| {
        black_box(level.run(Peak(rounds)));
    });
    f64::from(rounds) * 12.0 * LANES as f64 * 2.0 / seconds
}

fn layers(text: &str) -> Vec<LayerSpec> {
    serde_json::from_str(text).expect("the benchmark's own layers")
}

fn main() {
    let filter = std::env::args()
        .skip(1)
        .find(|a| !a.starts_with("--"))
        .unwrap_or_default();
    let cnn = r#"[{"conv2d": {"out": 8, "size": 3, "padding": 1}}, "relu", "maxpool",
        {"conv2d": {"out": 16, "size": 3, "padding": 1}}, "relu", "maxpool"]"#;
    let networks = [
        (
            "esr tower 12x8 lstm 32",
            Shape::Steps(12, 8),
            r#"[{"lstm": {"hidden": 32}}]"#,
        ),
        (
            "physionet hospital 48x54 lstm 16",
            Shape::Steps(48, 54),
            r#"[{"lstm": {"hidden": 16}}]"#,
        ),
        (
            "physionet device 48x20 lstm 16",
            Shape::Steps(48, 20),
            r#"[{"lstm": {"hidden": 16}}]"#,
        ),
        ("cnn hospital 1x22x22", Shape::Image(1, 22, 22), cnn),
        ("cnn device 1x28x28", Shape::Image(1, 28, 28), cnn),
        (
            "conv 8->16 14x14",
            Shape::Image(8, 14, 14),
            r#"[{"conv2d": {"out": 16, "size": 3, "padding": 1}}]"#,
        ),
        (
            "linear 64 -> 5",
            Shape::Flat(64),
            r#"[{"linear": {"out": 5}}]"#,
        ),
    ];
    for level in Level::available()
        .into_iter()
        .filter(|l| *l != Level::PLAIN)
    {
        let peak = peak(level);
        println!(
            "{}: peak {:.1} GFLOP/s on one core",
            level.name(),
            peak / 1e9
        );
        for (name, shape, text) in &networks {
            if name.contains(&filter) {
                measure(
                    name,
                    Network::new(*shape, &layers(text))
                        .expect("fits")
                        .with_level(level),
                    peak,
                );
            }
        }
    }
}

fn measure(name: &str, network: Network, peak: f64) {
    let mut params = vec![0.0; network.params()];
    network.initialise(Key::new(1), &mut params);
    let mut stream = Key::new(2).stream();
    let input: Vec<f32> = (0..network.input().len())
        .map(|_| stream.normal())
        .collect();
    let d_output: Vec<f32> = (0..network.output().len())
        .map(|_| stream.normal())
        .collect();
    let mut tape = vec![0.0; network.tape()];
    let mut prepared = vec![0.0; network.prepared()];
    let mut scratch = vec![0.0; network.scratch()];
    let mut gradient = vec![0.0; network.params()];
    network.prepare(&params, &mut prepared);
    network.forward(&params, &input, &mut tape);
    let cost = network.cost();

    let forward = time(|| {
        black_box(network.forward(&params, black_box(&input), &mut tape));
    });
    let prepare = time(|| network.prepare(black_box(&params), &mut prepared));
    let backward = time(|| {
        network.backward(
            &prepared,
            &input,
            &tape,
            &d_output,
            Update::Accumulate(&mut gradient),
            &mut scratch,
            None,
        );
    });
    // A device's whole step; a step of length zero, so that the weights stay as they are.
    let total = time(|| {
        network.forward(&params, &input, &mut tape);
        network.prepare(&params, &mut prepared);
        let update = Update::Descend {
            from: None,
            params: &mut params,
            step: 0.0,
            decay: 0.0,
        };
        network.backward(
            &prepared,
            &input,
            &tape,
            &d_output,
            update,
            &mut scratch,
            None,
        );
    });
    let share = |flops: u64, seconds: f64| 100.0 * flops as f64 / seconds / peak;
    println!(
        "  {name:<34} forward {:6.2} µs {:3.0} %  prepare {:5.2}  backward {:6.2} µs {:3.0} %  step {:6.2} µs {:3.0} %",
        forward * 1e6,
        share(cost.forward_flops, forward),
        prepare * 1e6,
        backward * 1e6,
        share(cost.backward_flops, backward),
        total * 1e6,
        share(cost.forward_flops + cost.backward_flops, total),
    );
}

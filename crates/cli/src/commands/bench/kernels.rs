//! Each pass of the networks of the three work sizes, against the machine's own peak in the same run.

use super::machine::peak;
use selvedge_nn::random::Key;
use selvedge_nn::simd::Level;
use selvedge_nn::{ConvSpec, LayerSpec, Network, RecurrentSpec, Shape, Update};
use selvedge_run::format::table;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// One network on some instructions: seconds and shares of the peak of one core.
#[derive(Serialize)]
pub(super) struct Passes {
    level: &'static str,
    peak: f64,
    network: &'static str,
    forward: Pass,
    prepare: Pass,
    backward: Pass,
    /// A device's whole step: all of these, with the weights' step in the backward pass.
    step: Pass,
}

#[derive(Serialize)]
struct Pass {
    seconds: f64,
    share_of_peak: f64,
}

/// The fastest of several repetitions, in seconds a call.
pub(super) fn best_time(mut work: impl FnMut()) -> f64 {
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

/// Measures every network on every kind of fast instructions that this CPU has.
pub(super) fn measure() -> Vec<Passes> {
    let levels = Level::available().into_iter();
    let mut all = Vec::new();
    for level in levels.filter(|level| *level != Level::PLAIN) {
        let networks = networks().into_iter();
        let networks = networks.map(|(name, network)| passes(name, network.with_level(level)));
        let mut networks: Vec<Passes> = networks.collect();
        // The best of all: while others use the machine, one alone can be too low for what is measured after it.
        let best = networks
            .iter()
            .map(|passes| passes.peak)
            .fold(0.0, f64::max);
        networks
            .iter_mut()
            .for_each(|passes| passes.compare_with(best));
        all.extend(networks);
    }
    all
}

impl Passes {
    /// Takes another peak for the machine's.
    fn compare_with(&mut self, peak: f64) {
        let passes = [&mut self.forward, &mut self.backward, &mut self.step];
        passes
            .into_iter()
            .for_each(|pass| pass.share_of_peak *= self.peak / peak);
        self.peak = peak;
    }
}

fn networks() -> Vec<(&'static str, Network)> {
    let lstm = |hidden| vec![LayerSpec::Lstm(RecurrentSpec::new(hidden))];
    let conv = |out| {
        LayerSpec::Conv2d(ConvSpec {
            out,
            size: 3,
            stride: 1,
            padding: 1,
        })
    };
    let pool = LayerSpec::Maxpool { size: 2 };
    let cnn = vec![
        conv(8),
        LayerSpec::Relu,
        pool.clone(),
        conv(16),
        LayerSpec::Relu,
        pool,
    ];
    let networks = [
        ("ESR tower: 12 × 8, LSTM 32", Shape::Steps(12, 8), lstm(32)),
        (
            "PhysioNet hospital: 48 × 54, LSTM 16",
            Shape::Steps(48, 54),
            lstm(16),
        ),
        (
            "PhysioNet device: 48 × 20, LSTM 16",
            Shape::Steps(48, 20),
            lstm(16),
        ),
        (
            "CNN hospital: 22 × 22",
            Shape::Image(1, 22, 22),
            cnn.clone(),
        ),
        ("CNN device: 28 × 28", Shape::Image(1, 28, 28), cnn),
        (
            "its first convolution: 1 → 8, 28 × 28",
            Shape::Image(1, 28, 28),
            vec![conv(8)],
        ),
        (
            "its second convolution: 8 → 16, 14 × 14",
            Shape::Image(8, 14, 14),
            vec![conv(16)],
        ),
        (
            "ESR combined: linear 64 → 5",
            Shape::Flat(64),
            vec![LayerSpec::Linear { out: 5 }],
        ),
    ];
    let build = |(name, shape, layers): (_, _, Vec<_>)| {
        let network = Network::new(shape, &layers).ok()?;
        // A convolution inside a network gives its input's gradient too.
        let inside = matches!(shape, Shape::Image(8, ..) | Shape::Flat(_));
        Some((
            name,
            if inside {
                network.with_input_gradient()
            } else {
                network
            },
        ))
    };
    networks.into_iter().filter_map(build).collect()
}

fn passes(name: &'static str, network: Network) -> Passes {
    let peak = peak(network.level());
    let mut params = vec![0.0; network.params()];
    network.initialise(Key::new(1), &mut params);
    let mut stream = Key::new(2).stream();
    let mut normal = |count: usize| (0..count).map(|_| stream.normal()).collect::<Vec<f32>>();
    let input = normal(network.input().len());
    let d_output = normal(network.output().len());
    let mut d_input = vec![0.0; input.len()];
    let mut tape = vec![0.0; network.tape()];
    let mut prepared = vec![0.0; network.prepared()];
    let mut scratch = vec![0.0; network.scratch()];
    let mut gradient = vec![0.0; network.params()];
    network.prepare(&params, &mut prepared);
    network.forward(&params, &input, &mut tape);

    let forward = best_time(|| {
        black_box(network.forward(&params, black_box(&input), &mut tape));
    });
    let prepare = best_time(|| network.prepare(black_box(&params), &mut prepared));
    let backward = best_time(|| {
        let update = Update::Accumulate(&mut gradient);
        let (scratch, d_input) = (&mut scratch, Some(&mut d_input[..]));
        network.backward(
            &prepared, &input, &tape, &d_output, update, scratch, d_input,
        );
    });
    // A step of length zero, so that the weights stay as they are.
    let step = best_time(|| {
        network.forward(&params, &input, &mut tape);
        network.prepare(&params, &mut prepared);
        let update = Update::Descend {
            from: None,
            params: &mut params,
            step: 0.0,
            decay: 0.0,
        };
        let (scratch, d_input) = (&mut scratch, Some(&mut d_input[..]));
        network.backward(
            &prepared, &input, &tape, &d_output, update, scratch, d_input,
        );
    });
    let cost = network.cost();
    let pass = |flops: u64, seconds: f64| Pass {
        seconds,
        share_of_peak: flops as f64 / seconds / peak,
    };
    Passes {
        level: network.level().name(),
        peak,
        network: name,
        forward: pass(cost.forward_flops, forward),
        prepare: pass(0, prepare),
        backward: pass(cost.backward_flops, backward),
        step: pass(cost.forward_flops + cost.backward_flops, step),
    }
}

/// A table for each kind of instructions.
pub(super) fn text(all: &[Passes]) -> String {
    let mut out = String::new();
    for level in all.chunk_by(|a, b| a.level == b.level) {
        out += &format!(
            "\nOne sample with {}: µs, and share of one core's peak ({:.1} GFLOP/s; only products are counted)\n",
            level[0].level,
            level[0].peak / 1e9
        );
        let mut rows = vec![super::strings(&[
            "", "forward", "", "prepare", "backward", "", "step", "",
        ])];
        for passes in level {
            let time = |pass: &Pass| format!("{:.2}", pass.seconds * 1e6);
            let share = |pass: &Pass| format!("{:.0} %", pass.share_of_peak * 100.0);
            rows.push(vec![
                passes.network.into(),
                time(&passes.forward),
                share(&passes.forward),
                time(&passes.prepare),
                time(&passes.backward),
                share(&passes.backward),
                time(&passes.step),
                share(&passes.step),
            ]);
        }
        out += &table(&rows);
    }
    out
}

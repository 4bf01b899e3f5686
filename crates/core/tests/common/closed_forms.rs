//! What a run is charged, by closed forms.

use super::bills::{random_case, random_time};
use super::{checked, pick, run, task, with_algorithm, within};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{Algorithm, Broadcast, Experiment, TimeSettings};
use selvedge_core::ledger::{Direction, Kind, Ledger, Link};
use selvedge_core::model::Widths;
use selvedge_core::state::Evaluation;
use selvedge_nn::random::Stream;
use std::collections::BTreeMap;
use {Direction::*, Kind::*, Link::*};

/// How one message, or one sample's part of one, is packed: its bytes, and the bits that the paper's counter sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    pub bytes: u64,
    pub bits: u64,
}

pub fn dense(numbers: u64) -> Size {
    Size {
        bytes: 4 * numbers,
        bits: 32 * numbers,
    }
}

/// A codec: its name in an experiment, and the levels that it then has.
#[derive(Clone, Copy, Debug)]
pub enum Codec {
    None,
    TopK(u32),
    Dither(u32),
}

impl Codec {
    pub fn random(draw: &mut Stream) -> Codec {
        let levels = pick(draw, &[2, 3, 16, 100, 128, 128, 65536]);
        pick(
            draw,
            &[Codec::None, Codec::TopK(levels), Codec::Dither(levels)],
        )
    }

    pub fn name(self) -> String {
        match self {
            Codec::None => "none".into(),
            Codec::TopK(levels) => format!("top-k:{levels}"),
            Codec::Dither(levels) => format!("dither:{levels}"),
        }
    }

    /// §6 of the design: the smaller of a bitmap and indices, beside the values; two bounds, beside the codes.
    pub fn size(self, numbers: usize) -> Size {
        let n = numbers as f64;
        let bits = |levels: u32| (n * libm::log2(f64::from(levels))).round() as u64;
        match self {
            _ if numbers == 0 => dense(0),
            Codec::None => dense(numbers as u64),
            Codec::TopK(levels) => {
                let k = ((n * libm::log2(f64::from(levels)) / 32.0).floor() as u64).max(1);
                Size {
                    bytes: (4 * k + numbers.div_ceil(8) as u64).min(8 * k),
                    bits: bits(levels),
                }
            }
            Codec::Dither(levels) => {
                let code = libm::log2(f64::from(levels)).ceil();
                Size {
                    bytes: 8 + (n * code / 8.0).ceil() as u64,
                    bits: bits(levels),
                }
            }
        }
    }
}

/// The messages of a run, by what they hold: θ of one party, ζ of one sample.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub theta0: Size,
    pub theta0_to_device: Size,
    pub zeta1: Size,
    pub zeta2: Size,
    pub theta2_up: Size,
    pub theta2_down: Size,
    pub global_up: [Size; 3],
    pub global_down: [Size; 3],
}

impl Sizes {
    pub fn dense(w: Widths) -> Self {
        Sizes::coded(w, [Codec::None; 7])
    }

    /// Of θ0, ζ1, ζ2, θ2 up and down, θ to the cloud and back.
    pub fn coded(w: Widths, codecs: [Codec; 7]) -> Self {
        let theta = [w.n0, w.n1, w.n2];
        Sizes {
            theta0: codecs[0].size(w.n0),
            theta0_to_device: codecs[0].size(w.n0),
            zeta1: codecs[1].size(w.d1),
            zeta2: codecs[2].size(w.d2),
            theta2_up: codecs[3].size(w.n2),
            theta2_down: codecs[4].size(w.n2),
            global_up: theta.map(|n| codecs[5].size(n)),
            global_down: theta.map(|n| codecs[6].size(n)),
        }
    }
}

/// Messages, bytes and bits of the paper's counter, by link, kind and direction.
#[derive(Debug, Default, PartialEq)]
pub struct Bill(pub BTreeMap<(Link, Kind, Direction), [u64; 3]>);

impl Bill {
    pub fn of(ledger: &Ledger) -> Self {
        let entries = ledger.entries().iter();
        Bill(
            entries
                .map(|e| {
                    (
                        (e.link, e.kind, e.direction),
                        [e.messages, e.bytes, e.paper_bits],
                    )
                })
                .collect(),
        )
    }

    /// Messages that hold so many parts of a size, which only the exact counter sees.
    pub fn uncounted(
        &mut self,
        line: (Link, Kind, Direction),
        messages: u64,
        parts: u64,
        size: Size,
    ) {
        let bits = 0;
        self.counted(line, messages, parts, Size { bits, ..size });
    }

    /// The same, seen by both counters.
    pub fn counted(
        &mut self,
        line: (Link, Kind, Direction),
        messages: u64,
        parts: u64,
        size: Size,
    ) {
        if messages > 0 {
            let add = [messages, parts * size.bytes, parts * size.bits];
            let sum = self.0.entry(line).or_default();
            *sum = [0, 1, 2].map(|i| sum[i] + add[i]);
        }
    }

    /// Up to an interval's end: everything inside of groups. `a` selected devices and `r` receivers of all groups.
    pub fn inside(&mut self, z: Sizes, intervals: u64, groups: u64, [a, r, samples]: [u64; 3]) {
        let (n, all) = (intervals, intervals * a * samples);
        self.counted((DeviceEdge, Theta2, Up), n * a, n * a, z.theta2_up);
        self.uncounted((DeviceEdge, Theta2, Down), n * r, n * r, z.theta2_down);
        self.counted((DeviceEdge, Zeta2, Up), n * a, all, z.zeta2);
        self.uncounted((EdgeHospital, Zeta2, Up), n * groups, all, z.zeta2);
        let messages = n * groups;
        self.counted((EdgeHospital, Theta0, Down), messages, messages, z.theta0);
        self.counted((EdgeHospital, Zeta1, Down), messages, all, z.zeta1);
        self.uncounted((DeviceEdge, Theta0, Down), n * a, n * a, z.theta0_to_device);
        self.uncounted((DeviceEdge, Zeta1, Down), n * a, all, z.zeta1);
    }

    /// HSGD's global aggregations, `n` messages of each kind each way.
    pub fn global(&mut self, z: Sizes, n: u64) {
        let kinds = [
            (HospitalCloud, Theta0),
            (HospitalCloud, Theta1),
            (EdgeCloud, Theta2),
        ];
        for (i, (link, kind)) in kinds.into_iter().enumerate() {
            match kind {
                Theta1 => self.counted((link, kind, Up), n, n, z.global_up[i]),
                _ => self.uncounted((link, kind, Up), n, n, z.global_up[i]),
            }
            self.uncounted((link, kind, Down), n, n, z.global_down[i]);
        }
    }

    pub fn raw(&mut self, link: Link, messages: usize, bytes: u64) {
        let bits = 8 * bytes;
        self.counted((link, Raw, Up), messages as u64, 1, Size { bytes, bits });
    }

    pub fn exact(&self) -> u64 {
        self.0.values().map(|line| line[1]).sum()
    }

    pub fn paper(&self) -> f64 {
        self.0.values().map(|line| line[2]).sum::<u64>() as f64 / 8.0
    }
}

/// A run's settings, as the closed forms name them.
pub struct Case {
    pub e: Experiment,
    pub data: Dataset,
    pub w: Widths,
    pub p: u64,
    pub q: u64,
    /// Samples on each device.
    pub samples: u64,
    /// M, and A of each group that trains.
    pub m: u64,
    pub selected: Vec<u64>,
    pub devices: u64,
}

impl Case {
    pub fn new(seed: u64, draw: &mut Stream, algorithm: Algorithm) -> Self {
        let samples = pick(draw, &[1, 1, 2, 3]);
        let (mut e, data) = random_case(seed, draw, samples);
        e.time = random_time(draw);
        if draw.below(3) == 0 {
            e.train.broadcast = Broadcast::All;
        }
        if draw.below(2) == 0 {
            e.train.raw_bytes = Some(within(draw, 1..1 << 40));
        }
        let e = with_algorithm(&e, algorithm);
        let w = task(&e, &data).architecture.widths();
        let size = |k: usize| ((e.train.participation * k as f64).round() as u64).max(1);
        let selected = match algorithm.merges_groups() {
            true => vec![size(data.devices())],
            false => data.groups.iter().map(|g| size(g.devices())).collect(),
        };
        Case {
            p: e.train.global_interval,
            q: e.train.local_interval,
            samples: samples as u64,
            m: data.groups.len() as u64,
            devices: data.devices() as u64,
            w,
            selected,
            e,
            data,
        }
    }

    /// A of all groups.
    pub fn a(&self) -> u64 {
        self.selected.iter().sum()
    }

    pub fn largest(&self) -> f64 {
        self.selected.iter().copied().max().unwrap_or(0) as f64
    }

    pub fn receivers(&self) -> u64 {
        match self.e.train.broadcast {
            Broadcast::Selected => self.a(),
            Broadcast::All => self.devices,
        }
    }

    /// S, and what of it the devices hold.
    pub fn raw(&self) -> (u64, u64) {
        let (x1, x2) = (self.data.hospital.len(), self.data.device.len());
        let all = 4 * ((x1 + x2 + 1) * self.data.training_samples()) as u64;
        let s = self.e.train.raw_bytes.unwrap_or(all);
        let devices = u128::from(s) * x2 as u128 / (x1 + x2 + 1) as u128;
        (s, devices as u64)
    }

    /// Seconds of Q iterations' computation.
    pub fn compute(&self, iterations: u64) -> f64 {
        iterations as f64 * self.e.time.compute_seconds() * self.e.time.compute_scale
    }

    /// Devices that share an uplink.
    pub fn share(&self, devices: f64) -> f64 {
        if self.e.time.shared_uplink {
            devices
        } else {
            1.0
        }
    }

    /// Two ways of an exchange.
    pub fn exchange(&self, up: f64, down: f64) -> f64 {
        match self.e.time.sequential_exchange {
            true => up + down,
            false => up.max(down),
        }
    }

    /// t_l + t_e + Q·t_c of the group with most devices, which is the slowest.
    pub fn interval(&self, z: Sizes) -> f64 {
        let TimeSettings {
            mobile_up: mu,
            mobile_down: md,
            ..
        } = self.e.time;
        let (a, s, fixed) = (self.largest(), self.samples as f64, fixed(&self.e.time));
        let [theta0, to_device, zeta1, zeta2, up2, down2] = [
            z.theta0,
            z.theta0_to_device,
            z.zeta1,
            z.zeta2,
            z.theta2_up,
            z.theta2_down,
        ]
        .map(bits);
        let t_l = self.share(a) * up2 / mu + down2 / md;
        let up = self.share(a) * s * zeta2 / mu + a * s * zeta2 / fixed;
        let down = (theta0 + a * s * zeta1) / fixed + (to_device + s * zeta1) / md;
        t_l + self.exchange(up, down) + self.compute(self.q)
    }

    pub fn t_g(&self, z: Sizes) -> f64 {
        let slower = |[a, b, c]: [Size; 3]| (bits(a) + bits(b)).max(bits(c));
        slower(z.global_up) / self.e.time.fixed_up + slower(z.global_down) / self.e.time.fixed_down
    }

    /// Runs, and compares the bill at every interval and the seconds at every evaluation with closed forms in t.
    #[track_caller]
    pub fn check(&self, bill: impl Fn(u64) -> Bill, seconds: impl Fn(u64) -> f64) {
        let run = run(&task(&self.e, &self.data));
        let train = &self.e.train;
        let what = |t: u64| format!("t = {t}, A = {:?}, {:?}, {train:?}", self.selected, self.w);
        for state in &run.log.states {
            let t = state.progress.t;
            assert_eq!(Bill::of(&state.progress.ledger), bill(t), "{}", what(t));
        }
        assert_eq!(
            run.log.evaluations.len() as u64,
            train.iterations / self.p + 1
        );
        for &Evaluation {
            t,
            bytes_exact,
            bytes_paper,
            seconds: got,
            ..
        } in &run.log.evaluations
        {
            let (want, m) = (bill(t), self.m as f64);
            let bytes = (want.exact() as f64 / m, want.paper() / m);
            assert_eq!((bytes_exact, bytes_paper), bytes, "{}", what(t));
            let want = seconds(t);
            let near = (got - want).abs() <= 1e-11 * want;
            assert!(
                near,
                "{got} and not {want} s, {}, {:?}",
                what(t),
                self.e.time
            );
        }
    }
}

pub fn bits(size: Size) -> f64 {
    8.0 * size.bytes as f64
}

/// Between two fixed subscribers.
pub fn fixed(time: &TimeSettings) -> f64 {
    time.fixed_up.min(time.fixed_down)
}

/// The experiment with a random codec for every kind of message.
pub fn with_codecs(c: &mut Case, draw: &mut Stream) -> Sizes {
    let codecs = [0; 7].map(|_| Codec::random(draw));
    let [theta0, zeta1, zeta2, up, down, global_up, global_down] = codecs.map(Codec::name);
    let settings = &mut c.e.compression;
    settings.theta0 = Some(theta0);
    settings.zeta1 = Some(zeta1);
    settings.zeta2 = Some(zeta2);
    (settings.device_upload, settings.device_download) = (up, down);
    (settings.global_upload, settings.global_download) = (global_up, global_down);
    settings.error_feedback = draw.below(2) == 0;
    settings.theta0_feedback = draw.below(2) == 0;
    let feedback = settings.theta0_feedback;
    c.e = checked(&c.e);
    let coded = Sizes::coded(c.w, codecs);
    match feedback {
        true => Sizes {
            theta0_to_device: Sizes::dense(c.w).theta0,
            ..coded
        },
        false => coded,
    }
}

//! What the generated set teaches: both sides are needed, and all groups are better than one.
//!
//! The learner is a plain two-tower network in `f64`, written here so that the claim does not rest on the code that the
//! set is meant to exercise.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use selvedge_core::dataset::{Dataset, Samples};
use selvedge_core::experiment::DataSettings;
use selvedge_nn::random::{Key, Stream};

/// A fully connected layer that learns one sample at a time.
struct Linear {
    inputs: usize,
    weight: Vec<f64>,
    bias: Vec<f64>,
}

impl Linear {
    fn new(inputs: usize, outputs: usize, stream: &mut Stream) -> Self {
        let scale = (1.0 / inputs as f64).sqrt();
        let weight = (0..inputs * outputs)
            .map(|_| scale * f64::from(stream.normal()))
            .collect();
        Linear {
            inputs,
            weight,
            bias: vec![0.0; outputs],
        }
    }

    fn forward(&self, x: &[f64]) -> Vec<f64> {
        let dot = |row: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        self.weight
            .chunks(self.inputs)
            .zip(&self.bias)
            .map(|(row, b)| dot(row) + b)
            .collect()
    }

    /// One step down the gradient; returns the gradient of the input.
    fn learn(&mut self, x: &[f64], d_out: &[f64], rate: f64) -> Vec<f64> {
        let mut d_in = vec![0.0; self.inputs];
        for ((row, b), d) in self
            .weight
            .chunks_mut(self.inputs)
            .zip(&mut self.bias)
            .zip(d_out)
        {
            for ((w, x), d_in) in row.iter_mut().zip(x).zip(&mut d_in) {
                *d_in += d * *w;
                *w -= rate * d * x;
            }
            *b -= rate * d;
        }
        d_in
    }
}

/// Two towers of 16 with tanh, then 16 with relu, then the classes: the default model.
struct TwoTowers {
    towers: [Linear; 2],
    hidden: Linear,
    last: Linear,
}

impl TwoTowers {
    fn new(dataset: &Dataset, stream: &mut Stream) -> Self {
        let mut tower = |inputs| Linear::new(inputs, 16, stream);
        let towers = [tower(dataset.hospital.len()), tower(dataset.device.len())];
        let hidden = tower(32);
        TwoTowers {
            towers,
            hidden,
            last: Linear::new(16, dataset.classes.len(), stream),
        }
    }

    fn forward(&self, x: [&[f64]; 2]) -> [Vec<f64>; 3] {
        let zeta = self
            .towers
            .iter()
            .zip(x)
            .flat_map(|(tower, x)| tower.forward(x));
        let zeta: Vec<f64> = zeta.map(libm::tanh).collect();
        let hidden: Vec<f64> = self
            .hidden
            .forward(&zeta)
            .iter()
            .map(|h| h.max(0.0))
            .collect();
        let logits = self.last.forward(&hidden);
        let largest = logits.iter().copied().fold(f64::MIN, f64::max);
        let exp: Vec<f64> = logits.iter().map(|l| libm::exp(l - largest)).collect();
        let sum: f64 = exp.iter().sum();
        [zeta, hidden, exp.iter().map(|e| e / sum).collect()]
    }

    fn learn(&mut self, x: [&[f64]; 2], y: u32, rate: f64) {
        let [zeta, hidden, mut d] = self.forward(x);
        d[y as usize] -= 1.0;
        let mut d_hidden = self.last.learn(&hidden, &d, rate);
        d_hidden
            .iter_mut()
            .zip(&hidden)
            .for_each(|(d, h)| *d *= f64::from(*h > 0.0));
        let mut d_zeta = self.hidden.learn(&zeta, &d_hidden, rate);
        d_zeta
            .iter_mut()
            .zip(&zeta)
            .for_each(|(d, z)| *d *= 1.0 - z * z);
        for ((tower, x), d) in self.towers.iter_mut().zip(x).zip(d_zeta.chunks(16)) {
            tower.learn(x, d, rate);
        }
    }
}

/// Which sides the learner may look at; a hidden side is all zeros.
#[derive(Clone, Copy)]
struct Sides(bool, bool);

const BOTH: Sides = Sides(true, true);

fn sides(dataset: &Dataset, samples: &Samples, row: usize, Sides(s1, s2): Sides) -> [Vec<f64>; 2] {
    let part = |x: &[f32], width: usize, seen: bool| -> Vec<f64> {
        let row = &x[row * width..(row + 1) * width];
        row.iter()
            .map(|&v| if seen { f64::from(v) } else { 0.0 })
            .collect()
    };
    [
        part(&samples.x1, dataset.hospital.len(), s1),
        part(&samples.x2, dataset.device.len(), s2),
    ]
}

/// Trains on some groups and returns the AUC on the test set.
fn test_auc(dataset: &Dataset, groups: &[usize], seen: Sides, steps: usize) -> f64 {
    let rows: Vec<([Vec<f64>; 2], u32)> = groups
        .iter()
        .map(|&group| &dataset.groups[group].samples)
        .flat_map(|s| {
            (0..s.len()).map(move |row| (sides(dataset, s, row, seen), s.y.classes()[row]))
        })
        .collect();
    let mut stream = Key::new(1).stream();
    let mut model = TwoTowers::new(dataset, &mut stream);
    for step in 0..steps {
        let (x, y) = &rows[stream.below(rows.len() as u64) as usize];
        let rate = 0.03 * (1.0 - step as f64 / steps as f64);
        model.learn([&x[0], &x[1]], *y, rate);
    }
    let test = &dataset.test;
    let mut scored: Vec<(f64, u32)> = (0..test.len())
        .map(|row| {
            let x = sides(dataset, test, row, seen);
            (model.forward([&x[0], &x[1]])[2][1], test.y.classes()[row])
        })
        .collect();
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positives = scored.iter().filter(|s| s.1 == 1).count() as f64;
    let negatives = scored.len() as f64 - positives;
    let ranks = scored
        .iter()
        .zip(1..)
        .filter(|(s, _)| s.1 == 1)
        .map(|(_, r)| f64::from(r));
    (ranks.sum::<f64>() - positives * (positives + 1.0) / 2.0) / (positives * negatives)
}

#[test]
fn both_sides_beat_one_and_all_groups_beat_one() {
    let all: Vec<usize> = (0..10).collect();
    for seed in [42, 7] {
        let dataset = selvedge_data::load(&DataSettings::default(), seed, None).unwrap();
        let both = test_auc(&dataset, &all, BOTH, 60_000);
        let hospital = test_auc(&dataset, &all, Sides(true, false), 60_000);
        let device = test_auc(&dataset, &all, Sides(false, true), 60_000);
        let alone: Vec<f64> = all
            .iter()
            .map(|&group| test_auc(&dataset, &[group], BOTH, 20_000))
            .collect();
        println!(
            "seed {seed}: both {both:.3}, hospital {hospital:.3}, device {device:.3}, \
             one group alone {alone:.3?}"
        );
        assert!((0.87..0.95).contains(&both), "seed {seed}: {both:.3}");
        assert!(
            both > hospital + 0.05,
            "seed {seed}: both {both:.3}, hospital {hospital:.3}"
        );
        assert!(
            both > device + 0.05,
            "seed {seed}: both {both:.3}, device {device:.3}"
        );
        for (group, auc) in alone.into_iter().enumerate() {
            assert!(
                both > auc + 0.03,
                "seed {seed}: all {both:.3}, group {group} alone {auc:.3}"
            );
        }
    }
}

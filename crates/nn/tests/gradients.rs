//! Every layer and several stacks against finite differences, and every level against plain code.

mod common;

use common::{network, normals, pass, stacks};
use selvedge_nn::{Network, Shape, Update, random::Key, simd::Level, vector};

/// Σ d_output · output, the function whose gradient the backward pass gives, in double precision.
fn objective(network: &Network, params: &[f32], input: &[f32], d_output: &[f32]) -> f64 {
    let mut tape = vec![0.0; network.tape()];
    let output = network.forward(params, input, &mut tape);
    output
        .iter()
        .zip(d_output)
        .map(|(y, d)| f64::from(*y) * f64::from(*d))
        .sum()
}

#[test]
fn backward_is_the_derivative_of_forward() {
    for (i, (shape, specs)) in stacks().into_iter().enumerate() {
        let key = Key::new(i as u64);
        let network = network(shape, &specs, Level::detect());
        let mut params = vec![0.0; network.params()];
        network.initialise(key, &mut params);
        let input = normals(key.with(1), shape.len());
        let d_output = normals(key.with(2), network.output().len());
        let analytic = pass(&network, &params, &input, &d_output);

        // A step of 2⁻⁹ balances the curvature against single precision. Where it crosses a kink of relu or maxpool the
        // two one-sided slopes differ by `bend`, and the truth lies between them.
        let step = 1.0 / 512.0;
        let mut kinks = 0;
        let mut check = |what: &str, at: usize, analytic: f32, f: &mut dyn FnMut(f32) -> f64| {
            let (ahead, here, behind) = (f(step), f(0.0), f(-step));
            let slope = (ahead - behind) / (2.0 * f64::from(step));
            let bend = (ahead - 2.0 * here + behind).abs() / f64::from(step);
            if bend > 0.02 {
                kinks += 1;
                return;
            }
            let error = (slope - f64::from(analytic)).abs();
            assert!(
                error < 2e-3 * (1.0 + slope.abs()) + bend / 2.0,
                "stack {i} {specs:?}: {what}[{at}] is {analytic}, finite differences say {slope}"
            );
        };
        for at in 0..params.len() {
            check("gradient", at, analytic.gradient[at], &mut |step| {
                let mut moved = params.clone();
                moved[at] += step;
                objective(&network, &moved, &input, &d_output)
            });
        }
        for at in 0..input.len() {
            check("d_input", at, analytic.d_input[at], &mut |step| {
                let mut moved = input.clone();
                moved[at] += step;
                objective(&network, &params, &moved, &d_output)
            });
        }
        assert!(
            kinks * 10 <= params.len() + input.len(),
            "stack {i}: {kinks} kinks"
        );
    }
}

#[test]
fn every_level_gives_the_bits_of_plain_code() {
    for (i, (shape, specs)) in stacks().into_iter().enumerate() {
        let key = Key::new(100 + i as u64);
        let plain = network(shape, &specs, Level::PLAIN);
        let mut params = vec![0.0; plain.params()];
        plain.initialise(key, &mut params);
        let input = normals(key.with(1), shape.len());
        let d_output = normals(key.with(2), plain.output().len());
        let expected = pass(&plain, &params, &input, &d_output);
        for level in Level::available() {
            let ours = pass(&network(shape, &specs, level), &params, &input, &d_output);
            assert_eq!(ours, expected, "stack {i} {specs:?} on {level:?}");
        }
    }
}

#[test]
fn backward_adds_to_the_gradient() {
    let (shape, specs) = stacks()
        .into_iter()
        .find(|(shape, specs)| *shape == Shape::Flat(30) && specs.len() == 3)
        .expect("window, lstm, linear");
    let network = network(shape, &specs, Level::detect());
    let mut params = vec![0.0; network.params()];
    network.initialise(Key::new(1), &mut params);
    let (a, b) = (
        normals(Key::new(2), shape.len()),
        normals(Key::new(3), shape.len()),
    );
    let d_output = normals(Key::new(4), network.output().len());
    let one_by_one = [&a, &b].map(|x| pass(&network, &params, x, &d_output).gradient);

    let mut tape = vec![0.0; network.tape()];
    let mut prepared = vec![0.0; network.prepared()];
    let mut scratch = vec![0.0; network.scratch()];
    let mut gradient = vec![0.0; network.params()];
    network.prepare(&params, &mut prepared);
    for x in [&a, &b] {
        network.forward(&params, x, &mut tape);
        network.backward(
            &prepared,
            x,
            &tape,
            &d_output,
            Update::Accumulate(&mut gradient),
            &mut scratch,
            None,
        );
    }
    for i in 0..gradient.len() {
        let sum = one_by_one[0][i] + one_by_one[1][i];
        assert!(
            (gradient[i] - sum).abs() < 1e-5,
            "{i}: {} {sum}",
            gradient[i]
        );
    }
}

#[test]
fn without_an_input_gradient_the_weights_get_the_same_bits() {
    for (i, (shape, specs)) in stacks().into_iter().enumerate() {
        let with = network(shape, &specs, Level::detect());
        let without = Network::new(shape, &specs).unwrap();
        let mut params = vec![0.0; with.params()];
        with.initialise(Key::new(i as u64), &mut params);
        let input = normals(Key::new(5), shape.len());
        let d_output = normals(Key::new(6), with.output().len());
        let expected = pass(&with, &params, &input, &d_output).gradient;
        assert_eq!(
            pass(&without, &params, &input, &d_output).gradient,
            expected,
            "stack {i}"
        );
        assert!(without.cost().backward_flops <= with.cost().backward_flops);
    }
}

#[test]
fn stepping_at_once_is_accumulating_and_then_stepping_to_the_bit() {
    for (i, (shape, specs)) in stacks().into_iter().enumerate() {
        for level in Level::available() {
            let network = network(shape, &specs, level);
            let mut params = vec![0.0; network.params()];
            network.initialise(Key::new(i as u64), &mut params);
            let input = normals(Key::new(5), shape.len());
            let d_output = normals(Key::new(6), network.output().len());
            let gradient = pass(&network, &params, &input, &d_output).gradient;
            let mut expected = params.clone();
            vector::descend(level, &mut expected, &gradient, 0.1, 0.01);

            let mut tape = vec![0.0; network.tape()];
            let mut prepared = vec![0.0; network.prepared()];
            let mut scratch = vec![f32::NAN; network.scratch()];
            network.prepare(&params, &mut prepared);
            network.forward(&params, &input, &mut tape);
            let update = Update::Descend {
                from: None,
                params: &mut params,
                step: 0.1,
                decay: 0.01,
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
            assert_eq!(params, expected, "stack {i} {specs:?} on {level:?}");
        }
    }
}

/// The definition in double precision, whose finite differences also hold where a power is close to none: there the
/// slopes are steep, and single precision would find nothing but its own rounding.
#[test]
fn a_spectrum_is_its_definition_and_has_its_slopes() {
    for (shape, size) in [
        (Shape::Flat(89), 89),
        (Shape::Flat(16), 16),
        (Shape::Flat(1), 1),
        (Shape::Steps(5, 12), 12),
    ] {
        let network = network(shape, &common::layers(r#"["spectrum"]"#), Level::detect());
        // A signal with little in its highest frequencies.
        let noise = normals(Key::new(size as u64), shape.len());
        let wave = |i: usize| libm::sin(i as f64 / 3.0) as f32 + 0.1 * noise[i];
        let input: Vec<f32> = (0..shape.len()).map(wave).collect();
        let d_output = normals(Key::new(7), network.output().len());
        let ours = pass(&network, &[], &input, &d_output);

        let spectrum = |x: &[f64]| -> Vec<f64> {
            let one = |row: &[f64], k: usize| {
                let part = |f: fn(f64) -> f64| -> f64 {
                    let turn = 2.0 * std::f64::consts::PI * k as f64 / size as f64;
                    let terms = row.iter().enumerate().map(|(i, x)| x * f(turn * i as f64));
                    terms.sum()
                };
                let power = (part(libm::cos).powi(2) + part(libm::sin).powi(2)) / size as f64;
                libm::log(1e-4 + power)
            };
            let rows = x.chunks(size);
            rows.flat_map(|row| (0..=size / 2).map(move |k| one(row, k)))
                .collect()
        };
        let x: Vec<f64> = input.iter().map(|x| f64::from(*x)).collect();
        for (ours, truth) in ours.output.iter().zip(spectrum(&x)) {
            assert!((f64::from(*ours) - truth).abs() < 2e-4, "{ours} {truth}");
        }
        let objective = |x: &[f64]| -> f64 {
            let all = spectrum(x).into_iter().zip(&d_output);
            all.map(|(y, d)| y * f64::from(*d)).sum()
        };
        let (mut largest, mut error) = (0.0_f64, 0.0_f64);
        for (at, ours) in ours.d_input.iter().enumerate() {
            let moved = |step: f64| {
                let mut x = x.clone();
                x[at] += step;
                objective(&x)
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            largest = largest.max(slope.abs());
            error = error.max((f64::from(*ours) - slope).abs());
        }
        assert!(error < 1e-4 * largest, "{shape}: {error} of {largest}");
    }
}

//! What the layer `spectrum` computes: constants that exported models need too.

/// Added to every power before its logarithm, whose slope is thereby at most 1/√ε. Of a signal with a variance of 1 that
/// is white, every power is 1 on average; of half a second of an EEG, scaled like that, one in fifteen is below this.
pub const FLOOR: f32 = 1e-4;

/// The longest window: its tables have 34 MB. A longer signal is cut by a `window`.
pub const LONGEST: usize = 2048;

/// Frequencies of a window, from none to half the sampling rate.
pub fn bins(size: usize) -> usize {
    size / 2 + 1
}

/// The real and the imaginary part of the discrete Fourier transform of `size` numbers, as rows for each number: its
/// cosines for each frequency, and its sines. Divided by √size, so that the powers of a signal have its variance as
/// their mean, however long the window is.
pub fn tables(size: usize) -> [Vec<f32>; 2] {
    let unit = 1.0 / libm::sqrt(size as f64);
    // All angles are whole shares of a turn.
    let turn = |share: usize| 2.0 * std::f64::consts::PI * share as f64 / size as f64;
    let parts = [libm::cos as fn(f64) -> f64, |angle| -libm::sin(angle)];
    parts.map(|part| {
        let shares: Vec<f32> = (0..size)
            .map(|share| (unit * part(turn(share))) as f32)
            .collect();
        let places = (0..size).flat_map(|i| (0..bins(size)).map(move |k| i * k % size));
        places.map(|share| shares[share]).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parseval: all powers, those of frequencies that have a mirror image twice, add up to the square of the signal.
    #[test]
    fn no_energy_is_lost() {
        for size in [1, 2, 3, 8, 89] {
            let [cosines, sines] = tables(size);
            let signal: Vec<f64> = (0..size).map(|i| (i * i % 7) as f64 - 2.5).collect();
            let part = |table: &[f32], k: usize| -> f64 {
                let column = table.iter().skip(k).step_by(bins(size));
                column.zip(&signal).map(|(t, x)| f64::from(*t) * x).sum()
            };
            let power = |k: usize| {
                let mirrored = k > 0 && 2 * k < size;
                let (real, imaginary) = (part(&cosines, k), part(&sines, k));
                (real * real + imaginary * imaginary) * if mirrored { 2.0 } else { 1.0 }
            };
            let total: f64 = (0..bins(size)).map(power).sum();
            let square: f64 = signal.iter().map(|x| x * x).sum();
            assert!(
                (total / square - 1.0).abs() < 1e-5,
                "{size}: {total} {square}"
            );
        }
    }
}

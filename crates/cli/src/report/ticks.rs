//! Where an axis has its ticks, and what stands beside them.

use selvedge_run::format::count;

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    /// Values of 0 and below have no place on it.
    Log,
}

/// What the numbers of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Number,
    Bytes,
    Seconds,
}

/// A tick: its value and its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) text: String,
}

/// The ticks of an axis, and the unit that its title has to name.
pub(super) struct Ticks {
    pub(super) ticks: Vec<Tick>,
    pub(super) unit: Option<&'static str>,
}

/// Ticks at round values between `lo` and `hi`, about `wanted` of them.
pub(super) fn ticks(lo: f64, hi: f64, wanted: usize, scale: Scale, unit: Unit) -> Ticks {
    match scale {
        Scale::Linear => linear(lo, hi, wanted, unit),
        Scale::Log => logarithmic(lo, hi, wanted, unit),
    }
}

/// Ticks at these values, written in full.
pub(super) fn at_values(values: &[f64]) -> Ticks {
    let tick = |value: &f64| Tick {
        value: *value,
        text: value.to_string(),
    };
    Ticks {
        ticks: values.iter().map(tick).collect(),
        unit: None,
    }
}

fn linear(lo: f64, hi: f64, wanted: usize, unit: Unit) -> Ticks {
    let (factor, name) = match unit {
        Unit::Number => (1.0, None),
        Unit::Bytes => scaled(hi, &BYTES),
        Unit::Seconds => scaled(hi, &[(1.0, "s"), (120.0, "min"), (7200.0, "h")]),
    };
    // From two minutes on in minutes, of 60 seconds each; from two hours on in hours.
    let factor = match name {
        Some("min") => 60.0,
        Some("h") => 3600.0,
        _ => factor,
    };
    let (lo, hi) = (lo / factor, hi / factor);
    let step = nice_step((hi - lo) / wanted.max(1) as f64);
    let first = (lo / step - 1e-9).ceil();
    let ticks = (0..=2 * wanted + 2)
        .map(|i| (first + i as f64) * step)
        .take_while(|value| *value <= hi + 1e-9 * step)
        // Never `-0`.
        .map(|value| {
            if value.abs() < 1e-9 * step {
                0.0
            } else {
                value
            }
        })
        .map(|value| Tick {
            value: value * factor,
            text: number(value, step),
        });
    Ticks {
        ticks: ticks.collect(),
        unit: name,
    }
}

const BYTES: [(f64, &str); 5] = [
    (1.0, "B"),
    (1e3, "kB"),
    (1e6, "MB"),
    (1e9, "GB"),
    (1e12, "TB"),
];

/// The largest unit that `value` has at least one of.
fn scaled(value: f64, units: &[(f64, &'static str)]) -> (f64, Option<&'static str>) {
    let unit = units.iter().rev().find(|(from, _)| value >= *from);
    let (factor, name) = unit.unwrap_or(&units[0]);
    (*factor, Some(name))
}

/// 1, 2 or 5 times a power of ten, as near to `rough` as these come.
pub(super) fn nice_step(rough: f64) -> f64 {
    if !rough.is_finite() || rough <= 0.0 {
        return 1.0;
    }
    let power = libm::pow(10f64, libm::log10(rough).floor());
    let mantissa = rough / power;
    // The geometric middles between neighbours.
    let step = match mantissa {
        m if m < 2f64.sqrt() => 1.0,
        m if m < 10f64.sqrt() => 2.0,
        m if m < 50f64.sqrt() => 5.0,
        _ => 10.0,
    };
    step * power
}

fn logarithmic(lo: f64, hi: f64, wanted: usize, unit: Unit) -> Ticks {
    let decades = (libm::log10(lo).floor() as i32)..=(libm::log10(hi).ceil() as i32);
    let span = libm::log10(hi) - libm::log10(lo);
    let multiples: &[f64] = match span {
        s if s < 1.0 => &[1.0, 2.0, 3.0, 5.0, 7.0],
        s if s < 2.5 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    // Over many decades, only some of them.
    let every = (span / wanted.max(1) as f64).ceil().max(1.0) as i32;
    let values = decades
        .filter(|d| d.rem_euclid(every) == 0)
        .flat_map(|d| multiples.iter().map(move |m| m * 10f64.powi(d)))
        .filter(|v| (lo * (1.0 - 1e-9)..=hi * (1.0 + 1e-9)).contains(v));
    let tick = |value: f64| Tick {
        text: match unit {
            Unit::Bytes => whole_bytes(value),
            _ => number(value, value),
        },
        value,
    };
    Ticks {
        ticks: values.map(tick).collect(),
        unit: match unit {
            Unit::Seconds => Some("s"),
            _ => None,
        },
    }
}

/// `20 kB`: ticks are round, so that no decimals are needed.
fn whole_bytes(value: f64) -> String {
    let (factor, name) = scaled(value * (1.0 + 1e-9), &BYTES);
    let value = number(value / factor, value / factor);
    format!("{value} {}", name.unwrap_or_default())
}

/// A number with the decimals that `step` has.
fn number(value: f64, step: f64) -> String {
    if value != 0.0 && (value.abs() >= 1e9 || step.abs() < 1e-5) {
        return format!("{value:.1e}");
    }
    let decimals = (-libm::log10(step.abs() * (1.0 + 1e-9)).floor()).clamp(0.0, 6.0) as usize;
    if decimals == 0 && value >= 1000.0 {
        return count(value.round() as u64);
    }
    format!("{value:.decimals$}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lo: f64, hi: f64, scale: Scale, unit: Unit) -> Vec<String> {
        let found = ticks(lo, hi, 5, scale, unit).ticks;
        assert!(found.windows(2).all(|w| w[0].value < w[1].value));
        found.into_iter().map(|t| t.text).collect()
    }

    #[test]
    fn steps_are_round() {
        let near = |rough: f64, step: f64| {
            assert!((nice_step(rough) / step - 1.0).abs() < 1e-9, "{rough}")
        };
        near(0.11, 0.1);
        near(0.2, 0.2);
        near(34.0, 50.0);
        near(72.0, 100.0);
        near(0.0, 1.0);
        near(f64::NAN, 1.0);
    }

    #[test]
    fn linear_ticks_read_well() {
        let n = Unit::Number;
        assert_eq!(
            texts(0.0, 1000.0, Scale::Linear, n),
            ["0", "200", "400", "600", "800", "1,000"]
        );
        assert_eq!(
            texts(0.81, 0.93, Scale::Linear, n),
            ["0.82", "0.84", "0.86", "0.88", "0.90", "0.92"]
        );
        assert_eq!(
            texts(-1.0, 1.0, Scale::Linear, n),
            ["−1.0", "−0.5", "0.0", "0.5", "1.0"]
        );
        assert_eq!(
            texts(0.0, 20.1e6, Scale::Linear, Unit::Bytes),
            ["0", "5", "10", "15", "20"]
        );
        assert_eq!(
            ticks(0.0, 20.1e6, 5, Scale::Linear, Unit::Bytes).unit,
            Some("MB")
        );
        assert_eq!(
            texts(0.0, 600.0, Scale::Linear, Unit::Seconds),
            ["0", "2", "4", "6", "8", "10"]
        );
        assert_eq!(
            ticks(0.0, 600.0, 5, Scale::Linear, Unit::Seconds).unit,
            Some("min")
        );
    }

    #[test]
    fn logarithmic_ticks_read_well() {
        let n = Unit::Number;
        assert_eq!(
            texts(20.0, 1000.0, Scale::Log, n),
            ["20", "50", "100", "200", "500", "1,000"]
        );
        assert_eq!(
            texts(1.0, 1e5, Scale::Log, n),
            ["1", "10", "100", "1,000", "10,000", "100,000"]
        );
        assert_eq!(
            texts(5e3, 3e6, Scale::Log, Unit::Bytes),
            ["10 kB", "100 kB", "1 MB"]
        );
        assert_eq!(
            texts(0.05, 60.0, Scale::Log, Unit::Seconds),
            ["0.1", "1", "10"]
        );
        assert!(texts(1e-30, 1e30, Scale::Log, n).len() < 12);
    }

    #[test]
    fn odd_ranges_end() {
        for (lo, hi) in [
            (0.0, 0.0),
            (1.0, 1.0 + 1e-15),
            (0.0, 1e300),
            (-1e300, 1e300),
            (1e-300, 2e-300),
        ] {
            assert!(ticks(lo, hi, 5, Scale::Linear, Unit::Number).ticks.len() < 20);
        }
    }
}

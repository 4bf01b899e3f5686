//! The generated set: sizes, sameness, differences between groups, and settings that cannot work.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{DataSettings, Features};
use selvedge_data::load;
use selvedge_nn::Shape;

fn generate(settings: &DataSettings) -> Dataset {
    load(settings, 42, None).unwrap()
}

#[test]
fn counts_are_as_asked() {
    let settings = DataSettings {
        groups: 3,
        devices: 40,
        samples_per_device: 5,
        features: Features {
            hospital: Shape::Flat(7),
            device: Shape::Flat(4),
        },
        classes: 3,
        test: 0.25,
        validation: 0.1,
        ..DataSettings::default()
    };
    let dataset = generate(&settings);
    assert_eq!(
        (
            dataset.groups.len(),
            dataset.devices(),
            dataset.training_samples()
        ),
        (3, 120, 600)
    );
    assert_eq!((dataset.validation.len(), dataset.test.len()), (60, 165));
    assert_eq!(dataset.classes, ["0", "1", "2"]);
    for group in &dataset.groups {
        assert_eq!(group.rows(39), 195..200);
        assert_eq!(
            (group.samples.x1.len(), group.samples.x2.len()),
            (200 * 7, 200 * 4)
        );
    }
    assert_eq!(
        (dataset.test.x1.len(), dataset.test.x2.len()),
        (165 * 7, 165 * 4)
    );
}

#[test]
fn rows_do_not_depend_on_threads_or_on_each_other() {
    let settings = DataSettings {
        devices: 2_500,
        ..DataSettings::default()
    };
    let many = generate(&settings);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    assert_eq!(pool.install(|| generate(&settings)), many);
    let few = generate(&DataSettings {
        devices: 3,
        ..settings
    });
    for (few, many) in few.groups.iter().zip(&many.groups) {
        assert_eq!(few.samples.x1, many.samples.x1[..3 * 16]);
        assert_eq!(few.samples.x2, many.samples.x2[..3 * 16]);
        assert_eq!(few.samples.y.classes(), &many.samples.y.classes()[..3]);
    }
    assert_eq!(few.test.x1, many.test.x1[..few.test.len() * 16]);
    let other = load(&DataSettings::default(), 43, None).unwrap();
    assert_ne!(
        other.fingerprint(),
        generate(&DataSettings::default()).fingerprint()
    );
}

#[test]
fn features_are_about_standardised_and_laboratory_values_are_skewed() {
    let dataset = generate(&DataSettings {
        devices: 1_000,
        ..DataSettings::default()
    });
    let moments = |side: fn(&selvedge_core::dataset::Samples) -> &[f32], feature: usize| {
        let values: Vec<f64> = dataset
            .groups
            .iter()
            .flat_map(|group| side(&group.samples)[feature..].iter().step_by(16))
            .map(|&x| f64::from(x))
            .collect();
        let mean = |power| values.iter().map(|x| x.powi(power)).sum::<f64>() / values.len() as f64;
        [mean(1), mean(2), mean(3)]
    };
    for feature in 0..16 {
        let [mean, square, cube] = moments(|s| &s.x1, feature);
        assert!(
            mean.abs() < 0.05 && (square - 1.0).abs() < 0.12,
            "{mean} {square}"
        );
        assert!(
            cube > 0.5,
            "laboratory value {feature} is not skewed: {cube}"
        );
        let [mean, square, cube] = moments(|s| &s.x2, feature);
        assert!(
            mean.abs() < 0.05 && (square - 1.0).abs() < 0.12,
            "{mean} {square}"
        );
        assert!(cube.abs() < 0.4, "vital sign {feature} is skewed: {cube}");
    }
}

#[test]
fn groups_differ_in_labels_and_all_classes_occur() {
    for classes in [2, 3, 5, 11] {
        let settings = DataSettings {
            classes,
            devices: 500,
            ..DataSettings::default()
        };
        let dataset = generate(&settings);
        let shares: Vec<Vec<f64>> = dataset
            .groups
            .iter()
            .map(|group| {
                let count = |class| {
                    group
                        .samples
                        .y
                        .classes()
                        .iter()
                        .filter(|&&y| y == class)
                        .count()
                };
                (0..classes as u32)
                    .map(|class| count(class) as f64 / 500.0)
                    .collect()
            })
            .collect();
        for class in 0..classes {
            let of_class: Vec<f64> = shares.iter().map(|group| group[class]).collect();
            let mean = of_class.iter().sum::<f64>() / 10.0;
            assert!(
                mean > 0.3 / classes as f64,
                "class {class} of {classes}: {mean}"
            );
            let most = of_class.iter().copied().fold(0.0, f64::max);
            let least = of_class.iter().copied().fold(1.0, f64::min);
            assert!(
                most > 1.5 * least,
                "class {class} of {classes}: {of_class:?}"
            );
        }
    }
}

#[test]
fn the_smallest_sets_work() {
    let settings = DataSettings {
        groups: 1,
        devices: 1,
        features: Features {
            hospital: Shape::Flat(1),
            device: Shape::Flat(1),
        },
        noise: 0.0,
        test: 0.0,
        ..DataSettings::default()
    };
    let dataset = generate(&settings);
    assert_eq!((dataset.training_samples(), dataset.test.len()), (1, 0));
    assert!(dataset.groups[0].samples.x1[0].is_finite());
}

#[test]
fn settings_that_cannot_work_are_named() {
    let check = |change: &dyn Fn(&mut DataSettings), part: &str| {
        let mut settings = DataSettings::default();
        change(&mut settings);
        let message = load(&settings, 1, None).unwrap_err().to_string();
        assert!(message.contains(part), "{part:?} is not in: {message}");
    };
    check(&|s| s.groups = 0, "data.groups = 0: expected at least 1");
    check(&|s| s.devices = 0, "data.devices = 0: expected at least 1");
    check(
        &|s| s.samples_per_device = 0,
        "data.samples_per_device = 0: expected at least 1",
    );
    check(
        &|s| s.features.device = Shape::Flat(0),
        "data.features = [16, 0]: expected at least 1 on each side",
    );
    check(&|s| s.classes = 1, "data.classes = 1: expected 2 to");
    check(&|s| s.noise = -0.5, "data.noise = -0.5: expected 0");
    check(&|s| s.noise = f64::NAN, "data.noise = NaN: expected 0");
    check(
        &|s| s.test = 1.5,
        "data.test = 1.5: expected at least 0 and less than 1",
    );
    check(
        &|s| s.validation = -0.1,
        "data.validation = -0.1: expected at least 0 and less than 1",
    );
    check(
        &|s| s.split = "recording".into(),
        "data.split = \"recording\"",
    );
    check(&|s| s.devices = 1 << 32, "data.devices = 4294967296");
    check(&|s| s.devices = usize::MAX, "expected at most 2147483648");
    check(&|s| s.groups = usize::MAX, "expected at most 64 GiB");
    check(
        &|s| s.features.hospital = Shape::Flat(usize::MAX),
        "expected at most 64 GiB",
    );
    check(
        &|s| s.set = "syntetic".into(),
        "did you mean \"synthetic\"?",
    );
}

#[test]
fn the_first_row_is_the_same_on_every_machine() {
    let dataset = generate(&DataSettings::default());
    let first = &dataset.groups[0].samples;
    let bits = |x: &[f32]| [x[0].to_bits(), x[15].to_bits()];
    assert_eq!(bits(&first.x1), [0xbf08_366d, 0x3f17_7aec]);
    assert_eq!(bits(&first.x2), [0x3e9e_804d, 0x3f01_966a]);
    assert_eq!(first.y.classes()[0], 0);
}

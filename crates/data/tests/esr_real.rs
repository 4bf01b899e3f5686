//! The real ESR file: counts, sizes and shapes of what training sees.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::{esr_settings, real_data};
use selvedge_core::experiment::DataSettings;
use selvedge_data::{load, load_with_notes};
use selvedge_nn::Shape;

fn label_counts(labels: &[u32]) -> [usize; 5] {
    std::array::from_fn(|class| labels.iter().filter(|&&y| y as usize == class).count())
}

#[test]
fn the_papers_split() {
    let Some(folder) = real_data("the_papers_split") else {
        return;
    };
    let loaded = load_with_notes(&esr_settings(), 42, Some(&folder)).unwrap();
    let (dataset, notes) = (loaded.dataset, loaded.notes);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(
        (dataset.hospital, dataset.device),
        (Shape::Flat(89), Shape::Flat(89))
    );
    assert_eq!(dataset.classes, ["1", "2", "3", "4", "5"]);
    assert_eq!(label_counts(dataset.test.y.classes()), [460; 5]);
    assert!(dataset.validation.is_empty());
    assert_eq!(dataset.training_samples(), 9_200);
    let mut pairs = Vec::new();
    for group in &dataset.groups {
        assert_eq!((group.devices(), group.samples.len()), (920, 920));
        assert_eq!(group.samples.x1.len(), 920 * 89);
        assert_eq!(group.samples.x2.len(), 920 * 89);
        let counts = label_counts(group.samples.y.classes());
        let pair: Vec<usize> = (0..5).filter(|&class| counts[class] == 350).collect();
        let others: Vec<usize> = counts.into_iter().filter(|&count| count != 350).collect();
        assert_eq!((pair.len(), others.iter().sum()), (2, 220), "{counts:?}");
        assert!(
            others.iter().all(|count| [73, 74].contains(count)),
            "{counts:?}"
        );
        assert_eq!(
            group.name,
            format!("labels {}+{}", pair[0] + 1, pair[1] + 1)
        );
        pairs.push(pair);
    }
    pairs.sort();
    pairs.dedup();
    assert_eq!(pairs.len(), 10, "all ten pairs");

    let values = || {
        dataset
            .groups
            .iter()
            .flat_map(|g| g.samples.x1.iter().chain(&g.samples.x2))
    };
    let count = values().count() as f64;
    let mean = values().map(|&x| f64::from(x)).sum::<f64>() / count;
    let variance = values().map(|&x| f64::from(x).powi(2)).sum::<f64>() / count;
    assert!(
        mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-6,
        "{mean} {variance}"
    );
}

#[test]
fn validation_and_several_samples_per_device() {
    let Some(folder) = real_data("validation_and_several_samples_per_device") else {
        return;
    };
    let settings = DataSettings {
        validation: 0.1,
        samples_per_device: 25,
        ..esr_settings()
    };
    let dataset = load(&settings, 42, Some(&folder)).unwrap();
    assert_eq!(label_counts(dataset.validation.y.classes()), [184; 5]);
    for group in &dataset.groups {
        assert_eq!((group.samples.len(), group.devices()), (828, 34));
        assert_eq!(group.rows(0), 0..25);
        assert_eq!(group.rows(33), 825..828);
    }
    let settings = DataSettings {
        validation: 0.0,
        test: 0.1997,
        ..esr_settings()
    };
    let loaded = load_with_notes(&settings, 42, Some(&folder)).unwrap();
    let (dataset, notes) = (loaded.dataset, loaded.notes);
    assert_eq!(dataset.training_samples(), 9_200);
    assert_eq!(dataset.test.len(), 2_295);
    assert_eq!(
        notes,
        ["5 of 9205 training rows are left out to make all groups the same size"]
    );
}

#[test]
fn the_split_by_recording() {
    let Some(folder) = real_data("the_split_by_recording") else {
        return;
    };
    let settings = DataSettings {
        split: "recording".into(),
        ..esr_settings()
    };
    let dataset = load(&settings, 42, Some(&folder)).unwrap();
    assert_eq!(label_counts(dataset.test.y.classes()), [460; 5]);
    for group in &dataset.groups {
        assert_eq!(group.devices(), 40 * 23);
        let mut counts = label_counts(group.samples.y.classes());
        counts.sort_unstable();
        assert_eq!(counts, [3 * 23, 3 * 23, 4 * 23, 15 * 23, 15 * 23]);
    }
}

#[test]
fn the_seed_decides() {
    let Some(folder) = real_data("the_seed_decides") else {
        return;
    };
    let load = |seed| load(&esr_settings(), seed, Some(&folder)).unwrap();
    let first = load(1);
    assert_eq!(first, load(1));
    assert_ne!(first.fingerprint(), load(2).fingerprint());
}

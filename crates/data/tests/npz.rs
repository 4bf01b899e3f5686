//! The `.npz` that is written, read back by a reader that follows the ZIP and NPY layouts literally.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod common;

use common::archive::{array, floats, integers, unzip};
use selvedge_core::dataset::Dataset;
use selvedge_core::experiment::{DataSettings, Features};
use selvedge_data::{load, write_npz};
use selvedge_nn::Shape;
use std::collections::BTreeMap;
use std::io::Cursor;

fn written(settings: &DataSettings) -> (Dataset, BTreeMap<String, Vec<u8>>) {
    let dataset = load(settings, 9, None).unwrap();
    let mut archive = Vec::new();
    write_npz(&dataset, Cursor::new(&mut archive)).unwrap();
    (dataset, unzip(&archive))
}

#[test]
fn what_is_written_is_what_training_sees() {
    let settings = DataSettings {
        groups: 2,
        devices: 30,
        features: Features {
            hospital: Shape::Flat(5),
            device: Shape::Flat(3),
        },
        validation: 0.1,
        ..DataSettings::default()
    };
    let (dataset, files) = written(&settings);
    assert_eq!(files.len(), 4 * 3);
    let sets = [
        ("g0", &dataset.groups[0].samples),
        ("g1", &dataset.groups[1].samples),
        ("test", &dataset.test),
        ("validation", &dataset.validation),
    ];
    for (prefix, samples) in sets {
        for (side, values, width) in [("x1", &samples.x1, 5), ("x2", &samples.x2, 3)] {
            let (header, bytes) = array(&files, &format!("{prefix}_{side}"));
            assert!(header.contains("'<f4'"), "{header}");
            assert!(
                header.contains(&format!("({}, {width})", samples.len())),
                "{header}"
            );
            assert_eq!(&floats(bytes), values);
        }
        let (header, bytes) = array(&files, &format!("{prefix}_y"));
        assert!(header.contains("'<i8'"), "{header}");
        assert!(
            header.contains(&format!("({},)", samples.len())),
            "{header}"
        );
        assert_eq!(integers(bytes), samples.y.classes());
    }
}

#[test]
fn offsets_are_there_when_a_device_has_several_rows() {
    let settings = DataSettings {
        groups: 2,
        devices: 4,
        samples_per_device: 3,
        test: 0.0,
        ..DataSettings::default()
    };
    let (_, files) = written(&settings);
    assert_eq!(integers(array(&files, "g1_offsets").1), [0, 3, 6, 9, 12]);
    assert_eq!(array(&files, "test_x1").1.len(), 0);
    assert!(!files.contains_key("validation_x1.npy"));
}

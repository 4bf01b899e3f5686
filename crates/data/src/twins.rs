//! Synthetic twins: generated patients in the shape of a set from files, so that its experiments run without any.

use selvedge_core::experiment::{DataSettings, Features};
use selvedge_nn::Shape;

/// The shape of a set and how many training rows a group of ten has.
struct Twin {
    set: &'static str,
    hospital: Shape,
    device: Shape,
    classes: usize,
    devices: usize,
}

const TWINS: [Twin; 5] = [
    Twin {
        set: "synthetic-esr",
        hospital: Shape::Flat(89),
        device: Shape::Flat(89),
        classes: 5,
        devices: 920,
    },
    Twin {
        set: "synthetic-mednist",
        hospital: Shape::Image(1, 22, 22),
        device: Shape::Image(1, 28, 28),
        classes: 6,
        devices: 3_510,
    },
    Twin {
        set: "synthetic-mimic3",
        hospital: Shape::Steps(48, 38),
        device: Shape::Steps(48, 38),
        classes: 2,
        devices: 1_468,
    },
    Twin {
        set: "synthetic-organamnist",
        hospital: Shape::Image(1, 22, 22),
        device: Shape::Image(1, 28, 28),
        classes: 11,
        devices: 3_456,
    },
    Twin {
        set: "synthetic-physionet2012",
        hospital: Shape::Steps(48, 54),
        device: Shape::Steps(48, 20),
        classes: 2,
        devices: 400,
    },
];

/// What to generate for the twin of that name; nothing if there is none. How a set from files is found and dealt has no
/// meaning for it.
pub(crate) fn of(set: &str, settings: &DataSettings) -> Option<DataSettings> {
    let twin = TWINS.iter().find(|twin| twin.set == set)?;
    let is_told = settings.devices != DataSettings::default().devices;
    Some(DataSettings {
        path: String::new(),
        vertical: String::new(),
        split: "paper".into(),
        devices: if is_told {
            settings.devices
        } else {
            twin.devices
        },
        features: Features {
            hospital: twin.hospital,
            device: twin.device,
        },
        classes: twin.classes,
        ..settings.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_twin_is_a_set() {
        for twin in TWINS {
            assert!(crate::SETS.contains(&twin.set), "{}", twin.set);
        }
        assert!(of("synthetic-nothing", &DataSettings::default()).is_none());
    }
}

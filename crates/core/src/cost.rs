//! What an iteration costs a device: little, or it could not be a phone or a watch.

use crate::experiment::Algorithm;
use crate::model::{Architecture, Widths};
use serde::{Deserialize, Serialize};

/// What one iteration costs one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCost {
    /// Floating-point operations, as [`selvedge_nn::Cost`] counts them: of each sample, forward and backward through h2
    /// and through h0, whose θ0 is held still; then two for each number of θ2, to update it.
    pub flops: u64,
    /// Bytes of memory for what the algorithm keeps: θ2; its gradient, if there is more than one sample to sum over;
    /// the tapes of one sample in h2 and h0; θ0; ζ1 and ζ2 of each sample. Not the samples themselves, nor what makes
    /// an implementation fast (copies of weights, room to work in).
    pub memory: u64,
}

impl DeviceCost {
    /// The cost of a device that owns this many samples, in an algorithm. Where raw data has left the devices, or they
    /// are not used, it is zero; where they train θ0 too, its gradient and its update are added.
    pub fn of(architecture: &Architecture, samples: usize, algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Centralised | Algorithm::FedAvg | Algorithm::HospitalOnly => Self::default(),
            Algorithm::DeviceOnly => Self::of_both(architecture, samples),
            _ => Self::of_tower(architecture, samples),
        }
    }

    /// θ2 and θ0 trained.
    fn of_both(architecture: &Architecture, samples: usize) -> Self {
        let Widths { n0, n2, d2, .. } = architecture.widths();
        let [combined, _, device] = architecture.parts().map(|network| network.cost());
        let passes = [device, combined].map(|c| c.forward_flops + c.backward_flops);
        let tapes = device.activations + combined.activations;
        let numbers = 2 * (n0 + n2) + tapes + samples * d2;
        DeviceCost {
            flops: samples as u64 * (passes[0] + passes[1]) + 2 * (n0 + n2) as u64,
            memory: 4 * numbers as u64,
        }
    }

    /// θ2 trained, θ0 held still.
    fn of_tower(architecture: &Architecture, samples: usize) -> Self {
        let Widths { n0, n2, d1, d2, .. } = architecture.widths();
        let [combined, _, device] = architecture.parts().map(|network| network.cost());
        let of_device = device.forward_flops + device.backward_flops;
        let of_combined = combined.forward_flops + combined.frozen_backward_flops;
        let gradient = if samples > 1 { n2 } else { 0 };
        let tapes = device.activations + combined.activations;
        let numbers = n2 + gradient + tapes + n0 + samples * (d1 + d2);
        DeviceCost {
            flops: samples as u64 * (of_device + of_combined) + 2 * n2 as u64,
            memory: 4 * numbers as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::outcome::Kind;
    use crate::task::Sizes;
    use selvedge_nn::Shape;

    #[test]
    fn cost_is_that_of_the_closed_form() {
        let text = "[model]\nhospital = [{ linear = { out = 6 } }]\n\
            device = [{ linear = { out = 4 } }, \"tanh\"]\ncombined = [{ linear = { out = 3 } }]";
        let experiment = Experiment::parse(text, &[]).unwrap();
        let shapes = (Shape::Flat(8), Shape::Flat(5));
        let architecture =
            Architecture::new(&experiment.model, shapes.0, shapes.1, (Kind::Class, 3)).unwrap();
        let (n0, n2) = (10 * 3 + 3, 5 * 4 + 4);
        // The device's products forward and for its weights, the combined model's forward and for its input.
        let of_sample = 2 * (2 * 5 * 4 + 2 * 10 * 3);
        let tapes = 4 + 4 + 3;
        let one = DeviceCost::of(&architecture, 1, Algorithm::Hsgd);
        assert_eq!(one.flops, of_sample + 2 * n2);
        assert_eq!(one.memory, 4 * (n2 + tapes + n0 + 10));
        let three = DeviceCost::of(&architecture, 3, Algorithm::Jfl);
        assert_eq!(three.flops, 3 * of_sample + 2 * n2);
        assert_eq!(three.memory, 4 * (2 * n2 + tapes + n0 + 3 * 10));
        // With θ0 trained: its weights' products too, gradients of both, the device's own embedding.
        let both = DeviceCost::of(&architecture, 1, Algorithm::DeviceOnly);
        assert_eq!(both.flops, of_sample + 2 * 10 * 3 + 2 * (n0 + n2));
        assert_eq!(both.memory, 4 * (2 * (n0 + n2) + tapes + 4));
        let nothing = DeviceCost::of(&architecture, 1, Algorithm::FedAvg);
        assert_eq!(nothing, DeviceCost::default());
    }

    #[test]
    fn sizes_of_manifests_before_it_are_read() {
        let older = r#"{"n0": 1, "n1": 2, "n2": 3, "d1": 4, "d2": 5, "groups": 1, "devices": [2],
            "selected": [1], "class_weights": [1.0, 1.0], "loss_samples": 7}"#;
        let sizes: Sizes = serde_json::from_str(older).unwrap();
        assert_eq!((sizes.loss_samples, sizes.cost), (7, DeviceCost::default()));
        let cost = DeviceCost {
            flops: 8,
            memory: 9,
        };
        let text = serde_json::to_string(&Sizes { cost, ..sizes }).unwrap();
        let again: Sizes = serde_json::from_str(&text).unwrap();
        assert_eq!(again.cost, cost);
    }
}

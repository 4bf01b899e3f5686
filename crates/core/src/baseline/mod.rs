//! What HSGD is compared with: the paper's baselines, and others for context. Each is a loop like that of
//! [`hsgd`](crate::hsgd), made of the same pieces, and charged to the same ledger and clock.
//!
//! | | who trains what | what travels |
//! | --- | --- | --- |
//! | [`jfl`] | each pair of hospital and device a θ of its own | embeddings inside pairs; every pair's θ to the cloud |
//! | [`tdcd`] | HSGD in one group merged of all | raw data before training; then as in one group |
//! | [`centralised`] | one place, all of θ | raw data before training |
//! | [`fedavg`] | each hospital all of θ | the devices' raw data before training; then θ |
//! | [`hospital_only`] | each hospital θ0 and θ1, ζ2 being zero | θ0 and θ1 |
//! | [`device_only`] | each device θ0 and θ2, ζ1 being zero | θ0 and θ2 |

pub mod centralised;
pub mod device_only;
pub mod fedavg;
pub mod hospital_only;
pub mod jfl;
mod raw;
pub mod tdcd;
mod wave;

//! What HSGD is compared with: the paper's baselines, and others for context. Each is driven like
//! [`hsgd`](crate::hsgd), made of the same pieces, and charged to the same ledger and clock.
//!
//! | | who trains what | what travels |
//! | --- | --- | --- |
//! | `jfl` | each pair of hospital and device a θ of its own | embeddings inside pairs; every pair's θ to the cloud |
//! | `tdcd` | HSGD in one group merged of all | raw data before training; then as in one group |
//! | `centralised` | one place, all of θ | raw data before training |
//! | `fedavg` | each hospital all of θ | the devices' raw data before training; then θ |
//! | `hospital_only` | each hospital θ0 and θ1, ζ2 being zero | θ0 and θ1 |
//! | `device_only` | each device θ0 and θ2, ζ1 being zero | θ0 and θ2 |

pub(crate) mod centralised;
pub(crate) mod device_only;
pub(crate) mod fedavg;
pub(crate) mod hospital_only;
pub(crate) mod jfl;
mod raw;
pub(crate) mod tdcd;
mod wave;

use crate::clock::Rates;
use crate::cloud::{self, KINDS};
use crate::ledger::{Link, Payload};
use crate::state::State;
use crate::task::Task;

/// Global aggregation of some parts of θ, all of which go over one link of each group: up, and the mean down.
fn average(task: &Task<'_>, state: &mut State, link: Link, parts: &[usize]) {
    cloud::adopt_mean(task, state, parts);
    let (w, groups) = (task.architecture.widths(), task.dataset.groups.len());
    let mut all = 0;
    for &part in parts {
        let numbers = [w.n0, w.n1, w.n2][part];
        let each = Payload::dense(numbers);
        let ledger = &mut state.progress.ledger;
        ledger.charge_both_ways(link, KINDS[part], groups, each);
        all += numbers;
    }
    let sizes = match link {
        Link::EdgeCloud => [0, 0, all],
        _ => [all, 0, 0],
    };
    let sizes = sizes.map(Payload::dense);
    let rates = Rates::new(&task.experiment.time);
    state
        .progress
        .clock
        .meet(rates.global_aggregation(&sizes, &sizes));
}

//! A custom way to choose the devices of an interval, compared with the usual draw.

use selvedge_run::{Draw, Error, Named, Selection, Training};

/// Devices in turn, so that all take part equally often.
struct InTurn {
    /// Iterations from one choice to the next.
    local_interval: u64,
}

impl Selection for InTurn {
    fn select(&self, draw: Draw, subset: &mut Vec<u32>) {
        let first = (draw.t / self.local_interval) as usize * draw.count;
        let next = (first..).take(draw.count).map(|n| n % draw.devices);
        subset.clear();
        subset.extend(next.map(|n| n as u32));
        subset.sort_unstable();
    }
}

fn main() -> Result<(), Error> {
    let named = Named::find(Some("synthetic".as_ref()), &[], None)?;
    let data = named.data(None)?;
    let local_interval = named.experiment.train.local_interval;
    let drawn = Training::new(&named.experiment, &data).run()?;
    let in_turn = Training {
        seams: Some(&|task| task.selection = Box::new(InTurn { local_interval })),
        ..Training::new(&named.experiment, &data)
    };
    let in_turn = in_turn.run()?;
    for (name, finished) in [("drawn", drawn), ("in turn", in_turn)] {
        if let Some(e) = finished.result() {
            println!("{name:8} loss {:.4}  AUC {:.4?}", e.loss_train, e.test.auc);
        }
    }
    Ok(())
}

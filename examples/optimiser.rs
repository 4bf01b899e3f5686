//! A custom optimiser: momentum at the hospitals.

use selvedge_run::{Error, Level, Named, Optimiser, Step, Training};

/// Heavy-ball momentum, with the share of the velocity to keep.
struct Momentum(f32);

impl Optimiser for Momentum {
    fn remembers(&self, parameters: usize) -> usize {
        parameters
    }

    fn step(&self, _: Level, step: Step<'_>, memory: &mut [f32]) {
        let params = step.params.iter_mut().zip(step.gradient);
        for ((x, gradient), velocity) in params.zip(memory) {
            *velocity = self.0 * *velocity + gradient / step.count + step.decay * *x;
            *x -= step.rate * *velocity;
        }
    }
}

fn main() -> Result<(), Error> {
    let named = Named::find(Some("synthetic".as_ref()), &[], None)?;
    let data = named.data(None)?;
    let plain = Training::new(&named.experiment, &data).run()?;
    let momentum = Training {
        seams: Some(&|task| task.optimisers.hospital = Box::new(Momentum(0.9))),
        ..Training::new(&named.experiment, &data)
    };
    for (name, finished) in [("plain", plain), ("momentum", momentum.run()?)] {
        if let Some(e) = finished.result() {
            println!("{name:8} loss {:.4}  AUC {:.4?}", e.loss_train, e.test.auc);
        }
    }
    Ok(())
}

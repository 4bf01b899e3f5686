//! A custom optimiser: Nesterov's momentum at the hospitals. (Plain momentum and Adam are settings: `[optimiser]`.)

use selvedge_run::{Error, Level, Named, Optimiser, Step, Training};

/// Steps along where the velocity leads, with the share of it to keep.
struct Nesterov(f32);

impl Optimiser for Nesterov {
    fn remembers(&self, parameters: usize) -> usize {
        parameters
    }

    fn step(&self, _: Level, step: Step<'_>, memory: &mut [f32]) {
        let params = step.params.iter_mut().zip(step.gradient);
        for ((x, gradient), velocity) in params.zip(memory) {
            let slope = gradient / step.count + step.decay * *x;
            *velocity = self.0 * *velocity + slope;
            *x -= step.rate * (slope + self.0 * *velocity);
        }
    }
}

fn main() -> Result<(), Error> {
    let named = Named::find(Some("synthetic".as_ref()), &[], None)?;
    let data = named.data(None)?;
    let plain = Training::new(&named.experiment, &data).run()?;
    let nesterov = Training {
        seams: Some(&|task| task.optimisers.hospital = Box::new(Nesterov(0.9))),
        ..Training::new(&named.experiment, &data)
    };
    for (name, finished) in [("plain", plain), ("nesterov", nesterov.run()?)] {
        if let Some(e) = finished.result() {
            println!("{name:8} loss {:.4}  AUC {:.4?}", e.loss_train, e.test.auc);
        }
    }
    Ok(())
}

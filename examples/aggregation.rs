//! A custom rule for how an edge combines many models into one, compared with the usual mean.

use selvedge_run::{Aggregation, Error, Level, Named, Training};

/// The median of each number: a single device moves it little.
struct Median;

impl Aggregation for Median {
    fn combine(&self, _: Level, models: &[(u64, &[f32])], out: &mut [f32]) {
        for (i, out) in out.iter_mut().enumerate() {
            let mut values: Vec<f32> = models.iter().map(|(_, model)| model[i]).collect();
            values.sort_unstable_by(f32::total_cmp);
            *out = values[values.len() / 2];
        }
    }
}

fn main() -> Result<(), Error> {
    let named = Named::find(Some("synthetic".as_ref()), &[], None)?;
    let data = named.data(None)?;
    let mean = Training::new(&named.experiment, &data).run()?;
    let median = Training {
        seams: Some(&|task| task.aggregation.edge = Box::new(Median)),
        ..Training::new(&named.experiment, &data)
    };
    for (name, finished) in [("mean", mean), ("median", median.run()?)] {
        if let Some(e) = finished.result() {
            println!("{name:8} loss {:.4}  AUC {:.4?}", e.loss_train, e.test.auc);
        }
    }
    Ok(())
}

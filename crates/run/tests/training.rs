//! A run in memory, in a directory, and stopped and resumed there: the same numbers, and a model that can be used.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use selvedge_run::{
    Ending, Interval, Level, Loaded, Named, Optimiser, Run, Step, Task, Trained, Training,
    WhichModel,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A folder of our own, removed again at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn small() -> (Named, Loaded) {
    let set = ["train.iterations=60", "data.validation=0.2"].map(String::from);
    let named = Named::find(None, &set, None).unwrap();
    let data = named.data(None).unwrap();
    (named, data)
}

fn bytes(run: &Path, name: &str) -> Vec<u8> {
    std::fs::read(run.join(name)).unwrap()
}

#[test]
fn in_memory_in_a_directory_and_resumed_it_is_the_same_run() {
    let folder = std::env::temp_dir().join(format!("selvedge-training-{}", std::process::id()));
    let folder = Folder(folder);
    let (named, data) = small();
    let new = || Training::new(&named.experiment, &data);
    let in_memory = new().run().unwrap();
    assert_eq!(
        (in_memory.ending.clone(), in_memory.path.as_ref()),
        (Ending::Finished, None)
    );

    let (whole, stopped) = (folder.0.join("whole"), folder.0.join("stopped"));
    std::fs::create_dir(&folder.0).unwrap();
    let into = |path| Training {
        directory: Some(path),
        ..new()
    };
    let finished = into(&whole).run().unwrap();
    assert_eq!(finished.state.theta, in_memory.state.theta);
    assert_eq!(finished.evaluations, in_memory.evaluations);

    let mut stop = |interval: &Interval<'_>| match interval.state.progress.t < 20 {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let first = into(&stopped).watched_by(&mut stop).unwrap();
    assert_eq!(first.ending, Ending::Interrupted);
    assert!(Trained::open(&stopped, WhichModel::Usual).is_err());
    let resumed = Training {
        resume: true,
        ..into(&stopped)
    }
    .run()
    .unwrap();
    assert_eq!(resumed.ending, Ending::Finished);
    for name in [
        "metrics.jsonl",
        "ledger.csv",
        "model.safetensors",
        "best.safetensors",
        "validation.safetensors",
    ] {
        assert!(bytes(&whole, name) == bytes(&stopped, name), "{name}");
    }

    let run = Run::read(&stopped).unwrap();
    assert_eq!(run.evaluations, in_memory.evaluations);
    assert_eq!(run.best().map(|e| e.t), in_memory.chosen().map(|e| e.t));
    let trained = Trained::open(&stopped, WhichModel::Usual).unwrap();
    let test = &data.dataset.test;
    assert_eq!(
        trained
            .predict(test, |row| row.to_string())
            .unwrap()
            .answers,
        in_memory.predict(test).answers
    );

    let error = into(&whole).run().err().unwrap();
    assert!(error.to_string().contains("already exists"), "{error}");
}

#[test]
fn errors_tell_all_with_their_causes() {
    let (named, data) = small();
    let nowhere = Path::new("/proc/nowhere/run");
    let training = Training {
        directory: Some(nowhere),
        ..Training::new(&named.experiment, &data)
    };
    let error = training.run().err().unwrap();
    let (short, long) = (error.to_string(), format!("{error:#}"));
    assert!(short.starts_with("cannot create /proc/nowhere/"), "{short}");
    assert!(
        long.starts_with(&format!("{short}: ")) && long == format!("{error:?}"),
        "{long}"
    );
}

/// Remembers where it was heading.
struct Momentum;

impl Optimiser for Momentum {
    fn remembers(&self, parameters: usize) -> usize {
        parameters
    }

    fn step(&self, _: Level, step: Step<'_>, memory: &mut [f32]) {
        for ((x, g), v) in step.params.iter_mut().zip(step.gradient).zip(memory) {
            *v = 0.5 * *v + g / step.count;
            *x -= step.rate * *v;
        }
    }
}

#[test]
fn seams_of_a_program_are_resumed_with_them_or_not_at_all() {
    let folder = std::env::temp_dir().join(format!("selvedge-seams-{}", std::process::id()));
    let folder = Folder(folder);
    std::fs::create_dir(&folder.0).unwrap();
    let (named, data) = small();
    let paths = ["momentum", "cloud", "plain"].map(|name| folder.0.join(name));
    let at_hospitals = |task: &mut Task<'_>| task.optimisers.hospital = Box::new(Momentum);
    let at_the_cloud = |task: &mut Task<'_>| task.optimisers.cloud = Box::new(Momentum);
    let training = |path, resume| Training {
        directory: Some(path),
        resume,
        ..Training::new(&named.experiment, &data)
    };
    let with = |path, resume, seams| Training {
        seams: Some(seams),
        ..training(path, resume)
    };
    let mut stop = |interval: &Interval<'_>| match interval.state.progress.t < 20 {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let whole = with(&paths[0], false, &at_hospitals).run().unwrap();
    std::fs::remove_dir_all(&paths[0]).unwrap();
    for (path, seams) in [
        (
            &paths[0],
            Some(&at_hospitals as &(dyn Fn(&mut Task<'_>) + Sync)),
        ),
        (&paths[1], Some(&at_the_cloud)),
        (&paths[2], None),
    ] {
        let begun = Training {
            seams,
            ..training(path, false)
        };
        begun.watched_by(&mut stop).unwrap();
    }
    let refused = |training: Training<'_>, said: &str| {
        let problem = training.run().err().unwrap().to_string();
        assert!(problem.contains(said), "{problem}");
    };
    refused(training(&paths[0], true), "by a program with custom seams");
    refused(
        with(&paths[2], true, &at_hospitals),
        "resume it without them",
    );
    refused(with(&paths[1], true, &|_| {}), "damaged");
    let resumed = with(&paths[0], true, &at_hospitals).run().unwrap();
    assert_eq!(resumed.state.theta, whole.state.theta);
    let trained = Trained::open(&paths[0], WhichModel::Usual).unwrap();
    assert!(trained.manifest.own_seams);
}

//! `selvedge evaluate`: how good a model is, and how sure that is.

use super::predict::{open, read};
use super::print_either;
use crate::Outcome;
use crate::args::EvaluateArgs;
use crate::assessment::{
    self, AnswersPart, Part, Predicted, Said, page, page_of_answers, text_of_answers,
};
use crate::load;
use anyhow::{Result, bail};
use selvedge_core::assess::Bootstrap;
use selvedge_core::dataset::{Dataset, Samples};
use selvedge_core::experiment::Experiment;
use selvedge_data::{Labels, Loaded};
use selvedge_run::deciding::Deciding;
use selvedge_run::files::{EVALUATION, write_json};
use selvedge_run::format::{count, counted};
use selvedge_run::outputs::{Kind, Output, of_data};
use selvedge_run::trained::Trained;
use serde_json::{Value, json};
use std::collections::HashSet;

/// What measures all parts.
struct Measuring<'a> {
    trained: &'a Trained,
    deciding: &'a Deciding,
    bootstrap: Bootstrap,
}

pub(crate) fn run(args: &EvaluateArgs) -> Result<Outcome> {
    let (trained, deciding) = open(&args.model)?;
    let html = args.html.as_ref().map(|path| Output {
        option: "--html",
        path,
        kind: Kind::Page,
    });
    if let Some(html) = &html {
        let data_dir = args.directory.data_dir.as_deref();
        let mut files = of_data(&trained.experiment, data_dir);
        files.extend(args.data.clone());
        html.check(&files)?;
    }
    let measuring = Measuring {
        trained: &trained,
        deciding: &deciding,
        bootstrap: Bootstrap {
            resamples: args.resamples as usize,
            confidence: args.confidence,
            seed: trained.experiment.seed,
        },
    };
    let parts = match args.data.is_empty() {
        true => measuring.own(args)?,
        false => measuring.others(args)?,
    };
    let value = json(args, &trained, &deciding, &parts);
    if args.data.is_empty() {
        keep(args, &value);
    }
    let mut about = vec![format!("Model   {}", trained.file.display())];
    about.extend(deciding.about(&trained));
    if deciding.calibrated {
        about.push("Calibrated probabilities: class-based metrics can differ from those of `train` and `report`, which use the raw ones".into());
    }
    let by_validation: Vec<&str> = [
        (trained.is_best(), "chosen"),
        (deciding.calibrated, "calibrated"),
        (deciding.threshold().is_some(), "given its threshold"),
    ]
    .into_iter()
    .filter_map(|(is_so, what)| is_so.then_some(what))
    .collect();
    let title = &trained.manifest.name;
    let (numbers, page) = match &parts {
        Parts::Classes(parts) => {
            let (classes, confidence) = (trained.classes(), args.confidence);
            let text = assessment::text(parts, classes, confidence, &by_validation);
            let page = || page(title, &about, parts, classes, confidence, &by_validation);
            (text, html.as_ref().map(|_| page()))
        }
        Parts::Answers(parts) => {
            let text = text_of_answers(parts, args.confidence, &by_validation);
            let page = html
                .as_ref()
                .map(|_| page_of_answers(title, &about, parts, &text));
            (text, page)
        }
    };
    if let Some((html, page)) = html.as_ref().zip(page) {
        html.write(page)?;
    }
    let mut text = format!("{}\n\n{numbers}", about.join("\n"));
    if let Some(html) = &args.html {
        text += &format!("\nPage    {}\n", html.display());
    }
    print_either(args.json, &value, &text)
}

/// What was measured, by the kind of outcome.
enum Parts {
    Classes(Vec<Part>),
    Answers(Vec<AnswersPart>),
}

/// Which rows are one patient's, and the group of each row.
type Whose<'a> = (&'a [u32], Option<(&'a [u32], &'a [String])>);

impl Measuring<'_> {
    fn none(&self) -> Parts {
        match self.trained.outcome().is_class() {
            true => Parts::Classes(Vec::new()),
            false => Parts::Answers(Vec::new()),
        }
    }

    /// Measures some more patients.
    fn add(
        &self,
        parts: &mut Parts,
        (name, samples): (&str, &Samples),
        (persons, groups): Whose<'_>,
        name_of: impl Fn(usize) -> String,
    ) -> Result<()> {
        let said = self.trained.predict(samples, name_of)?;
        let calibrated = self.deciding.calibrated;
        let loss = (!calibrated).then(|| said.losses.mean());
        let answers = self.trained.corrected(said.answers, calibrated);
        match parts {
            Parts::Classes(parts) => {
                let predicted = Predicted {
                    loss,
                    probabilities: answers,
                    labels: samples.y.classes().to_vec(),
                    persons,
                    groups,
                };
                let classes = self.trained.classes();
                let part = Part::new(name, &predicted, classes, self.deciding, &self.bootstrap);
                parts.push(part);
            }
            Parts::Answers(parts) => {
                let said = Said {
                    answers,
                    targets: &samples.y,
                    persons,
                    groups,
                };
                parts.push(AnswersPart::new(name, &said, self.trained, &self.bootstrap));
            }
        }
        Ok(())
    }

    /// On the data of the run.
    fn own(&self, args: &EvaluateArgs) -> Result<Parts> {
        let run = args.model.chosen.run.display();
        let experiment = &self.trained.experiment;
        if experiment.data.set == "table" && experiment.data.path.is_empty() {
            bail!(
                "{run} is the cloud's, which has no patients: name some with --data, with the columns of the experiment's table"
            );
        }
        let loaded = load::data(experiment, &args.directory)?;
        let dataset = &loaded.dataset;
        if !dataset.has_fingerprint(&self.trained.manifest.data.fingerprint) {
            bail!(
                "the data is not what {run} was trained on: point --data-dir at the same files, or evaluate other patients with --data"
            );
        }
        let names: Vec<String> = dataset.groups.iter().map(|g| g.name.clone()).collect();
        let (training, of_row) = merged(dataset);
        let persons = persons(&loaded);
        let mut parts = self.none();
        let groups = (names.len() > 1).then_some((&of_row[..], &names[..]));
        let whose = (&persons[..], groups);
        self.add(&mut parts, ("train", &training), whose, of_part("training"))?;
        drop(training);
        let [of_validation, of_test] = &loaded.persons[loaded.persons.len() - 2..] else {
            bail!("{run}: its data has no validation and test parts");
        };
        for (name, samples, persons, groups) in [
            ("validation", &dataset.validation, of_validation, None),
            (
                "test",
                &dataset.test,
                of_test,
                loaded.groups_of_test.as_ref(),
            ),
        ] {
            if !samples.is_empty() {
                let groups = groups.map(|of_row| (&of_row[..], &names[..]));
                let whose = (&persons[..], groups);
                self.add(&mut parts, (name, samples), whose, of_part(name))?;
            }
        }
        Ok(parts)
    }

    /// Says so where rows are those that the model has learnt from or was chosen by, as far as the run's data is at hand.
    fn warn_of_known(&self, args: &EvaluateArgs, samples: &Samples) {
        let Experiment { data, seed, .. } = &self.trained.experiment;
        let data_dir = args.directory.data_dir.as_deref();
        let Ok(loaded) = selvedge_data::load_with_notes(data, *seed, data_dir) else {
            return;
        };
        let dataset = &loaded.dataset;
        if !dataset.has_fingerprint(&self.trained.manifest.data.fingerprint) {
            return;
        }
        let training = dataset.groups.iter().flat_map(|group| bits(&group.samples));
        let known: HashSet<Vec<u32>> = training.chain(bits(&dataset.validation)).collect();
        let n = bits(samples).filter(|row| known.contains(row)).count();
        if n > 0 {
            crate::note(&format!(
                "{} of {} have the very values of training or validation samples: the model knows them, so that figures are too good; leave them out",
                count(n as u64),
                counted(samples.len() as u64, "sample")
            ));
        }
    }

    /// On other patients.
    fn others(&self, args: &EvaluateArgs) -> Result<Parts> {
        let (patients, _) = read(self.trained, &args.model, &args.data, Labels::Needed)?;
        self.warn_of_known(args, &patients.samples);
        let groups = patients.groups.as_ref();
        let groups = groups.map(|(of_row, names)| (&of_row[..], &names[..]));
        let name_of = |row: usize| format!("{:?}", patients.ids[row]);
        let whose = (&patients.persons[..], groups);
        let mut parts = self.none();
        self.add(&mut parts, ("data", &patients.samples), whose, name_of)?;
        Ok(parts)
    }
}

/// What a row of a part is called.
fn of_part(part: &str) -> impl Fn(usize) -> String {
    move |row| format!("{part} sample {}", row + 1)
}

/// Rows by the bits of their values.
fn bits(samples: &Samples) -> impl Iterator<Item = Vec<u32>> {
    let rows = samples.len().max(1);
    let sides = [&samples.x1, &samples.x2].map(|side| side.chunks((side.len() / rows).max(1)));
    let [hospital, device] = sides;
    let row = |(x1, x2): (&[f32], &[f32])| x1.iter().chain(x2).map(|x| x.to_bits()).collect();
    hospital.zip(device).map(row)
}

/// All training rows, and the group of each.
fn merged(dataset: &Dataset) -> (Samples, Vec<u32>) {
    let (mut all, mut of_row) = (Samples::default(), Vec::new());
    for (number, group) in (0..).zip(&dataset.groups) {
        all.x1.extend_from_slice(&group.samples.x1);
        all.x2.extend_from_slice(&group.samples.x2);
        all.y.extend(&group.samples.y);
        of_row.resize(all.len(), number);
    }
    (all, of_row)
}

/// Which training rows are one patient's: as the files say or, where they do not, those of one device.
fn persons(loaded: &Loaded) -> Vec<u32> {
    let groups = &loaded.dataset.groups;
    let given = loaded.persons[..groups.len()].concat();
    if !given.is_empty() {
        return given;
    }
    let (mut persons, mut devices) = (Vec::new(), 0);
    for group in groups {
        for device in 0..group.devices() as u32 {
            persons.resize(persons.len() + group.rows(device).len(), devices);
            devices += 1;
        }
    }
    persons
}

fn json(args: &EvaluateArgs, trained: &Trained, deciding: &Deciding, parts: &Parts) -> Value {
    let mut value = json!({
        "run": args.model.chosen.run.display().to_string(),
        "model": trained.file.display().to_string(),
        "classes": trained.classes(),
        "resamples": args.resamples,
        "confidence": args.confidence,
    });
    deciding.add_to(trained, &mut value);
    if !trained.outcome().is_class() {
        value["outcome"] = json!(trained.outcome());
    }
    match parts {
        Parts::Classes(parts) => {
            for part in parts {
                value[&part.name] = part.json();
            }
        }
        Parts::Answers(parts) => {
            for part in parts {
                value[&part.name] = part.json();
            }
        }
    }
    value
}

/// Leaves the result in the run, for its model card; a run that cannot be written to is no obstacle.
fn keep(args: &EvaluateArgs, value: &Value) {
    let path = args.model.chosen.run.join(EVALUATION);
    if let Err(error) = write_json(&path, value) {
        crate::note(&format!("{error:#}"));
    }
}

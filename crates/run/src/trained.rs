//! A finished run, ready for use: its model, its inputs and its calibration.
//!
//! Everything comes from the run directory, so a model can be used without its training data.

use crate::digests;
use crate::directory::Files;
use crate::error::{Context, Error, Result, bail};
use crate::files::{
    BEST, CALIBRATION, INITIAL, INPUTS, MODEL, VALIDATION, read_bytes, read_json, write_json,
    write_whole,
};
use crate::format::{count, counted, shell};
use crate::manifest::Manifest;
use crate::weights;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use selvedge_core::calibration::{Calibration, Calibrations, FEWEST_SAMPLES, Found};
use selvedge_core::dataset::Samples;
use selvedge_core::experiment::Experiment;
use selvedge_core::metrics::Layout;
use selvedge_core::model::{Architecture, Model};
use selvedge_core::objective::{Objective, objective_of_trained};
use selvedge_core::outcome::{Kind, Outcome, Targets};
use selvedge_core::scores::{Predictions, predict};
use selvedge_data::{Inputs, Statistics};
use selvedge_nn::Shape;
use std::path::{Path, PathBuf};

/// A model that has moved by less than this share of its norm has not been trained: means of equal models differ by so much.
const UNMOVED: f64 = 1e-5;

/// Fewer validation patients than this are worth a word.
const FEW: usize = 30;

/// The models of a run, by their names in [`VALIDATION`].
const MODELS: [&str; 2] = ["model", "best"];

/// What is known of the patients there: classes, or numbers.
const LABELS: &str = "labels";
const KNOWN: &str = "known";

/// Which of a run's models.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WhichModel {
    /// The one to use: the best on the validation patients where there are any, else the last.
    Usual,
    /// The best on the validation patients.
    Best,
    /// The last.
    Last,
}

/// A finished run's model and everything needed to use it.
pub struct Trained {
    /// The run's manifest.
    pub manifest: Manifest,
    /// What was trained.
    pub experiment: Experiment,
    /// Its networks.
    pub architecture: Architecture,
    /// What they were trained to learn.
    pub objective: Box<dyn Objective>,
    /// The file of the model.
    pub file: PathBuf,
    /// The model.
    pub model: Model,
    /// Its inputs.
    pub inputs: Inputs,
    /// The model's outputs for the validation patients, if there were any.
    pub validation: Option<Validation>,
    /// The calibration of its probabilities.
    pub calibration: Option<Calibration>,
    /// The validation samples that it was fitted to, or that were all of one class.
    pub calibrated_on: usize,
}

/// What a model says of the validation patients, and what is known of them.
pub struct Validation {
    /// Row after row, as the [objective](Objective::answer) has it.
    pub answers: Vec<f32>,
    /// Their classes, or numbers.
    pub targets: Targets,
}

impl Trained {
    /// Opens a run that has ended.
    ///
    /// # Errors
    /// If it is not a run, has no such model, is damaged or of another version.
    pub fn open(run: &Path, wanted: WhichModel) -> Result<Self> {
        let manifest = Manifest::read(run)?;
        let experiment = manifest.experiment(run)?;
        let name_of = |best: bool| [MODEL, BEST][usize::from(best)];
        let file_of = |best: bool| run.join(name_of(best));
        let best = match wanted {
            WhichModel::Usual => file_of(true).is_file() && file_of(false).is_file(),
            WhichModel::Best => true,
            WhichModel::Last => false,
        };
        let (name, file) = (MODELS[usize::from(best)], file_of(best));
        if !file.is_file() {
            let shown = run.display();
            match best {
                true => bail!(
                    "{shown} has no {BEST}: train with data.validation above 0, or leave --best out"
                ),
                false => bail!(
                    "{shown} has no {MODEL} yet: finish it with `selvedge train --resume {}`",
                    shell(run)
                ),
            }
        }
        let inputs = read_inputs(run)?;
        let architecture = architecture(&experiment, &inputs)
            .with_context(|| format!("{}: its networks do not fit its inputs", run.display()))?;
        let model = weights::load(&file, &architecture)?;
        let statistics = &inputs.statistics;
        let (outcome, names) = (&statistics.outcome, &statistics.classes[..]);
        let objective = objective_of_trained(&experiment.train, outcome, names);
        let layout = objective.layout();
        if manifest.objective != objective.name() {
            bail!(
                "{}: its models were trained for the objective `{}`, but would be read as `{}`: use them with the program that trained them",
                run.display(),
                manifest.objective,
                objective.name()
            );
        }
        let validation = read_validation(run, name, (outcome, names))?;
        // What cannot be read says more of itself than a digest does.
        let found = read_calibration(run, best, layout)?;
        let used = [name_of(best), INITIAL, INPUTS, VALIDATION, CALIBRATION];
        digests::check(run, &manifest.files, &used)?;
        let fit = |v: &Validation| Found {
            calibration: Calibration::fit(&v.answers, &v.targets, layout),
            samples: v.targets.len() as u64,
        };
        let found = validation.as_ref().map(fit).or(found);
        Ok(Trained {
            calibrated_on: found.as_ref().map_or(0, |found| found.samples as usize),
            calibration: found.and_then(|found| found.calibration),
            validation,
            manifest,
            experiment,
            architecture,
            objective,
            file,
            model,
            inputs,
        })
    }

    /// Warnings for whoever uses it.
    pub fn warnings(&self) -> Vec<String> {
        let mut told = Vec::new();
        let ending = self.manifest.ending.as_ref();
        if let Some(ending) = ending.filter(|ending| ending.kind == "diverged") {
            let which = match self.is_best() {
                true => "the one of before that was best on the validation samples",
                false => "the last good one",
            };
            told.push(format!(
                "training diverged at iteration {}: the model is {which}, which may have learnt little",
                ending.t
            ));
        }
        let validated = self.manifest.data.validation_samples;
        // What cannot be calibrated was chosen by all of them.
        let calibrates = self.calibrates();
        let on = if calibrates {
            self.calibrated_on
        } else {
            validated
        };
        if on > 0 && on < FEW {
            told.push(format!(
                "{on} validation samples are too few to choose a model{} reliably",
                match self.outcome().kind() {
                    Kind::Class => ", calibrate it or find a threshold",
                    Kind::Labels => " and calibrate it",
                    Kind::Quantity | Kind::Survival => "",
                }
            ));
        }
        let few_answer = format!(
            "hospitals that have fewer than {FEWEST_SAMPLES}, do not answer in time or are left out, as those in quarantine are, say nothing of theirs"
        );
        if on == 0 && validated > 0 && calibrates {
            told.push(match self.file.with_file_name(CALIBRATION).is_file() {
                true => format!(
                    "none of the {validated} validation samples is there to calibrate probabilities: {few_answer}"
                ),
                false => format!(
                    "the run has {validated} validation samples, but neither {VALIDATION} nor {CALIBRATION}: probabilities cannot be calibrated (a run that was deployed with 0.2 has neither)"
                ),
            });
        }
        if on > 0 && on < validated && calibrates {
            let calibrated = match self.calibration {
                Some(_) => "probabilities are calibrated",
                None => "probabilities could be calibrated only",
            };
            told.push(format!(
                "{calibrated} on {on} of the {validated} validation samples: {few_answer}"
            ));
        }
        let unanswered = self.unanswered();
        if unanswered > 0 {
            told.push(format!(
                "what the model says is no number for {unanswered} of {on} validation samples: probabilities cannot be calibrated, and no threshold can be chosen"
            ));
        }
        if self.calibration.is_none() && on > 0 && self.validation.is_none() && calibrates {
            told.push(
                "all validation samples are of one class: the model was chosen by its loss on them, and they cannot calibrate probabilities"
                    .into(),
            );
        }
        if let Some(class) = self.only_class_validated() {
            told.push(format!(
                "all validation samples are of the class {class:?}: the model was chosen by its loss on them, and they cannot calibrate probabilities or choose a threshold"
            ));
        }
        told.extend(self.untrained());
        let best = self.file.with_file_name(BEST);
        if on > 0 && !best.is_file() {
            told.push(format!("the run has no {BEST}: its last model is used"));
        }
        told
    }

    /// The class of all validation samples, if they are of one.
    pub fn only_class_validated(&self) -> Option<&str> {
        let labels = self.validation.as_ref()?.targets.classes();
        let first = labels.first()?;
        let alone = labels.iter().all(|label| label == first);
        let name = self.classes().get(*first as usize).filter(|_| alone)?;
        Some(name)
    }

    /// Whether it is the model that training began with, or as near to it as rounding is: it has learnt nothing.
    pub fn is_untrained(&self) -> bool {
        let initial = self.file.with_file_name(INITIAL);
        let Ok(initial) = weights::load(&initial, &self.architecture) else {
            return false;
        };
        let squares = |of: fn(f64, f64) -> f64| -> f64 {
            let parts = self.model.parts().into_iter().zip(initial.parts());
            let pairs = parts.flat_map(|(own, initial)| own.iter().zip(initial));
            let terms = pairs.map(|(own, initial)| of(f64::from(*own), f64::from(*initial)));
            terms.map(|x| x * x).sum()
        };
        squares(|own, initial| own - initial) <= UNMOVED * UNMOVED * squares(|_, initial| initial)
    }

    /// Whether it is the model that was best on the validation samples, and not the last.
    pub fn is_best(&self) -> bool {
        self.file.ends_with(BEST)
    }

    /// What is said of a model that has learnt nothing.
    pub fn untrained(&self) -> Option<String> {
        let why = match self.is_best() && self.manifest.best == Some(0) {
            true => " (no later one was better on the validation samples)",
            false => "",
        };
        self.is_untrained().then(|| {
            format!(
                "the model is the random one that training began with{why}: it has learnt nothing"
            )
        })
    }

    /// Why its probabilities cannot be calibrated, if they cannot: without, since or on what.
    pub fn why_not_calibrated(&self) -> Option<&'static str> {
        let has_calibration = || self.file.with_file_name(CALIBRATION).is_file();
        let why = match self.calibrated_on {
            _ if self.calibration.is_some() || !self.calibrates() => return None,
            _ if self.unanswered() > 0 => {
                ", since the model does not answer for all validation samples"
            }
            0 if self.manifest.data.validation_samples == 0 => {
                " without validation samples (data.validation)"
            }
            0 if has_calibration() => {
                ", since no hospital says how the model answers on its validation samples"
            }
            0 => ", since the run does not say how it answers on its validation samples",
            _ => " on validation samples of one class",
        };
        Some(why)
    }

    /// Of how many validation samples the model says what is no number.
    fn unanswered(&self) -> usize {
        let said = self.validation.as_ref().map(|v| &v.answers[..]);
        let rows = said.unwrap_or_default().chunks_exact(self.outputs());
        rows.filter(|row| !is_answer(row)).count()
    }

    /// The names of the classes or labels, or that of the quantity or of the event.
    pub fn classes(&self) -> &[String] {
        &self.inputs.statistics.classes
    }

    /// What is asked about each sample.
    pub fn outcome(&self) -> &Outcome {
        &self.inputs.statistics.outcome
    }

    /// How many numbers the model gives for a sample.
    pub fn outputs(&self) -> usize {
        self.objective.logits()
    }

    /// Whether what it says can be calibrated: not where that are no probabilities.
    fn calibrates(&self) -> bool {
        Calibration::none(self.objective.layout()).is_some()
    }

    /// The model's own predictions for patients.
    ///
    /// # Errors
    /// If what it says of one of them is no number: values or weights are so large that it has nothing to say. `name` is
    /// what the row is called.
    pub fn predict(
        &self,
        samples: &Samples,
        name: impl Fn(usize) -> String,
    ) -> Result<Predictions> {
        let networks = (&self.architecture, &*self.objective);
        let said = predict(networks, &self.model, samples, None);
        let rows = said.answers.chunks_exact(self.outputs());
        let wrong = rows.enumerate().filter(|(_, row)| !is_answer(row));
        let wrong: Vec<usize> = wrong.map(|(row, _)| row).collect();
        let Some(first) = wrong.first() else {
            return Ok(said);
        };
        bail!(
            "{}: what this model says is no number for {} of {}, {} first: {}",
            self.file.display(),
            count(wrong.len() as u64),
            counted(samples.len() as u64, "sample"),
            name(*first),
            match wrong.len() == samples.len() {
                true =>
                    "its weights are too large; train it again, with a lower train.learning_rate",
                false =>
                    "either values of these are far outside of those in training, or its weights are too large; leave them out, or train it again with a lower train.learning_rate",
            }
        )
    }

    /// What is said of patients, row after row; calibrated, if `calibrated` is set and the run has a calibration.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn answers(
        &self,
        samples: &Samples,
        calibrated: bool,
        name: impl Fn(usize) -> String,
    ) -> Result<Vec<f32>> {
        let said = self.predict(samples, name)?;
        Ok(self.corrected(said.answers, calibrated))
    }

    /// What was said, calibrated in the same way.
    pub fn corrected(&self, said: Vec<f32>, calibrated: bool) -> Vec<f32> {
        match self.calibration.as_ref().filter(|_| calibrated) {
            Some(calibration) => calibration.apply(&said),
            None => said,
        }
    }

    /// The same of the validation patients, and what is known of them; nothing if the model does not answer for all.
    pub fn validated(&self, calibrated: bool) -> Option<(Vec<f32>, &Targets)> {
        let Validation { answers, targets } = self
            .validation
            .as_ref()
            .filter(|_| self.unanswered() == 0)?;
        Some((self.corrected(answers.clone(), calibrated), targets))
    }
}

/// Whether these are numbers.
fn is_answer(row: &[f32]) -> bool {
    row.iter().all(|p| p.is_finite())
}

/// The networks of an experiment for these inputs.
fn architecture(experiment: &Experiment, inputs: &Inputs) -> Result<Architecture> {
    let [hospital, device] = inputs
        .sides()
        .map(|(statistics, _)| Shape::try_from(statistics.shape.clone()));
    let Statistics {
        outcome, classes, ..
    } = &inputs.statistics;
    let needed = (outcome.kind(), outcome.outputs(classes));
    let mut architecture = Architecture::new(&experiment.model, hospital?, device?, needed)?;
    architecture.blind_to = experiment.train.algorithm.blind_to();
    Ok(architecture)
}

/// Writes what a model's inputs are into its run directory.
pub(crate) fn write_inputs(run: &Path, inputs: &Inputs) -> Result<()> {
    write_json(&run.join(INPUTS), &inputs.to_json())
}

/// Writes them again where somebody has damaged the file: a run that is resumed has the data that they come from.
pub(crate) fn restore_inputs(files: &Files, inputs: &Inputs) -> Result<()> {
    let run = &files.path;
    let intact = digests::check(run, &files.manifest.files, &[INPUTS]);
    match intact.and_then(|()| read_inputs(run)) {
        Ok(_) => Ok(()),
        Err(_) => write_inputs(run, inputs),
    }
}

fn read_inputs(run: &Path) -> Result<Inputs> {
    let path = run.join(INPUTS);
    if !path.is_file() {
        bail!(
            "{} has no {INPUTS}, which describes the model's inputs: it was trained by an earlier version of selvedge, so train it again",
            run.display()
        );
    }
    let inputs = Inputs::from_json(read_json(&path)?);
    inputs.map_err(|problem| Error::new(format!("{}: {problem}", path.display())))
}

/// Writes what a run's models say of the validation patients, by which their probabilities are corrected later.
pub(crate) fn write_validation(
    run: &Path,
    networks: (&Architecture, &dyn Objective),
    models: [Option<&Model>; 2],
    samples: &Samples,
) -> Result<()> {
    if samples.is_empty() {
        return Ok(());
    }
    let known: Vec<u8> = match &samples.y {
        Targets::Classes(classes) => classes.iter().flat_map(|y| y.to_le_bytes()).collect(),
        Targets::Numbers { values, .. } => weights::to_bytes(values),
    };
    let (name, dtype, dims) = match &samples.y {
        Targets::Classes(_) => (LABELS, Dtype::U32, vec![samples.len()]),
        Targets::Numbers { each, .. } => (KNOWN, Dtype::F32, vec![samples.len(), *each]),
    };
    let shape = vec![samples.len(), networks.1.logits()];
    let mut scores = Vec::new();
    for (name, model) in MODELS.into_iter().zip(models) {
        if let Some(model) = model {
            let said = predict(networks, model, samples, None).answers;
            scores.push((name, weights::to_bytes(&said)));
        }
    }
    let mut views = vec![(name, TensorView::new(dtype, dims, &known)?)];
    for (name, bytes) in &scores {
        views.push((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?));
    }
    write_whole(&run.join(VALIDATION), &safetensors::serialize(views, None)?)
}

/// What the groups of a deployed run have found of a model.
fn read_calibration(run: &Path, best: bool, layout: Layout) -> Result<Option<Found>> {
    let path = run.join(CALIBRATION);
    if !path.is_file() {
        return Ok(None);
    }
    let all: Calibrations = read_json(&path)?;
    let found = match best {
        true => all.best,
        false => Some(all.model),
    };
    let calibration = found.as_ref().and_then(|found| found.calibration.as_ref());
    if calibration.is_some_and(|calibration| !calibration.is_for(layout)) {
        bail!(
            "{}: expected a positive scale and {} biases for each model",
            path.display(),
            layout.outputs
        );
    }
    Ok(found)
}

fn read_validation(
    run: &Path,
    model: &str,
    (outcome, names): (&Outcome, &[String]),
) -> Result<Option<Validation>> {
    let path = run.join(VALIDATION);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = read_bytes(&path)?;
    let damaged = || format!("{} is damaged or not a safetensors file", path.display());
    let tensors = SafeTensors::deserialize(&bytes).with_context(damaged)?;
    let tensor = |name: &str, dtype: Dtype| {
        let found = tensors.tensor(name).with_context(damaged)?;
        match found.dtype() == dtype {
            true => Ok(found),
            false => bail!("{}: its {name} is {:?}", damaged(), found.dtype()),
        }
    };
    let targets = match outcome.targets(names) {
        Targets::Classes(_) => {
            let (words, _) = tensor(LABELS, Dtype::U32)?.data().as_chunks();
            words.iter().map(|word| u32::from_le_bytes(*word)).collect()
        }
        Targets::Numbers { each, .. } => Targets::Numbers {
            each,
            values: weights::from_bytes(tensor(KNOWN, Dtype::F32)?.data()),
        },
    };
    let answers = weights::from_bytes(tensor(model, Dtype::F32)?.data());
    let outputs = outcome.outputs(names);
    let are_probabilities = outcome.kind() != Kind::Quantity;
    let is_answer = |p: &f32| !are_probabilities || p.is_nan() || (0.0..=1.0).contains(p);
    let sound = answers.len() == targets.len() * outputs
        && outcome.problem_of(names, &targets).is_none()
        && answers.iter().all(is_answer);
    match sound {
        true => Ok(Some(Validation { answers, targets })),
        false => bail!(
            "{}: expected what is known, and {outputs} numbers that the model says, for each patient",
            damaged()
        ),
    }
}

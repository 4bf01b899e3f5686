//! What a model scores with a hospital's samples, whose ζ2 comes from the gateways.

use super::super::message::{Message, Portion};
use super::super::{Outbox, Party};
use super::Hospital;
use super::calibrate::Validated;
use crate::dataset::Samples;
use crate::message_path::Numbers;
use crate::model::Model;
use crate::scores::{Scores, predict_embedded};

/// A model that is measured. Embeddings may come before the model itself.
pub(super) struct Measured {
    pub(super) number: u64,
    model: Option<Model>,
    /// For each part, its rows, and ζ2 of those that have come.
    parts: [(Vec<u32>, Vec<f32>, Vec<bool>); 3],
    scores: Option<Message>,
    /// What it says of the validation samples, once there are scores.
    pub(super) validated: Option<Validated>,
}

impl Hospital<'_> {
    /// Measures a model, or says again what it has found.
    pub(super) fn evaluate(&mut self, number: u64, parts: &[Numbers], outbox: &mut Outbox) {
        let widths = self.task.architecture.widths();
        let [theta0, theta1] = parts else { return };
        let (Some(theta0), Some(theta1)) = (theta0.as_dense(widths.n0), theta1.as_dense(widths.n1))
        else {
            return;
        };
        let measured = self.measured(number);
        if let Some(scores) = &measured.scores {
            outbox.send(Party::Cloud, scores.clone());
            return;
        }
        measured.model = Some(Model {
            theta0: theta0.to_vec(),
            theta1: theta1.to_vec(),
            theta2: Vec::new(),
        });
        self.score(number, outbox);
    }

    /// What is known of a model that is to be measured.
    fn measured(&mut self, number: u64) -> &mut Measured {
        // A late message about the model before must not displace this one.
        if let Some(at) = self.measured.iter().position(|m| m.number == number) {
            return &mut self.measured[at];
        }
        let new = || {
            let training = match &self.task.loss_rows {
                Some(rows) => rows[self.group].clone(),
                None => (0..self.data.samples.len() as u32).collect(),
            };
            let [validation, test] = &self.held_out;
            let all = |samples: &Samples| (0..samples.len() as u32).collect();
            let width = self.task.architecture.device.output().len();
            let room = |rows: Vec<u32>| {
                let (zeta2, there) = (vec![0.0; rows.len() * width], vec![false; rows.len()]);
                (rows, zeta2, there)
            };
            Measured {
                number,
                model: None,
                parts: [training, all(validation), all(test)].map(room),
                scores: None,
                validated: None,
            }
        };
        let new = new();
        self.measured.truncate(1);
        self.measured.insert(0, new);
        &mut self.measured[0]
    }

    /// Whether it wants to know ζ2 of a sample.
    fn asks(&self, part: Portion, row: u32) -> bool {
        let [validation, test] = &self.held_out;
        let all = match (part, &self.task.loss_rows) {
            (Portion::Training, Some(rows)) => return rows[self.group].binary_search(&row).is_ok(),
            (Portion::Training, None) => &self.data.samples,
            (Portion::Validation, _) => validation,
            (Portion::Test, _) => test,
        };
        (row as usize) < all.len()
    }

    /// Keeps ζ2 of some samples of the model that is measured.
    pub(super) fn embedded(
        &mut self,
        number: u64,
        part: Portion,
        rows: &[u32],
        zeta2: &Numbers,
        outbox: &mut Outbox,
    ) {
        let width = self.task.architecture.device.output().len();
        let Some(zeta2) = zeta2.as_dense(rows.len() * width) else {
            return;
        };
        // What cannot be of any model must not begin another one.
        if !rows.iter().all(|row| self.asks(part, *row)) {
            return;
        }
        let measured = self.measured(number);
        if measured.scores.is_some() {
            return;
        }
        let (known, all, there) = &mut measured.parts[part as usize];
        let places = rows.iter().map(|row| known.binary_search(row));
        let Ok(places) = places.collect::<Result<Vec<usize>, _>>() else {
            return;
        };
        for (place, zeta2) in places.into_iter().zip(zeta2.chunks_exact(width)) {
            all[place * width..][..width].copy_from_slice(zeta2);
            there[place] = true;
        }
        self.score(number, outbox);
    }

    /// With the model and ζ2 of all samples it knows the scores.
    fn score(&mut self, number: u64, outbox: &mut Outbox) {
        let Some(measured) = self.measured.iter_mut().find(|m| m.number == number) else {
            return;
        };
        let complete = |(_, _, there): &(_, _, Vec<bool>)| there.iter().all(|there| *there);
        let Some(model) = measured.model.as_ref() else {
            return;
        };
        if !measured.parts.iter().all(complete) {
            return;
        }
        let networks = self.task.networks();
        let predict = |samples: &Samples, (rows, zeta2, _): &(Vec<u32>, Vec<f32>, Vec<bool>)| {
            predict_embedded(networks, model, samples, rows, zeta2)
        };
        let [training, validation, test] = &measured.parts;
        let mut scores = Scores::new(networks.1);
        scores.training = predict(&self.data.samples, training).losses;
        let held_out = [
            (&mut scores.validation, validation, &self.held_out[0]),
            (&mut scores.test, test, &self.held_out[1]),
        ];
        let [validated, _] = held_out.map(|(scores, part, samples)| {
            let said = predict(samples, part);
            scores.add(networks.1, &said, &samples.y);
            said.answers
        });
        measured.validated = Some(Validated::new(validated));
        let message = Message::Evaluated {
            number: measured.number,
            scores: Box::new(scores),
        };
        outbox.send(Party::Cloud, message.clone());
        // Only the answer is of use now.
        (measured.parts, measured.model) = Default::default();
        measured.scores = Some(message);
    }
}

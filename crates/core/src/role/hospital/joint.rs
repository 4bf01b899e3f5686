//! A hospital's half of joint predictions.

use super::super::joint::{About, Newcomers, Why};
use super::super::message::{Message, Portion};
use super::super::{Outbox, Party};
use super::Hospital;
use crate::dataset::Samples;
use crate::message_path::Numbers;
use crate::model::Model;
use crate::scores::predict_embedded;

/// What is asked, as it came.
pub(super) struct Asked {
    pub(super) number: u64,
    pub(super) t: u64,
    pub(super) gateway: u32,
    pub(super) about: About,
    pub(super) zeta2: Numbers,
}

impl Hospital<'_> {
    /// Adds patients for whom it answers too, once the run is over.
    pub fn add_newcomers(&mut self, newcomers: Newcomers) {
        self.newcomers = Some(newcomers);
    }

    /// Answers its edge, one way or the other.
    pub(super) fn question(&self, asked: &Asked, outbox: &mut Outbox) {
        let Asked {
            number, gateway, ..
        } = *asked;
        let message = match self.predict(asked) {
            Ok((unknown, probabilities)) => {
                outbox.answered += (asked.about.len() - unknown.len()) as u64;
                Message::Answer {
                    number,
                    gateway,
                    unknown,
                    probabilities: Numbers::dense(&probabilities),
                    calibration: self.calibration.clone(),
                }
            }
            Err(why) => Message::Refused {
                number,
                gateway,
                why,
            },
        };
        outbox.send(Party::Edge(self.group), message);
    }

    /// Which of those who are asked about are unknown, by their places in the question, and the probabilities of all
    /// others.
    fn predict(&self, asked: &Asked) -> Result<(Vec<u32>, Vec<f32>), Why> {
        if !self.held.ended {
            return Err(Why::Training);
        }
        if asked.t != self.held.t {
            return Err(Why::OtherModel);
        }
        let width = self.task.architecture.device.output().len();
        let embedded = asked.about.embedded(&asked.zeta2, width);
        let embedded = embedded.ok_or(Why::Malformed)?;
        let (samples, rows) = self.find(&asked.about)?;
        let mut zeta2 = Vec::with_capacity(embedded.len());
        let mut unknown = Vec::new();
        for ((place, row), own) in (0..).zip(&rows).zip(embedded.chunks_exact(width)) {
            match row {
                Some(_) => zeta2.extend_from_slice(own),
                None => unknown.push(place),
            }
        }
        let known: Vec<u32> = rows.into_iter().flatten().collect();
        let model = Model {
            theta0: self.held.theta0.clone(),
            theta1: self.held.theta1.clone(),
            theta2: Vec::new(),
        };
        let said = predict_embedded(self.task.networks(), &model, samples, &known, &zeta2);
        Ok((unknown, said.answers))
    }

    /// Where those who are asked about are; nothing for who is unknown.
    fn find(&self, about: &About) -> Result<(&Samples, Vec<Option<u32>>), Why> {
        match (about, &self.newcomers) {
            (About::Rows(part, rows), _) => {
                let samples = match part {
                    Portion::Training => &self.data.samples,
                    Portion::Validation => &self.held_out[0],
                    Portion::Test => &self.held_out[1],
                };
                let there = rows.iter().all(|row| (*row as usize) < samples.len());
                let rows = rows.iter().copied().map(Some).collect();
                there.then_some((samples, rows)).ok_or(Why::NotYours)
            }
            (About::New { key, patients }, Some(newcomers)) => {
                if *key != newcomers.key {
                    return Err(Why::OtherKey);
                }
                let row = |patient: &u128| newcomers.rows.get(patient).copied();
                Ok((&newcomers.samples, patients.iter().map(row).collect()))
            }
            (About::New { patients, .. }, None) => {
                Ok((&self.data.samples, vec![None; patients.len()]))
            }
        }
    }
}

//! The asker of joint predictions: a gateway, for patients whose devices it carries. It keeps no record.

use super::joint::{About, MOST_ASKED, Why};
use super::message::Message;
use super::wire::{self, WireError};
use super::{Doing, Event, Outbox, Packet, Party, Protocol, Unread};
use crate::calibration::Calibration;
use crate::exchange::Embeddings;
use crate::message_path::Numbers;
use crate::metrics::Layout;
use crate::model::Architecture;
use crate::objective::Objective;
use crate::outcome::Kind;

/// Numbers of ζ2 that go into one question, if not those of a single patient.
const PER_QUESTION: usize = 1 << 16;

/// Patients of one question, and questions that wait for an answer at the same time.
const PATIENTS: usize = 1024;
const WAITING: usize = 8;

/// Questions that were asked in vain since anything was heard from the edge, before it is taken for missing.
const PATIENCE: u32 = 2;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The edge or the hospital refuses it.
    #[error("{}", told(*.0))]
    Refused(Why),
    /// The model's outputs are not finite.
    #[error("the trained model's outputs are not finite: it has diverged and cannot predict")]
    NotFinite,
}

fn told(why: Why) -> &'static str {
    match why {
        Why::Training => {
            "the run is not over yet for the edge or the hospital: ask again when training has ended"
        }
        Why::OtherModel => {
            "the edge's and the hospital's models are from different iterations: one of them has been trained again"
        }
        Why::NotYours => {
            "some of the patients are not this gateway's: it may only ask about patients whose devices it carries"
        }
        Why::OtherKey => {
            "the hospital's pseudonym key is different: expected the same pseudonyms.key in both folders"
        }
        Why::Malformed => "the edge or the hospital rejects the question as malformed",
    }
}

/// Probabilities of the classes, or none for a patient unknown to the hospital.
pub type Answer = Option<Vec<f32>>;

/// A gateway that asks.
pub struct Asker<'a> {
    architecture: &'a Architecture,
    /// What its answers are.
    layout: Layout,
    /// A group, and the gateway's number in it.
    gateway: (usize, usize),
    /// The number of the first question.
    first: u64,
    /// When the model was aggregated last, and its θ2.
    model: Option<(u64, Vec<f32>)>,
    questions: Vec<Question>,
    /// How what the model says is corrected, as the hospital knows it.
    calibration: Option<Calibration>,
    in_vain: u32,
    failed: Option<AskError>,
}

/// Some of those whom it asks about.
struct Question {
    about: About,
    x2: Vec<f32>,
    /// As it was sent, until it is answered.
    message: Option<Message>,
    asked: bool,
    answers: Option<Vec<Answer>>,
}

impl<'a> Asker<'a> {
    /// A gateway of a group asks about these patients, given their rows of x2, one after the other. Questions are
    /// numbered from `first` on, which should be new each time: others may be asking in the name of the same gateway.
    pub fn new(
        (architecture, objective): (&'a Architecture, &dyn Objective),
        gateway: (usize, usize),
        first: u64,
        patients: &[(About, Vec<f32>)],
    ) -> Self {
        let (width, inputs) = (
            architecture.device.output().len().max(1),
            architecture.device.input().len(),
        );
        let whole = |(about, x2): &(About, Vec<f32>)| about.len() * inputs == x2.len();
        assert!(patients.iter().all(whole), "a row for each patient");
        let most = (PER_QUESTION / width).clamp(1, PATIENTS.min(MOST_ASKED));
        let split = |(about, x2): &(About, Vec<f32>)| -> Vec<Question> {
            let mut rows = x2.chunks(inputs * most);
            let question = |about: About| Question {
                x2: rows.next().unwrap_or_default().to_vec(),
                about,
                message: None,
                asked: false,
                answers: None,
            };
            about.split(most).into_iter().map(question).collect()
        };
        Asker {
            architecture,
            layout: objective.layout(),
            gateway,
            first,
            model: None,
            questions: patients.iter().flat_map(split).collect(),
            calibration: None,
            in_vain: 0,
            failed: None,
        }
    }

    fn edge(&self) -> Party {
        Party::Edge(self.gateway.0)
    }

    /// Says to its edge what it has not said yet or, once nothing has happened for a while, all that has not been
    /// answered.
    fn speak(&mut self, again: bool, outbox: &mut Outbox) -> Result<(), AskError> {
        let edge = self.edge();
        self.in_vain += u32::from(again);
        let Some((t, theta2)) = &self.model else {
            if again {
                outbox.send(edge, Message::Fetch);
            }
            return Ok(());
        };
        let numbered = (0..).zip(&mut self.questions);
        let open = numbered.filter(|(_, question)| question.answers.is_none());
        for (number, question) in open.take(WAITING) {
            let message = match &question.message {
                Some(_) if !again => continue,
                Some(message) => message.clone(),
                None => {
                    let number = self.first.wrapping_add(number);
                    question.embed(self.architecture, (number, *t), theta2)?
                }
            };
            (question.message, question.asked) = (Some(message.clone()), true);
            outbox.send(edge, message);
        }
        Ok(())
    }

    /// Its edge says something. Gives whether there is more to say.
    fn hear(&mut self, from: Party, message: &Message) -> Result<bool, AskError> {
        if from != self.edge() {
            return Ok(false);
        }
        match message {
            Message::Trained { t, theta2 } if self.model.is_none() => {
                let Some(theta2) = theta2.as_dense(self.architecture.device.params()) else {
                    return Ok(false);
                };
                self.in_vain = 0;
                self.model = Some((*t, theta2.to_vec()));
                Ok(true)
            }
            Message::Passed { number } => {
                if self.place(*number).is_some() {
                    self.in_vain = 0;
                }
                Ok(false)
            }
            Message::Answer {
                number,
                unknown,
                probabilities,
                calibration,
                ..
            } => {
                let corrected = calibration.as_ref();
                if corrected.is_some_and(|found| !found.is_for(self.layout)) {
                    return Ok(false);
                }
                let Some(place) = self.place(*number) else {
                    return Ok(false);
                };
                self.in_vain = 0;
                let question = &mut self.questions[place];
                let taken = question.take_answer(self.layout, unknown, probabilities);
                if taken {
                    self.calibration.clone_from(calibration);
                }
                Ok(taken)
            }
            // Nobody is told of a question that was not asked; before the model is known there is none.
            Message::Refused { number, why, .. }
                if self.place(*number).is_some() || (*number == 0 && self.model.is_none()) =>
            {
                Err(AskError::Refused(*why))
            }
            _ => Ok(false),
        }
    }

    /// Which of the questions that were asked it is.
    fn place(&self, number: u64) -> Option<usize> {
        let place = usize::try_from(number.wrapping_sub(self.first)).ok()?;
        self.questions.get(place)?.asked.then_some(place)
    }

    /// The number of patients with an answer, and of all patients.
    pub fn progress(&self) -> (usize, usize) {
        let answered = self.questions.iter().filter(|q| q.answers.is_some());
        let all = self.questions.iter().map(|q| q.about.len()).sum();
        (answered.map(|q| q.about.len()).sum(), all)
    }

    /// The party whose answer it waits for: its edge reports what it has passed on.
    pub fn waits_for(&self) -> Party {
        match self.model.is_none() || self.in_vain > PATIENCE {
            true => self.edge(),
            false => Party::Hospital(self.gateway.0),
        }
    }

    /// How what the model says is corrected, if the run has found out.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// The answers, in the order of the patients: what the model says.
    pub fn into_answers(self) -> Vec<Answer> {
        let answers = |q: Question| q.answers.unwrap_or_else(|| vec![None; q.about.len()]);
        self.questions.into_iter().flat_map(answers).collect()
    }
}

impl Protocol for Asker<'_> {
    type Message = Message;

    fn party(&self) -> Party {
        Party::Gateway(self.gateway.0, self.gateway.1)
    }

    /// The edge refuses who takes part in another run, and shows the difference.
    fn greets(&self) -> bool {
        self.progress().0 == 0
    }

    fn begin(&mut self, _: Option<&[u8]>, outbox: &mut Outbox) -> Result<(), Unread> {
        self.handle(Event::Retry, outbox);
        Ok(())
    }

    fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        let done = match event {
            Event::Received(from, message) => self.hear(from, &message).and_then(|news| {
                outbox.news = news;
                match news {
                    true => self.speak(false, outbox),
                    false => Ok(()),
                }
            }),
            Event::Retry => self.speak(true, outbox),
            Event::Deadline(..) | Event::Appeared(_) | Event::Silenced(..) | Event::GoOn => Ok(()),
        };
        self.failed = self.failed.or(done.err());
    }

    fn encode(&self, run: u64, message: &Message) -> Packet {
        wire::packet(run, message, true)
    }

    fn decode(&self, run: u64, bytes: &[u8]) -> Result<Message, Unread> {
        match wire::decode(run, bytes) {
            // What is said to the same gateway's node, in its run, is not for this one: no more than its end.
            Err(WireError::OtherRun(_)) => Ok(Message::End),
            other => Ok(other?),
        }
    }

    fn doing(&self) -> Doing {
        Doing {
            t: 0,
            what: "asks for predictions".into(),
            missing: vec![self.waits_for()],
            below_quorum: false,
            gone: Vec::new(),
        }
    }

    /// Whether everything was answered.
    fn is_over(&self) -> bool {
        self.questions.iter().all(|q| q.answers.is_some())
    }

    fn failure(&self) -> Option<String> {
        self.failed.map(|error| error.to_string())
    }
}

impl Question {
    /// The question as it is sent.
    fn embed(
        &self,
        architecture: &Architecture,
        (number, t): (u64, u64),
        theta2: &[f32],
    ) -> Result<Message, AskError> {
        let rows: Vec<u32> = (0..self.about.len() as u32).collect();
        let mut side = Embeddings::new(false);
        side.embed(&architecture.device, theta2, &self.x2, &rows);
        if !side.zeta.iter().all(|x| x.is_finite()) {
            return Err(AskError::NotFinite);
        }
        Ok(Message::Question {
            number,
            t,
            gateway: 0,
            about: self.about.clone(),
            zeta2: Numbers::dense(&side.zeta),
        })
    }

    /// Keeps an answer that can be one; false if it cannot, or is there already.
    fn take_answer(&mut self, layout: Layout, unknown: &[u32], said: &Numbers) -> bool {
        let (all, outputs) = (self.about.len(), layout.outputs.max(1));
        let places = unknown.is_sorted_by(|a, b| a < b)
            && unknown.last().is_none_or(|last| (*last as usize) < all);
        let possible = |x: &f32| match layout.kind {
            Kind::Quantity => x.is_finite(),
            Kind::Class | Kind::Labels | Kind::Survival => (0.0..=1.0).contains(x),
        };
        let Some(said) = said.as_dense(all.saturating_sub(unknown.len()) * outputs) else {
            return false;
        };
        if !places || self.answers.is_some() || !said.iter().all(possible) {
            return false;
        }
        let mut said = said.chunks_exact(outputs);
        let answer = |place: u32| match unknown.binary_search(&place) {
            Ok(_) => None,
            Err(_) => said.next().map(<[f32]>::to_vec),
        };
        self.answers = Some((0..all as u32).map(answer).collect());
        // These are of no use any more.
        (self.x2, self.message) = (Vec::new(), None);
        true
    }
}

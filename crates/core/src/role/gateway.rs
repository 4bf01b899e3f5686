//! A gateway: carries devices, any number or one, and answers their edge. It keeps nothing that the edge could not send
//! again.

use super::message::{Message, OfDevice, Portion};
use super::{Doing, Event, HeldOutSamples, Outbox, Party};
use crate::dataset::Samples;
use crate::exchange::{Embeddings, Frozen};
use crate::group::Workspaces;
use crate::local_steps::{DeviceWorkspace, Owned, Steps, device_steps};
use crate::message_path::{Leg, Numbers, Route};
use crate::schedule::Segment;
use crate::task::Task;
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

/// Numbers that go into one message at most, if not those of a single device: others can be read meanwhile.
const PER_MESSAGE: usize = 1 << 16;

/// Numbers of models that are remembered, should somebody ask again; more are computed again (64 MB).
const REMEMBERED: usize = 1 << 24;

/// A gateway, its devices and their samples.
pub struct Gateway<'a> {
    task: &'a Task<'a>,
    party: (usize, usize),
    devices: Range<u32>,
    /// x2 and y of all its devices; the group counts its rows from `first_row` on.
    samples: Samples,
    first_row: usize,
    held_out: HeldOutSamples,
    /// Where its held-out samples begin among those of the group.
    held_out_from: [u32; 2],
    frozen: Frozen,
    workspaces: Workspaces<'a, DeviceWorkspace>,
    invited: Option<Invited>,
    /// An earlier one, where a group has gone back; or a message was late.
    earlier: Option<Invited>,
    /// When the run was over, by the edge's word.
    ended: Option<u64>,
}

/// The interval it takes part in.
struct Invited {
    t: u64,
    segment: Segment,
    /// θ2 as it was received.
    theta2: Vec<f32>,
    /// What devices answered to the lesson.
    models: HashMap<u32, Numbers>,
}

impl<'a> Gateway<'a> {
    /// A gateway of some devices of a group, with their rows of x2 and y, and with what it holds of the held-out ones:
    /// rows in a row, from these numbers on among the group's.
    pub fn new(
        task: &'a Task<'a>,
        party: (usize, usize),
        devices: Range<u32>,
        samples: Samples,
        held_out: HeldOutSamples,
        held_out_from: [u32; 2],
    ) -> Self {
        let group = &task.dataset.groups[party.0];
        let first_row = group.offsets.at(devices.start as usize) as usize;
        Gateway {
            party,
            devices,
            samples,
            first_row,
            held_out,
            held_out_from,
            frozen: Frozen::new(&task.architecture),
            workspaces: Workspaces::new(|| DeviceWorkspace::new(&task.architecture)),
            invited: None,
            earlier: None,
            ended: None,
            task,
        }
    }

    /// Who it is.
    pub fn party(&self) -> Party {
        Party::Gateway(self.party.0, self.party.1)
    }

    /// Whether it has heard that the run is over.
    pub fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Why it ends with an error, if its edge has ended the run before its time. The edge decides for its group, so the
    /// gateway goes; but whoever runs it is told.
    pub fn failure(&self) -> Option<String> {
        let (t, all) = (self.ended?, self.task.experiment.train.iterations);
        let stop = &self.task.experiment.stop;
        let may_be_early = stop.is_any();
        (t < all && !may_be_early).then(|| {
            format!(
                "edge {} says that the run is over at t = {t} of {all}: it diverged, or the edge has ended it on its own",
                self.party.0
            )
        })
    }

    /// What it is doing.
    pub fn doing(&self) -> Doing {
        Doing {
            t: self.invited.as_ref().map_or(0, |invited| invited.t),
            what: match self.ended {
                Some(_) => "the run is over".into(),
                None => format!("answers for {} devices", self.devices.len()),
            },
            missing: Vec::new(),
            below_quorum: false,
            gone: Vec::new(),
        }
    }

    /// Handles an event. A gateway does not wait for anything.
    pub fn handle(&mut self, event: Event, outbox: &mut Outbox) {
        let Event::Received(from, message) = event else {
            return;
        };
        if from != Party::Edge(self.party.0) {
            return;
        }
        match message {
            Message::Invite {
                t,
                segment,
                theta2,
                devices,
            } => _ = self.invited(t, segment, &theta2, &devices, outbox),
            Message::Lesson { t, theta0, zeta1 } => _ = self.lesson(t, &theta0, &zeta1, outbox),
            Message::Embed { number, theta2 } => _ = self.embed(number, &theta2, outbox),
            // An edge that is not at its end does not answer with a model.
            Message::End if self.ended.is_none() => outbox.send(from, Message::Fetch),
            Message::End => outbox.send(from, Message::Done),
            Message::Trained { t, .. } => {
                self.ended.get_or_insert(t);
                outbox.send(from, Message::Done);
            }
            _ => {}
        }
    }

    /// A device's rows among the gateway's own; nothing if it is another gateway's.
    fn rows(&self, device: u32) -> Option<Range<usize>> {
        let group = &self.task.dataset.groups[self.party.0];
        self.devices.contains(&device).then(|| {
            let rows = group.rows(device);
            rows.start - self.first_row..rows.end - self.first_row
        })
    }

    /// Where an interval belongs: an earlier one does not take the place of the newest.
    fn place(&mut self, t: u64) -> &mut Option<Invited> {
        match &self.invited {
            Some(newest) if newest.t > t => &mut self.earlier,
            _ => &mut self.invited,
        }
    }

    /// ζ2 of the devices' samples.
    fn invited(
        &mut self,
        t: u64,
        segment: Segment,
        theta2: &Numbers,
        devices: &[u32],
        outbox: &mut Outbox,
    ) -> Option<()> {
        let iterations = self.task.experiment.train.iterations;
        let in_order = devices.is_sorted_by(|a, b| a < b);
        if !segment.has_interval_at(t, iterations) || !in_order {
            return None;
        }
        let tower = &self.task.architecture.device;
        let theta2 = self
            .route(Leg::DeviceModel, t)
            .read(theta2, tower.params(), None)?;
        let is_same = |invited: &Invited| invited.t == t && invited.theta2 == theta2;
        let known = self.place(t).as_ref().is_some_and(is_same);
        let mut rows: Vec<u32> = Vec::new();
        for device in devices {
            rows.extend(self.rows(*device)?.map(|row| row as u32));
        }
        let mut side = Embeddings::new(false);
        side.embed(tower, &theta2, &self.samples.x2, &rows);
        let route = self.route(Leg::Zeta2, t);
        let mut embedded = side.zeta.chunks_exact(tower.output().len()).zip(&rows);
        let mut zeta2: Vec<OfDevice> = Vec::new();
        for device in devices {
            let count = self.rows(*device)?.len();
            let own = embedded.by_ref().take(count).map(|(row, number)| {
                let number = self.first_row as u32 + number;
                route.of(number).pack(row, &[], &mut [])
            });
            zeta2.push((*device, own.collect()));
        }
        if !known {
            *self.place(t) = Some(Invited {
                t,
                segment,
                theta2,
                models: HashMap::new(),
            });
        }
        outbox.send(Party::Edge(self.party.0), Message::Zeta2 { t, zeta2 });
        Some(())
    }

    /// The devices' models after Q steps on what they were sent.
    fn lesson(
        &mut self,
        t: u64,
        theta0: &Numbers,
        zeta1: &[OfDevice],
        outbox: &mut Outbox,
    ) -> Option<()> {
        let architecture = &self.task.architecture;
        let (n0, d1) = (
            architecture.combined.params(),
            architecture.hospital.output().len(),
        );
        let theta0 = self.route(Leg::Theta0ToDevices, t).read(theta0, n0, None)?;
        let route = self.route(Leg::Zeta1, t);
        let both = [&self.invited, &self.earlier].into_iter().flatten();
        let invited = both.into_iter().find(|invited| invited.t == t)?;
        if !zeta1.is_sorted_by(|a, b| a.0 < b.0) {
            return None;
        }
        self.frozen.freeze(architecture, &theta0, &invited.theta2);
        let answer = |(device, rows): &OfDevice| -> Option<(u32, Numbers)> {
            if let Some(model) = invited.models.get(device) {
                return Some((*device, model.clone()));
            }
            let own = self.rows(*device)?;
            if own.len() != rows.len() {
                return None;
            }
            let mut embedded = Vec::with_capacity(rows.len() * d1);
            for (row, place) in rows.iter().zip(own.clone()) {
                let number = (self.first_row + place) as u32;
                embedded.extend(route.of(number).read(row, d1, None)?);
            }
            Some((*device, self.steps(invited, *device, own, &embedded)))
        };
        let models: Vec<(u32, Numbers)> = zeta1.par_iter().map(answer).collect::<Option<_>>()?;
        let width = architecture.device.params();
        if let Some(invited) = self.place(t) {
            let fits = |known: usize| (known + models.len()) * width <= REMEMBERED;
            if fits(invited.models.len()) {
                invited.models.extend(models.iter().cloned());
            }
        }
        for some in models.chunks((PER_MESSAGE / width.max(1)).max(1)) {
            let message = Message::Models {
                t,
                theta2: some.to_vec(),
            };
            outbox.send(Party::Edge(self.party.0), message);
        }
        Some(())
    }

    /// One device's steps.
    fn steps(&self, invited: &Invited, device: u32, rows: Range<usize>, zeta1: &[f32]) -> Numbers {
        let (task, architecture) = (self.task, &self.task.architecture);
        let theirs = &invited.theta2;
        let inputs = architecture.device.input().len();
        let owned = Owned {
            x2: &self.samples.x2[rows.start * inputs..rows.end * inputs],
            y: (&self.samples.y, rows),
            zeta1,
            tapes: &[],
        };
        let steps = Steps {
            segment: invited.segment,
            first: invited.t,
        };
        let mut own = vec![0.0; theirs.len()];
        self.workspaces.with(|workspace| {
            device_steps(
                architecture,
                task.device_descent(),
                steps,
                owned,
                &self.frozen,
                (theirs, &mut own),
                workspace,
            );
        });
        let end = invited.t + invited.segment.local_interval;
        let route = self.route(Leg::DeviceStep, end).of(device);
        route.pack_in_place(&mut own, theirs, &mut [])
    }

    /// ζ2 of everything it holds that is evaluated.
    fn embed(&self, number: u64, theta2: &Numbers, outbox: &mut Outbox) -> Option<()> {
        let (m, _) = self.party;
        let tower = &self.task.architecture.device;
        let theta2 = theta2.as_dense(tower.params())?;
        let own = self.first_row..self.first_row + self.samples.len();
        let training: Vec<u32> = match &self.task.loss_rows {
            Some(rows) => {
                let mine = rows[m].iter().filter(|row| own.contains(&(**row as usize)));
                mine.copied().collect()
            }
            None => own.map(|row| row as u32).collect(),
        };
        let held_out = |part: Portion, at: usize| {
            let (samples, first) = (&self.held_out[at], self.held_out_from[at]);
            let rows = (0..samples.len() as u32).map(|row| first + row).collect();
            (part, rows, &samples.x2[..], first)
        };
        let first = self.first_row as u32;
        let parts: [(Portion, Vec<u32>, &[f32], u32); 3] = [
            (Portion::Training, training, &self.samples.x2, first),
            held_out(Portion::Validation, 0),
            held_out(Portion::Test, 1),
        ];
        let width = tower.output().len();
        let mut side = Embeddings::new(false);
        for (part, rows, x2, first) in parts {
            for rows in rows.chunks((PER_MESSAGE / width).max(1)) {
                let places: Vec<u32> = rows.iter().map(|row| row - first).collect();
                side.embed(tower, theta2, x2, &places);
                let message = Message::Embedded {
                    number,
                    part,
                    rows: rows.to_vec(),
                    zeta2: Numbers::dense(&side.zeta),
                };
                outbox.send(Party::Edge(m), message);
            }
        }
        Some(())
    }

    fn route(&self, leg: Leg, t: u64) -> Route {
        self.task.route(leg, self.party.0, t)
    }
}

//! Gateways that are not waited for: they have missed several deadlines in a row.

use super::super::{MOST_MISSED, Party, is_enough, quorum};
use super::{Drawn, Edge, Stage};

/// How many deadlines each gateway has missed in a row: of exchanges, of uploads.
#[derive(Default)]
pub(super) struct Missed([Vec<u32>; 2]);

impl Missed {
    pub(super) fn by(gateways: usize) -> Self {
        Missed([vec![0; gateways], vec![0; gateways]])
    }
}

/// A phase that a deadline can end.
#[derive(Clone, Copy)]
pub(super) enum Due {
    Exchange,
    Upload,
}

impl Due {
    /// Positions of the subset that are still awaited in it.
    fn missing(self, drawn: &Drawn) -> impl Iterator<Item = usize> + '_ {
        (0..drawn.zeta2.len()).filter(move |p| match self {
            Due::Exchange => drawn.awaits_zeta2(*p),
            Due::Upload => drawn.zeta1[*p].is_some() && drawn.models[*p].is_none(),
        })
    }
}

impl Edge<'_> {
    /// A gateway is heard of in a phase.
    pub(super) fn heard(&mut self, due: Due, gateway: usize) {
        if let Some(missed) = self.missed.0[due as usize].get_mut(gateway) {
            *missed = 0;
        }
    }

    /// A gateway is not listened to: as if it had missed as many deadlines as it takes.
    pub(super) fn silenced(&mut self, due: Due, gateway: usize) {
        if let Some(missed) = self.missed.0[due as usize].get_mut(gateway) {
            *missed = MOST_MISSED;
        }
    }

    /// The deadline of a phase is over: who is missing has missed one more.
    pub(super) fn miss(&mut self, due: Due) {
        let (Stage::Inviting(drawn) | Stage::Teaching(drawn, _)) = &self.stage else {
            return;
        };
        let missing: Vec<u32> = due.missing(drawn).map(|p| drawn.group.subset[p]).collect();
        for (g, devices) in self.gateways.iter().enumerate() {
            if missing.iter().any(|device| devices.contains(device)) {
                let missed = &mut self.missed.0[due as usize][g];
                *missed = missed.saturating_add(1);
            }
        }
    }

    /// Whether a phase is over: with `among` devices of whom a quorum must be there.
    pub(super) fn is_enough(&self, due: Due, drawn: &Drawn, among: usize) -> bool {
        let missing: Vec<usize> = due.missing(drawn).collect();
        let waits_for = |p: &usize| {
            let device = drawn.group.subset[*p];
            let gateways = self.gateways.iter().zip(&self.missed.0[due as usize]);
            gateways
                .filter(|(devices, _)| devices.contains(&device))
                .any(|(_, missed)| *missed < MOST_MISSED)
        };
        let all = match due {
            Due::Exchange => drawn.group.exchanged.iter().filter(|there| **there).count(),
            Due::Upload => drawn.zeta1.iter().flatten().count(),
        };
        let waits = !drawn.overdue && missing.iter().any(waits_for);
        let quorum = quorum(self.quorum.devices, among).min(all);
        is_enough((all - missing.len(), all), quorum, waits)
    }

    /// The gateways that it does not wait for.
    pub(super) fn gone(&self) -> Vec<Party> {
        let [exchange, upload] = &self.missed.0;
        let missed = exchange.iter().zip(upload).map(|(a, b)| *a.max(b));
        let gone = missed.enumerate().filter(|(_, m)| *m >= MOST_MISSED);
        gone.map(|(g, _)| Party::Gateway(self.group, g)).collect()
    }
}

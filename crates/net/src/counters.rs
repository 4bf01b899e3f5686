//! What a party has sent, received, refused and waited for: for `/metrics`, and for whoever measures.

use selvedge_core::protocol::Absence;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Durations of which so many are kept, the last ones.
const KEPT: usize = 4096;

/// Counts since the process began.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Messages sent, and their bytes.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Of these, messages sent again because no answer came.
    pub again: u64,
    /// Bytes of them.
    pub again_bytes: u64,
    /// Bytes sent to evaluate models: not part of training.
    pub evaluation_bytes: u64,
    /// Messages that were received.
    pub received: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// Messages received and refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Absences that were noted, by phase.
    #[serde(default)]
    pub absences: BTreeMap<String, u64>,
    /// Patients for whom a prediction was answered, or passed on.
    #[serde(default)]
    pub predictions: u64,
    /// Records kept.
    pub records: u64,
    /// Bytes of them.
    pub record_bytes: u64,
    /// What was left out for what it was, by whose it was and why: a group's number, or devices in general.
    #[serde(default)]
    pub left_out: BTreeMap<String, u64>,
    /// What was dropped of senders that sent too much, by sender.
    #[serde(default)]
    pub dropped: BTreeMap<String, Dropped>,
    /// Times the connection was lost.
    pub disconnects: u64,
    /// Seconds that processors have computed.
    pub computed: f64,
    /// Messages sent, and their bytes, by kind.
    pub kinds: BTreeMap<String, (u64, u64)>,
    /// How long each phase took.
    pub phases: BTreeMap<String, Durations>,
}

/// What was dropped of one sender, as far as it came here at all: while it is cut off, its server drops it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Messages, or pieces of them.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// How often it was not listened to for a while.
    pub cut_off: u64,
    /// Whether it is not listened to now.
    pub is_cut_off: bool,
}

/// One of its numbers.
type OfDropped = fn(&Dropped) -> u64;

impl Dropped {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }
}

/// Durations of one kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Durations {
    /// How many there were.
    pub count: u64,
    /// Their sum, in seconds.
    pub sum: f64,
    /// The last ones.
    last: Vec<f32>,
}

impl Durations {
    /// Adds one.
    pub fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        match self.last.len() < KEPT {
            true => self.last.push(seconds as f32),
            false => self.last[self.count as usize % KEPT] = seconds as f32,
        }
        self.count += 1;
        self.sum += seconds;
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Durations) {
        self.last.extend_from_slice(&other.last);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// A quantile of the last ones.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.last.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let at = (share * sorted.len() as f64).ceil() as usize;
        let at = at.clamp(1, sorted.len().max(1)) - 1;
        sorted.get(at).map_or(0.0, |seconds| f64::from(*seconds))
    }
}

impl Counters {
    /// Counts a message that was refused.
    pub fn refuse(&mut self, why: &str) {
        *self.refused.entry(why.into()).or_default() += 1;
    }

    /// Counts an absence.
    pub fn absent(&mut self, absence: &Absence) {
        let phase = format!("{:?}", absence.phase).to_lowercase();
        *self.absences.entry(phase).or_default() += 1;
        if let Some(reason) = absence.reason {
            let whose = match absence.device {
                Some(_) => "devices".into(),
                None => format!("group {}", absence.group),
            };
            *self
                .left_out
                .entry(format!("{whose}, {reason}"))
                .or_default() += 1;
        }
    }

    /// Counts a message that was sent.
    pub fn sent(&mut self, kind: &str, bytes: u64) {
        self.sent += 1;
        self.sent_bytes += bytes;
        match self.kinds.get_mut(kind) {
            Some((count, sum)) => (*count, *sum) = (*count + 1, *sum + bytes),
            None => _ = self.kinds.insert(kind.into(), (1, bytes)),
        }
    }

    /// Counts how long something took.
    pub fn took(&mut self, what: &str, duration: Duration) {
        match self.phases.get_mut(what) {
            Some(durations) => durations.add(duration),
            None => self.phases.entry(what.into()).or_default().add(duration),
        }
    }

    /// In Prometheus's text format.
    pub fn to_prometheus(&self, t: u64, connected: bool) -> String {
        let mut text = String::new();
        let mut put = |name: &str, kind: &str, help: &str, labels: &str, value: f64| {
            if !help.is_empty() {
                let _ = writeln!(text, "# HELP selvedge_{name} {help}");
                let _ = writeln!(text, "# TYPE selvedge_{name} {kind}");
            }
            let _ = writeln!(text, "selvedge_{name}{labels} {value}");
        };
        let counters = [
            ("messages_sent", "Messages sent.", self.sent),
            ("bytes_sent", "Bytes of messages sent.", self.sent_bytes),
            (
                "messages_sent_again",
                "Messages sent again because no answer came.",
                self.again,
            ),
            (
                "bytes_sent_again",
                "Bytes of messages sent again.",
                self.again_bytes,
            ),
            (
                "evaluation_bytes_sent",
                "Bytes sent to evaluate models.",
                self.evaluation_bytes,
            ),
            ("messages_received", "Messages received.", self.received),
            (
                "bytes_received",
                "Bytes of messages received.",
                self.received_bytes,
            ),
            (
                "predictions_answered",
                "Patients for whom a prediction was answered, or passed on.",
                self.predictions,
            ),
            ("records", "Records kept.", self.records),
            ("record_bytes", "Bytes of records kept.", self.record_bytes),
            (
                "disconnects",
                "Times the connection was lost.",
                self.disconnects,
            ),
        ];
        for (name, help, count) in counters {
            let name = format!("{name}_total");
            put(&name, "counter", help, "", count as f64);
        }
        let (name, help) = ("computed_seconds_total", "Seconds spent computing.");
        put(name, "counter", help, "", self.computed);
        let help = "The next iteration.";
        put("iteration", "gauge", help, "", t as f64);
        let (reached, help) = (u8::from(connected), "Whether the server is connected.");
        put("connected", "gauge", help, "", f64::from(reached));
        let (name, mut help) = ("messages_refused_total", "Messages received and refused.");
        for (why, count) in &self.refused {
            let labels = format!("{{why=\"{why}\"}}");
            put(name, "counter", help, &labels, *count as f64);
            help = "";
        }
        let dropped: [(&str, &str, OfDropped); 3] = [
            (
                "messages_dropped_total",
                "Messages dropped since their sender sent too much.",
                |d| d.messages,
            ),
            ("bytes_dropped_total", "Bytes of them.", |d| d.bytes),
            (
                "cut_off_total",
                "Times a sender was not listened to for a while.",
                |d| d.cut_off,
            ),
        ];
        for (name, mut help, count) in dropped {
            for (from, dropped) in &self.dropped {
                let labels = format!("{{from=\"{from}\"}}");
                put(name, "counter", help, &labels, count(dropped) as f64);
                help = "";
            }
        }
        let (name, mut help) = ("absences_total", "Absences noted, by phase.");
        for (phase, count) in &self.absences {
            let labels = format!("{{phase=\"{phase}\"}}");
            put(name, "counter", help, &labels, *count as f64);
            help = "";
        }
        let (name, mut help) = (
            "left_out_total",
            "Messages that arrived and were not used, by whose they were and why.",
        );
        for (what, count) in &self.left_out {
            let labels = format!("{{what=\"{what}\"}}");
            put(name, "counter", help, &labels, *count as f64);
            help = "";
        }
        let (name, mut help) = ("messages_of_kind_total", "Messages sent, by kind.");
        for (kind, (count, _)) in &self.kinds {
            let labels = format!("{{kind=\"{kind}\"}}");
            put(name, "counter", help, &labels, *count as f64);
            help = "";
        }
        let mut help = "How long phases took.";
        for (phase, durations) in &self.phases {
            for share in [0.5, 0.99] {
                let labels = format!("{{phase=\"{phase}\",quantile=\"{share}\"}}");
                let seconds = durations.quantile(share);
                put("phase_seconds", "summary", help, &labels, seconds);
                help = "";
            }
            let (labels, count) = (format!("{{phase=\"{phase}\"}}"), durations.count as f64);
            put("phase_seconds_sum", "", "", &labels, durations.sum);
            put("phase_seconds_count", "", "", &labels, count);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_last_durations() {
        let mut durations = Durations::default();
        assert_eq!(durations.quantile(0.5), 0.0);
        for i in 1..=100 {
            durations.add(Duration::from_millis(i));
        }
        assert!((durations.quantile(0.5) - 0.050).abs() < 1e-6);
        assert!((durations.quantile(0.99) - 0.099).abs() < 1e-6);
        for _ in 0..KEPT {
            durations.add(Duration::from_millis(7));
        }
        assert!((durations.quantile(0.99) - 0.007).abs() < 1e-6);
        assert_eq!(durations.count, 100 + KEPT as u64);
    }
}

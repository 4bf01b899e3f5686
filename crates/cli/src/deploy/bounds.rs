//! How much the parties of a run say to each other at most, from the sizes of the run.

use selvedge_core::dataset::Group;
use selvedge_core::enrol::LONGEST_MESSAGE;
use selvedge_core::role::{MOST_ASKED, Party};
use selvedge_core::task::Task;
use selvedge_net::chunks::PIECE;
use selvedge_net::gate::Turn;
use selvedge_net::server::Quotas;

/// Greetings and small messages of a turn, and their bytes.
const SMALL_MESSAGES: usize = 64;
const SMALL_BYTES: usize = 64 << 10;

/// What an edge's greeting says of each gateway.
const OF_GATEWAYS: usize = 512;

/// What an edge passes on to its hospital in one interval of theirs, in turns of its gateways: it may be at its next
/// step already, several times, while the hospital is not.
const PASSED_ON: usize = 4;

/// Messages of enrolment, which come before anything is known of the run, are no longer than this one by far.
pub(super) const OF_ENROLMENT: Turn = Turn {
    messages: SMALL_MESSAGES + LONGEST_MESSAGE / PIECE,
    bytes: LONGEST_MESSAGE,
};

/// Who asks for predictions hears besides what its gateway's node is told, and does not count intervals.
const OF_ASKER: usize = 64;

/// Questions of one gateway that wait for an answer at the same time.
const QUESTIONS: usize = 8;

/// Numbers of one message, if there are more: a sender begins another one then.
const PER_MESSAGE: usize = 1 << 16;

/// Records of a party that its server may hold at once: the last one, the next one, pieces that are not removed yet.
const RECORDS: usize = 8;
const SPARE_STORE: usize = 16 << 20;

/// What may wait for a connection besides what the run needs.
const SPARE_WAITING: usize = 8 << 20;

/// What a group says in an interval at most, in bytes.
struct Sizes {
    /// θ0, θ1 and θ2, twice: of an aggregation, and to be measured.
    models: usize,
    /// ζ of the drawn devices.
    rows: usize,
    /// Models of the drawn devices.
    steps: usize,
    /// ζ2 of all that is measured.
    measured: usize,
    /// Counts of scores.
    scores: usize,
    /// A question and its answer.
    asked: usize,
}

impl Sizes {
    /// Of a run with so many held-out rows.
    fn of(task: &Task<'_>, held_out: usize) -> Self {
        let w = task.architecture.widths();
        let groups = &task.dataset.groups;
        let selected = task.selected.iter().copied().max().unwrap_or(0);
        let samples = selected * task.dataset.most_samples_of_a_device().max(1);
        let trained = groups.iter().map(Group::row_count).max().unwrap_or(0);
        let outputs = task.architecture.combined.output().len();
        Sizes {
            models: 8 * (w.n0 + w.n1 + w.n2),
            rows: samples * (8 * (w.d1 + w.d2) + 16) + 64 * selected,
            steps: selected * (4 * w.n2 + 64),
            measured: (trained + held_out) * (4 * w.d2 + 8),
            scores: outputs * 250_000,
            asked: MOST_ASKED * (16 + 4 * w.d2.max(outputs)),
        }
    }
}

/// No message of a run is longer than this.
pub(super) fn longest_message(task: &Task<'_>, gateways: usize) -> usize {
    let Sizes {
        models,
        rows,
        scores,
        asked,
        ..
    } = Sizes::of(task, 0);
    (4 << 20) + models + rows + scores + asked + 2048 * gateways
}

/// What a party's neighbours send it in one interval, each of them at most; of a run with so many held-out rows. Who
/// `answers` is asked questions too.
pub(super) fn turn(task: &Task<'_>, party: Party, held_out: usize, answers: bool) -> Turn {
    let Sizes {
        models,
        rows,
        steps,
        measured,
        scores,
        asked,
    } = Sizes::of(task, held_out);
    let asked = if answers { QUESTIONS * asked } else { 0 };
    let bytes = SMALL_BYTES
        + asked
        + match party {
            Party::Cloud => models + scores + OF_GATEWAYS * most_gateways(task),
            Party::Hospital(_) => models + PASSED_ON * (rows + measured),
            Party::Edge(_) => models + rows + steps + measured,
            Party::Gateway(..) => models + rows,
        };
    // A message that is not the last of its kind is at least half as long as it may be.
    let messages = SMALL_MESSAGES + bytes / (2 * PER_MESSAGE) + bytes / PIECE;
    Turn { messages, bytes }
}

/// The same for who asks for predictions.
pub(super) fn turn_of_asker(task: &Task<'_>, party: Party) -> Turn {
    let Turn { messages, bytes } = turn(task, party, 0, true);
    Turn {
        messages: OF_ASKER * messages,
        bytes: OF_ASKER * bytes,
    }
}

/// A group has no more gateways than devices.
pub(super) fn most_gateways(task: &Task<'_>) -> usize {
    let devices = task.dataset.groups.iter().map(Group::devices);
    devices.max().unwrap_or(0)
}

/// What the parties of a run may take up of their servers, with room to spare: an honest run needs a fraction of it.
pub(super) fn quotas(task: &Task<'_>, held_out: usize) -> Quotas {
    let sizes = Sizes::of(task, held_out);
    let groups = task.dataset.groups.len();
    let record = 8 * sizes.models + sizes.rows + 4096 * groups + 64 * most_gateways(task);
    let turn = |party| turn(task, party, held_out, true).bytes;
    let all_groups = 2 * groups * (sizes.models + sizes.scores);
    Quotas {
        store: (SPARE_STORE + RECORDS * record) as u64,
        waiting_at_site: (SPARE_WAITING + 4 * turn(Party::Edge(0))) as u64,
        waiting_at_hub: (SPARE_WAITING + 4 * all_groups) as u64,
    }
}

//! Every key of an experiment, with its meaning: what errors suggest from and the reference is made of.

use crate::metrics::METRICS;
use std::sync::LazyLock;

/// A key and what it means.
#[derive(Clone, Copy, Debug)]
pub struct KeyInfo {
    /// Dotted, as in `--set`.
    pub path: &'static str,
    /// One line.
    pub meaning: &'static str,
}

const fn key(path: &'static str, meaning: &'static str) -> KeyInfo {
    KeyInfo { path, meaning }
}

/// Every key there is, in the order of a resolved experiment.
pub static KEYS: LazyLock<Vec<KeyInfo>> = LazyLock::new(|| {
    let (before, budgets) = OWN.split_at(OWN.len() - 2);
    let targets = METRICS.iter().filter_map(|metric| metric.stop);
    let before = before.iter().copied().chain(targets);
    before.chain(budgets.iter().copied()).collect()
});

const OWN: &[KeyInfo] = &[
    key("seed", "everything random follows from it"),
    key(
        "data.set",
        "which rows; synthetic-esr and so on are generated twins of the same shape",
    ),
    key(
        "data.path",
        "file or folder of the set, below the data folder; empty: its usual place",
    ),
    key(
        "data.vertical",
        "which side holds what: centre | frame (medmnist), half | channel (mimic3), statics (physionet2012)",
    ),
    key(
        "data.split",
        "how rows are dealt to groups; recording is for esr",
    ),
    key("data.groups", "M, the number of groups"),
    key(
        "data.beta",
        "β of split = dirichlet: small is skewed, large even",
    ),
    key(
        "data.sizes",
        "how large the groups are relative to each other; empty: all equal",
    ),
    key("data.devices", "K_m, devices in each group (synthetic)"),
    key("data.samples_per_device", "samples on each device"),
    key(
        "data.features",
        "features [hospital, device], like [16, 16] or [[48, 20], [1, 28, 28]] (synthetic)",
    ),
    key("data.classes", "number of classes (synthetic)"),
    key("data.noise", "how much noise hides the signal (synthetic)"),
    key(
        "data.test",
        "share of the rows kept for the test (synthetic: generated in addition)",
    ),
    key(
        "data.validation",
        "share of the training rows kept for choosing settings and iterations (synthetic: in addition)",
    ),
    key("data.table.files", "further files, joined by id (table)"),
    key("data.table.id", "column that tells patients apart (table)"),
    key("data.table.label", "column that is to be predicted (table)"),
    key(
        "data.table.labels",
        "the labels in order; empty: all that occur (table)",
    ),
    key(
        "data.table.group",
        "column that names a row's group, for split = column (table)",
    ),
    key(
        "data.table.patient",
        "column that names the patient of several rows (table)",
    ),
    key(
        "data.table.part",
        "column that says train, validation or test (table)",
    ),
    key(
        "data.table.hospital",
        "columns or variables at the hospital, like [\"age\", \"lab_*\"] (table)",
    ),
    key(
        "data.table.device",
        "columns or variables on the device (table)",
    ),
    key(
        "data.table.categorical",
        "columns of categories: [\"sex\"] or { sex = [\"f\", \"m\"] } (table)",
    ),
    key(
        "data.table.blank",
        "texts that mean that nothing was measured, besides empty cells (table)",
    ),
    key(
        "data.table.missing",
        "what stands for what was not measured (table)",
    ),
    key(
        "data.table.masks",
        "whether numbers are accompanied by whether they were measured (table)",
    ),
    key(
        "data.table.clip",
        "whether numbers are clipped to the 1st and 99th percentile (table)",
    ),
    key(
        "data.table.one_sided",
        "what becomes of patients that only one side knows (table)",
    ),
    key(
        "data.table.time",
        "column of the time, for time series (table)",
    ),
    key(
        "data.table.variable",
        "column that names what was measured, one measurement per row (table)",
    ),
    key(
        "data.table.value",
        "column of what was measured, likewise (table)",
    ),
    key("data.table.steps", "steps of a time series (table)"),
    key(
        "data.table.step",
        "how long a step is, in the unit of the time (table)",
    ),
    key("data.table.start", "where the first step begins (table)"),
    key("train.algorithm", "which loop trains"),
    key("train.iterations", "T, a multiple of P"),
    key(
        "train.global_interval",
        "P, iterations between global aggregations, a multiple of Q",
    ),
    key(
        "train.local_interval",
        "Q, iterations between local aggregations and exchanges",
    ),
    key("train.learning_rate", "η0"),
    key(
        "train.halve_every",
        "T0, halve the learning rate every so many iterations; 0 is never",
    ),
    key(
        "train.adaptive",
        "who chooses P, Q and η while training, from these on (hsgd, c-hsgd)",
    ),
    key(
        "train.participation",
        "α, the share of a group's devices that takes part in an interval",
    ),
    key("train.selection", "how they are drawn"),
    key("train.weight_decay", "λ of the regulariser on the towers"),
    key("train.class_weights", "the factor of each class's loss"),
    key(
        "train.broadcast",
        "which devices are sent the device model at an exchange",
    ),
    key(
        "train.evaluate_every",
        "evaluate at most every so many iterations",
    ),
    key(
        "train.loss_samples",
        "training loss over a fixed sample of so many; 0 is over all",
    ),
    key(
        "train.raw_bytes",
        "S, bytes of raw data charged where an algorithm moves it; else those of all training samples",
    ),
    key("model.hospital", "layers of the hospital tower"),
    key("model.device", "layers of the device tower"),
    key(
        "model.combined",
        "layers over both embeddings, ending in one logit per class",
    ),
    key(
        "compression.codec",
        "codec of theta0, zeta1 and zeta2 in c-hsgd and c-tdcd",
    ),
    key("compression.levels", "b, levels of codecs that name none"),
    key("compression.theta0", "codec of theta0, if another"),
    key("compression.zeta1", "codec of zeta1, if another"),
    key("compression.zeta2", "codec of zeta2, if another"),
    key(
        "compression.device_upload",
        "codec of theta2 from device to edge, sent as a difference",
    ),
    key(
        "compression.device_download",
        "codec of theta2 from edge to device",
    ),
    key(
        "compression.global_upload",
        "codec of models to the cloud, sent as a difference (c-hsgd)",
    ),
    key(
        "compression.global_download",
        "codec of models from the cloud, likewise (c-hsgd)",
    ),
    key(
        "compression.error_feedback",
        "whether what compression lost of theta0, and of models to and from the cloud, is added to the next one",
    ),
    key("time.mobile_up", "bit/s from a device"),
    key("time.mobile_down", "bit/s to a device"),
    key("time.fixed_up", "bit/s from a hospital or an edge"),
    key("time.fixed_down", "bit/s to a hospital or an edge"),
    key(
        "time.compute",
        "whether the time of computation is as set below or measured",
    ),
    key(
        "time.compute_seconds",
        "t_c, seconds of computation in an iteration",
    ),
    key("time.compute_scale", "a factor on the time of computation"),
    key(
        "time.shared_uplink",
        "whether a group's devices share one uplink",
    ),
    key(
        "time.sequential_exchange",
        "whether the two ways of an exchange follow each other",
    ),
    key(
        "stop.bytes",
        "end when a group has sent so many bytes on average (exact)",
    ),
    key("stop.seconds", "end after so many simulated seconds"),
];

/// The candidate that is least different from a mistyped word, if one is near enough to suggest.
///
/// ```
/// use selvedge_core::experiment::nearest;
/// assert_eq!(nearest("lstmm", ["lstm", "gru"]), Some("lstm"));
/// assert_eq!(nearest("bananas", ["lstm", "gru"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word more than twice as long is near to none, and may be any file's longest line.
    let letters = word.chars().count();
    let similar = candidates
        .into_iter()
        .filter(|c| letters <= 2 * c.chars().count().max(1));
    let scored = similar.map(|c| (distance(word, c), c));
    let (distance, best) = scored.min_by_key(|(d, _)| *d)?;
    (2 * distance <= letters.max(2)).then_some(best)
}

/// What would be right instead of `word`: "expected one of …", and the nearest where there is one.
pub fn one_of(word: &str, known: &[&str]) -> String {
    let list: Vec<String> = known.iter().map(|name| format!("\"{name}\"")).collect();
    let hint = nearest(&word.to_lowercase(), known.iter().copied());
    let hint = hint.map_or(String::new(), |name| format!(" (did you mean \"{name}\"?)"));
    format!("expected one of {}{hint}", list.join(", "))
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut least = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(table[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    table[a.len()][b.len()]
}

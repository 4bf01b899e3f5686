//! What the paper prints: its Tables II to IV, and what its text says of Figures 4 to 9.

use selvedge_core::experiment::Algorithm;

/// Algorithms are in the order of the paper's tables: HSGD, JFL, TDCD, C-HSGD, C-TDCD.
pub(super) const NAMES: [&str; 5] = {
    let [hsgd, jfl, tdcd, c_hsgd, c_tdcd] = Algorithm::PAPER;
    [
        hsgd.name(),
        jfl.name(),
        tdcd.name(),
        c_hsgd.name(),
        c_tdcd.name(),
    ]
};

const MB: f64 = 1e6;
const GB: f64 = 1e9;

/// A data set of the paper, and what stands for it here.
pub(crate) struct PaperSet {
    /// As the paper calls it.
    pub(super) name: &'static str,
    /// Experiments that come with selvedge: the set itself, and one that anybody can get.
    pub(super) experiments: &'static [&'static str],
    /// Learning rates that every algorithm chooses from.
    pub(super) grid: &'static [f64],
    /// Bytes of raw data, where the set itself is at hand.
    pub(super) raw_bytes: u64,
    pub(super) table2: &'static [Table2Row],
    pub(super) table3: Table3,
    /// Seconds of computation in an iteration.
    pub(super) table4: [f64; 5],
    /// How much time HSGD saves against each of the others until this AUC, where the text says so.
    pub(super) figure4: Option<(f64, [&'static str; 4])>,
    /// The F1 that the text compares bytes at.
    pub(super) figure5: f64,
    /// Targets of Figures 7 to 9, where they are reproduced.
    pub(super) adaptive: Option<Adaptive>,
}

impl PaperSet {
    /// `ESR` or `MIMIC-III (physionet2012 stands for it)`
    pub(super) fn shown(&self, experiment: &str) -> String {
        match self.experiments[0] == experiment {
            true => self.name.to_owned(),
            false => format!("{} ({experiment} stands for it)", self.name),
        }
    }
}

/// What is to be reached in Figures 7 to 9. The paper shows them for MIMIC-III only, and says the AUC of two of them.
pub(super) struct Adaptive {
    /// AUC
    pub(super) figure7: f64,
    /// AUC and training loss.
    pub(super) figure8: (f64, f64),
    /// AUC
    pub(super) figure9: f64,
    /// T, in which all settings that get there do.
    pub(super) iterations: u64,
    /// Evaluations come at most so many iterations apart, or P where that is more. A target is reached at one of them, on
    /// PhysioNet after some 130 iterations: were they 20 apart there, settings would tie that differ by less than 15 %, and
    /// what is left of a tie is how many bytes an iteration has, in every seed to the byte. 4 divides the smaller P of
    /// Figure 7, which are then judged at the same iterations.
    pub(super) evaluate_every: u64,
}

/// A line of Table II: bytes of one group until a target; nothing where it was not reached.
pub(super) struct Table2Row {
    pub(super) metric: &'static str,
    pub(super) target: f64,
    pub(super) bytes: [Option<f64>; 5],
}

/// Memory in bytes and FLOPs, accumulated until an AUC.
pub(super) struct Table3 {
    pub(super) auc: f64,
    pub(super) memory: [f64; 5],
    pub(super) flops: [f64; 5],
}

const fn row(metric: &'static str, target: f64, bytes: [Option<f64>; 5]) -> Table2Row {
    Table2Row {
        metric,
        target,
        bytes,
    }
}

const fn gb(x: f64) -> Option<f64> {
    Some(x * GB)
}

const fn mb(x: f64) -> Option<f64> {
    Some(x * MB)
}

#[allow(clippy::approx_constant)] // 6.28 GB is what the paper prints, and no circle
pub(super) const PAPER_SETS: [PaperSet; 3] = [
    PaperSet {
        name: "OrganAMNIST",
        experiments: &["organamnist", "mednist"],
        grid: &[0.02, 0.05, 0.1],
        raw_bytes: 63_000_000,
        table2: &[
            row(
                "loss",
                1.5,
                [gb(2.32), gb(31.53), gb(5.30), gb(1.38), gb(3.79)],
            ),
            row("loss", 0.5, [gb(42.87), gb(88.65), gb(31.53), None, None]),
            row(
                "precision",
                0.5,
                [gb(3.08), gb(19.52), gb(5.81), gb(3.75), gb(4.15)],
            ),
            row("precision", 0.7, [gb(18.41), None, None, None, None]),
            row(
                "recall",
                0.5,
                [gb(3.07), gb(23.91), gb(7.32), gb(5.13), gb(10.49)],
            ),
            row("recall", 0.7, [gb(49.17), None, None, None, None]),
        ],
        table3: Table3 {
            auc: 0.9,
            memory: [
                890.0 * MB,
                2600.0 * MB,
                1950.0 * MB,
                1530.0 * MB,
                1734.0 * MB,
            ],
            flops: [11.57e9, 33.8e9, 25.35e9, 21.60e9, 24.48e9],
        },
        table4: [0.06, 0.48, 0.06, 0.06, 0.06],
        figure4: Some((
            0.9,
            [
                "80 % saved at 0.9",
                "41 % saved at 0.9",
                "56 % saved at 0.9",
                "62 % saved at 0.9",
            ],
        )),
        figure5: 0.6,
        adaptive: None,
    },
    PaperSet {
        name: "ESR",
        experiments: &["esr"],
        grid: &[0.2, 0.5, 1.0],
        raw_bytes: 7_300_000,
        table2: &[
            row("loss", 1.2, [gb(0.15), gb(0.53), gb(0.61), gb(0.61), None]),
            row("loss", 0.8, [gb(2.52), None, gb(4.41), None, None]),
            row(
                "precision",
                0.4,
                [gb(0.15), gb(0.19), gb(0.15), gb(0.23), gb(0.74)],
            ),
            row("precision", 0.6, [gb(1.92), None, gb(5.08), None, None]),
            row(
                "recall",
                0.4,
                [gb(0.1), gb(0.29), gb(0.29), gb(0.14), gb(1.34)],
            ),
            row("recall", 0.6, [gb(2.52), None, mb(6280.0), None, None]),
        ],
        table3: Table3 {
            auc: 0.7,
            memory: [7.6 * MB, 17.2 * MB, 8.8 * MB, 16.4 * MB, 29.4 * MB],
            flops: [1.48e6, 3.37e6, 1.72e6, 3.21e6, 5.80e6],
        },
        table4: [0.064, 0.1, 0.064, 0.064, 0.064],
        figure4: None,
        figure5: 0.6,
        // A group holds mostly two labels: with P = Q ≥ 10 nothing gets to 0.9 within 3,000 iterations, so that lower
        // targets than Figure 4's have to do.
        adaptive: Some(Adaptive {
            figure7: 0.8,
            figure8: (0.88, 1.0),
            figure9: 0.82,
            iterations: 3000,
            evaluate_every: 20,
        }),
    },
    PaperSet {
        name: "MIMIC-III",
        experiments: &["mimic3", "physionet2012"],
        grid: &[0.05, 0.1, 0.2],
        raw_bytes: 42_300_000_000,
        table2: &[
            row(
                "loss",
                0.5,
                [mb(0.19), mb(0.63), mb(3990.73), mb(0.23), mb(3990.75)],
            ),
            row("loss", 0.3, [mb(9.61), None, mb(3995.89), None, None]),
            row(
                "precision",
                0.7,
                [mb(2.69), mb(34.30), mb(3994.73), mb(38.46), mb(3995.16)],
            ),
            row(
                "recall",
                0.6,
                [mb(4.61), None, mb(3994.73), None, mb(40003.58)],
            ),
        ],
        table3: Table3 {
            auc: 0.78,
            memory: [0.078 * MB, 0.6 * MB, 0.11 * MB, 3.0 * MB, 3.28 * MB],
            flops: [11661.0, 89700.0, 16445.0, 448_500.0, 490_360.0],
        },
        table4: [0.05, 0.8, 0.05, 0.05, 0.05],
        figure4: None,
        figure5: 0.6,
        // The text has 0.8 and 0.82; Figure 8's "required" values it does not say, and these are reached here.
        adaptive: Some(Adaptive {
            figure7: 0.8,
            figure8: (0.82, 0.33),
            figure9: 0.82,
            iterations: 1500,
            evaluate_every: 4,
        }),
    },
];

//! C(P, Q): the bytes of one group, as closed forms. The ledger is not made of these; it is tested against them.

use crate::ledger::WORD;
use crate::model::Widths;
use serde::{Deserialize, Serialize};

/// What decides a group's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// n0, n1, n2, d1, d2
    pub widths: Widths,
    /// |A|
    pub selected: f64,
}

/// Which bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counter {
    /// All of them.
    Exact,
    /// Those of the paper's C(P, Q).
    Paper,
}

impl Bill {
    /// Bytes of an exchange and a local aggregation, once every Q.
    pub fn local(&self, counter: Counter) -> f64 {
        let a = self.selected;
        let [n0, _, n2, d1, d2] = self.numbers();
        WORD as f64
            * match counter {
                Counter::Exact => 2.0 * a * n2 + 2.0 * a * d2 + n0 + a * d1 + a * (n0 + d1),
                Counter::Paper => a * n2 + n0 + a * d1 + a * d2,
            }
    }

    /// Bytes of a global aggregation, once every P.
    pub fn global(&self, counter: Counter) -> f64 {
        let [n0, n1, n2, _, _] = self.numbers();
        WORD as f64
            * match counter {
                Counter::Exact => 2.0 * (n0 + n1 + n2),
                Counter::Paper => n1,
            }
    }

    /// Bytes of one iteration, on average: C(P, Q)/(MT).
    pub fn iteration(&self, counter: Counter, p: f64, q: f64) -> f64 {
        self.global(counter) / p + self.local(counter) / q
    }

    /// B ≥ 2·n1, which is sufficient for P = Q to be optimal with the paper's count and real P, Q where the bound
    /// holds: what an exchange sends, against what a global aggregation does.
    pub fn favours_equal_intervals(&self) -> bool {
        self.local(Counter::Paper) >= 2.0 * self.global(Counter::Paper)
    }

    fn numbers(&self) -> [f64; 5] {
        let Widths { n0, n1, n2, d1, d2 } = self.widths;
        [n0, n1, n2, d1, d2].map(|n| n as f64)
    }
}

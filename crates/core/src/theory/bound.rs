//! Theorem 1: how far from zero the gradient can be.
//!
//! For η ≤ 1/(8Pρ), the mean of ‖∇F‖² over the global aggregations of T iterations is at most
//!
//! ```text
//! Γ(P, Q) = 4Δ/(ηT)  +  12Pρηδ²  +  96Q²ρ²η²δ²         Δ = F(θ⁰) − E F(θ^T)
//!           └─ start ┘  └─ noise ─┘  └─ staleness ──┘
//! ```
//!
//! ρ is the Lipschitz constant of the gradient, δ² the variance of what is really applied: of the mini-batch mean for
//! θ0 and θ1, of a single sample for θ2. With η = Θ(1/√T) the bound goes to zero.
//!
//! The published proof has two holes. Lemma 3 bounds the drift of one part's gradient since the last exchange by that
//! gradient alone, though from Q = 2 on the other part, on which it depends too, has moved: for F = θ0·θ1 at (1, 0) it
//! says that the gradient of θ0 stays 0. And for P > Q it is applied to the drift since the last global aggregation. So
//! beyond P = Q = 1, where it is that of plain SGD, the bound is not proved; the tests of this crate try it on
//! quadratics, where ρ and δ are known, also for P > Q, and never find it exceeded.

use serde::{Deserialize, Serialize};

/// What Theorem 1 knows of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Constants {
    /// Δ = F(θ⁰) − E F(θ^T): how far the loss can fall.
    pub drop: f64,
    /// ρ
    pub rho: f64,
    /// δ²
    pub variance: f64,
}

/// P, Q, η and T of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// P
    pub global_interval: f64,
    /// Q
    pub local_interval: f64,
    /// η
    pub learning_rate: f64,
    /// T
    pub iterations: f64,
}

/// The three terms of Γ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// 4Δ/(ηT)
    pub start: f64,
    /// 12Pρηδ²
    pub noise: f64,
    /// 96Q²ρ²η²δ²
    pub staleness: f64,
}

impl Bound {
    /// Γ
    pub fn total(&self) -> f64 {
        self.start + self.noise + self.staleness
    }
}

impl Constants {
    /// Γ(P, Q), by its terms. Whether it holds is [`is_valid`](Constants::is_valid).
    ///
    /// ```
    /// use selvedge_core::theory::bound::{Constants, Setting};
    /// let problem = Constants { drop: 1.0, rho: 2.0, variance: 0.5 };
    /// let setting = Setting { global_interval: 4.0, local_interval: 2.0, learning_rate: 0.01, iterations: 400.0 };
    /// let bound = problem.bound(setting);
    /// assert!((bound.start - 1.0).abs() < 1e-12);      // 4 · 1 / (0.01 · 400)
    /// assert!((bound.noise - 0.48).abs() < 1e-12);     // 12 · 4 · 2 · 0.01 · 0.5
    /// assert!((bound.staleness - 0.0768).abs() < 1e-12);
    /// assert!(problem.is_valid(setting));              // 0.01 ≤ 1 / (8 · 4 · 2)
    /// ```
    pub fn bound(&self, s: Setting) -> Bound {
        let Constants {
            drop,
            rho,
            variance,
        } = *self;
        let (p, q, eta) = (s.global_interval, s.local_interval, s.learning_rate);
        Bound {
            start: 4.0 * drop / (eta * s.iterations),
            noise: 12.0 * p * rho * eta * variance,
            staleness: 96.0 * q * q * rho * rho * eta * eta * variance,
        }
    }

    /// Whether η ≤ 1/(8Pρ), as Theorem 1 asks.
    pub fn is_valid(&self, s: Setting) -> bool {
        s.learning_rate <= self.largest_rate(s.global_interval)
    }

    /// 1/(8Pρ)
    pub fn largest_rate(&self, global_interval: f64) -> f64 {
        1.0 / (8.0 * global_interval * self.rho)
    }
}

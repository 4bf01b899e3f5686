//! What the paper proves about HSGD, and what follows from it for P, Q and η.
//!
//! ```text
//! estimate ──► Constants (Δ, ρ, δ²) ──► bound: Γ(P, Q)  ─┐
//!                                                        ├──► strategies: Λ*, P* = Q*, η*
//! widths, |A| ─────────────────────► bill: C(P, Q)      ─┘
//! ```
//!
//! Everything but the estimators is a pure function. The bound is loose: it bounds the worst case, with constants that
//! hold along the whole path. It is useful for how it changes with P, Q and η.

pub mod bill;
pub mod bound;
pub mod estimate;
pub mod pretraining;
pub mod strategies;

//! Theorem 1 and its estimators on quadratics, where ρ and δ² are known.
//!
//! - [`bound`]: Γ(P, Q) is never crossed, for P = Q and for P > Q, where the published proof has a hole.
//! - [`floor`]: how the gradient that noise leaves grows with η, P and Q, beside how the bound says it may.
//! - [`estimators`]: ρ, δ², ‖∇F‖² and the differences between groups are found from gradients alone.
//!
//! `cargo test --release -p selvedge-core --test quadratics -- --nocapture` prints the tables.

mod bound;
mod estimators;
mod floor;
mod hsgd;
mod problem;

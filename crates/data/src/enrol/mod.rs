//! What enrolment needs of tables: how a party that holds some reads its own side ([`OwnSide`]), what all must agree on
//! beforehand ([`terms`]), and the data folder that a party ends up with: what [`read_party`](crate::read_party) reads,
//! and `enrolment.json`. How parties talk is in [`selvedge_core::enrol`].

mod asked;
mod own;
mod terms;
mod written;

pub use asked::Asked;
pub use own::OwnSide;
pub use terms::terms;
pub use written::{Summary, check_data_folder, write};

#[cfg(test)]
mod tests;

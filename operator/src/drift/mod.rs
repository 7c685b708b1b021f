//! The drift controller: whether live traffic left what the active table was fitted on, and whether engines still return experts.

pub mod baselines;
pub mod controller;
pub mod coverage;
pub mod gate;
pub mod memory;
pub mod status;
pub mod window;

#[cfg(test)]
mod tests;

/// Field manager of everything that this controller writes.
pub const MANAGER: &str = "coterie.dev/drift";

//! The calibration controller: which CalibrationRuns exist, their Jobs, which CentroidTable is active.

pub mod attempt;
pub mod collect;
pub mod controller;
pub mod job;
pub mod observe;
pub mod orphan;
pub mod promotion;
pub mod queue;
pub mod run_names;
pub mod samples;
pub mod status;
pub mod verify;
pub mod wanted;
pub mod write;

#[cfg(test)]
mod tests;

/// Field manager of everything that this controller writes.
pub const MANAGER: &str = "coterie.dev/calibration";

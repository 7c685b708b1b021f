//! Collects samples of a fleet's traffic, fits a centroid table to them and publishes it.
//!
//! - [`collect`]: samples from prompts (generated and replayed on a probe) or from the routers' reservoirs;
//! - [`publish`]: the table as a CentroidTable and its chunks;
//! - [`commands`]: `run` (a calibration Job), and `collect`, `fit`, `inspect` for files;
//! - [`error`]: what can go wrong, whether a retry can mend it, and the exit code.

pub mod args;
pub mod collect;
pub mod commands;
pub mod error;
pub mod outcome;
pub mod progress;
pub mod publish;
pub mod report;

//! Collects samples of a fleet's traffic, fits a centroid table to them and publishes it.
//!
//! - [`collect`]: samples from prompts (generated and replayed on a probe) or from the routers' reservoirs;
//! - [`input`]: samples, labels and tables from files;
//! - [`commands`]: `run` (a calibration Job), and the commands on files;
//! - [`study`]: policies and predictors on a recording;
//! - [`publish`]: the table as a CentroidTable and its chunks;
//! - [`output`]: what a command gives back; files that appear whole or not at all;
//! - [`error`]: what can go wrong, whether a retry can mend it, and the exit code.

pub mod args;
pub mod collect;
pub mod commands;
pub mod error;
pub mod input;
pub mod outcome;
pub mod output;
pub mod progress;
pub mod publish;
pub mod report;
pub mod statistics;
pub mod study;
pub mod summary;

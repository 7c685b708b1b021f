//! Tests of the calibration controller's pure parts.

mod attempts;
mod jobs;
mod runs;
mod tables;

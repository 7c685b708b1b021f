//! Tests of the calibration controller's pure parts.

mod attempts;
mod jobs;
mod orphans;
mod runs;
mod status;
mod tables;

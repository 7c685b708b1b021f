//! Tests of Coterie on a real cluster. `cargo xtask test` starts the cluster, loads the images and runs them one at a time:
//! each has a fleet of its own, and the machine's cores are few.

mod calibration;
mod chart;
mod drift;
mod failures;
mod lifecycle;
mod scaling;
mod serving;
mod validation;

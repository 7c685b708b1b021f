//! The calibrator against real parts: a sim engine on loopback, files on disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod cli;
mod collect;
mod common;
mod live;
mod publish;

//! Workers as a whole, over HTTP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod agreement;
mod common;
mod dialect;
mod faults_and_drain;
mod hand_off;
mod load;
mod recorded;
mod simulator_command;
mod synthetic;
mod vectors;

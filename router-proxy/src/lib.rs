//! The data plane: sends each request to the decode worker whose batch already loads its experts.
//!
//! - `door`: front doors, HTTP now; they parse a client's request and relay the answer;
//! - `core`: choose a prefill worker, prefill, sign, choose a decode worker, decode; knows no front door;
//! - `dialect`: what engines and transfer protocols say, behind two traits;
//! - `routing`: the state that requests read: document, table, workers;
//! - `worker`: load, health and scrapes of one worker;
//! - `discovery`: where document, table and workers come from;
//! - `stats`, `admin`, `telemetry`: what operator, calibrator and people are shown.

mod admin;
pub mod args;
mod args_check;
mod clock;
mod core;
mod dialect;
mod discovery;
mod door;
pub mod process;
mod routing;
mod stats;
mod telemetry;
mod worker;

pub use args::Args;
pub use process::{Router, described_metrics};
pub use telemetry::Described;

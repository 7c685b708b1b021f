//! The operator: from a MoEDeployment to a running, calibrated fleet that is watched for drift.
//!
//! Three controllers work on every MoEDeployment, each with its own field manager and its own part of the status:
//! - [`fleet`]: pools, routers, the routing document;
//! - [`calibration`]: CalibrationRuns, their Jobs, and which CentroidTable is active;
//! - [`drift`]: whether live traffic left what the active table was fitted on.
//!
//! A reconcile reads, plans and writes. Plans and verdicts are pure functions: no client, no clock.

pub mod args;
pub mod calibration;
pub mod context;
pub mod drift;
pub mod error;
pub mod fleet;
pub mod kube_io;
pub mod leader;
pub mod metrics;
pub mod owner;
pub mod retry;
pub mod router_admin;
pub mod run;
#[cfg(test)]
mod testing;
pub mod watch;

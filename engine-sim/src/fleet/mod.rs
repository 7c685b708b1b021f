//! A fleet in discrete-event simulation: gates, step-time laws, workloads and expert placements, the fleet's mechanics, policies side by
//! side, and the command line of `coterie-sim`.

mod chance;
pub mod cli;
pub mod compare;
pub mod evaluate;
pub mod gates;
pub mod law;
pub mod outcome;
pub mod placement;
pub mod plot;
pub mod simulate;
pub mod steering;
pub mod workload;

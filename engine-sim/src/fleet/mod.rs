//! What a simulated fleet is made of: gates, step-time laws, workloads and expert placements.

mod chance;
pub mod gates;
pub mod law;
pub mod placement;
pub mod workload;

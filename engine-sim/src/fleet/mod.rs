//! What a simulated fleet is made of: gates, step-time laws, workloads and expert placements.

pub mod gates;

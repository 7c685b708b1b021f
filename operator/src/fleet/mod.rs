//! The fleet controller: pools, routers, the routing document, and whether they are as declared.

pub mod acknowledgement;
pub mod controller;
pub mod document;
pub mod observe;
pub mod plan;
pub mod resolve;
pub mod revision;
pub mod rollout;
pub mod secret;
pub mod serving;
pub mod status;
pub mod stuck;
pub mod workers;

#[cfg(test)]
mod tests;

/// Field manager of everything that this controller writes.
pub const MANAGER: &str = "coterie.dev/fleet";

//! Mathematics of expert locality: activation counts, signatures, centroid tables, routing policies, clustering, drift statistics.
//!
//! Pure functions and small state machines: no clock, files, network or Kubernetes. Chance comes from generators that callers seed, so the
//! same input gives the same output on every machine and thread count.

pub mod assign;
pub mod counts;
pub mod drift;
pub mod fit;
pub mod geometry;
pub mod npy;
#[cfg(test)]
mod npy_tests;
pub mod policy;
pub mod prefix_hash;
pub mod sample;
pub mod score;
mod stable_hash;
pub mod table;
pub mod transform;
#[cfg(test)]
mod transform_tests;

pub use assign::{Assignment, assign};
pub use counts::ActivationCounts;
pub use geometry::Geometry;
pub use npy::counts_from_npy;
pub use policy::{Candidates, Decision, Policy};
pub use sample::{Sample, Source};
pub use score::{nearest, scores};
pub use table::{CentroidTable, Fingerprint};
pub use transform::Transform;

//! Mathematics of expert locality: activation counts, signatures, centroid tables, routing policies, clustering, drift statistics.
//!
//! Pure functions and small state machines: no clock, files, network or Kubernetes. Chance comes from generators that callers seed, so the
//! same input gives the same output on every machine and thread count.

pub mod assign;
pub mod counts;
pub mod drift;
pub mod eldr;
pub mod evaluate;
pub mod fit;
pub mod geometry;
pub mod kmeans;
pub mod layers;
pub mod npy;
#[cfg(test)]
mod npy_tests;
pub mod npz;
pub mod policy;
pub mod predictor;
pub mod prefix_hash;
#[cfg(test)]
mod property;
pub mod refit;
pub mod sample;
pub mod score;
pub mod spearman;
#[cfg(test)]
mod spearman_tests;
mod stable_hash;
pub mod table;
pub mod transform;
#[cfg(test)]
mod transform_tests;
mod vectors;

pub use assign::{Assignment, assign};
pub use counts::{ActivationCounts, MoeLayers};
pub use fit::{FitOptions, FitReport, fit};
pub use geometry::Geometry;
pub use npy::{counts_from_npy, counts_of_layers_from_npy};
pub use policy::{Candidates, Decision, Policy};
pub use sample::{Sample, Source};
pub use score::{Scorer, nearest, scores};
pub use table::{CentroidTable, Fingerprint};
pub use transform::Transform;

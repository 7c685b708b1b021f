//! The fit: samples to a centroid table.

mod report;

pub use report::{DistinctExperts, FitReport};

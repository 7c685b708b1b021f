//! Metrics of the router.

mod catalog;
mod live;
mod metrics;
mod outcome;

pub use catalog::Described;
pub(crate) use live::LiveMetrics;
pub(crate) use metrics::RouterMetrics;
pub(crate) use outcome::ClientOutcome;

//! Drift: has live traffic moved away from what the table was fitted on?
//!
//! Routers keep one [`SlideSummary`] per slide (a quarter of the window); the operator merges those of all routers, selects a window,
//! judges it against the table's baselines, and lets a small state machine decide when a signal has lasted.

mod judge;
mod state;
mod summary;
#[cfg(test)]
mod tests;

pub use judge::{Signal, SignalState, Signals, Thresholds, judge};
pub use state::{DriftState, Verdict};
pub use summary::{Missing, SlideSummary, SummaryError, merge_slides, select_window};

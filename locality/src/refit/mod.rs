//! ELDR's periodic re-fit: centroids follow the signatures of the last seconds. Time comes from the caller, and the fit is a job that the
//! caller runs where it likes; routing goes on with the old centroids until it is done.

mod state;
#[cfg(test)]
mod tests;

pub use state::{FitJob, Refit, RefitError, RefitOptions};

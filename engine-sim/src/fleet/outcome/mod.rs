//! What a run says: percentiles, means, series over time, and checks that nothing was lost on the way.

mod checks;
mod percentiles;
mod summary;
mod timeline;

pub use checks::{Unconserved, check};
pub use percentiles::{Percentiles, quantile};
pub use summary::{Summary, summarise};
pub use timeline::{Moment, timeline};

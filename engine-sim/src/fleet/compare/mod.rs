//! Contenders side by side: the same arrivals for each, differences paired by seed.

mod arrivals;
mod case;
mod interval;
mod result;
mod table;

pub use arrivals::{laps, rate_for_batch};
pub use case::{Apart, ArrivalsOf, Case, CaseError, Progress, compare, compare_apart, compare_over};
pub use interval::Interval;
pub use result::{CaseResult, Change, ContenderResult, Metric};
pub use table::{markdown, text};

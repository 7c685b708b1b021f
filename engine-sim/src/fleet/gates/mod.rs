//! Gates: which experts each request chose, over its prompt (counts) and at every generated token (choices).
//!
//! A [`Recording`] comes from a file ([`Recording::load`]) or is made up ([`generate`]). All parts of a simulation read requests through it, and none can change it.

mod choices;
mod expert_set;
pub mod generate;
mod load;
mod recording;
mod samples;
mod split;
mod statistics;
#[cfg(test)]
mod tests;
mod write;

pub use choices::{Choices, ChoicesError};
pub use expert_set::ExpertSet;
pub use load::{GatesError, MAX_FILE_BYTES, MAX_REQUESTS, MAX_STEPS};
pub use recording::{Recording, RequestGates};
pub use statistics::{BATCHES, DOMAIN_BATCH, Statistics};
pub use write::{check_npz_size, write_npz};

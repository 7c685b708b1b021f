//! Gates: which experts each request chose, over its prompt (counts) and at every generated token (choices).
//!
//! A [`Recording`] comes from a file ([`Recording::load`]). All parts of a simulation read requests through it, and none can change it.

mod choices;
mod expert_set;
mod load;
mod recording;
mod samples;
mod split;
#[cfg(test)]
mod tests;

pub use choices::{Choices, ChoicesError};
pub use expert_set::ExpertSet;
pub use load::{GatesError, MAX_FILE_BYTES, MAX_REQUESTS, MAX_STEPS};
pub use recording::{Recording, RequestGates};

//! Recorded requests: prompts, continuations and expert choices of a real model, answered at no cost.

mod index;
mod load;
pub mod npy;
pub(crate) mod npz;
#[cfg(test)]
mod tests;

pub use index::{Continuation, RecordingIndex};
pub use load::{Recording, RecordingError};

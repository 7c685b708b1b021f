//! Requests answered at no cost: recorded ones, with prompts, continuations and expert choices of a real model, and made-up ones.

mod index;
mod load;
pub mod npy;
pub(crate) mod npz;
mod script;
mod synthetic;
#[cfg(test)]
mod tests;

pub use index::{Continuation, RecordingIndex};
pub use load::{Recording, RecordingError};
pub use script::Script;
pub use synthetic::{MAX_DOMAINS, Synthetic};

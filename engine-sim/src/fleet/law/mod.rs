//! Step-time laws: how long a decode step, a prefill and a KV hand-off take.
//!
//! A decode step reads the weights of the distinct experts of each layer, the KV of its requests and the dense weights from HBM, and costs a
//! fixed part per step. [`DecodeLaw`] has these as coefficients in seconds. They are set by hand ([`DecodeLaw::plain`], the law of the
//! recorded gates' first evaluation), or computed from public figures of model and GPU ([`Preset`], data in `figures.json`, each with its
//! source). With expert parallelism a layer waits for its slowest rank, and two exchanges of activations are added.
//!
//! What the law leaves out: kernel quantisation (a tile of 16 tokens costs as much as one), clocks, contention between ranks.

mod decode;
mod figures;
mod preset;
#[cfg(test)]
mod tests;

pub use decode::{DecodeLaw, ExchangeLaw, PrefillLaw, StepWork, TransferLaw};
pub use figures::{Attention, Efficiency, Figures, Gpu, Model};
pub use preset::{Parallelism, Preset, PresetError};

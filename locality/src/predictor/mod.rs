//! Predictors: what decode frequencies to expect of a request, before it decodes.
//!
//! Three sources: its prefill frequencies as they are; a learned linear map of them; a learned linear map of its text, as hashed byte
//! n-grams without a tokenizer. All give [L, E] frequencies per token that add up to top-k in every layer. [`Predictors::predict_into`]
//! mixes what is at hand by how far the request can be trusted to resemble the calibrated ones.

// What pulp compiles once per instruction set has to be inlined into it, or it runs with the smallest one.
#![allow(clippy::inline_always)]

mod frequencies;
mod half_rows;
mod low_rank;
mod maps;
mod mixing;
mod ngrams;
mod predictors;
mod request_text;
#[cfg(test)]
mod tests;
mod train;

#[cfg(test)]
pub(crate) use tests::requests as test_requests;

pub use frequencies::own_frequencies;
pub use half_rows::MAX_RANK;
pub use low_rank::LowRankMap;
pub use maps::{PrefillMap, TextMap};
pub use mixing::{Confidence, Curve, MAX_KNOTS, Mixing, Weights};
pub use ngrams::{NGRAM_BUCKETS, NgramCounter};
pub use predictors::{Evidence, PredictError, Predictors, Scratch};
pub use train::{LearnOptions, Learned, MAX_PREDICTOR_SAMPLES, MIN_PREDICTOR_SAMPLES, PredictorReport, learn};

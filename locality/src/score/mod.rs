//! Scoring: a signature's cosine to every centroid.
//!
//! [`scores`] multiplies f32 vectors. [`Scorer`] is made once per table and source and takes counts to similarities in 16-bit fixed point,
//! without allocation, for an error below 1e-4 (figures in decision record 0011).

mod exact;
mod fixed;
mod scorer;
#[cfg(test)]
mod scorer_tests;
mod weigh;

pub use exact::{Nearest, ScoreError, dot, nearest, scores};
pub use scorer::{Scorer, ScorerError, Scratch};

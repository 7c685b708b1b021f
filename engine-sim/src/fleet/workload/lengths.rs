//! How many tokens answers get.

use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::super::chance::normal;
use super::WorkloadError;

/// Lengths of answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum OutputLengths {
    /// As many tokens as were recorded.
    #[default]
    Recorded,
    /// The same for all.
    Fixed {
        /// Tokens, at least 1.
        tokens: u32,
    },
    /// Log-normal: few answers are very long.
    LogNormal {
        /// Half of the answers are shorter.
        median: f64,
        /// Standard deviation of the logarithm; 1 gives a mean of 1.65 medians.
        sigma: f64,
        /// Longest answer; longer ones are cut to it.
        max: u32,
    },
}

impl OutputLengths {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let fine = match *self {
            Self::Recorded => true,
            Self::Fixed { tokens } => tokens > 0,
            Self::LogNormal { median, sigma, max } => {
                (1.0..=1e9).contains(&median) && (0.0..=10.0).contains(&sigma) && max > 0
            }
        };
        if fine {
            Ok(())
        } else {
            Err(WorkloadError(
                "output lengths must be at least 1 token, sigma 0 to 10".to_owned(),
            ))
        }
    }

    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus, recorded: usize) -> u32 {
        match *self {
            Self::Recorded => u32::try_from(recorded).unwrap_or(u32::MAX).max(1),
            Self::Fixed { tokens } => tokens,
            Self::LogNormal { median, sigma, max } => {
                let tokens = median * (sigma * normal(rng)).exp();
                (tokens.round().min(f64::from(max)) as u32).max(1)
            }
        }
    }
}

//! Conversations of several turns.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::super::chance::exponential;
use super::WorkloadError;

/// Turns of a conversation: a geometric number, with pauses between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sessions {
    /// Mean number of turns, at least 1 (no conversations).
    pub turns: f64,
    /// Mean seconds that a user thinks before the next turn.
    #[serde(rename = "thinkS")]
    pub think_s: f64,
    /// Seconds per token that an answer is taken to last, before the user begins to think. Arrivals must not depend on the policy, so this
    /// stands in for the real one.
    #[serde(rename = "answerSPerToken")]
    pub answer_s_per_token: f64,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            turns: 1.0,
            think_s: 10.0,
            answer_s_per_token: 0.03,
        }
    }
}

impl Sessions {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let fine = (1.0..=1000.0).contains(&self.turns)
            && (0.0..=1e9).contains(&self.think_s)
            && (0.0..=1e3).contains(&self.answer_s_per_token);
        if fine {
            Ok(())
        } else {
            Err(WorkloadError(
                "sessions need 1 to 1000 turns on average, and times that are not negative".to_owned(),
            ))
        }
    }

    pub(super) fn mean_turns(&self) -> f64 {
        self.turns
    }

    pub(super) fn turns(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let mut turns = 1;
        while turns < 10_000 && rng.r#gen::<f64>() < 1.0 - 1.0 / self.turns {
            turns += 1;
        }
        turns
    }

    pub(super) fn pause(&self, rng: &mut Xoshiro256PlusPlus, output_tokens: u32) -> f64 {
        if self.turns <= 1.0 {
            return 0.0;
        }
        self.answer_s_per_token * f64::from(output_tokens) + exponential(rng, self.think_s)
    }
}

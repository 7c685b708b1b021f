//! Token ids and activation counts from an engine's answer.

use std::ops::Range;

use base64::{Engine, engine::general_purpose::STANDARD};
use coterie_locality::{ActivationCounts, Geometry, counts_from_npy};
use serde::Deserialize;

/// The parts of an answer to a completion or chat request that calibration needs.
#[derive(Debug, Deserialize)]
pub struct Answer {
    choices: Vec<Choice>,
    #[serde(default)]
    prompt_token_ids: Option<Vec<u32>>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    token_ids: Option<Vec<u32>>,
    #[serde(default)]
    prompt_token_ids: Option<Vec<u32>>,
    #[serde(default)]
    routed_experts: Option<String>,
}

/// Why an answer is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Not the JSON of a completion.
    #[error("the answer is not a completion: {0}")]
    Malformed(String),
    /// No token ids.
    #[error("the answer has no {0}; the engine must honour return_token_ids")]
    NoTokens(&'static str),
    /// No routed experts.
    #[error("the answer has no routed_experts; start the engine with --enable-return-routed-experts")]
    NoExperts,
    /// Routed experts that cannot be read.
    #[error("routed_experts: {0}")]
    Experts(String),
}

impl Answer {
    /// Parses an answer.
    ///
    /// # Errors
    /// When it is not the JSON of a completion with one choice.
    pub fn parse(body: &[u8]) -> Result<Self, AnswerError> {
        let answer: Self = serde_json::from_slice(body).map_err(|error| AnswerError::Malformed(error.to_string()))?;
        if answer.choices.len() == 1 {
            Ok(answer)
        } else {
            Err(AnswerError::Malformed(format!(
                "{} choices instead of one",
                answer.choices.len()
            )))
        }
    }

    /// The prompt's and the generated token ids.
    ///
    /// # Errors
    /// When the engine did not return them.
    pub fn tokens(&self) -> Result<(&[u32], &[u32]), AnswerError> {
        let [choice] = self.choices.as_slice() else {
            return Err(AnswerError::NoTokens("choice"));
        };
        // Completions carry the prompt's ids in the choice, chat completions beside the choices.
        let prompt = choice.prompt_token_ids.as_deref().or(self.prompt_token_ids.as_deref());
        let prompt = prompt
            .filter(|ids| !ids.is_empty())
            .ok_or(AnswerError::NoTokens("prompt_token_ids"))?;
        Ok((
            prompt,
            choice.token_ids.as_deref().ok_or(AnswerError::NoTokens("token_ids"))?,
        ))
    }

    /// Activation counts of each of the given token ranges.
    ///
    /// # Errors
    /// When experts are missing, malformed, of another geometry, or do not cover a range.
    pub fn counts<const N: usize>(
        &self,
        geometry: &Geometry,
        ranges: [Range<usize>; N],
    ) -> Result<[ActivationCounts; N], AnswerError> {
        let encoded = self.choices.first().and_then(|choice| choice.routed_experts.as_deref());
        let encoded = encoded.ok_or(AnswerError::NoExperts)?;
        let npy = STANDARD
            .decode(encoded)
            .map_err(|error| AnswerError::Experts(error.to_string()))?;
        let mut counts = Vec::with_capacity(N);
        for range in ranges {
            counts
                .push(counts_from_npy(&npy, geometry, range).map_err(|error| AnswerError::Experts(error.to_string()))?);
        }
        counts
            .try_into()
            .map_err(|_| AnswerError::Experts("range lost".to_owned()))
    }
}

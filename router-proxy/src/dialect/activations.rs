//! Activation counts in a prefill worker's answer.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use coterie_locality::{
    ActivationCounts, Geometry, counts_from_npy,
    npy::{Array, NpyError},
};

use super::PrefillAnswer;

/// Why a request has no signature. The names are those of the admin port's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MissingSignature {
    /// The answer carries no activations.
    Missing,
    /// They cannot be read.
    Malformed,
    /// They are of another model.
    Geometry,
    /// They count nothing.
    Empty,
    /// The request carries token ids or nothing instead of text.
    NoText,
    /// There is no table, or it knows nothing of text.
    NoTextSource,
}

impl MissingSignature {
    pub(crate) const ALL: [Self; 6] = [
        Self::Missing,
        Self::Malformed,
        Self::Geometry,
        Self::Empty,
        Self::NoText,
        Self::NoTextSource,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "Missing",
            Self::Malformed => "Malformed",
            Self::Geometry => "Geometry",
            Self::Empty => "Empty",
            Self::NoText => "NoText",
            Self::NoTextSource => "NoTextSource",
        }
    }
}

/// How an engine puts activations into its answers.
pub(crate) trait Activations: Send + Sync {
    /// Counts over the prompt's tokens.
    fn prompt_counts(
        &self,
        answer: &PrefillAnswer<'_>,
        geometry: &Geometry,
    ) -> Result<ActivationCounts, MissingSignature>;
}

/// vLLM 0.22 and later: `choices[0].routed_experts` is the base64 of an `.npy` array [rows, L, k], prompt rows first.
#[derive(Debug)]
pub(crate) struct NpyActivations;

impl Activations for NpyActivations {
    fn prompt_counts(
        &self,
        answer: &PrefillAnswer<'_>,
        geometry: &Geometry,
    ) -> Result<ActivationCounts, MissingSignature> {
        let field = answer.routed_experts().ok_or(MissingSignature::Missing)?;
        let text = json_string(field.get()).ok_or(MissingSignature::Malformed)?;
        let bytes = STANDARD
            .decode(text.as_bytes())
            .map_err(|_| MissingSignature::Malformed)?;
        let array = Array::parse(&bytes).map_err(|e| class(&e))?;
        let present = array.shape.first().copied().unwrap_or(0);
        let prompt = answer.prompt_tokens().ok_or(MissingSignature::Malformed)?;
        let prompt = usize::try_from(prompt).map_err(|_| MissingSignature::Malformed)?;
        // Engines of hybrid models leave the prompt's last token to decode; anything shorter was cut.
        if present.saturating_add(1) < prompt {
            return Err(MissingSignature::Malformed);
        }
        let rows = present.min(prompt);
        if rows == 0 {
            return Err(MissingSignature::Empty);
        }
        counts_from_npy(&bytes, geometry, ..rows).map_err(|e| class(&e))
    }
}

/// The text of a JSON string, borrowed unless it has escapes.
fn json_string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.bytes().any(|b| b == b'\\') {
        return serde_json::from_str::<String>(raw).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

fn class(error: &NpyError) -> MissingSignature {
    match error {
        NpyError::Shape { .. } | NpyError::Counts(_) => MissingSignature::Geometry,
        NpyError::Malformed(_) | NpyError::Dtype(_) | NpyError::Length { .. } | NpyError::Rows { .. } => {
            MissingSignature::Malformed
        }
    }
}

#[cfg(test)]
#[path = "activations_tests.rs"]
mod tests;

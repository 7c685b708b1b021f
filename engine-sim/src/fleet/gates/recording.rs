//! Requests with the experts that they chose.

use std::sync::Arc;

use coterie_locality::{ActivationCounts, Geometry};

use super::Choices;

/// One request's gates.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestGates {
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// How often each expert was chosen over the prompt, [L, E].
    pub prefill: ActivationCounts,
    /// Experts chosen at each generated token, [tokens, L, top-k].
    pub decode: Choices,
    /// Positions in [`Recording::domain_names`]: none if unknown, one, or two for a prompt whose first half is of one domain and second
    /// half of another.
    pub domains: Vec<u16>,
    /// Hashed n-gram counts of the prompt's text as samples carry them, (bucket, count) with buckets ascending; empty if unknown.
    pub ngrams: Vec<(u32, u32)>,
    /// Bytes of the prompt's text, if known.
    pub text: Option<Vec<u8>>,
}

impl RequestGates {
    /// Whether the prompt mixes two domains.
    pub fn is_blended(&self) -> bool {
        self.domains.len() > 1
    }

    /// How often each expert was chosen over all generated tokens, divided by their number: the true decode frequencies, [L, E], each 0..1.
    pub fn decode_frequencies(&self) -> Vec<f32> {
        frequencies(&self.decode.counts(usize::MAX))
    }

    /// The same over the prompt.
    pub fn prefill_frequencies(&self) -> Vec<f32> {
        frequencies(&self.prefill)
    }
}

fn frequencies(counts: &ActivationCounts) -> Vec<f32> {
    let tokens = counts.tokens().max(1) as f32;
    counts.cells().iter().map(|c| *c as f32 / tokens).collect()
}

/// Requests of one model. Cheap to clone and to split: the requests are shared.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Shape of the model.
    pub geometry: Geometry,
    /// Names of the domains that requests point to.
    pub domain_names: Vec<String>,
    /// The requests.
    pub requests: Vec<Arc<RequestGates>>,
}

impl Recording {
    /// Number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The same requests with the n-gram counts that `count` makes of their texts. Requests without text keep what they have.
    #[must_use]
    pub fn with_ngrams(mut self, count: impl Fn(&[u8]) -> Vec<(u32, u32)>) -> Self {
        for request in &mut self.requests {
            if let Some(ngrams) = request.text.as_deref().map(&count) {
                Arc::make_mut(request).ngrams = ngrams;
            }
        }
        self
    }

    /// Name of a request's domain as recordings write it: `a`, `a+b` for a blend, empty if unknown.
    pub fn domain(&self, request: usize) -> String {
        let domains = self.requests.get(request).map_or(&[][..], |r| &r.domains);
        let names: Vec<&str> = domains
            .iter()
            .filter_map(|d| self.domain_names.get(usize::from(*d)))
            .map(String::as_str)
            .collect();
        names.join("+")
    }
}

//! Small recordings for tests.

use std::sync::Arc;

use coterie_locality::{ActivationCounts, Geometry};

use crate::fleet::gates::{Choices, Recording, RequestGates};

/// A recording with these decode choices; each request's prefill counts are its decode counts.
pub(crate) fn recording((layers, experts, top_k): (usize, usize, usize), decode: &[&[u16]]) -> Recording {
    let geometry = Geometry::new(layers, experts, top_k).unwrap();
    let requests = decode.iter().map(|ids| {
        let tokens = ids.len() / geometry.ids_per_token();
        Arc::new(RequestGates {
            prompt_tokens: tokens as u32,
            prefill: ActivationCounts::from_rows(&geometry, ids, tokens).unwrap(),
            decode: Choices::new(geometry, ids).unwrap(),
            domains: Vec::new(),
            ngrams: Vec::new(),
            text: None,
        })
    });
    Recording {
        geometry,
        domain_names: Vec::new(),
        requests: requests.collect(),
    }
}

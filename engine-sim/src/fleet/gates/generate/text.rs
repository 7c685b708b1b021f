//! Prompts to go with made-up gates: words of a domain's own vocabulary, so that a predictor from text has something to learn. They tell the
//! domain, and nothing of the request's own effect.

use super::quick::{self, Quick};

/// Words of a domain.
const VOCABULARY: u64 = 64;

/// One word for about every 1.3 tokens, at most 512.
pub(super) fn write(seed: u64, number: u64, parts: &[(usize, u32)]) -> Vec<u8> {
    let mut rng = Quick::new(seed, quick::WORDS, number);
    let mut text = Vec::new();
    for (domain, tokens) in parts {
        for _ in 0..(tokens * 10 / 13).clamp(1, 512) {
            if !text.is_empty() {
                text.push(b' ');
            }
            // Common words more often than rare ones: the smaller of two draws.
            let word = rng.below(VOCABULARY).min(rng.below(VOCABULARY));
            let mut letters = Quick::new(*domain as u64, quick::WORDS, !word);
            for _ in 0..3 + letters.below(5) {
                text.push(b'a' + letters.below(26) as u8);
            }
        }
    }
    text
}

//! Made-up requests: every prompt gets a continuation and expert choices, at no cost and for any geometry of at most 256 experts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Continuation;
use super::load::deal;
use crate::fleet::gates::RequestGates;
use crate::fleet::gates::generate::Generator;
use crate::tokenizer::TextCodec;

/// Tokens of an answer whose choices are made up; longer answers start over.
const STEPS: usize = 256;
/// Requests kept ready. An answer's choices take `STEPS` x layers x top-k bytes.
const KEPT: usize = 512;
/// Most domains: their numbers share a request's with its hash.
pub const MAX_DOMAINS: usize = 1 << 12;
const DOMAIN_BITS: u32 = 12;

/// Serves generated gates.
///
/// A prompt's domain is the word `domain-N` in it, or two of them for a prompt that blends two; without one it comes from a hash of the prompt. So
/// workers with the same settings answer a prompt alike, and a prompt followed by tokens of its own answer is recognised, as a replay needs it.
pub struct Synthetic {
    generator: Generator,
    domains: usize,
    codec: Arc<TextCodec>,
    /// Ids that read as plain text.
    plain: Vec<u32>,
    kept: Mutex<HashMap<(usize, usize), Arc<RequestGates>>>,
}

impl Synthetic {
    /// Serves these gates. Fails if the tokenizer has no plain token or an expert's id does not fit a byte.
    pub fn new(generator: Generator, domains: usize, codec: Arc<TextCodec>) -> Result<Self, String> {
        if generator.geometry().experts > 256 {
            return Err("generated gates are served for at most 256 experts a layer".to_owned());
        }
        if !(1..=MAX_DOMAINS).contains(&domains) {
            return Err(format!(
                "the number of domains must be 1 to {MAX_DOMAINS}, got {domains}"
            ));
        }
        let plain: Vec<u32> = (0..codec.vocab_size() as u32)
            .filter(|id| {
                let piece = codec.piece(*id);
                !piece.is_empty() && piece.iter().all(|b| b.is_ascii_lowercase() || *b == b' ')
            })
            .collect();
        if plain.is_empty() {
            return Err("the tokenizer has no token of plain letters to answer with".to_owned());
        }
        Ok(Self {
            generator,
            domains,
            codec,
            plain,
            kept: Mutex::default(),
        })
    }

    /// Layers and experts per token.
    pub(super) fn shape(&self) -> (usize, usize) {
        let geometry = self.generator.geometry();
        (geometry.layers, geometry.top_k)
    }

    /// The request that these ids are the prompt of, possibly with a part of its answer behind it.
    pub(super) fn find(&self, ids: &[u32]) -> Option<Continuation> {
        let mut hash = Hash::default();
        for (at, id) in ids.iter().enumerate() {
            hash.add(*id);
            let own = hash.mark();
            let rest = &ids[at + 1..];
            if rest.iter().enumerate().all(|(i, id)| *id == self.answer(own, i)) {
                let prompt = &ids[..=at];
                return Some(Continuation {
                    request: (own | self.domains_of(prompt, own)) as usize,
                    offset: rest.len(),
                });
            }
        }
        None
    }

    /// The answer's token at a position.
    pub(super) fn token(&self, at: Continuation, index: usize) -> u32 {
        self.answer(at.request as u64, at.offset + index)
    }

    /// Choices for every token of the prompt, and of the part of the answer behind it.
    pub(super) fn prompt_rows(&self, at: Continuation, tokens: usize) -> Vec<u8> {
        let (layers, top_k) = self.shape();
        let own = tokens - at.offset.min(tokens);
        let gates = self.gates(at, own);
        let mut rows = deal(own, layers, top_k, |layer| gates.prefill.layer(layer));
        for step in 0..at.offset {
            let start = rows.len();
            rows.resize(start + layers * top_k, 0);
            write(&gates, step, top_k, &mut rows[start..]);
        }
        rows
    }

    /// Choices at the answer's token `step`, counted from the end of the prompt itself, into `row`. `tokens` is the prompt's length as given to the engine.
    pub(super) fn row(&self, at: Continuation, tokens: usize, step: usize, row: &mut [u8]) {
        let (_, top_k) = self.shape();
        write(&self.gates(at, tokens - at.offset.min(tokens)), step, top_k, row);
    }

    fn gates(&self, at: Continuation, prompt_tokens: usize) -> Arc<RequestGates> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (at.request, prompt_tokens);
        if let Some(gates) = kept.get(&key) {
            return Arc::clone(gates);
        }
        if kept.len() >= KEPT {
            kept.clear();
        }
        let low = at.request as u64 & ((1 << (2 * DOMAIN_BITS)) - 1);
        let (first, second) = ((low >> DOMAIN_BITS) as usize, (low & ((1 << DOMAIN_BITS) - 1)) as usize);
        let domains = if first == second {
            vec![first]
        } else {
            vec![first, second]
        };
        let tokens = u32::try_from(prompt_tokens).unwrap_or(u32::MAX);
        let gates = Arc::new(self.generator.request(at.request as u64, &domains, tokens, STEPS));
        kept.insert(key, Arc::clone(&gates));
        gates
    }

    /// Two domain numbers, equal unless the prompt blends two.
    fn domains_of(&self, prompt: &[u32], own: u64) -> u64 {
        let text = self.codec.decode(prompt);
        let words: Vec<u64> = text
            .split("domain-")
            .skip(1)
            .filter_map(|rest| {
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                rest[..end].parse::<u64>().ok()
            })
            .filter(|n| *n < MAX_DOMAINS as u64)
            .take(2)
            .collect();
        let first = words
            .first()
            .copied()
            .unwrap_or((own >> (2 * DOMAIN_BITS)) % self.domains as u64);
        first << DOMAIN_BITS | words.get(1).copied().unwrap_or(first)
    }

    /// Depends on the prompt alone, so that a replay is found before its domains are known.
    fn answer(&self, own: u64, step: usize) -> u32 {
        let mixed = ((own >> (2 * DOMAIN_BITS)) + step as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        self.plain[((mixed >> 33) % self.plain.len() as u64) as usize]
    }
}

fn write(gates: &RequestGates, step: usize, top_k: usize, row: &mut [u8]) {
    let mut slot = 0;
    gates.decode.for_each(step, |_, expert| {
        if let Some(cell) = row.get_mut(slot) {
            *cell = expert as u8;
        }
        slot += 1;
    });
    debug_assert!(slot.is_multiple_of(top_k));
}

/// FNV-1a over ids, whose low bits are left for the domains.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, id: u32) {
        for byte in id.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    fn mark(&self) -> u64 {
        // The high bits of FNV mix least; folding them gives all of them a say.
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed & !((1 << (2 * DOMAIN_BITS)) - 1)
    }
}

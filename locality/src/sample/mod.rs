//! Samples: what one request leaves for calibration. Never any text.
//!
//! # Container (version 1)
//!
//! A stream of length-prefixed records, written and read one at a time with bounded memory. Integers are little-endian; `v` is an
//! unsigned LEB128 number; a string is a `v` length and UTF-8 bytes.
//!
//! | part | content |
//! |---|---|
//! | start | magic `COTSAMPL`, u16 version 1, u16 zero |
//! | record | u32 length of what follows (1 to 8 MiB), u8 kind, body |
//! | kind 1 | fingerprint, JSON of at most 4 KiB: holds for all samples that follow, until the next one |
//! | kind 2 | a sample: flags u8 (1 prefill counts, 2 decode counts, 4 cluster, 8 table digest, 16 n-grams), source u8 (0 prefill, 1 text), prompt tokens v, generated tokens v, time v (Unix ms), weight f32, then in the order of the flags: counts as tokens v and L x E cells v, cluster v, digest string, n-grams as number v and that many (bucket step v, count v) with buckets ascending |
//! | kind 3 | end: number of samples v. A stream without it was cut |

mod codec;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use serde::{Deserialize, Serialize};

pub use codec::SampleError;
pub use reader::SampleReader;
pub use writer::SampleWriter;

use crate::counts::ActivationCounts;
use crate::table::Fingerprint;

pub use crate::predictor::NGRAM_BUCKETS;
/// Longest record of a container.
pub const MAX_RECORD_BYTES: usize = 8 * 1024 * 1024;

/// What a request's signature is made from. Sources never mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The request's own prefill counts.
    #[default]
    Prefill,
    /// What the text predictor expects of it.
    Text,
}

/// One request, as calibration sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Model the counts are of.
    pub fingerprint: Fingerprint,
    /// Counts over the prompt's tokens, where the engine returned them.
    pub prefill_counts: Option<ActivationCounts>,
    /// Counts over the generated tokens, only if the request was replayed.
    pub decode_counts: Option<ActivationCounts>,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub generated_tokens: u64,
    /// When the request finished, Unix time in milliseconds.
    pub time_unix_ms: u64,
    /// What its signature was made from.
    pub source: Source,
    /// Cluster it was routed by, if it was.
    pub cluster: Option<u32>,
    /// Digest of the table it was routed by, if it was.
    pub table_digest: Option<String>,
    /// Requests this sample stands for, at least 0: a reservoir's keeper sets it to requests seen / samples kept.
    pub weight: f32,
    /// Hashed n-gram counts of the text, (bucket, count) with buckets ascending; may be empty.
    pub ngrams: Vec<(u32, u32)>,
}

impl Sample {
    /// A sample with nothing but a model: source prefill, weight 1.
    pub fn new(fingerprint: Fingerprint) -> Self {
        Self {
            fingerprint,
            prefill_counts: None,
            decode_counts: None,
            prompt_tokens: 0,
            generated_tokens: 0,
            time_unix_ms: 0,
            source: Source::Prefill,
            cluster: None,
            table_digest: None,
            weight: 1.0,
            ngrams: Vec::new(),
        }
    }
}

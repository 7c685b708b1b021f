//! Finds the recorded request that a prompt belongs to.

use std::collections::HashMap;
use std::sync::Arc;

use super::Recording;
use crate::tokenizer::TextCodec;

/// Where in the recording a prompt ends: after `offset` generated tokens of `request` (0 = its prompt alone).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// Index of the request.
    pub request: usize,
    /// Generated tokens that the prompt already holds.
    pub offset: usize,
}

/// A recording with the lookups an engine needs.
#[derive(Clone)]
pub struct RecordingIndex {
    recording: Arc<Recording>,
    /// Requests by their prompts' first tokens.
    by_start: HashMap<Vec<u32>, Vec<usize>>,
    by_text: HashMap<String, usize>,
    by_mark: HashMap<u64, usize>,
    start: usize,
}

impl RecordingIndex {
    /// Indexes a recording by token ids and by decoded text. Two prompts with the same text are found by ids only.
    pub fn new(recording: Recording, codec: &TextCodec) -> Self {
        let start = (0..recording.len())
            .map(|r| recording.prompt(r).len())
            .min()
            .unwrap_or(1);
        let mut by_start: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
        let mut by_text: HashMap<String, Option<usize>> = HashMap::new();
        let mut by_mark = HashMap::new();
        for request in 0..recording.len() {
            let prompt = recording.prompt(request);
            by_start.entry(prompt[..start].to_vec()).or_default().push(request);
            by_text
                .entry(codec.decode(prompt))
                .and_modify(|r| *r = None)
                .or_insert(Some(request));
            by_mark.insert(mark(prompt), request);
        }
        let by_text = by_text
            .into_iter()
            .filter_map(|(text, request)| request.map(|r| (text, r)))
            .collect();
        Self {
            recording: Arc::new(recording),
            by_start,
            by_text,
            by_mark,
            start,
        }
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The request whose prompt this is, possibly with a prefix of its continuation behind it.
    pub fn find(&self, ids: &[u32]) -> Option<Continuation> {
        let candidates = self.by_start.get(ids.get(..self.start)?)?;
        candidates.iter().find_map(|request| {
            let rest = ids.strip_prefix(self.recording.prompt(*request))?;
            let found = self.recording.generated(*request).starts_with(rest);
            found.then_some(Continuation {
                request: *request,
                offset: rest.len(),
            })
        })
    }

    /// The request whose prompt reads like this. Its recorded token ids are the prompt's, whatever the tokenizer would make of the text.
    pub fn find_text(&self, text: &str) -> Option<usize> {
        self.by_text.get(text).copied()
    }

    /// What identifies a request's KV blocks: the same on every worker with this prompt in its recording.
    pub fn mark_of(&self, request: usize) -> u64 {
        mark(self.recording.prompt(request))
    }

    /// The request whose KV blocks carry this mark.
    pub fn find_mark(&self, mark: u64) -> Option<usize> {
        self.by_mark.get(&mark).copied()
    }
}

/// FNV-1a over the prompt's ids.
fn mark(prompt: &[u32]) -> u64 {
    let bytes = prompt.iter().flat_map(|id| id.to_le_bytes());
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3)
    })
}

//! Where answers come from when the model does not run: a recording, or made-up requests.

use std::sync::Arc;

use super::{Continuation, RecordingIndex, Synthetic};

/// A source of answers.
#[derive(Clone)]
pub enum Script {
    /// Prompts that were recorded; others go through the model.
    Recorded(Arc<RecordingIndex>),
    /// Every prompt.
    Synthetic(Arc<Synthetic>),
}

impl Script {
    /// Layers and experts per token of the choices.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Self::Recorded(index) => (index.recording().layers, index.recording().top_k),
            Self::Synthetic(synthetic) => synthetic.shape(),
        }
    }

    /// The request whose recorded text this is, and its ids.
    pub fn find_text(&self, text: &str) -> Option<(Vec<u32>, Continuation)> {
        let Self::Recorded(index) = self else { return None };
        let request = index.find_text(text)?;
        let ids = index.recording().prompt(request).to_vec();
        Some((ids, Continuation { request, offset: 0 }))
    }

    /// The request that these ids are the prompt of, possibly with a part of its answer behind it.
    pub fn find(&self, ids: &[u32]) -> Option<Continuation> {
        match self {
            Self::Recorded(index) => index.find(ids),
            Self::Synthetic(synthetic) => synthetic.find(ids),
        }
    }

    /// Tokens that are left of the answer.
    pub fn left(&self, at: Continuation) -> usize {
        match self {
            Self::Recorded(index) => index.recording().steps - at.offset,
            Self::Synthetic(_) => usize::MAX,
        }
    }

    /// What identifies the request's KV blocks on all workers.
    pub fn mark(&self, at: Continuation) -> u64 {
        match self {
            Self::Recorded(index) => index.mark_of(at.request),
            Self::Synthetic(_) => at.request as u64,
        }
    }

    /// The request whose KV blocks carry this mark, or some other one than `not` if there is none.
    pub fn marked(&self, mark: Option<u64>, not: Continuation) -> usize {
        match self {
            Self::Recorded(index) => {
                let found = mark.and_then(|mark| index.find_mark(mark));
                found.unwrap_or((not.request + 1) % index.recording().len())
            }
            Self::Synthetic(_) => mark.map_or(not.request ^ 1 << 63, |mark| mark as usize),
        }
    }

    /// Choices for all `tokens` tokens of the prompt as given, `[tokens, layers, top_k]`.
    pub fn prompt_rows(&self, at: Continuation, tokens: usize) -> Vec<u8> {
        match self {
            Self::Recorded(index) => {
                let recording = index.recording();
                let mut rows = recording.prefill_rows(at.request);
                for step in 0..at.offset {
                    rows.extend_from_slice(recording.decode_row(at.request, step));
                }
                rows
            }
            Self::Synthetic(synthetic) => synthetic.prompt_rows(at, tokens),
        }
    }

    /// Choices at a generated token into `row` `[layers, top_k]`: `step` counts from the end of the request's own prompt; `None` is the prompt's
    /// last token. `tokens` is the length of the prompt as given.
    pub fn row(&self, at: Continuation, tokens: usize, step: Option<usize>, row: &mut [u8]) {
        match (self, step) {
            (Self::Recorded(index), Some(step)) => {
                let recording = index.recording();
                row.copy_from_slice(recording.decode_row(at.request, step.min(recording.steps - 1)));
            }
            (Self::Synthetic(synthetic), Some(step)) => synthetic.row(at, tokens, step, row),
            (_, None) => {
                let whole = Continuation { offset: 0, ..at };
                let rows = self.prompt_rows(whole, tokens - at.offset.min(tokens));
                row.copy_from_slice(&rows[rows.len() - row.len()..]);
            }
        }
    }

    /// The answer's token at `index`, counted from where the prompt ends.
    pub fn token(&self, at: Continuation, index: usize) -> u32 {
        match self {
            Self::Recorded(index_of) => {
                let generated = index_of.recording().generated(at.request);
                let token = generated.get(at.offset + index).or(generated.last());
                token.copied().unwrap_or_default()
            }
            Self::Synthetic(synthetic) => synthetic.token(at, index),
        }
    }
}

//! What goes into the engine and what comes out.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use crate::kv::HandOff;
use crate::model::{Sampling, TokenLogprobs};
use crate::recording::Continuation;

/// Where a request's prompt KV comes from and where it goes.
#[derive(Clone, Debug)]
pub enum KvIntent {
    /// Computed here, freed at the end.
    Local,
    /// Computed here, kept for a decode worker at the end.
    HandOff,
    /// Pulled from a prefill worker.
    Pull(HandOff),
}

/// When a text ends.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most tokens to generate, at least 1.
    pub max_tokens: usize,
    /// Tokens before which neither the end token nor a stop may end it.
    pub min_tokens: usize,
    /// Strings that end it; they are not part of the answer unless asked for.
    pub stop: Vec<String>,
    /// Tokens that end it.
    pub stop_token_ids: Vec<u32>,
    /// Whether the stop string stays in the answer.
    pub include_stop: bool,
    /// Whether the end token is one like any other.
    pub ignore_eos: bool,
}

/// One sequence to generate.
pub struct Submission {
    /// The engine's own id of the sequence; unique.
    pub id: String,
    /// Prompt tokens, at least 1.
    pub prompt: Vec<u32>,
    /// Set if the recording answers.
    pub recorded: Option<Continuation>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// When it ends.
    pub limits: Limits,
    /// Rivals to report with each token; None: no log-probabilities.
    pub logprobs: Option<usize>,
    /// KV hand-off.
    pub kv: KvIntent,
    /// When the request came in, on the engine's clock.
    pub arrived: Duration,
    /// Where events go. A closed channel aborts the sequence.
    pub events: UnboundedSender<Event>,
}

/// What a sequence's client sees.
#[derive(Debug)]
pub enum Event {
    /// One more token; the last one carries the end.
    Token(Token),
    /// The sequence failed; no more events follow.
    Failed(String),
}

/// A generated token.
#[derive(Debug)]
pub struct Token {
    /// Its id.
    pub id: u32,
    /// Text that became certain with it; may be empty.
    pub text: String,
    /// Log-probabilities, if asked for.
    pub logprobs: Option<TokenLogprobs>,
    /// Set on the last token.
    pub finish: Option<Box<Finish>>,
}

/// The end of a sequence.
#[derive(Debug)]
pub struct Finish {
    /// Why it ended.
    pub reason: FinishReason,
    /// What stopped it, unless it was the end token or the length.
    pub stop: Option<StopReason>,
    /// Expert choices, if capture is on.
    pub experts: Option<ExpertRows>,
    /// What the decode worker needs, if the KV was kept.
    pub hand_off: Option<HandOff>,
}

/// Why a sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// End token, stop string or stop token.
    Stop,
    /// As many tokens as asked for, or the recording's end.
    Length,
}

impl FinishReason {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// What stopped a text.
#[derive(Clone, Debug, PartialEq)]
pub enum StopReason {
    /// A stop string.
    Text(String),
    /// A stop token.
    Token(u32),
}

/// Expert choices `[prompt + generated - 1, layers, top_k]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertRows {
    /// Layers.
    pub layers: usize,
    /// Experts per token and layer.
    pub top_k: usize,
    /// Expert ids.
    pub data: Vec<u8>,
}

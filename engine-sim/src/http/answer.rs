//! Answer bodies. Field order and nulls are those of the recorded answers.

use serde::Serialize;

use crate::engine::StopReason;
use crate::kv::HandOff;

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "names of the API")]
pub(super) struct Usage {
    pub(super) prompt_tokens: usize,
    pub(super) total_tokens: usize,
    pub(super) completion_tokens: usize,
}

#[derive(Serialize)]
pub(super) struct FullUsage {
    #[serde(flatten)]
    pub(super) usage: Usage,
    pub(super) prompt_tokens_details: Option<()>,
    pub(super) completion_tokens_details: Option<()>,
}

impl Usage {
    pub(super) fn new(prompt: usize, completion: usize) -> Self {
        Self {
            prompt_tokens: prompt,
            total_tokens: prompt + completion,
            completion_tokens: completion,
        }
    }

    pub(super) fn full(self) -> FullUsage {
        FullUsage {
            usage: self,
            prompt_tokens_details: None,
            completion_tokens_details: None,
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Stop {
    Text(String),
    Token(u32),
}

impl From<StopReason> for Stop {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Text(text) => Self::Text(text),
            StopReason::Token(id) => Self::Token(id),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Completion<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: Vec<CompletionChoice>,
    pub(super) service_tier: Option<()>,
    pub(super) system_fingerprint: &'a str,
    pub(super) usage: FullUsage,
    pub(super) kv_transfer_params: Option<HandOff>,
    pub(super) ec_transfer_params: Option<()>,
    pub(super) metrics: Option<()>,
}

#[derive(Serialize)]
pub(super) struct CompletionChoice {
    pub(super) index: usize,
    pub(super) text: String,
    pub(super) logprobs: Option<CompletionLogprobs>,
    pub(super) finish_reason: &'static str,
    pub(super) stop_reason: Option<Stop>,
    pub(super) token_ids: Option<Vec<u32>>,
    pub(super) prompt_logprobs: Option<()>,
    pub(super) prompt_token_ids: Option<Vec<u32>>,
    pub(super) routed_experts: Option<String>,
}

#[derive(Default, Serialize)]
pub(super) struct CompletionLogprobs {
    pub(super) text_offset: Vec<usize>,
    pub(super) token_logprobs: Vec<f32>,
    pub(super) tokens: Vec<String>,
    pub(super) top_logprobs: Vec<serde_json::Map<String, serde_json::Value>>,
}

#[derive(Serialize)]
pub(super) struct ChatCompletion<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: Vec<ChatChoice>,
    pub(super) service_tier: Option<()>,
    pub(super) system_fingerprint: &'a str,
    pub(super) usage: FullUsage,
    pub(super) prompt_logprobs: Option<()>,
    pub(super) prompt_token_ids: Option<Vec<u32>>,
    pub(super) prompt_text: Option<()>,
    pub(super) kv_transfer_params: Option<HandOff>,
    pub(super) ec_transfer_params: Option<()>,
    pub(super) metrics: Option<()>,
}

#[derive(Serialize)]
pub(super) struct ChatChoice {
    pub(super) index: usize,
    pub(super) message: ChatMessage,
    pub(super) logprobs: Option<ChatLogprobs>,
    pub(super) finish_reason: &'static str,
    pub(super) stop_reason: Option<Stop>,
    pub(super) token_ids: Option<Vec<u32>>,
    pub(super) routed_experts: Option<String>,
}

#[derive(Serialize)]
pub(super) struct ChatMessage {
    pub(super) role: &'static str,
    pub(super) content: String,
    pub(super) refusal: Option<()>,
    pub(super) annotations: Option<()>,
    pub(super) audio: Option<()>,
    pub(super) function_call: Option<()>,
    pub(super) reasoning: Option<()>,
}

#[derive(Serialize)]
pub(super) struct ChatLogprobs {
    pub(super) content: Vec<ChatTokenLogprob>,
}

#[derive(Serialize)]
pub(super) struct ChatTokenLogprob {
    #[serde(flatten)]
    pub(super) chosen: ChatTopLogprob,
    pub(super) top_logprobs: Vec<ChatTopLogprob>,
}

#[derive(Serialize)]
pub(super) struct ChatTopLogprob {
    pub(super) token: String,
    pub(super) logprob: f32,
    pub(super) bytes: Vec<u8>,
}

/// One server-sent event of a completion.
#[derive(Serialize)]
pub(super) struct CompletionChunk<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: [CompletionDelta<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_fingerprint: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct CompletionDelta<'a> {
    pub(super) index: usize,
    pub(super) text: &'a str,
    pub(super) logprobs: Option<CompletionLogprobs>,
    pub(super) finish_reason: Option<&'static str>,
    pub(super) stop_reason: Option<Stop>,
    pub(super) prompt_token_ids: Option<&'a [u32]>,
    pub(super) token_ids: Option<&'a [u32]>,
}

/// One server-sent event of a chat completion.
#[derive(Serialize)]
pub(super) struct ChatChunk<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: [ChatDeltaChoice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_fingerprint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_token_ids: Option<&'a [u32]>,
}

#[derive(Serialize)]
pub(super) struct ChatDeltaChoice<'a> {
    pub(super) index: usize,
    pub(super) delta: ChatDelta<'a>,
    pub(super) logprobs: Option<ChatLogprobs>,
    pub(super) finish_reason: Option<&'static str>,
    #[serde(flatten)]
    pub(super) end: Option<ChatEnd>,
    pub(super) token_ids: Option<&'a [u32]>,
}

/// In a choice's last event only.
#[derive(Serialize)]
pub(super) struct ChatEnd {
    pub(super) stop_reason: Option<Stop>,
}

#[derive(Serialize)]
pub(super) struct ChatDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    pub(super) content: &'a str,
}

/// The last event, if usage was asked for.
#[derive(Serialize)]
pub(super) struct UsageChunk<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: [(); 0],
    pub(super) usage: Usage,
    pub(super) system_fingerprint: &'a str,
}

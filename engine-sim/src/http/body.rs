//! The request body of completions and chat completions.

use serde::Deserialize;
use serde_json::Value;

use super::errors::ApiError;
use crate::kv::HandOff;

/// Fields of both endpoints; unknown ones are ignored, as in vLLM.
#[derive(Deserialize)]
pub(super) struct Body {
    pub(super) model: Option<String>,
    pub(super) prompt: Option<Prompt>,
    pub(super) messages: Option<Vec<Message>>,
    pub(super) max_tokens: Option<u64>,
    pub(super) max_completion_tokens: Option<u64>,
    pub(super) min_tokens: Option<u64>,
    pub(super) temperature: Option<f32>,
    pub(super) top_p: Option<f32>,
    pub(super) top_k: Option<i64>,
    pub(super) seed: Option<i64>,
    pub(super) n: Option<u64>,
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptions>,
    pub(super) stop: Option<OneOrMany>,
    pub(super) stop_token_ids: Option<Vec<u32>>,
    pub(super) include_stop_str_in_output: Option<bool>,
    pub(super) ignore_eos: Option<bool>,
    pub(super) echo: Option<bool>,
    /// A number for completions, a flag for chat.
    pub(super) logprobs: Option<Value>,
    pub(super) top_logprobs: Option<u64>,
    pub(super) return_token_ids: Option<bool>,
    pub(super) kv_transfer_params: Option<Value>,
    // Known to vLLM, refused here unless neutral.
    best_of: Option<u64>,
    suffix: Option<String>,
    prompt_logprobs: Option<u64>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    repetition_penalty: Option<f32>,
    min_p: Option<f32>,
    logit_bias: Option<Value>,
    use_beam_search: Option<bool>,
    response_format: Option<Value>,
    structured_outputs: Option<Value>,
    tools: Option<Vec<Value>>,
    prompt_embeds: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Texts(Vec<String>),
    IdLists(Vec<Vec<u32>>),
}

#[derive(Deserialize)]
pub(super) struct Message {
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Body {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        let body: Self =
            serde_json::from_slice(bytes).map_err(|e| ApiError::bad(format!("the body is invalid: {e}")))?;
        Ok(body)
    }

    /// Refuses what would silently change the answer.
    pub(super) fn check_supported(&self) -> Result<(), ApiError> {
        let is_set = |v: &Option<Value>| v.as_ref().is_some_and(|v| !v.is_null());
        let not = |v: Option<f32>, neutral: f32| v.is_some_and(|v| v != neutral);
        let text_format = |v: &Value| v.get("type").and_then(Value::as_str) == Some("text");
        let refused = [
            ("best_of", self.best_of.is_some_and(|n| n > 1)),
            ("suffix", self.suffix.as_ref().is_some_and(|s| !s.is_empty())),
            ("prompt_logprobs", self.prompt_logprobs.is_some()),
            ("frequency_penalty", not(self.frequency_penalty, 0.0)),
            ("presence_penalty", not(self.presence_penalty, 0.0)),
            ("repetition_penalty", not(self.repetition_penalty, 1.0)),
            ("min_p", not(self.min_p, 0.0)),
            ("logit_bias", is_set(&self.logit_bias)),
            ("use_beam_search", self.use_beam_search == Some(true)),
            (
                "response_format",
                self.response_format
                    .as_ref()
                    .is_some_and(|v| !v.is_null() && !text_format(v)),
            ),
            ("structured_outputs", is_set(&self.structured_outputs)),
            ("tools", self.tools.as_ref().is_some_and(|t| !t.is_empty())),
            ("prompt_embeds", is_set(&self.prompt_embeds)),
        ];
        match refused.into_iter().find(|(_, refuse)| *refuse) {
            Some((name, _)) => Err(ApiError::unsupported(name)),
            None => Ok(()),
        }
    }

    pub(super) fn hand_off_wanted(&self) -> bool {
        self.kv_flag("do_remote_decode")
    }

    /// The hand-off to pull; None if none is meant or its address is incomplete (vLLM then computes the prompt itself).
    pub(super) fn hand_off_offered(&self) -> Option<HandOff> {
        if !self.kv_flag("do_remote_prefill") {
            return None;
        }
        serde_json::from_value(self.kv_transfer_params.clone()?)
            .inspect_err(|e| tracing::warn!(%e, "kv_transfer_params are incomplete: the prompt is computed here"))
            .ok()
    }

    fn kv_flag(&self, name: &str) -> bool {
        self.kv_transfer_params
            .as_ref()
            .and_then(|p| p.get(name))
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }
}

impl Message {
    pub(super) fn text(&self) -> Result<String, ApiError> {
        match &self.content {
            None => Ok(String::new()),
            Some(Content::Text(text)) => Ok(text.clone()),
            Some(Content::Parts(parts)) => parts
                .iter()
                .map(|p| {
                    let text = p.text.as_deref();
                    text.ok_or_else(|| ApiError::about("messages", "only text parts are supported"))
                })
                .collect(),
        }
    }
}

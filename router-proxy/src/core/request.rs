//! A client's request, parsed as far as routing needs it.

use bytes::Bytes;
use coterie_locality::predictor::NgramCounter;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    bodies,
    check::{self, Refused},
    fields::Fields,
    prefix,
};

/// Paths that are routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Endpoint {
    Completions,
    ChatCompletions,
}

impl Endpoint {
    pub(crate) const ALL: [Self; 2] = [Self::Completions, Self::ChatCompletions];

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::ChatCompletions => "/v1/chat/completions",
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Completions => "completions",
            Self::ChatCompletions => "chat_completions",
        }
    }
}

/// A request whose body was read and understood.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    pub(crate) endpoint: Endpoint,
    /// Headers for the workers: end to end, without any that steer.
    pub(crate) headers: HeaderMap,
    pub(crate) stream: bool,
    /// Whether the stream ends with an event of usage alone.
    pub(crate) usage_event: bool,
    /// Why a hand-off cannot carry it, if it cannot.
    pub(crate) local: Option<LocalReason>,
    /// Hash of the prompt's first bytes; `None` when it has none.
    pub(crate) prefix_key: Option<u64>,
    /// What its text is made of, where that is looked at.
    pub(crate) text: Option<NgramCounter>,
    /// Body of the prefill leg, without the hand-off's field and the closing brace.
    prefill_body: bodies::Body,
    /// Body of the decode leg, likewise.
    decode_body: bodies::Body,
}

/// Why a request goes to a decode worker without hand-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LocalReason {
    /// More than one answer to one prompt.
    SeveralAnswers,
    /// More than one prompt.
    SeveralPrompts,
    /// The prompt is wanted back.
    Echo,
    /// Log probabilities of the prompt.
    PromptLogprobs,
    /// Beam search.
    BeamSearch,
    /// No prefill worker can be reached.
    NoPrefillWorker,
    /// Every prefill worker that was asked failed.
    PrefillFailed,
    /// The prefill worker's answer had no hand-off object.
    HandOffMissing,
    /// The fleet has no transfer protocol between its pools.
    NoConnector,
}

impl LocalReason {
    pub(crate) const ALL: [Self; 9] = [
        Self::SeveralAnswers,
        Self::SeveralPrompts,
        Self::Echo,
        Self::PromptLogprobs,
        Self::BeamSearch,
        Self::NoPrefillWorker,
        Self::PrefillFailed,
        Self::HandOffMissing,
        Self::NoConnector,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::SeveralAnswers => "SeveralAnswers",
            Self::SeveralPrompts => "SeveralPrompts",
            Self::Echo => "Echo",
            Self::PromptLogprobs => "PromptLogprobs",
            Self::BeamSearch => "BeamSearch",
            Self::NoPrefillWorker => "NoPrefillWorker",
            Self::PrefillFailed => "PrefillFailed",
            Self::HandOffMissing => "HandOffMissing",
            Self::NoConnector => "NoConnector",
        }
    }
}

/// What routing wants to know of a request's prompt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Bytes of the prompt that the prefix key is made of.
    pub(crate) prefix_bytes: usize,
    /// Whether its text is looked at.
    pub(crate) text: bool,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

impl ClientRequest {
    /// Parses a body. Only what routing needs or prefill is not shown is checked; the engine judges the rest. The error is for the client.
    pub(crate) fn parse(endpoint: Endpoint, headers: HeaderMap, body: &Bytes, wanted: Wanted) -> Result<Self, Refused> {
        let fields = Fields::parse(body).map_err(|e| Refused::body(format!("the body is not a JSON object: {e}")))?;
        let needed = match endpoint {
            Endpoint::Completions => "prompt",
            Endpoint::ChatCompletions => "messages",
        };
        if !fields.has(needed) && !fields.has("prompt_embeds") {
            return Err(Refused::body(format!("the body has no `{needed}`")));
        }
        check::rewritten(endpoint, &fields)?;
        let stream: Option<RawBool> = fields.read("stream");
        let options: Option<StreamOptions> = fields.read("stream_options");
        Ok(Self {
            endpoint,
            headers,
            stream: stream.is_some_and(|s| s.0),
            usage_event: options.is_some_and(|o| o.include_usage == Some(true)),
            local: local_reason(endpoint, &fields),
            prefix_key: prefix::key(endpoint, &fields, wanted.prefix_bytes),
            text: wanted.text.then(|| text(endpoint, &fields)),
            prefill_body: bodies::prefill(endpoint, &fields, body.len()),
            decode_body: bodies::decode(&fields, body),
        })
    }

    /// The prefill leg's body.
    pub(crate) fn prefill_body(&self, handoff_field: &str, value: &str) -> Bytes {
        self.prefill_body.with(handoff_field, value)
    }

    /// The decode leg's body: the client's own, plus the hand-off where there is one.
    pub(crate) fn decode_body(&self, handoff: Option<(&str, &RawValue)>) -> Bytes {
        match handoff {
            Some((field, object)) => self.decode_body.with(field, object.get()),
            None => self.decode_body.plain(),
        }
    }
}

/// `true`, `false`, and the spellings that engines written in Python take for them.
struct RawBool(bool);

impl<'de> Deserialize<'de> for RawBool {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let word = raw.trim_matches('"').to_ascii_lowercase();
        Ok(Self(matches!(word.as_str(), "true" | "1" | "yes" | "on" | "t" | "y")))
    }
}

fn text(endpoint: Endpoint, fields: &Fields<'_>) -> NgramCounter {
    let mut counter = NgramCounter::new();
    match endpoint {
        Endpoint::Completions => counter.push_prompt(fields.get("prompt").map_or("", RawValue::get)),
        Endpoint::ChatCompletions => counter.push_messages(fields.get("messages").map_or("", RawValue::get)),
    }
    counter
}

fn local_reason(endpoint: Endpoint, fields: &Fields<'_>) -> Option<LocalReason> {
    let many = |name: &str| fields.read::<f64>(name).is_some_and(|n| n > 1.0);
    let truthy = |name: &str| fields.read::<RawBool>(name).is_some_and(|b| b.0);
    if many("n") || many("best_of") {
        return Some(LocalReason::SeveralAnswers);
    }
    if endpoint == Endpoint::Completions && fields.get("prompt").is_some_and(prefix::several_prompts) {
        return Some(LocalReason::SeveralPrompts);
    }
    if truthy("echo") {
        return Some(LocalReason::Echo);
    }
    if fields.has("prompt_logprobs") {
        return Some(LocalReason::PromptLogprobs);
    }
    truthy("use_beam_search").then_some(LocalReason::BeamSearch)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

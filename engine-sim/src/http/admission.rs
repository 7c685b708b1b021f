//! From a request body to sequences for the engine: tokens, limits, KV intent, and what is refused.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use rand::Rng;

use super::app::{App, Ready};
use super::body::{Body, OneOrMany, Prompt};
use super::errors::ApiError;
use crate::engine::{KvIntent, Limits};
use crate::kv::HandOff;
use crate::model::Sampling;
use crate::recording::Continuation;

const MAX_CHOICES: u64 = 64;
const MAX_LOGPROBS: u64 = 20;
const DEFAULT_MAX_TOKENS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Completions,
    Chat,
}

impl Endpoint {
    pub(super) fn id_prefix(self) -> &'static str {
        match self {
            Self::Completions => "cmpl",
            Self::Chat => "chatcmpl",
        }
    }
}

/// A request that can be answered.
pub(super) struct Plan {
    pub(super) endpoint: Endpoint,
    pub(super) id: String,
    pub(super) model: String,
    pub(super) prompts: Vec<PlannedPrompt>,
    /// Choices per prompt.
    pub(super) n: usize,
    pub(super) sampling: Sampling,
    pub(super) logprobs: Option<usize>,
    pub(super) kv: KvIntent,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) return_token_ids: bool,
    pub(super) echo: bool,
}

pub(super) struct PlannedPrompt {
    pub(super) ids: Vec<u32>,
    pub(super) recorded: Option<Continuation>,
    pub(super) limits: Limits,
}

pub(super) fn ready(app: &App) -> Result<&Ready, ApiError> {
    app.ready
        .get()
        .ok_or_else(|| ApiError::unavailable("the model is loading: wait until GET /health answers 200"))
}

/// Checks a request. One that offers a hand-off and is refused tells the prefill worker, so that the KV is freed there.
pub(super) fn plan(app: &Arc<App>, endpoint: Endpoint, headers: &HeaderMap, body: &Body) -> Result<Plan, ApiError> {
    let ready = ready(app)?;
    if app.drain.is_draining() && app.settings.reject_on_drain {
        return Err(ApiError::unavailable(
            "this worker is shutting down: send the request to another one",
        ));
    }
    let offered = if ready.engine.options().side_channel.is_some() {
        body.hand_off_offered()
    } else {
        None
    };
    let plan = if offered.is_some() && app.faults.reject_kv(endpoint_path(endpoint)) {
        Err(ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "fault injected: the KV hand-off is rejected",
        ))
    } else {
        checked(app, ready, endpoint, headers, body, offered.clone())
    };
    if let (Err(_), Some(hand_off)) = (&plan, offered) {
        ready.engine.reject(hand_off);
    }
    plan
}

pub(super) fn endpoint_path(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Completions => "/v1/completions",
        Endpoint::Chat => "/v1/chat/completions",
    }
}

fn checked(
    app: &App,
    ready: &Ready,
    endpoint: Endpoint,
    headers: &HeaderMap,
    body: &Body,
    offered: Option<HandOff>,
) -> Result<Plan, ApiError> {
    body.check_supported()?;
    let names = &app.settings.model_names;
    let model = match &body.model {
        Some(name) if !name.is_empty() => names.iter().find(|n| *n == name).ok_or_else(|| ApiError {
            status: StatusCode::NOT_FOUND,
            message: format!("The model `{name}` does not exist."),
            param: Some("model"),
        })?,
        _ => names.first().ok_or_else(|| ApiError::internal("no model is served"))?,
    };
    let n = body.n.unwrap_or(1);
    if n == 0 || n > MAX_CHOICES {
        return Err(ApiError::about("n", format!("n must be 1 to {MAX_CHOICES}, got {n}.")));
    }
    let echo = body.echo.unwrap_or(false);
    let logprobs = wanted_logprobs(endpoint, body)?;
    if echo && logprobs.is_some() {
        return Err(ApiError::about(
            "echo",
            "echo together with logprobs is not supported by engine-sim",
        ));
    }
    let sampling = sampling(body)?;
    let prompts = prompts(app, ready, endpoint, body)?;
    if logprobs.is_some() && prompts.iter().any(|p| p.recorded.is_some()) {
        return Err(ApiError::about(
            "logprobs",
            "this prompt is answered from recorded or generated gates, which have no log-probabilities: leave logprobs out",
        ));
    }
    let single = prompts.len() == 1 && n == 1;
    if body.kv_transfer_params.as_ref().is_some_and(|p| !p.is_null()) && !single {
        return Err(ApiError::about(
            "kv_transfer_params",
            "a KV hand-off carries one prompt with n = 1",
        ));
    }
    Ok(Plan {
        endpoint,
        id: format!("{}-{}", endpoint.id_prefix(), request_id(app, headers)),
        model: model.clone(),
        prompts,
        n: n as usize,
        sampling,
        logprobs,
        kv: kv_intent(ready, body, offered),
        stream: body.stream.unwrap_or(false),
        include_usage: body
            .stream_options
            .as_ref()
            .and_then(|o| o.include_usage)
            .unwrap_or(false),
        return_token_ids: body.return_token_ids.unwrap_or(false),
        echo,
    })
}

/// A worker that captures experts needs rows of the whole prompt: like vLLM it then computes the prompt itself and gives the offer back.
fn kv_intent(ready: &Ready, body: &Body, offered: Option<HandOff>) -> KvIntent {
    match offered {
        Some(hand_off) if ready.engine.options().capture => {
            ready.engine.reject(hand_off);
            KvIntent::Local
        }
        Some(hand_off) => KvIntent::Pull(hand_off),
        None if body.hand_off_wanted() && ready.engine.options().side_channel.is_some() => KvIntent::HandOff,
        None => KvIntent::Local,
    }
}

fn request_id(app: &App, headers: &HeaderMap) -> String {
    let given = headers.get("x-request-id").and_then(|v| v.to_str().ok());
    match given.filter(|id| !id.is_empty() && id.len() <= 256) {
        Some(id) => id.to_owned(),
        None => format!("{:016x}", app.unique()),
    }
}

fn sampling(body: &Body) -> Result<Sampling, ApiError> {
    let temperature = body.temperature.unwrap_or(1.0);
    if !(0.0..=100.0).contains(&temperature) {
        return Err(ApiError::about(
            "temperature",
            format!("temperature must be 0 to 100, got {temperature}."),
        ));
    }
    let top_p = body.top_p.unwrap_or(1.0);
    if !(top_p > 0.0 && top_p <= 1.0) {
        return Err(ApiError::about(
            "top_p",
            format!("top_p must be in (0, 1], got {top_p}."),
        ));
    }
    let top_k = body.top_k.unwrap_or(0);
    if top_k < -1 {
        return Err(ApiError::about(
            "top_k",
            format!("top_k must be 0 (disable), or at least 1, got {top_k}."),
        ));
    }
    let seed = body.seed.map_or_else(|| rand::thread_rng().r#gen(), |s| s as u64);
    Ok(Sampling {
        temperature,
        top_p,
        top_k: top_k.max(0) as usize,
        seed,
    })
}

fn wanted_logprobs(endpoint: Endpoint, body: &Body) -> Result<Option<usize>, ApiError> {
    let wanted = match (endpoint, &body.logprobs) {
        (_, None | Some(serde_json::Value::Null)) => None,
        (Endpoint::Completions, Some(value)) => Some(
            value
                .as_u64()
                .ok_or_else(|| ApiError::about("logprobs", "logprobs must be a number"))?,
        ),
        (Endpoint::Chat, Some(value)) => match value.as_bool() {
            Some(true) => Some(body.top_logprobs.unwrap_or(0)),
            Some(false) => None,
            None => return Err(ApiError::about("logprobs", "logprobs must be true or false")),
        },
    };
    match wanted {
        Some(n) if n > MAX_LOGPROBS => Err(ApiError::about(
            "logprobs",
            format!("at most {MAX_LOGPROBS} logprobs are allowed, got {n}."),
        )),
        other => Ok(other.map(|n| n as usize)),
    }
}

fn prompts(app: &App, ready: &Ready, endpoint: Endpoint, body: &Body) -> Result<Vec<PlannedPrompt>, ApiError> {
    let script = ready.assets.script.as_ref();
    let by_text = |text: &str| -> Result<(Vec<u32>, Option<Continuation>), ApiError> {
        if let Some((ids, at)) = script.and_then(|s| s.find_text(text)) {
            return Ok((ids, Some(at)));
        }
        let ids = ready.assets.codec.encode(text).map_err(ApiError::bad)?;
        let recorded = script.and_then(|s| s.find(&ids));
        Ok((ids, recorded))
    };
    let by_ids = |ids: &[u32]| -> Result<(Vec<u32>, Option<Continuation>), ApiError> {
        let vocabulary = ready.assets.codec.vocab_size();
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
            return Err(ApiError::about("prompt", format!("Token id {id} is out of vocabulary")));
        }
        Ok((ids.to_vec(), script.and_then(|s| s.find(ids))))
    };
    let found: Vec<_> = if endpoint == Endpoint::Chat {
        vec![by_text(&chat_text(ready, body)?)?]
    } else {
        match &body.prompt {
            None => return Err(ApiError::about("prompt", "prompt is missing")),
            Some(Prompt::Text(text)) => vec![by_text(text)?],
            Some(Prompt::Ids(ids)) => vec![by_ids(ids)?],
            Some(Prompt::Texts(texts)) => texts.iter().map(|t| by_text(t)).collect::<Result<_, _>>()?,
            Some(Prompt::IdLists(lists)) => lists.iter().map(|ids| by_ids(ids)).collect::<Result<_, _>>()?,
        }
    };
    if found.is_empty() || found.len() as u64 > MAX_CHOICES {
        return Err(ApiError::about(
            "prompt",
            format!("1 to {MAX_CHOICES} prompts are supported, got {}", found.len()),
        ));
    }
    found
        .into_iter()
        .map(|(ids, recorded)| {
            let limits = limits(app, ready, endpoint, body, ids.len())?;
            Ok(PlannedPrompt { ids, recorded, limits })
        })
        .collect()
}

fn chat_text(ready: &Ready, body: &Body) -> Result<String, ApiError> {
    if !ready.chat {
        return Err(ApiError::bad(
            "the model folder has no chat template that engine-sim supports: use /v1/completions",
        ));
    }
    let messages = body.messages.as_deref().unwrap_or_default();
    if messages.is_empty() {
        return Err(ApiError::about("messages", "messages is missing or empty"));
    }
    messages.iter().map(|m| m.text().map(|text| text + "\n")).collect()
}

fn limits(app: &App, ready: &Ready, endpoint: Endpoint, body: &Body, prompt: usize) -> Result<Limits, ApiError> {
    let longest = app.settings.max_model_len;
    if prompt == 0 {
        return Err(ApiError::about("prompt", "The prompt cannot be empty"));
    }
    if prompt >= longest {
        return Err(ApiError::about(
            "prompt",
            format!(
                "This model's maximum context length is {longest} tokens. However, your request has {prompt} input tokens. Please reduce the length of the input messages."
            ),
        ));
    }
    let room = longest - prompt;
    let max_tokens = match body.max_completion_tokens.or(body.max_tokens) {
        Some(0) => return Err(ApiError::about("max_tokens", "max_tokens must be at least 1, got 0.")),
        Some(asked) if asked > room as u64 => {
            return Err(ApiError::about(
                "max_tokens",
                format!(
                    "'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length is {longest} tokens and your request has {prompt} input tokens ({asked} > {longest} - {prompt})."
                ),
            ));
        }
        Some(asked) => asked as usize,
        None if endpoint == Endpoint::Completions => DEFAULT_MAX_TOKENS.min(room),
        None => room,
    };
    let min_tokens = body.min_tokens.unwrap_or(0) as usize;
    if min_tokens > max_tokens {
        return Err(ApiError::about(
            "min_tokens",
            format!("min_tokens must be less than or equal to max_tokens={max_tokens}, got {min_tokens}."),
        ));
    }
    let options = ready.engine.options();
    let storable = options.kv_blocks * options.block_size;
    if prompt + max_tokens - 1 > storable {
        return Err(ApiError::bad(format!(
            "prompt and answer need KV for {} tokens, this worker can hold {storable}: ask for fewer tokens",
            prompt + max_tokens - 1
        )));
    }
    let stop = match &body.stop {
        None => Vec::new(),
        Some(OneOrMany::One(stop)) => vec![stop.clone()],
        Some(OneOrMany::Many(stops)) => stops.clone(),
    };
    if stop.iter().any(String::is_empty) {
        return Err(ApiError::about("stop", "stop cannot contain an empty string."));
    }
    Ok(Limits {
        max_tokens,
        min_tokens,
        stop,
        stop_token_ids: body.stop_token_ids.clone().unwrap_or_default(),
        include_stop: body.include_stop_str_in_output.unwrap_or(false),
        ignore_eos: body.ignore_eos.unwrap_or(false),
    })
}

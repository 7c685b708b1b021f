//! Sequences in the engine, and what of their events all answers share.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::admission::{Endpoint, Plan, endpoint_path, ready};
use super::answer::{ChatLogprobs, ChatTokenLogprob, ChatTopLogprob, CompletionLogprobs};
use super::app::App;
use super::errors::ApiError;
use crate::engine::{Event, ExpertRows, Finish, FinishReason, StopReason, Submission};
use crate::faults::{Fault, Malformation};
use crate::kv::HandOff;
use crate::model::TokenLogprobs;
use crate::recording::npy;
use crate::tokenizer::TextCodec;

/// One choice's events.
pub(super) struct Sequence {
    pub(super) index: usize,
    pub(super) events: UnboundedReceiver<Event>,
}

/// A whole answer of one sequence.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) ids: Vec<u32>,
    pub(super) logprobs: Vec<TokenLogprobs>,
    pub(super) reason: FinishReason,
    pub(super) stop: Option<StopReason>,
    pub(super) experts: Option<String>,
    pub(super) hand_off: Option<HandOff>,
}

/// Hands all sequences of a request to the engine. Choice `j` of prompt `i` has index `i n + j` and the seed plus `j`.
pub(super) fn start(app: &Arc<App>, plan: &Plan) -> Result<Vec<Sequence>, ApiError> {
    let engine = &ready(app)?.engine;
    let arrived = engine.now();
    let mut sequences = Vec::new();
    for prompt in &plan.prompts {
        for choice in 0..plan.n {
            let index = sequences.len();
            let (events, receiver) = unbounded_channel();
            let mut sampling = plan.sampling.clone();
            sampling.seed = sampling.seed.wrapping_add(choice as u64);
            let unique = app.unique() as u32;
            let id = match plan.endpoint {
                Endpoint::Completions => format!("{}-{index}-{unique:08x}", plan.id),
                Endpoint::Chat => format!("{}-{unique:08x}", plan.id),
            };
            engine.submit(Submission {
                id,
                prompt: prompt.ids.clone(),
                recorded: prompt.recorded,
                sampling,
                limits: prompt.limits.clone(),
                logprobs: plan.logprobs,
                kv: plan.kv.clone(),
                arrived,
                events,
            });
            sequences.push(Sequence {
                index,
                events: receiver,
            });
        }
    }
    Ok(sequences)
}

/// Waits for a sequence's end.
pub(super) async fn collect(app: &App, endpoint: Endpoint, mut sequence: Sequence) -> Result<Answer, ApiError> {
    let (mut text, mut ids, mut logprobs) = (String::new(), Vec::new(), Vec::new());
    while let Some(event) = sequence.events.recv().await {
        let token = match event {
            Event::Token(token) => token,
            Event::Failed(reason) => return Err(ApiError::internal(reason)),
        };
        text.push_str(&token.text);
        ids.push(token.id);
        logprobs.extend(token.logprobs);
        if let Some(finish) = token.finish {
            let Finish {
                reason,
                stop,
                experts,
                hand_off,
            } = *finish;
            let experts = experts.and_then(|rows| encode_experts(app, endpoint, rows));
            return Ok(Answer {
                text,
                ids,
                logprobs,
                reason,
                stop,
                experts,
                hand_off,
            });
        }
    }
    Err(engine_gone())
}

pub(super) fn engine_gone() -> ApiError {
    ApiError::internal("EngineCore encountered an issue: the engine stopped while it worked on this request.")
}

/// The answer's cut point, if a `cut_stream` fault hits this request.
pub(super) fn cut_after(app: &App, endpoint: Endpoint) -> Option<usize> {
    app.faults.hit(endpoint_path(endpoint), |f| match f {
        Fault::CutStream { after_tokens } => Some(after_tokens),
        _ => None,
    })
}

fn encode_experts(app: &App, endpoint: Endpoint, rows: ExpertRows) -> Option<String> {
    let path = endpoint_path(endpoint);
    if app
        .faults
        .hit(path, |f| (f == Fault::NoExperts).then_some(()))
        .is_some()
    {
        return None;
    }
    let malformed = app.faults.hit(path, |f| match f {
        Fault::MalformedExperts { value } => Some(value),
        _ => None,
    });
    let ExpertRows {
        layers,
        top_k,
        mut data,
    } = rows;
    let tokens = data.len() / (layers * top_k).max(1);
    let array = match malformed {
        Some(Malformation::NotBase64) => return Some("%%% not base64 %%%".to_owned()),
        Some(Malformation::WrongExpert) => {
            data.fill(u8::MAX);
            npy::write_u8(&[tokens, layers, top_k], &data)
        }
        Some(Malformation::WrongShape) => {
            data.resize(tokens * (layers + 1) * top_k, 0);
            npy::write_u8(&[tokens, layers + 1, top_k], &data)
        }
        Some(Malformation::Truncated) => {
            let mut array = npy::write_u8(&[tokens, layers, top_k], &data);
            array.truncate(array.len() / 2);
            array
        }
        None => npy::write_u8(&[tokens, layers, top_k], &data),
    };
    Some(STANDARD.encode(array))
}

/// Log-probabilities in the form of completions; `offset` is the text's length before the first of these tokens.
pub(super) fn completion_logprobs(
    codec: &TextCodec,
    ids: &[u32],
    logprobs: &[TokenLogprobs],
    offset: &mut usize,
) -> CompletionLogprobs {
    let mut out = CompletionLogprobs::default();
    for (id, given) in ids.iter().zip(logprobs) {
        let token = codec.decode(&[*id]);
        out.text_offset.push(*offset);
        *offset += token.chars().count();
        out.token_logprobs.push(given.chosen);
        let mut top: serde_json::Map<String, serde_json::Value> = given
            .top
            .iter()
            .map(|(id, logprob)| (codec.decode(&[*id]), (*logprob).into()))
            .collect();
        top.entry(token.clone()).or_insert(given.chosen.into());
        out.top_logprobs.push(top);
        out.tokens.push(token);
    }
    out
}

/// Log-probabilities in the form of chat completions.
pub(super) fn chat_logprobs(codec: &TextCodec, ids: &[u32], logprobs: &[TokenLogprobs]) -> ChatLogprobs {
    let entry = |id: u32, logprob: f32| ChatTopLogprob {
        token: codec.decode(&[id]),
        logprob,
        bytes: codec.piece(id).to_vec(),
    };
    let content = ids.iter().zip(logprobs).map(|(id, given)| ChatTokenLogprob {
        chosen: entry(*id, given.chosen),
        top_logprobs: given.top.iter().map(|(id, logprob)| entry(*id, *logprob)).collect(),
    });
    ChatLogprobs {
        content: content.collect(),
    }
}

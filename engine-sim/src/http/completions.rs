//! `POST /v1/completions`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::admission::{Endpoint, Plan, plan, ready};
use super::answer::{Completion, CompletionChoice, Usage};
use super::app::{App, unix_seconds};
use super::body::Body;
use super::errors::ApiError;
use super::generate::{Sequence, collect, completion_logprobs, cut_after, start};
use super::stream;

pub(super) async fn answer(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Result<Response, ApiError> {
    let in_flight = app.drain.enter();
    let plan = plan(&app, Endpoint::Completions, &headers, &Body::parse(&body)?)?;
    let sequences = start(&app, &plan)?;
    if plan.stream {
        return Ok(stream::respond(app, plan, sequences, in_flight));
    }
    let cut = cut_after(&app, plan.endpoint).is_some();
    let json = whole(&app, &plan, sequences).await?;
    Ok(stream::whole(json, cut))
}

async fn whole(app: &App, plan: &Plan, sequences: Vec<Sequence>) -> Result<Vec<u8>, ApiError> {
    let created = unix_seconds();
    let codec = &ready(app)?.assets.codec;
    let (mut choices, mut completion, mut hand_off) = (Vec::new(), 0, None);
    for sequence in sequences {
        let index = sequence.index;
        let answer = collect(app, plan.endpoint, sequence).await?;
        let prompt = &plan.prompts[index / plan.n];
        completion += answer.ids.len();
        hand_off = answer.hand_off;
        let logprobs = plan
            .logprobs
            .map(|_| completion_logprobs(codec, &answer.ids, &answer.logprobs, &mut 0));
        let text = if plan.echo {
            codec.decode(&prompt.ids) + &answer.text
        } else {
            answer.text
        };
        choices.push(CompletionChoice {
            index,
            text,
            logprobs,
            finish_reason: answer.reason.as_str(),
            stop_reason: answer.stop.map(Into::into),
            token_ids: plan.return_token_ids.then_some(answer.ids),
            prompt_logprobs: None,
            prompt_token_ids: plan.return_token_ids.then(|| prompt.ids.clone()),
            routed_experts: answer.experts,
        });
    }
    let prompt = plan.prompts.iter().map(|p| p.ids.len()).sum();
    let body = Completion {
        id: &plan.id,
        object: "text_completion",
        created,
        model: &plan.model,
        choices,
        service_tier: None,
        system_fingerprint: &app.fingerprint,
        usage: Usage::new(prompt, completion).full(),
        kv_transfer_params: hand_off,
        ec_transfer_params: None,
        metrics: None,
    };
    serde_json::to_vec(&body).map_err(|e| ApiError::internal(e.to_string()))
}

//! `POST /tokenize` and `POST /detokenize`.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::admission::ready;
use super::app::App;
use super::errors::ApiError;

#[derive(Deserialize)]
struct Tokenize {
    prompt: String,
}

#[derive(Deserialize)]
struct Detokenize {
    tokens: Vec<u32>,
}

pub(super) async fn tokenize(State(app): State<Arc<App>>, body: Bytes) -> Result<Json<Value>, ApiError> {
    let body: Tokenize = serde_json::from_slice(&body).map_err(|e| ApiError::bad(e.to_string()))?;
    let tokens = ready(&app)?.assets.codec.encode(&body.prompt).map_err(ApiError::bad)?;
    Ok(Json(json!({
        "count": tokens.len(),
        "max_model_len": app.settings.max_model_len,
        "tokens": tokens,
        "token_strs": null,
    })))
}

pub(super) async fn detokenize(State(app): State<Arc<App>>, body: Bytes) -> Result<Json<Value>, ApiError> {
    let body: Detokenize = serde_json::from_slice(&body).map_err(|e| ApiError::bad(e.to_string()))?;
    Ok(Json(
        json!({ "prompt": ready(&app)?.assets.codec.decode(&body.tokens) }),
    ))
}

//! Small pages: models, health, version.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::app::App;
use crate::faults::Fault;

/// The version whose dialect is spoken.
pub(super) const VLLM_VERSION: &str = "0.30.0";

#[derive(Serialize)]
pub(super) struct ModelList {
    object: &'static str,
    data: Vec<ModelCard>,
}

#[derive(Serialize)]
struct ModelCard {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    root: String,
    parent: Option<()>,
    max_model_len: usize,
    permission: [Permission; 1],
}

#[derive(Serialize)]
struct Permission {
    id: String,
    object: &'static str,
    created: u64,
    allow_create_engine: bool,
    allow_sampling: bool,
    allow_logprobs: bool,
    allow_search_indices: bool,
    allow_view: bool,
    allow_fine_tuning: bool,
    organization: &'static str,
    group: Option<()>,
    is_blocking: bool,
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Json<ModelList> {
    let settings = &app.settings;
    let card = |name: &String| ModelCard {
        id: name.clone(),
        object: "model",
        created: app.created,
        owned_by: "vllm",
        root: settings.model_root.clone(),
        parent: None,
        max_model_len: settings.max_model_len,
        permission: [Permission {
            id: format!("modelperm-{:016x}", app.unique()),
            object: "model_permission",
            created: app.created,
            allow_create_engine: false,
            allow_sampling: true,
            allow_logprobs: true,
            allow_search_indices: false,
            allow_view: true,
            allow_fine_tuning: false,
            organization: "*",
            group: None,
            is_blocking: false,
        }],
    };
    Json(ModelList {
        object: "list",
        data: settings.model_names.iter().map(card).collect(),
    })
}

/// 200 once the model is loaded, 503 before and while draining.
pub(super) async fn health(State(app): State<Arc<App>>, request: Request) -> StatusCode {
    let refused = app
        .faults
        .hit(request.uri().path(), |f| (f == Fault::RefuseHealth).then_some(()))
        .is_some();
    let alive = match app.ready.get() {
        Some(ready) => ready.engine.is_alive(),
        None => false,
    };
    if refused || !alive || app.drain.is_draining() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    }
}

pub(super) async fn version() -> Json<Value> {
    Json(json!({ "version": VLLM_VERSION }))
}

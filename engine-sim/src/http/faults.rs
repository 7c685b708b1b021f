//! `/sim/v1/faults`, and the faults that hit a request before its handler.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::errors::ApiError;
use crate::faults::{Fault, Rule};

pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Vec<Rule>> {
    Json(app.faults.list())
}

pub(super) async fn add(State(app): State<Arc<App>>, body: Bytes) -> Result<Json<Rule>, ApiError> {
    let help = "a fault is {\"kind\": \"delay_ms\"|\"status\"|\"hang\"|\"cut_stream\"|\"no_experts\"|\"malformed_experts\"|\"reject_kv\"|\"refuse_health\", \"value\": ..., \"path\": prefix, \"count\": n, \"after_tokens\": n}";
    let rule = serde_json::from_slice(&body).map_err(|e| ApiError::bad(format!("{e}; {help}")))?;
    app.faults.add(rule).map(Json).map_err(ApiError::bad)
}

pub(super) async fn clear(State(app): State<Arc<App>>) -> StatusCode {
    app.faults.clear();
    StatusCode::NO_CONTENT
}

pub(super) async fn inject(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let delay = app.faults.hit(&path, |f| {
        if let Fault::DelayMs { value } = f {
            Some(value)
        } else {
            None
        }
    });
    if let Some(ms) = delay {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if app.faults.hit(&path, |f| (f == Fault::Hang).then_some(())).is_some() {
        std::future::pending::<()>().await;
    }
    let status = app.faults.hit(&path, |f| {
        if let Fault::Status { value } = f {
            Some(value)
        } else {
            None
        }
    });
    if let Some(status) = status.and_then(|s| StatusCode::from_u16(s).ok()) {
        return ApiError::new(status, "fault injected").into_response();
    }
    next.run(request).await
}

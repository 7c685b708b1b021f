//! The admin port's server.

use std::sync::Arc;

use anyhow::Result;
use axum::{
    Json, Router,
    body::Body,
    extract::{Query, Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use coterie_crds::admin::{FLEET_PATH, SAMPLES_PATH, STATE_PATH, STATISTICS_PATH};
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{auth::Token, samples};
use crate::core::Core;

#[derive(Deserialize)]
struct Window {
    /// Unix milliseconds.
    #[serde(default)]
    since: u64,
    limit: Option<usize>,
}

/// Answers until `stop`.
pub(crate) async fn serve(listener: TcpListener, core: Arc<Core>, token: Token, stop: CancellationToken) -> Result<()> {
    let app = Router::new()
        .route(
            STATE_PATH,
            get(|State(core): State<Arc<Core>>| async move { Json(core.routing.acknowledgement()) }),
        )
        .route(STATISTICS_PATH, get(statistics))
        .route(FLEET_PATH, get(fleet))
        .route(SAMPLES_PATH, get(stream_samples))
        .fallback(|| async { (http::StatusCode::NOT_FOUND, "not an admin path\n") })
        .layer(middleware::from_fn_with_state(token, authorised))
        .with_state(core);
    axum::serve(listener, app)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await?;
    Ok(())
}

async fn authorised(State(token): State<Token>, request: Request, next: Next) -> Response {
    match token.check(request.headers()).await {
        Ok(()) => next.run(request).await,
        Err((status, sentence)) => (status, format!("{sentence}\n")).into_response(),
    }
}

async fn statistics(State(core): State<Arc<Core>>) -> impl IntoResponse {
    let view = core.routing.view();
    Json(core.statistics.report(view.active.as_deref()))
}

async fn fleet(State(core): State<Arc<Core>>) -> impl IntoResponse {
    Json(core.routing.view().fleet(core.clock.monotonic_ms()))
}

async fn stream_samples(State(core): State<Arc<Core>>, Query(window): Query<Window>) -> impl IntoResponse {
    let (chosen, weight) = core
        .statistics
        .samples(window.since, window.limit.unwrap_or(usize::MAX));
    let body = Body::from_stream(samples::container(chosen, weight));
    ([(CONTENT_TYPE, "application/octet-stream")], body)
}

//! The prefill worker's end of the side channel: `POST /kv/read` and `POST /kv/notify`.

use std::future::Future;
use std::net::SocketAddr;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::{Listener, ListenerExt};
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;

use crate::engine::EngineHandle;

#[derive(Deserialize)]
struct Read {
    engine_id: String,
    block_ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Notify {
    engine_id: String,
    request_id: String,
    outcome: String,
}

/// Serves KV pulls until `stop` is ready.
pub async fn serve_side_channel(
    listener: TcpListener,
    engine: EngineHandle,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let app = Router::new()
        .route("/kv/read", post(read))
        .route("/kv/notify", post(notify))
        .with_state(engine);
    axum::serve(without_delay(listener), app)
        .with_graceful_shutdown(stop)
        .await
}

/// Small writes, such as a stream's tokens, leave at once.
pub fn without_delay(listener: TcpListener) -> impl Listener<Addr = SocketAddr> {
    listener.tap_io(|tcp| {
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
    })
}

async fn read(State(engine): State<EngineHandle>, Json(body): Json<Read>) -> Response {
    if let Some(refusal) = stranger(&engine, &body.engine_id) {
        return refusal;
    }
    match engine.read_blocks(body.block_ids).await {
        Some(bytes) => bytes.into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the engine has stopped").into_response(),
    }
}

async fn notify(State(engine): State<EngineHandle>, Json(body): Json<Notify>) -> Response {
    if let Some(refusal) = stranger(&engine, &body.engine_id) {
        return refusal;
    }
    tracing::debug!(request = body.request_id, outcome = body.outcome, "hand-off ended");
    engine.release(body.request_id);
    StatusCode::NO_CONTENT.into_response()
}

fn stranger(engine: &EngineHandle, engine_id: &str) -> Option<Response> {
    let ours = engine.engine_id();
    (engine_id != ours).then(|| {
        let text = format!("this is engine {ours}, not {engine_id}: the worker has restarted, its KV is gone");
        (StatusCode::CONFLICT, text).into_response()
    })
}

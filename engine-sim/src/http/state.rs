//! `/sim/v1/state` and `/sim/v1/reset`: the simulator's own figures.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::admission::ready;
use super::app::App;
use super::errors::ApiError;

pub(super) async fn show(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    let engine = &ready(&app)?.engine;
    let snapshot = engine
        .snapshot()
        .await
        .ok_or_else(|| ApiError::unavailable("the engine has stopped"))?;
    let (sim, options) = (&snapshot.sim, engine.options());
    let per_layer: Vec<f64> = sim.distinct_sum.iter().map(|sum| sim.per_step(*sum as f64)).collect();
    let buckets: Vec<Value> = sim
        .step_ms
        .cumulative()
        .map(|(le, count)| json!({ "le_ms": le, "count": count }))
        .collect();
    let held = snapshot.blocks_total - snapshot.blocks_free - snapshot.blocks_pinned;
    Ok(Json(json!({
        "engine_id": engine.engine_id(),
        "draining": app.drain.is_draining(),
        "time_scale": app.settings.time_scale,
        "steps": sim.steps,
        "mean_batch": sim.per_step(sim.batch_sum as f64),
        "mean_distinct_experts": per_layer.iter().sum::<f64>(),
        "mean_distinct_experts_per_layer": per_layer,
        "overrun_steps": sim.overrun_steps,
        "overrun_share": sim.per_step(sim.overrun_steps as f64),
        "step_ms": {
            "mean": sim.step_ms.mean(),
            "p50": sim.step_ms.quantile(0.5),
            "p99": sim.step_ms.quantile(0.99),
            "paced_mean": sim.per_step(sim.paced_ms),
            "computing_mean": sim.per_step(sim.computing_ms),
            "buckets": buckets,
        },
        "law": {
            "base_ms": options.step_law.base_ms,
            "per_expert_ms": options.step_law.per_expert_ms,
            "per_request_ms": options.step_law.per_request_ms,
        },
        "prefill": {
            "steps": sim.prefill_steps,
            "tokens": sim.prefill_tokens,
            "overrun_steps": sim.prefill_overrun_steps,
        },
        "requests": {
            "finished": sim.finished,
            "recorded": sim.recorded,
            "aborted": sim.aborted,
            "failed": sim.failed,
        },
        "active": {
            "running": snapshot.running,
            "waiting": snapshot.waiting,
            "fetching_kv": snapshot.fetching,
            "in_flight_http": *app.drain.in_flight().borrow(),
        },
        "kv_blocks": {
            "total": snapshot.blocks_total,
            "free": snapshot.blocks_free,
            "held": held,
            "pinned": snapshot.blocks_pinned,
        },
        "hand_offs_pinned": snapshot.hand_offs,
        "lease_expiries": sim.lease_expiries,
        "foreign_pulls": sim.foreign_pulls,
    })))
}

pub(super) async fn reset(State(app): State<Arc<App>>) -> Result<StatusCode, ApiError> {
    ready(&app)?.engine.reset().await;
    Ok(StatusCode::NO_CONTENT)
}

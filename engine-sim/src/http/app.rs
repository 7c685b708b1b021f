//! The HTTP application: what every handler sees, and the routes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use rand::Rng;
use tokio::sync::watch;

use super::{chat, completions, faults, metrics, models, state, tokens};
use crate::engine::{Assets, EngineHandle};
use crate::faults::Faults;

const HANDLERS: &[&str] = &[
    "/v1/completions",
    "/v1/chat/completions",
    "/v1/models",
    "/tokenize",
    "/detokenize",
    "/health",
    "/ping",
    "/version",
    "/metrics",
    "/sim/v1/state",
    "/sim/v1/reset",
    "/sim/v1/faults",
];

/// What does not change while the process runs.
#[derive(Clone, Debug)]
pub struct AppSettings {
    /// Names the model answers to; the first is the one in answers.
    pub model_names: Vec<String>,
    /// The folder, as `/v1/models` names it.
    pub model_root: String,
    /// Longest prompt and answer together, in tokens.
    pub max_model_len: usize,
    /// Largest request body in bytes.
    pub max_body: usize,
    /// Whether new requests are refused while draining.
    pub reject_on_drain: bool,
    /// Time scale of the laws, for the state page.
    pub time_scale: f64,
}

/// The engine, once it is loaded.
pub struct Ready {
    /// What it answers from.
    pub assets: Assets,
    /// The engine.
    pub engine: EngineHandle,
    /// The chat template is the one that is supported.
    pub chat: bool,
}

/// Shared by all handlers.
pub struct App {
    pub(super) settings: AppSettings,
    pub(super) ready: OnceLock<Ready>,
    pub(super) faults: Faults,
    pub(super) created: u64,
    pub(super) fingerprint: String,
    pub(super) drain: Drain,
    http_requests: Mutex<std::collections::BTreeMap<(&'static str, &'static str, u16), u64>>,
    ids: AtomicU64,
}

/// Requests in flight and whether the process is about to end.
pub struct Drain {
    in_flight: watch::Sender<usize>,
    draining: watch::Sender<bool>,
}

/// Counts a request as in flight while it lives.
pub(super) struct InFlight(watch::Sender<usize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}

impl Drain {
    fn new() -> Self {
        Self {
            in_flight: watch::Sender::new(0),
            draining: watch::Sender::new(false),
        }
    }

    pub(super) fn enter(&self) -> InFlight {
        self.in_flight.send_modify(|n| *n += 1);
        InFlight(self.in_flight.clone())
    }

    /// From now on `/health` answers 503.
    pub fn begin(&self) {
        self.draining.send_replace(true);
    }

    /// Whether [`Self::begin`] was called.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Follows the number of requests in flight.
    pub fn in_flight(&self) -> watch::Receiver<usize> {
        self.in_flight.subscribe()
    }
}

impl App {
    /// An application that still loads.
    pub fn new(settings: AppSettings) -> Arc<Self> {
        let mut rng = rand::thread_rng();
        Arc::new(Self {
            settings,
            ready: OnceLock::new(),
            faults: Faults::default(),
            created: unix_seconds(),
            fingerprint: format!("vllm-{}-{:08x}", super::models::VLLM_VERSION, rng.r#gen::<u32>()),
            drain: Drain::new(),
            http_requests: Mutex::default(),
            ids: AtomicU64::new(rng.r#gen()),
        })
    }

    /// The engine is loaded: requests are answered from now on.
    pub fn set_ready(&self, ready: Ready) {
        if self.ready.set(ready).is_err() {
            tracing::error!("the engine was loaded twice; the first one stays");
        }
    }

    /// Requests in flight, and the end.
    pub fn drain(&self) -> &Drain {
        &self.drain
    }

    /// A number that no other request of this process has.
    pub(super) fn unique(&self) -> u64 {
        // An odd multiplier is a bijection, so consecutive ids look random and never repeat.
        self.ids
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    pub(super) fn http_requests(&self) -> Vec<((&'static str, &'static str, u16), u64)> {
        let counts = self.http_requests.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(key, n)| (*key, *n)).collect()
    }

    fn count(&self, handler: &'static str, method: &'static str, status: u16) {
        let key = (handler, method, status / 100);
        *self
            .http_requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(key)
            .or_default() += 1;
    }
}

/// All routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/completions", post(completions::answer))
        .route("/v1/chat/completions", post(chat::answer))
        .route("/v1/models", get(models::list))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/health", get(models::health))
        .route("/ping", get(models::health).post(models::health))
        .route("/version", get(models::version))
        .route("/metrics", get(metrics::page))
        .route("/sim/v1/state", get(state::show))
        .route("/sim/v1/reset", post(state::reset))
        .route(
            "/sim/v1/faults",
            get(faults::list).post(faults::add).delete(faults::clear),
        )
        .layer(middleware::from_fn_with_state(Arc::clone(&app), faults::inject))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), count_requests))
        .layer(DefaultBodyLimit::max(app.settings.max_body))
        .with_state(app)
}

async fn count_requests(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // Paths come from outside: only known ones become label values.
    let handler = HANDLERS.iter().find(|known| **known == path).copied().unwrap_or("none");
    let method = match *request.method() {
        axum::http::Method::GET => "GET",
        axum::http::Method::POST => "POST",
        axum::http::Method::DELETE => "DELETE",
        _ => "other",
    };
    let response = next.run(request).await;
    app.count(handler, method, response.status().as_u16());
    response
}

pub(super) fn unix_seconds() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

//! Real workers on loopback, without pacing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use coterie_engine_sim::engine::{Clock, PrefillLaw, StepLaw, SystemClock};
use coterie_engine_sim::load::HttpClient;
use coterie_engine_sim::recording::Recording;
use coterie_engine_sim::{Server, Settings};
use hyper::Method;
use hyper::header::HeaderMap;
use serde_json::{Value, json};

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

pub(crate) fn fixture(name: &str) -> String {
    std::fs::read_to_string(folder("tests/fixtures").join(name)).unwrap()
}

pub(crate) fn recording() -> Recording {
    Recording::load(&folder("recordings/tiny-moe.npz")).unwrap()
}

pub(crate) fn settings() -> Settings {
    Settings {
        model: folder("models/tiny-moe"),
        model_names: vec!["tiny".to_owned()],
        listen: ("127.0.0.1".to_owned(), 0),
        capture: false,
        max_num_seqs: 64,
        max_num_batched_tokens: 64,
        max_model_len: None,
        block_size: 16,
        kv_blocks: 256,
        recording: Some(folder("recordings/tiny-moe.npz")),
        synthetic: None,
        step_law: StepLaw {
            base_ms: 4.0,
            per_expert_ms: 0.08,
            per_request_ms: 0.05,
            time_scale: 0.0,
        },
        prefill_law: PrefillLaw {
            base_ms: 2.0,
            per_token_us: 40.0,
            time_scale: 0.0,
        },
        lease: Duration::from_secs(480),
        pull_timeout: Duration::from_secs(10),
        load_time: Duration::ZERO,
        side_channel: Some((Some("127.0.0.1".to_owned()), 0)),
        reject_on_drain: false,
        shutdown_timeout: None,
    }
}

pub(crate) struct Worker {
    pub(crate) server: Server,
    pub(crate) url: String,
    client: HttpClient,
}

pub(crate) async fn start(settings: Settings) -> Worker {
    start_with(settings, Arc::new(SystemClock::default())).await
}

pub(crate) async fn start_with(settings: Settings, clock: Arc<dyn Clock>) -> Worker {
    let server = Server::start(settings, clock).await.unwrap();
    let url = format!("http://{}", server.address());
    Worker {
        server,
        url,
        client: HttpClient::new(HeaderMap::new()),
    }
}

impl Worker {
    pub(crate) async fn call(&self, method: Method, path: &str, body: &Value) -> (u16, String) {
        let (status, body) = self
            .client
            .exchange(method, &format!("{}{path}", self.url), body.to_string().into_bytes())
            .await
            .unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    pub(crate) async fn try_call(&self, path: &str, body: &Value) -> Result<(u16, String), String> {
        let url = format!("{}{path}", self.url);
        let answer = self
            .client
            .exchange(Method::POST, &url, body.to_string().into_bytes())
            .await;
        answer
            .map(|(status, body)| (status, String::from_utf8_lossy(&body).into_owned()))
            .map_err(|e| e.to_string())
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.call(Method::POST, path, body).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) async fn complete(&self, body: &Value) -> Value {
        self.post("/v1/completions", body).await
    }

    /// A prefill worker's answer.
    pub(crate) async fn prefill(&self, prompt: &Value) -> Value {
        self.complete(&json!({
            "prompt": prompt, "max_tokens": 1, "temperature": 0, "return_token_ids": true,
            "kv_transfer_params": { "do_remote_decode": true, "do_remote_prefill": false },
        }))
        .await
    }

    pub(crate) async fn state(&self) -> Value {
        let (status, text) = self.call(Method::GET, "/sim/v1/state", &Value::Null).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the first state for which `holds` is true.
    pub(crate) async fn state_when(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let seen = async {
            loop {
                let state = self.state().await;
                if holds(&state) {
                    return state;
                }
                tokio::task::yield_now().await;
            }
        };
        let state = tokio::time::timeout(Duration::from_secs(30), seen).await;
        state.unwrap_or_else(|_| panic!("{what}: not within 30 s"))
    }

    pub(crate) async fn health(&self) -> u16 {
        self.call(Method::GET, "/health", &Value::Null).await.0
    }

    pub(crate) async fn fault(&self, rule: Value) {
        self.post("/sim/v1/faults", &rule).await;
    }
}

pub(crate) fn text(answer: &Value) -> &str {
    answer["choices"][0]["text"].as_str().unwrap()
}

pub(crate) fn token_ids(answer: &Value) -> Vec<u32> {
    ids(&answer["choices"][0]["token_ids"])
}

pub(crate) fn ids(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap() as u32)
        .collect()
}

/// Shape and data of a `routed_experts` field.
pub(crate) fn experts(answer: &Value) -> (Vec<usize>, Vec<u8>) {
    use base64::Engine as _;
    let field = answer["choices"][0]["routed_experts"].as_str().unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(field).unwrap();
    let array = coterie_engine_sim::recording::npy::parse(&bytes).unwrap();
    assert_eq!(array.dtype, "|u1");
    (array.shape, array.data.to_vec())
}

/// The JSON payloads of a stream, without `[DONE]`, which must be last.
pub(crate) fn events(stream: &str) -> Vec<Value> {
    let mut lines: Vec<&str> = stream.split("\n\n").filter(|l| !l.is_empty()).collect();
    assert_eq!(lines.pop(), Some("data: [DONE]"));
    lines
        .into_iter()
        .map(|l| serde_json::from_str(l.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

//! Real workers and a real router on loopback, without pacing.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Parser;
use coterie_crds::admin;
use coterie_engine_sim::{
    Server, Settings,
    engine::{PrefillLaw, StepLaw, SystemClock},
    recording::Recording,
};
use coterie_router::{Args, Router};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) const MODEL: &str = "tiny";
pub(crate) const PROMPT: &str = "def fibonacci(n):\n    if n < 2:\n        return n\n    return ";
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn sim_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-sim").join(name)
}

pub(crate) fn recording() -> Recording {
    Recording::load(&sim_folder("recordings/tiny-moe.npz")).unwrap()
}

fn settings(capture: bool) -> Settings {
    Settings {
        model: sim_folder("models/tiny-moe"),
        model_names: vec![MODEL.to_owned()],
        listen: ("127.0.0.1".to_owned(), 0),
        capture,
        max_num_seqs: 64,
        max_num_batched_tokens: 64,
        max_model_len: None,
        block_size: 16,
        kv_blocks: 256,
        recording: None,
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

pub(crate) fn client() -> Client {
    static START: std::sync::Once = std::sync::Once::new();
    START.call_once(|| coterie_service::start("router-tests", &coterie_service::ServiceArgs::default()).unwrap());
    Client::new()
}

/// A worker of the test.
pub(crate) struct Engine {
    server: Option<Server>,
    pub(crate) address: String,
    client: Client,
}

impl Engine {
    pub(crate) async fn start(capture: bool) -> Self {
        Self::start_with(settings(capture)).await
    }

    /// One that answers recorded prompts from the recording.
    pub(crate) async fn recorded(capture: bool) -> Self {
        let mut settings = settings(capture);
        settings.recording = Some(sim_folder("recordings/tiny-moe.npz"));
        Self::start_with(settings).await
    }

    /// One whose decode steps take this long, so that a stream can be met in its middle.
    pub(crate) async fn slow(step_ms: f64) -> Self {
        let mut settings = settings(false);
        settings.step_law = StepLaw {
            base_ms: step_ms,
            per_expert_ms: 0.0,
            per_request_ms: 0.0,
            time_scale: 1.0,
        };
        Self::start_with(settings).await
    }

    async fn start_with(settings: Settings) -> Self {
        let client = client();
        let server = Server::start(settings, Arc::new(SystemClock::default())).await.unwrap();
        Self {
            address: server.address().to_string(),
            server: Some(server),
            client,
        }
    }

    /// Ends it at once: later connections are refused.
    pub(crate) async fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await.unwrap();
        }
    }

    /// Starts it again where it was.
    pub(crate) async fn revive(&mut self, capture: bool) {
        let mut settings = settings(capture);
        settings.listen.1 = self.address.rsplit_once(':').unwrap().1.parse().unwrap();
        self.server = Some(Server::start(settings, Arc::new(SystemClock::default())).await.unwrap());
    }

    pub(crate) async fn fault(&self, rule: Value) {
        let url = format!("http://{}/sim/v1/faults", self.address);
        let answer = self.client.post(url).json(&rule).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }

    pub(crate) async fn state(&self) -> Value {
        let url = format!("http://{}/sim/v1/state", self.address);
        self.client.get(url).send().await.unwrap().json().await.unwrap()
    }

    /// How often a fault was met, over all rules.
    pub(crate) async fn hits(&self) -> u64 {
        let url = format!("http://{}/sim/v1/faults", self.address);
        let rules: Value = self.client.get(url).send().await.unwrap().json().await.unwrap();
        rules
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["hits"].as_u64().unwrap())
            .sum()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        let url = format!("http://{}{path}", self.address);
        self.client.post(url).json(body).send().await.unwrap()
    }
}

/// A router with its workers.
pub(crate) struct Fleet {
    pub(crate) prefill: Vec<Engine>,
    pub(crate) decode: Vec<Engine>,
    pub(crate) router: Front,
}

impl Fleet {
    pub(crate) async fn start(prefill: usize, decode: usize) -> Self {
        Self::with_flags(prefill, decode, &[]).await
    }

    pub(crate) async fn with_flags(prefill: usize, decode: usize, flags: &[&str]) -> Self {
        let mut engines = (Vec::new(), Vec::new());
        for _ in 0..prefill {
            engines.0.push(Engine::start(true).await);
        }
        for _ in 0..decode {
            engines.1.push(Engine::start(false).await);
        }
        Self::of(engines.0, engines.1, flags).await
    }

    /// A fleet of workers with the recording.
    pub(crate) async fn recorded(prefill: usize, decode: usize, flags: &[&str]) -> Self {
        let mut engines = (Vec::new(), Vec::new());
        for _ in 0..prefill {
            engines.0.push(Engine::recorded(true).await);
        }
        for _ in 0..decode {
            engines.1.push(Engine::recorded(false).await);
        }
        Self::of(engines.0, engines.1, flags).await
    }

    pub(crate) async fn of(prefill: Vec<Engine>, decode: Vec<Engine>, flags: &[&str]) -> Self {
        let router = Front::start(&prefill, &decode, flags).await;
        Self {
            prefill,
            decode,
            router,
        }
    }
}

/// A router as its clients see it.
pub(crate) struct Front {
    pub(crate) base: String,
    admin: String,
    metrics: String,
    pub(crate) drain: CancellationToken,
    pub(crate) process: Option<Router>,
    pub(crate) client: Client,
}

impl Front {
    pub(crate) async fn start(prefill: &[Engine], decode: &[Engine], flags: &[&str]) -> Self {
        let client = client();
        let named = |prefix: &str, engines: &[Engine]| {
            let list = engines.iter().enumerate();
            list.map(|(i, e)| format!("{prefix}-{i}={}", e.address))
                .collect::<Vec<_>>()
                .join(",")
        };
        let (prefill, decode) = (named("prefill", prefill), named("decode", decode));
        let mut all = vec![
            "coterie-router",
            "--model",
            MODEL,
            "--seed",
            "7",
            "--scrape-interval",
            "50ms",
        ];
        for flag in ["--listen", "--admin-listen", "--metrics-address"] {
            all.extend([flag, "127.0.0.1:0"]);
        }
        if !prefill.is_empty() {
            all.extend(["--prefill", &prefill]);
        }
        if !decode.is_empty() {
            all.extend(["--decode", &decode]);
        }
        all.extend(flags);
        let drain = CancellationToken::new();
        let process = Router::start(Args::try_parse_from(all).unwrap(), drain.clone())
            .await
            .unwrap();
        Self {
            base: format!("http://{}", process.address()),
            admin: format!("http://{}", process.admin_address()),
            metrics: format!("http://{}", process.metrics_address()),
            drain,
            process: Some(process),
            client,
        }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        let request = self.client.post(format!("{}{path}", self.base)).json(body);
        request.send().await.unwrap()
    }

    /// A completion that must succeed.
    pub(crate) async fn complete(&self, body: &Value) -> Value {
        success(self.post("/v1/completions", body).await).await
    }

    pub(crate) async fn admin(&self, path: &str) -> Response {
        self.client.get(format!("{}{path}", self.admin)).send().await.unwrap()
    }

    pub(crate) async fn admin_as(&self, path: &str, authorization: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.admin));
        request.header("authorization", authorization).send().await.unwrap()
    }

    pub(crate) async fn state(&self) -> admin::State {
        self.admin(admin::STATE_PATH).await.json().await.unwrap()
    }

    pub(crate) async fn fleet(&self) -> admin::Fleet {
        self.admin(admin::FLEET_PATH).await.json().await.unwrap()
    }

    pub(crate) async fn ready(&self) -> u16 {
        let url = format!("{}/readyz", self.metrics);
        self.client.get(url).send().await.unwrap().status().as_u16()
    }

    pub(crate) async fn metrics(&self) -> String {
        let url = format!("{}/metrics", self.metrics);
        self.client.get(url).send().await.unwrap().text().await.unwrap()
    }

    /// The value of one series, such as `requests_total{endpoint="completions",outcome="Ok"}`.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let page = self.metrics().await;
        let name = format!("coterie_router_{series} ");
        let line = page.lines().find_map(|l| l.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("no {series} in\n{page}"))
            .parse()
            .unwrap()
    }

    /// Waits until nothing is in flight any more, and fails if that does not come.
    pub(crate) async fn at_rest(&self) {
        until("every counter at zero", || async {
            let own: u64 = self.fleet().await.workers.iter().map(|w| w.own).sum();
            own == 0 && self.metric("in_flight_requests").await == 0.0
        })
        .await;
    }
}

/// Waits for a condition.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let look = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, look)
        .await
        .unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"));
}

pub(crate) async fn success(answer: Response) -> Value {
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{status}: {text}");
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn body(prompt: &str, max_tokens: u32) -> Value {
    json!({"model": MODEL, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "return_token_ids": true})
}

pub(crate) fn streamed(prompt: &str, max_tokens: u32) -> Value {
    let mut body = body(prompt, max_tokens);
    body["stream"] = json!(true);
    body
}

pub(crate) fn token_ids(answer: &Value) -> Value {
    answer["choices"][0]["token_ids"].clone()
}

/// The JSON payloads of a stream.
pub(crate) fn events(stream: &str) -> Vec<Value> {
    stream
        .split("\n\n")
        .filter_map(|e| e.strip_prefix("data: "))
        .filter(|e| *e != "[DONE]")
        .map(|e| serde_json::from_str(e).unwrap())
        .collect()
}

/// What an answer or event says, without what differs between any two requests.
pub(crate) fn content(mut answer: Value) -> Value {
    for field in ["id", "created", "system_fingerprint"] {
        if let Some(object) = answer.as_object_mut() {
            object.remove(field);
        }
    }
    // Prefill workers capture, decode workers do not: null and absent say the same.
    if let Some(choices) = answer["choices"].as_array_mut() {
        for choice in choices {
            if let Some(choice) = choice.as_object_mut() {
                choice.remove("routed_experts");
            }
        }
    }
    answer
}

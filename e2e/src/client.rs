//! An OpenAI client, and traffic in the background.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::{sync::Mutex, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{prompts::RecordedPrompt, spec::MODEL};

/// Failures whose text is kept.
const KEPT_FAILURES: usize = 5;

/// A client of one endpoint: a router, or an engine.
#[derive(Clone, Debug)]
pub struct OpenAi {
    base: String,
    http: reqwest::Client,
}

impl OpenAi {
    /// A client of `host:port`. Connections are not kept, so that each request meets the Service afresh.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(address: &str) -> Result<Self> {
        let http = reqwest::Client::builder()
            .pool_max_idle_per_host(0)
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(60))
            .build()?;
        Ok(Self {
            base: format!("http://{address}"),
            http,
        })
    }

    /// Posts a body; the answer's JSON.
    ///
    /// # Errors
    /// When the answer is not 200 with JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let response = self.http.post(format!("{}{path}", self.base)).json(body).send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status.is_success(), "{status}: {text}");
        serde_json::from_str(&text).with_context(|| format!("not JSON: {text}"))
    }

    /// Gets a path; the answer's text.
    ///
    /// # Errors
    /// When the answer is not 200.
    pub async fn get(&self, path: &str) -> Result<String> {
        Ok(self
            .http
            .get(format!("{}{path}", self.base))
            .send()
            .await?
            .error_for_status()?
            .text()
            .await?)
    }

    /// A completion's text.
    ///
    /// # Errors
    /// When there is none.
    pub async fn complete(&self, body: &Value) -> Result<String> {
        let answer = self.post("/v1/completions", body).await?;
        let text = answer["choices"][0]["text"].as_str();
        Ok(text.with_context(|| format!("no text in {answer}"))?.to_owned())
    }

    /// A streamed completion's text, put together.
    ///
    /// # Errors
    /// When the stream ends without `[DONE]` or carries an error.
    pub async fn stream(&self, path: &str, body: &Value) -> Result<String> {
        let mut body = body.clone();
        body["stream"] = true.into();
        let response = self
            .http
            .post(format!("{}{path}", self.base))
            .json(&body)
            .send()
            .await?;
        let status = response.status();
        let events = response.text().await?;
        ensure!(status.is_success(), "{status}: {events}");
        let mut text = String::new();
        for data in events.lines().filter_map(|line| line.strip_prefix("data: ")) {
            if data == "[DONE]" {
                return Ok(text);
            }
            let event: Value = serde_json::from_str(data).with_context(|| format!("not JSON: {data}"))?;
            ensure!(event.get("error").is_none(), "error event: {event}");
            let choice = &event["choices"][0];
            text.push_str(
                choice["text"]
                    .as_str()
                    .or(choice["delta"]["content"].as_str())
                    .unwrap_or_default(),
            );
        }
        bail!("the stream ended without [DONE]: {events}")
    }
}

/// A completion request.
pub fn completion(prompt: &str, tokens: u32) -> Value {
    json!({"model": MODEL, "prompt": prompt, "max_tokens": tokens, "temperature": 0})
}

/// What became of background traffic.
#[derive(Debug, Default)]
pub struct Tally {
    /// Requests answered.
    pub answered: u64,
    /// Requests failed.
    pub failed: u64,
    /// The first failures.
    pub failures: Vec<String>,
}

/// Traffic in the background: so many requests at a time, each followed by the next.
#[derive(Debug)]
pub struct Traffic {
    stop: CancellationToken,
    answered: Arc<AtomicU64>,
    failures: Arc<Mutex<Vec<String>>>,
    failed: Arc<AtomicU64>,
    tasks: JoinSet<()>,
}

impl Traffic {
    /// Starts streaming requests for the prompts, round and round, `concurrency` at a time.
    pub fn start(client: &OpenAi, prompts: Vec<RecordedPrompt>, concurrency: usize, tokens: u32) -> Self {
        let mut traffic = Self {
            stop: CancellationToken::new(),
            answered: Arc::default(),
            failures: Arc::default(),
            failed: Arc::default(),
            tasks: JoinSet::new(),
        };
        let (prompts, next) = (Arc::new(prompts), Arc::new(AtomicUsize::new(0)));
        for _ in 0..concurrency {
            let (client, prompts, next) = (client.clone(), prompts.clone(), next.clone());
            let (stop, answered) = (traffic.stop.clone(), traffic.answered.clone());
            let (failed, failures) = (traffic.failed.clone(), traffic.failures.clone());
            traffic.tasks.spawn(async move {
                while !stop.is_cancelled() {
                    let prompt = &prompts[next.fetch_add(1, Ordering::Relaxed) % prompts.len()];
                    match client
                        .stream("/v1/completions", &completion(&prompt.text, tokens))
                        .await
                    {
                        Ok(_) => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            let mut failures = failures.lock().await;
                            if failures.len() < KEPT_FAILURES {
                                failures.push(format!("{error:#}"));
                            }
                        }
                    }
                }
            });
        }
        traffic
    }

    /// Requests answered so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Stops; waits for the requests under way.
    pub async fn stop(mut self) -> Tally {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        Tally {
            answered: self.answered(),
            failed: self.failed.load(Ordering::Relaxed),
            failures: std::mem::take(&mut *self.failures.lock().await),
        }
    }
}

impl Tally {
    /// Fails when any request failed, or none was answered.
    ///
    /// # Errors
    /// With the first failures.
    pub fn expect_all_answered(&self) -> Result<()> {
        ensure!(self.answered > 0, "no request was answered");
        ensure!(
            self.failed == 0,
            "{} of {} requests failed: {:#?}",
            self.failed,
            self.failed + self.answered,
            self.failures
        );
        Ok(())
    }
}

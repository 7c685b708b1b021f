//! Generating and replaying prompts on engines that return routed experts.
//!
//! A *replay* prefills prompt and generated tokens once more, so that one answer shows the experts of both.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use coterie_locality::{Fingerprint, Sample};
use futures::{StreamExt, stream};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{
    answer::{Answer, AnswerError},
    prompts::{Api, Prompt},
};
use crate::{error::Error, progress::Progress};

/// Requests in flight on each engine: calibration shares the engines with live traffic.
const CONCURRENCY_PER_ENGINE: usize = 8;
/// Tries of one request, on one engine after the other.
const ATTEMPTS: usize = 4;
/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Wait before a further try, times the tries made.
const BACK_OFF: Duration = Duration::from_millis(250);
/// Largest answer: 32 Ki tokens of 64 layers and 8 experts in base64, with room.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Engines that return routed experts.
#[derive(Clone, Debug)]
pub struct Probe {
    engines: Arc<Vec<SocketAddr>>,
    next: Arc<AtomicUsize>,
    client: reqwest::Client,
}

/// Why one prompt gave no sample.
#[derive(Debug, thiserror::Error)]
enum PromptError {
    #[error("{0}")]
    Answer(#[from] AnswerError),
    #[error("the engine refused the prompt with {0}: {1}")]
    Refused(StatusCode, String),
    #[error("no engine answered: {0}")]
    Unreachable(String),
}

impl Probe {
    /// Resolves `host:port` names to every address behind them.
    ///
    /// # Errors
    /// When no name resolves.
    pub async fn resolve(names: &[String]) -> Result<Self, Error> {
        let mut engines = Vec::new();
        for name in names {
            match tokio::net::lookup_host(name).await {
                Ok(addresses) => engines.extend(addresses),
                Err(error) => tracing::warn!(name, %error, "probe name does not resolve"),
            }
        }
        engines.sort_unstable();
        engines.dedup();
        if engines.is_empty() {
            let message = format!("no engine behind {}: is the prefill pool ready?", names.join(", "));
            return Err(Error::infrastructure("NoProbe", message));
        }
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .timeout(ANSWER_TIMEOUT)
            .build()
            .map_err(|error| Error::infrastructure("NoClient", error.to_string()))?;
        Ok(Self {
            engines: Arc::new(engines),
            next: Arc::default(),
            client,
        })
    }

    /// A sample of each prompt, in the order of the prompts. Prompts that engines refuse are passed over.
    ///
    /// # Errors
    /// When engines return no experts (the first answer tells), or none can be reached.
    pub async fn collect(&self, fingerprint: &Fingerprint, prompts: &[Prompt]) -> Result<Vec<Sample>, Error> {
        let progress = Progress::new("prompts", prompts.len() as u64);
        let mut samples = Vec::with_capacity(prompts.len());
        let mut refused: Option<PromptError> = None;
        let mut answers = stream::iter(prompts)
            .map(|prompt| self.sample(fingerprint, prompt))
            .buffered(CONCURRENCY_PER_ENGINE * self.engines.len());
        while let Some(sample) = answers.next().await {
            progress.tick();
            match sample {
                Ok(sample) => samples.push(sample),
                Err(PromptError::Unreachable(why)) => {
                    return Err(Error::infrastructure(
                        "EnginesUnreachable",
                        format!("no engine answered: {why}"),
                    ));
                }
                // One engine without capture means all have none: do not burn through the other prompts.
                Err(PromptError::Answer(why @ (AnswerError::NoExperts | AnswerError::Experts(_)))) => {
                    return Err(Error::input("NoExperts", why.to_string()));
                }
                Err(other) => {
                    tracing::warn!(why = %other, "prompt passed over");
                    refused = Some(other);
                }
            }
        }
        match (samples.is_empty(), refused) {
            (true, Some(why)) => Err(Error::input(
                "PromptsRefused",
                format!("every prompt failed; the last: {why}"),
            )),
            _ => Ok(samples),
        }
    }

    async fn sample(&self, fingerprint: &Fingerprint, prompt: &Prompt) -> Result<Sample, PromptError> {
        let generated = self
            .post(prompt.api.path(), &Value::Object(prompt.body.clone()))
            .await?;
        let answer = Answer::parse(&generated)?;
        let (prompt_ids, generated_ids) = answer.tokens()?;
        let (prompt_tokens, generated_tokens) = (prompt_ids.len(), generated_ids.len());
        let replayed: Vec<u32> = prompt_ids.iter().chain(generated_ids).copied().collect();
        let body = json!({
            "model": fingerprint.model, "prompt": replayed, "max_tokens": 1, "temperature": 0, "return_token_ids": true,
        });
        let replay = Answer::parse(&self.post(Api::Completions.path(), &body).await?)?;
        let ranges = [0..prompt_tokens, prompt_tokens..prompt_tokens + generated_tokens];
        let [prefill, decode] = replay.counts(&fingerprint.geometry, ranges)?;
        Ok(Sample {
            prefill_counts: Some(prefill),
            decode_counts: Some(decode),
            prompt_tokens: prompt_tokens as u64,
            generated_tokens: generated_tokens as u64,
            time_unix_ms: unix_ms(),
            ngrams: prompt.ngrams(),
            ..Sample::new(fingerprint.clone())
        })
    }

    /// Posts a body to one engine after the other until one answers.
    async fn post(&self, path: &str, body: &Value) -> Result<Vec<u8>, PromptError> {
        let mut last = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(BACK_OFF * attempt as u32).await;
            }
            let engine = self.engines[self.next.fetch_add(1, Ordering::Relaxed) % self.engines.len()];
            match self.try_post(engine, path, body).await {
                Ok(answer) => return Ok(answer),
                Err(PromptError::Unreachable(why)) => last = format!("{engine}: {why}"),
                Err(refused) => return Err(refused),
            }
        }
        Err(PromptError::Unreachable(last))
    }

    async fn try_post(&self, engine: SocketAddr, path: &str, body: &Value) -> Result<Vec<u8>, PromptError> {
        let unreachable = |error: reqwest::Error| PromptError::Unreachable(error.to_string());
        let url = format!("http://{engine}{path}");
        let mut response = self.client.post(url).json(body).send().await.map_err(unreachable)?;
        let status = response.status();
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if answer.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(AnswerError::Malformed("longer than 64 MiB".to_owned()).into());
            }
            answer.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return Ok(answer);
        }
        let text: String = String::from_utf8_lossy(&answer).chars().take(200).collect();
        // An overloaded or restarting engine may do better; a refused prompt stays refused.
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            Err(PromptError::Unreachable(format!("{status}: {text}")))
        } else {
            Err(PromptError::Refused(status, text))
        }
    }
}

fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

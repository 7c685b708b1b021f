//! Sending load: warm-up, reset of the workers, measured part, their figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::{LoadArgs, PromptForm};
use super::client::HttpClient;
use super::measure::{Expected, Outcome, measure};
use super::plan::{Planned, Planner};
use super::prompts::Source;
use super::report::{Report, WorkerReport, summarise};

const PROGRESS: Duration = Duration::from_secs(5);

struct Sender {
    client: HttpClient,
    source: Source,
    url: String,
    model: String,
    max_tokens: usize,
    stream: bool,
    verify: bool,
    ids: bool,
    timeout: Duration,
    answered: AtomicUsize,
}

/// When the sending of a phase ends.
#[derive(Clone, Copy)]
struct Extent {
    requests: usize,
    duration: Duration,
}

/// Sends load as the arguments say and returns the result.
pub async fn run(args: &LoadArgs) -> Result<Report> {
    let rate = args.rate.unwrap_or(1.0);
    ensure!(rate > 0.0 && rate.is_finite(), "--rate must be above 0, got {rate}");
    let concurrency = args.concurrency;
    ensure!(concurrency != Some(0), "--concurrency must be at least 1");
    ensure!(args.max_tokens > 0, "--max-tokens must be at least 1");
    let client = HttpClient::new(headers(&args.headers)?);
    let source = Source::load(&args.source)?;
    let mut planner = Planner::new(source.mix.clone(), args.seed, rate);
    let sender = Arc::new(Sender {
        client: client.clone(),
        source,
        url: format!("{}/v1/completions", args.target.trim_end_matches('/')),
        model: args.model.clone(),
        max_tokens: args.max_tokens,
        stream: args.stream,
        verify: args.verify,
        ids: args.source.prompt_form == PromptForm::Ids,
        timeout: Duration::try_from_secs_f64(args.timeout_seconds).context("--timeout-seconds")?,
        answered: AtomicUsize::new(0),
    });

    let mut phase = Phase {
        sender: Arc::clone(&sender),
        planner: &mut planner,
        concurrency,
    };
    let warmup = if args.warmup_requests > 0 {
        tracing::info!(requests = args.warmup_requests, "warm-up");
        phase
            .send(Extent {
                requests: args.warmup_requests,
                duration: Duration::MAX,
            })
            .await?
            .outcomes
    } else {
        Vec::new()
    };
    for worker in &args.workers {
        reset(&client, worker).await?;
    }
    let extent = Extent {
        requests: args.requests.unwrap_or(usize::MAX),
        duration: args.duration.unwrap_or(Duration::MAX),
    };
    let measured = phase.send(extent).await?;
    let mut report = summarise(measured.outcomes, measured.elapsed);
    report.warmup_failed = warmup.iter().filter(|o| matches!(o, Outcome::Failed { .. })).count();
    report.start_lag_ms_max = measured.lag.as_secs_f64() * 1000.0;
    for request in measured.requests {
        *report
            .domains
            .entry(sender.source.recording.domain(request).to_owned())
            .or_default() += 1;
    }
    for worker in &args.workers {
        report.workers.push(state(&client, worker).await);
    }
    Ok(report)
}

struct Phase<'p> {
    sender: Arc<Sender>,
    planner: &'p mut Planner,
    concurrency: Option<usize>,
}

struct Sent {
    outcomes: Vec<Outcome>,
    requests: Vec<usize>,
    elapsed: Duration,
    lag: Duration,
}

impl Phase<'_> {
    async fn send(&mut self, extent: Extent) -> Result<Sent> {
        let start = Instant::now();
        let mut progress = tokio::time::interval_at(start + PROGRESS, PROGRESS);
        let mut due = start;
        let mut running: JoinSet<Outcome> = JoinSet::new();
        let mut sent = Sent {
            outcomes: Vec::new(),
            requests: Vec::new(),
            elapsed: Duration::ZERO,
            lag: Duration::ZERO,
        };
        let mut next = Some(self.planner.next_request());
        loop {
            if sent.requests.len() >= extent.requests || start.elapsed() >= extent.duration {
                next = None;
            }
            if next.is_none() && running.is_empty() {
                break;
            }
            let room = self.concurrency.is_none_or(|most| running.len() < most);
            let at = match (self.concurrency, next) {
                (None, Some(planned)) => due + Duration::from_secs_f64(planned.gap.min(3600.0)),
                _ => due,
            };
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(at), if next.is_some() && room => {
                    if let Some(planned) = next.replace(self.planner.next_request()) {
                        if self.concurrency.is_none() {
                            due = at;
                            sent.lag = sent.lag.max(at.elapsed());
                        }
                        sent.requests.push(planned.request);
                        let sender = Arc::clone(&self.sender);
                        running.spawn(async move { sender.one(planned).await });
                    }
                }
                Some(outcome) = running.join_next() => {
                    sent.outcomes.push(outcome.context("a request's task died")?);
                }
                _ = progress.tick() => {
                    let answered = self.sender.answered.load(Ordering::Relaxed);
                    tracing::info!(sent = sent.requests.len(), running = running.len(), answered, "sending");
                }
            }
        }
        sent.elapsed = start.elapsed();
        Ok(sent)
    }
}

impl Sender {
    async fn one(&self, planned: Planned) -> Outcome {
        let mut body = json!({
            "model": self.model,
            "prompt": self.source.prompt(planned.request),
            "max_tokens": self.max_tokens,
            "temperature": 0.8,
            "seed": planned.seed,
        });
        if self.stream {
            body["stream"] = true.into();
            body["stream_options"] = json!({ "include_usage": true });
        }
        if self.ids && self.verify {
            body["return_token_ids"] = true.into();
        }
        let expected = self.verify.then(|| {
            let generated = self.source.recording.generated(planned.request);
            let tokens = self.max_tokens.min(generated.len());
            Expected {
                ids: generated[..tokens].to_vec(),
                text: self.source.text(planned.request, tokens),
            }
        });
        let body = body.to_string().into_bytes();
        let outcome = measure(&self.client, &self.url, body, self.stream, expected, self.timeout).await;
        self.answered.fetch_add(1, Ordering::Relaxed);
        outcome
    }
}

fn headers(given: &[String]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for header in given {
        let (name, value) = header
            .split_once(':')
            .with_context(|| format!("--header {header:?}: write name:value"))?;
        let name = HeaderName::try_from(name.trim()).with_context(|| format!("--header {header:?}"))?;
        headers.append(
            name,
            HeaderValue::try_from(value.trim()).with_context(|| format!("--header {header:?}"))?,
        );
    }
    Ok(headers)
}

async fn reset(client: &HttpClient, worker: &str) -> Result<()> {
    let url = format!("{}/sim/v1/reset", worker.trim_end_matches('/'));
    let (status, _) = client
        .exchange(Method::POST, &url, Vec::new())
        .await
        .with_context(|| format!("POST {url}"))?;
    ensure!(
        status < 300,
        "POST {url} answered {status}: is --workers a list of engine-sim workers?"
    );
    Ok(())
}

async fn state(client: &HttpClient, worker: &str) -> WorkerReport {
    let url = format!("{}/sim/v1/state", worker.trim_end_matches('/'));
    let answer = client.exchange(Method::GET, &url, Vec::new()).await;
    let parsed = match answer {
        Ok((200, body)) => serde_json::from_slice(&body).map_err(|e| e.to_string()),
        Ok((status, _)) => Err(format!("GET {url} answered {status}")),
        Err(error) => Err(error.to_string()),
    };
    let worker = worker.to_owned();
    match parsed {
        Ok(state) => WorkerReport {
            worker,
            state: Some(state),
            error: None,
        },
        Err(error) => WorkerReport {
            worker,
            state: None,
            error: Some(error),
        },
    }
}

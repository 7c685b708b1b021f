//! Whole workers behind HTTP, in real time.

use std::time::Duration;

use coterie_engine_sim::fleet::outcome::Percentiles;
use coterie_engine_sim::load::HttpClient;
use coterie_locality::policy::RoundRobin;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::header::HeaderMap;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::super::common::{recording, settings, start};
use super::{NO_PREFILL, simulated, step_law, tpot_ms};

const WORKERS: u32 = 2;

/// Sends one streaming request and returns when its tokens came, without the prefill's.
async fn stream(url: String, body: Vec<u8>, begun: Instant, at: Duration) -> Vec<Duration> {
    sleep_until(begun + at).await;
    let client = HttpClient::new(HeaderMap::new());
    let mut response = client.send(Method::POST, &url, body).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut times = Vec::new();
    while let Some(frame) = response.body_mut().frame().await {
        let frame = frame.unwrap();
        let text = String::from_utf8_lossy(frame.data_ref().unwrap()).into_owned();
        let now = begun.elapsed();
        times.extend(text.matches("data: {").map(|_| now));
    }
    times.remove(0);
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in real time, 20 s, and wants a quiet machine"]
async fn two_workers_in_real_time_agree_within_bounds() {
    let simulated = simulated(WORKERS as usize, 64, 16.0, 20.0, Box::new(RoundRobin::default()));
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let mut settings = settings();
        settings.kv_blocks = 1 << 13;
        settings.max_num_batched_tokens = 1 << 14;
        (settings.step_law, settings.prefill_law) = (step_law(), NO_PREFILL);
        workers.push(start(settings).await);
    }
    let recording = recording();
    let begun = Instant::now() + Duration::from_millis(200);
    let journeys = &simulated.outcome.journeys;
    let tasks: Vec<_> = journeys
        .iter()
        .map(|journey| {
            let arrival = journey.arrival;
            let body = json!({
                "prompt": recording.prompt(arrival.request), "stream": true, "temperature": 0, "ignore_eos": true,
                "max_tokens": arrival.output_tokens + 1,
            });
            let url = format!("{}/v1/completions", workers[journey.worker.unwrap() as usize].url);
            let at = Duration::from_secs_f64(arrival.time_s);
            tokio::spawn(stream(url, body.to_string().into_bytes(), begun, at))
        })
        .collect();
    let (mut tpot, mut apart, mut late) = (Vec::new(), Vec::new(), Vec::new());
    for (task, journey) in tasks.into_iter().zip(journeys) {
        let times = task.await.unwrap();
        assert_eq!(times.len(), journey.tokens as usize);
        if let (Some(ours), Some(theirs)) = (tpot_ms(&times), journey.tpot_s()) {
            tpot.push(ours);
            apart.push((ours / (theirs * 1e3) - 1.0).abs());
        }
        let ended = times.last().unwrap().as_nanos() as f64;
        late.push((ended - journey.ended as f64) / 1e6);
    }
    let (mut steps, mut batch, mut overrun) = (0.0, 0.0, 0.0);
    for worker in &workers {
        let sim = worker.server.engine().snapshot().await.unwrap().sim;
        steps += sim.steps as f64;
        batch += sim.batch_sum as f64;
        overrun += sim.overrun_steps as f64;
    }
    let (real, expected) = (Percentiles::of(tpot), simulated.tpot_ms());
    let (mean, p50) = (real.mean / expected.mean - 1.0, real.p50 / expected.p50 - 1.0);
    let batch = batch / steps / simulated.mean_batch() - 1.0;
    let (apart, late) = (Percentiles::of(apart), Percentiles::of(late));
    let report = format!(
        "{} requests, {steps} steps, {:.1} % overrun. TPOT mean {:.2} ms ({:+.2} %), p50 {:.2} ms ({:+.2} %), batch {:+.2} %; \
         single requests' TPOT apart by {:.2} % on average, 99 % within {:.2} %; last tokens {:.1} ms late on average",
        real.count,
        overrun / steps * 100.0,
        real.mean,
        mean * 100.0,
        real.p50,
        p50 * 100.0,
        batch * 100.0,
        apart.mean * 100.0,
        apart.p99 * 100.0,
        late.mean,
    );
    eprintln!("{report}");
    assert!(overrun < steps * 0.01, "the machine is too busy to tell: {report}");
    assert!(mean.abs() < 0.05 && p50.abs() < 0.05 && batch.abs() < 0.05, "{report}");
}

//! Faults on demand, waiting for blocks, clients that go away, and the end of a worker.

use std::time::Duration;

use super::common::{recording, settings, start, text};
use base64::Engine as _;
use coterie_engine_sim::load::HttpClient;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::header::HeaderMap;
use serde_json::{Value, json};

fn ask() -> Value {
    json!({ "prompt": recording().prompt(0), "max_tokens": 6 })
}

#[tokio::test]
async fn status_faults_hit_their_path_as_often_as_asked() {
    let worker = start(settings()).await;
    worker
        .fault(json!({ "kind": "status", "value": 503, "path": "/v1/completions", "count": 1 }))
        .await;
    assert_eq!(worker.health().await, 200);
    let (status, text) = worker.call(Method::POST, "/v1/completions", &ask()).await;
    assert!(status == 503 && text.contains("fault injected"), "{status} {text}");
    worker.complete(&ask()).await;
    let (_, rules) = worker.call(Method::GET, "/sim/v1/faults", &Value::Null).await;
    let rules: Value = serde_json::from_str(&rules).unwrap();
    assert_eq!((&rules[0]["kind"], &rules[0]["hits"]), (&"status".into(), &1.into()));
    let (status, text) = worker
        .call(Method::POST, "/sim/v1/faults", &json!({ "kind": "explode" }))
        .await;
    assert!(status == 400 && text.contains("delay_ms"), "{text}");
}

#[tokio::test]
async fn delay_and_hang_hold_an_answer_back() {
    let worker = start(settings()).await;
    worker.fault(json!({ "kind": "delay_ms", "value": 30 })).await;
    let start = std::time::Instant::now();
    worker.complete(&ask()).await;
    assert!(start.elapsed() >= Duration::from_millis(30));
    worker.fault(json!({ "kind": "hang", "count": 1 })).await;
    let body = ask();
    let hung = tokio::time::timeout(Duration::from_millis(200), worker.try_call("/v1/completions", &body)).await;
    assert!(hung.is_err(), "the request was answered");
    assert_eq!(worker.call(Method::DELETE, "/sim/v1/faults", &Value::Null).await.0, 204);
    worker.complete(&ask()).await;
}

#[tokio::test]
async fn cut_streams_break_after_the_tokens_asked_for() {
    let worker = start(settings()).await;
    worker.fault(json!({ "kind": "cut_stream", "after_tokens": 2 })).await;
    let mut body = ask();
    assert!(
        worker.try_call("/v1/completions", &body).await.is_err(),
        "a whole answer is cut, too"
    );
    body["stream"] = true.into();
    let client = HttpClient::new(HeaderMap::new());
    let url = format!("{}/v1/completions", worker.url);
    let mut stream = client
        .send(Method::POST, &url, body.to_string().into_bytes())
        .await
        .unwrap()
        .into_body();
    let mut got = String::new();
    let broke = loop {
        match stream.frame().await {
            Some(Ok(frame)) => got.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap()),
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    assert!(broke);
    assert!(got.matches("data: ").count() == 2 && !got.contains("[DONE]"), "{got}");
}

#[tokio::test]
async fn experts_can_be_missing_or_broken() {
    let mut settings = settings();
    settings.capture = true;
    let worker = start(settings).await;
    worker.fault(json!({ "kind": "no_experts", "count": 1 })).await;
    for kind in ["truncated", "not_base64", "wrong_shape", "wrong_expert"] {
        worker
            .fault(json!({ "kind": "malformed_experts", "value": kind, "count": 1 }))
            .await;
    }
    let field = |answer: &Value| answer["choices"][0]["routed_experts"].clone();
    assert_eq!(field(&worker.complete(&ask()).await), Value::Null);
    let decode = |value: Value| base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap());
    let parse = |bytes: &[u8]| coterie_engine_sim::recording::npy::parse(bytes).map(|a| (a.shape.clone(), a.data[0]));
    assert!(parse(&decode(field(&worker.complete(&ask()).await)).unwrap()).is_err());
    assert!(decode(field(&worker.complete(&ask()).await)).is_err());
    assert_eq!(
        parse(&decode(field(&worker.complete(&ask()).await)).unwrap())
            .unwrap()
            .0[1],
        7
    );
    assert_eq!(
        parse(&decode(field(&worker.complete(&ask()).await)).unwrap())
            .unwrap()
            .1,
        255
    );
    assert_eq!(
        parse(&decode(field(&worker.complete(&ask()).await)).unwrap())
            .unwrap()
            .0[1],
        6
    );
}

#[tokio::test]
async fn refused_health_and_drain_answer_503() {
    let worker = start(settings()).await;
    worker.fault(json!({ "kind": "refuse_health" })).await;
    assert_eq!(worker.health().await, 503);
    worker.complete(&ask()).await;
}

#[tokio::test]
async fn requests_wait_for_blocks_and_leave_when_their_client_does() {
    let mut settings = settings();
    settings.kv_blocks = 4;
    let prefill = start(settings).await;
    let prompt: Vec<u32> = (100..150).collect();
    let hand_off = prefill.prefill(&json!(prompt)).await["kv_transfer_params"].clone();
    // All blocks are pinned now, so this one waits.
    let body = json!({ "prompt": prompt, "max_tokens": 2 });
    let client = HttpClient::new(HeaderMap::new());
    let url = format!("{}/v1/completions", prefill.url);
    let waiting = {
        let (client, url, body) = (client.clone(), url.clone(), body.to_string().into_bytes());
        tokio::spawn(async move { client.exchange(Method::POST, &url, body).await })
    };
    prefill.state_when("it waits", |s| s["active"]["waiting"] == 1).await;
    let impatient =
        tokio::spawn(async move { client.exchange(Method::POST, &url, body.to_string().into_bytes()).await });
    prefill.state_when("two wait", |s| s["active"]["waiting"] == 2).await;
    impatient.abort();
    prefill
        .state_when("one gave up", |s| s["requests"]["aborted"] == 1)
        .await;
    let decode = start(super::common::settings()).await;
    decode
        .complete(&json!({ "prompt": prompt, "max_tokens": 2, "kv_transfer_params": hand_off }))
        .await;
    assert_eq!(waiting.await.unwrap().unwrap().0, 200);
}

#[tokio::test]
async fn a_drained_worker_finishes_its_stream_and_stops() {
    let mut settings = settings();
    settings.step_law.time_scale = 1.0;
    let worker = start(settings).await;
    let url = format!("{}/v1/completions", worker.url);
    let mut body = json!({ "prompt": recording().prompt(0), "max_tokens": 20, "stream": true });
    let client = HttpClient::new(HeaderMap::new());
    let stream = client
        .send(Method::POST, &url, body.to_string().into_bytes())
        .await
        .unwrap();
    let health = format!("{}/health", worker.url);
    let server = worker.server;
    let drained = tokio::spawn(server.drain());
    // Still lenient: it serves while it drains, but says that it leaves.
    while client.exchange(Method::GET, &health, Vec::new()).await.unwrap().0 != 503 {
        tokio::task::yield_now().await;
    }
    body["stream"] = false.into();
    let (status, late) = client
        .exchange(Method::POST, &url, body.to_string().into_bytes())
        .await
        .unwrap();
    assert_eq!(status, 200);
    assert!(!text(&serde_json::from_slice(&late).unwrap()).is_empty());
    let whole = stream.into_body().collect().await.unwrap().to_bytes();
    assert!(whole.ends_with(b"data: [DONE]\n\n"));
    drained.await.unwrap().unwrap();
    assert!(client.exchange(Method::GET, &health, Vec::new()).await.is_err());
}

#[tokio::test]
async fn a_worker_that_rejects_on_drain_says_so() {
    let mut settings = settings();
    settings.reject_on_drain = true;
    settings.step_law.time_scale = 1.0;
    let worker = start(settings).await;
    let url = format!("{}/v1/completions", worker.url);
    let client = HttpClient::new(HeaderMap::new());
    let body = json!({ "prompt": recording().prompt(0), "max_tokens": 20, "stream": true });
    let stream = client
        .send(Method::POST, &url, body.to_string().into_bytes())
        .await
        .unwrap();
    let health = format!("{}/health", worker.url);
    let drained = tokio::spawn(worker.server.drain());
    while client.exchange(Method::GET, &health, Vec::new()).await.unwrap().0 != 503 {
        tokio::task::yield_now().await;
    }
    let (status, text) = client
        .exchange(Method::POST, &url, body.to_string().into_bytes())
        .await
        .unwrap();
    assert_eq!(status, 503, "{}", String::from_utf8_lossy(&text));
    assert!(
        stream
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .ends_with(b"data: [DONE]\n\n")
    );
    drained.await.unwrap().unwrap();
}

//! Workers that fail, before the first byte and after.

use serde_json::{Value, json};

use super::common::{Engine, Fleet, PROMPT, body, events, streamed, success, token_ids, until};

async fn right(prompt: &str, tokens: u32) -> Value {
    let alone = Engine::start(false).await;
    token_ids(&success(alone.post("/v1/completions", &body(prompt, tokens)).await).await)
}

/// Tokens of a stream.
fn streamed_ids(stream: &str) -> Value {
    let mut ids = Vec::new();
    for event in events(stream) {
        ids.extend(event["choices"][0]["token_ids"].as_array().cloned().unwrap_or_default());
    }
    Value::Array(ids)
}

fn ids(text: &str, stream: bool) -> Value {
    if stream {
        streamed_ids(text)
    } else {
        token_ids(&serde_json::from_str(text).unwrap())
    }
}

#[tokio::test]
async fn a_decode_worker_that_is_gone_costs_no_second_prefill() {
    let expected = right(PROMPT, 16).await;
    let mut fleet = Fleet::with_flags(1, 2, &["--policy", "RoundRobin"]).await;
    fleet.decode[0].kill().await;
    for n in 1..=4 {
        let answer = fleet.router.complete(&body(PROMPT, 16)).await;
        assert_eq!(token_ids(&answer), expected);
        let state = fleet.prefill[0].state().await;
        assert_eq!(
            state["requests"]["finished"], n,
            "the hand-off that nobody saw is used again"
        );
    }
    assert!(
        fleet
            .router
            .metric(r#"retries_total{leg="decode",reason="Connect"}"#)
            .await
            >= 1.0
    );
    assert_eq!(fleet.router.metric(r#"handoffs_total{result="abandoned"}"#).await, 0.0);
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_refusing_decode_worker_costs_a_fresh_prefill_and_the_text_is_right() {
    let expected = right(PROMPT, 16).await;
    for fault in [
        json!({"kind": "status", "value": 500, "path": "/v1/"}),
        json!({"kind": "status", "value": 503, "path": "/v1/"}),
        json!({"kind": "status", "value": 429, "path": "/v1/"}),
        json!({"kind": "reject_kv"}),
    ] {
        let fleet = Fleet::with_flags(1, 2, &["--policy", "RoundRobin"]).await;
        fleet.decode[0].fault(fault.clone()).await;
        for stream in [false, true] {
            for _ in 0..2 {
                let body = if stream { streamed(PROMPT, 16) } else { body(PROMPT, 16) };
                let answer = fleet.router.post("/v1/completions", &body).await;
                assert_eq!(answer.status(), 200, "{fault}");
                assert_eq!(ids(&answer.text().await.unwrap(), stream), expected, "{fault}");
            }
        }
        let prefills = fleet.prefill[0].state().await["requests"]["finished"].as_u64().unwrap();
        assert_eq!(
            prefills,
            4 + fleet.decode[0].hits().await,
            "{fault}: one prefill for each try"
        );
        fleet.router.at_rest().await;
    }
}

#[tokio::test]
async fn a_silent_decode_worker_is_left_for_another() {
    let expected = right(PROMPT, 8).await;
    let flags = [
        "--policy",
        "RoundRobin",
        "--first-byte-timeout",
        "200ms",
        "--answer-timeout",
        "200ms",
    ];
    let fleet = Fleet::with_flags(1, 2, &flags).await;
    fleet.decode[0].fault(json!({"kind": "hang", "path": "/v1/"})).await;
    for stream in [false, true] {
        for _ in 0..2 {
            let body = if stream { streamed(PROMPT, 8) } else { body(PROMPT, 8) };
            let answer = fleet.router.post("/v1/completions", &body).await;
            assert_eq!(answer.status(), 200);
            assert_eq!(ids(&answer.text().await.unwrap(), stream), expected);
        }
    }
    let hits = fleet.decode[0].hits().await;
    assert!(hits >= 2, "{hits}");
    let timeouts = r#"retries_total{leg="decode",reason="Timeout"}"#;
    assert_eq!(fleet.router.metric(timeouts).await, hits as f64);
    fleet.decode[1].fault(json!({"kind": "hang", "path": "/v1/"})).await;
    let answer = fleet.router.post("/v1/completions", &body(PROMPT, 8)).await;
    assert_eq!(answer.status(), 504, "a worker that was too slow is not asked twice");
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_whole_answer_that_breaks_is_made_again() {
    let expected = right(PROMPT, 16).await;
    let fleet = Fleet::with_flags(1, 2, &["--policy", "RoundRobin"]).await;
    fleet.decode[0]
        .fault(json!({"kind": "cut_stream", "after_tokens": 3, "path": "/v1/", "count": 1}))
        .await;
    for _ in 0..2 {
        assert_eq!(token_ids(&fleet.router.complete(&body(PROMPT, 16)).await), expected);
    }
    assert_eq!(fleet.decode[0].hits().await, 1);
    assert_eq!(
        fleet
            .router
            .metric(r#"retries_total{leg="decode",reason="Broken"}"#)
            .await,
        1.0
    );
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_stream_that_breaks_after_its_first_byte_says_so_and_is_not_tried_again() {
    let fleet = Fleet::start(1, 1).await;
    fleet.decode[0]
        .fault(json!({"kind": "cut_stream", "after_tokens": 5, "path": "/v1/"}))
        .await;
    let answer = fleet.router.post("/v1/completions", &streamed(PROMPT, 16)).await;
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.unwrap();
    assert!(!text.contains("[DONE]"), "{text}");
    let events = events(&text);
    assert_eq!(events.last().unwrap()["error"]["code"], "stream_broken", "{text}");
    assert_eq!(fleet.decode[0].hits().await, 1);
    assert_eq!(fleet.prefill[0].state().await["requests"]["finished"], 1);
    fleet.router.at_rest().await;
    let cut = r#"requests_total{endpoint="completions",outcome="Cut"}"#;
    assert_eq!(fleet.router.metric(cut).await, 1.0);
}

#[tokio::test]
async fn a_stream_that_falls_silent_ends_with_an_error() {
    let decode = Engine::slow(60_000.0).await;
    let fleet = Fleet::of(
        vec![Engine::start(true).await],
        vec![decode],
        &["--idle-timeout", "200ms", "--first-byte-timeout", "200ms"],
    )
    .await;
    let answer = fleet.router.post("/v1/completions", &streamed(PROMPT, 16)).await;
    let status = answer.status();
    let text = answer.text().await.unwrap();
    // The first step may show its token before it is paced, or not: either way the client hears of it.
    assert!(status == 504 || text.contains("stream_broken"), "{status} {text}");
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_failing_prefill_worker_is_left_for_another_and_all_gone_means_local() {
    let expected = right(PROMPT, 8).await;
    let mut fleet = Fleet::with_flags(2, 1, &["--prefill-policy", "LeastLoaded"]).await;
    for engine in &fleet.prefill {
        engine
            .fault(json!({"kind": "status", "value": 500, "path": "/v1/", "count": 1}))
            .await;
    }
    let answer = fleet.router.complete(&body(PROMPT, 8)).await;
    assert_eq!(token_ids(&answer), expected, "both said no: decode goes on alone");
    let failed = r#"decode_only_requests_total{reason="PrefillFailed"}"#;
    assert_eq!(fleet.router.metric(failed).await, 1.0);
    assert_eq!(token_ids(&fleet.router.complete(&body(PROMPT, 8)).await), expected);
    for engine in &mut fleet.prefill {
        engine.kill().await;
    }
    let local = r#"decode_only_requests_total{reason="NoPrefillWorker"}"#;
    for _ in 0..4 {
        let answer = fleet.router.post("/v1/completions", &body(PROMPT, 8)).await;
        if answer.status() == 200 {
            assert_eq!(token_ids(&answer.json().await.unwrap()), expected);
        } else {
            assert_eq!(answer.status(), 502);
        }
    }
    assert!(
        fleet.router.metric(local).await >= 1.0,
        "dead prefill workers are ejected and decode goes on alone"
    );
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_broken_prefill_answer_is_asked_for_again() {
    let expected = right(PROMPT, 8).await;
    let fleet = Fleet::start(1, 1).await;
    fleet.prefill[0]
        .fault(json!({"kind": "cut_stream", "path": "/v1/", "count": 1}))
        .await;
    assert_eq!(token_ids(&fleet.router.complete(&body(PROMPT, 8)).await), expected);
    assert_eq!(
        fleet
            .router
            .metric(r#"retries_total{leg="prefill",reason="Broken"}"#)
            .await,
        1.0
    );
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn what_the_engine_says_of_the_request_itself_is_passed_on_once() {
    let fleet = Fleet::start(2, 2).await;
    let mut wrong = body(PROMPT, 8);
    wrong["temperature"] = json!(-3);
    let alone = Engine::start(false).await;
    let expected = alone.post("/v1/completions", &wrong).await;
    let (status, expected) = (expected.status(), expected.text().await.unwrap());
    assert_eq!(status, 400, "{expected}");
    for stream in [false, true] {
        wrong["stream"] = json!(stream);
        let answer = fleet.router.post("/v1/completions", &wrong).await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.text().await.unwrap(), expected);
    }
    let retries: f64 = fleet
        .router
        .metrics()
        .await
        .lines()
        .filter(|l| l.starts_with("coterie_router_retries_total"))
        .map(|l| l.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
        .sum();
    assert_eq!(retries, 0.0);
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn with_every_worker_gone_the_client_gets_a_gateway_error_and_they_are_found_again() {
    let mut fleet = Fleet::start(1, 1).await;
    fleet.prefill[0].kill().await;
    fleet.decode[0].kill().await;
    let answer = fleet.router.post("/v1/completions", &body(PROMPT, 8)).await;
    assert_eq!(answer.status(), 502);
    let error: Value = answer.json().await.unwrap();
    assert_eq!(error["error"]["code"], "worker_failed");
    assert!(
        !error.to_string().contains("127.0.0.1"),
        "addresses are not for clients: {error}"
    );
    fleet.prefill[0].revive(true).await;
    fleet.decode[0].revive(false).await;
    let router = &fleet.router;
    until("the workers are found again", || async {
        let answer = router.post("/v1/completions", &body(PROMPT, 2)).await;
        answer.status() == 200 && router.fleet().await.workers.iter().all(|w| w.routable)
    })
    .await;
    router.at_rest().await;
}

#[tokio::test]
async fn a_prefill_pool_that_accepts_and_fails_is_ejected_and_comes_back() {
    let expected = right(PROMPT, 8).await;
    let fleet = Fleet::with_flags(1, 1, &["--max-attempts", "1"]).await;
    fleet.prefill[0]
        .fault(json!({"kind": "status", "value": 500, "path": "/v1/", "count": 3}))
        .await;
    for _ in 0..3 {
        assert_eq!(token_ids(&fleet.router.complete(&body(PROMPT, 8)).await), expected);
    }
    let failed = r#"decode_only_requests_total{reason="PrefillFailed"}"#;
    assert_eq!(fleet.router.metric(failed).await, 3.0);
    assert_eq!(fleet.prefill[0].hits().await, 3);
    let router = &fleet.router;
    until("a probe finds it well", || async {
        assert_eq!(token_ids(&router.complete(&body(PROMPT, 8)).await), expected);
        fleet.prefill[0].state().await["requests"]["finished"].as_u64() > Some(0)
    })
    .await;
    assert!(router.fleet().await.workers.iter().all(|w| w.routable));
    router.at_rest().await;
}

#[tokio::test]
async fn refusals_for_what_is_asked_and_the_last_decode_worker_are_never_ejected() {
    let expected = right(PROMPT, 8).await;
    let fleet = Fleet::with_flags(1, 1, &["--max-attempts", "1"]).await;
    let mut wrong = body(PROMPT, 8);
    wrong["temperature"] = json!(-3);
    for _ in 0..5 {
        assert_eq!(fleet.router.post("/v1/completions", &wrong).await.status(), 400);
    }
    assert!(fleet.router.fleet().await.workers.iter().all(|w| w.routable));
    fleet.decode[0]
        .fault(json!({"kind": "status", "value": 500, "path": "/v1/", "count": 5}))
        .await;
    for _ in 0..5 {
        assert_eq!(
            fleet.router.post("/v1/completions", &body(PROMPT, 8)).await.status(),
            500
        );
    }
    assert_eq!(token_ids(&fleet.router.complete(&body(PROMPT, 8)).await), expected);
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn busy_engines_say_when_to_come_again() {
    let fleet = Fleet::start(1, 1).await;
    for status in [429, 503] {
        fleet.decode[0]
            .fault(json!({"kind": "status", "value": status, "path": "/v1/", "count": 1}))
            .await;
        let answer = fleet.router.post("/v1/completions", &body(PROMPT, 8)).await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers()["retry-after"], "1");
    }
    fleet.router.at_rest().await;
}

//! Requests that are refused at the door.

use serde_json::{Value, json};

use super::common::{Engine, Fleet, PROMPT, body, streamed, success};

async fn code(answer: reqwest::Response) -> (u16, String) {
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    assert!(
        body["error"]["message"].is_string() && body["error"]["type"].is_string(),
        "{body}"
    );
    (status, body["error"]["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn bodies_too_large_compressed_or_meaningless() {
    let fleet = Fleet::with_flags(1, 1, &["--max-body-bytes", "10000"]).await;
    let router = &fleet.router;
    for size in [10_001, 15_000, 1_000_000] {
        let large = router
            .post("/v1/completions", &json!({"prompt": "a".repeat(size)}))
            .await;
        assert_eq!(code(large).await, (413, "body_too_large".to_owned()));
    }
    let fits = router.post("/v1/completions", &body(&"a ".repeat(100), 1)).await;
    success(fits).await;
    let post = |bytes: &'static str| {
        router
            .client
            .post(format!("{}/v1/completions", router.base))
            .body(bytes)
    };
    let zipped = post("x").header("content-encoding", "gzip").send().await.unwrap();
    assert_eq!(code(zipped).await, (415, "content_encoding".to_owned()));
    for bad in ["", "no json", "[]", "{}", r#"{"prompt":null}"#] {
        assert_eq!(
            code(post(bad).send().await.unwrap()).await,
            (400, "invalid_body".to_owned()),
            "{bad:?}"
        );
    }
    router.at_rest().await;
    let refused = r#"requests_total{endpoint="completions",outcome="Refused"}"#;
    assert_eq!(router.metric(refused).await, 9.0);
}

#[tokio::test]
async fn more_requests_than_allowed_are_told_to_come_again() {
    let fleet = Fleet::of(
        vec![Engine::start(true).await],
        vec![Engine::slow(20.0).await],
        &["--max-requests", "2"],
    )
    .await;
    let one = fleet.router.post("/v1/completions", &streamed(PROMPT, 200)).await;
    let two = fleet.router.post("/v1/completions", &streamed(PROMPT, 200)).await;
    let three = fleet.router.post("/v1/completions", &body(PROMPT, 1)).await;
    assert_eq!(three.headers()["retry-after"], "1");
    assert_eq!(code(three).await, (429, "router_overloaded".to_owned()));
    drop((one, two));
    fleet.router.at_rest().await;
    success(fleet.router.post("/v1/completions", &body(PROMPT, 1)).await).await;
}

#[tokio::test]
async fn without_a_document_that_can_be_used_the_router_is_alive_but_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("document.json");
    std::fs::write(&path, "{}").unwrap();
    let document = path.to_str().unwrap();
    let fleet = Fleet::with_flags(1, 1, &["--document", document]).await;
    assert_eq!(fleet.router.ready().await, 503);
    let answer = fleet.router.post("/v1/completions", &body(PROMPT, 1)).await;
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(code(answer).await, (503, "unavailable".to_owned()));
    let state = fleet.router.state().await;
    assert_eq!(state.generation, 0);
    assert!(state.problem.unwrap().contains("version"));
}

#[tokio::test]
async fn what_only_decode_would_refuse_is_refused_before_prefill() {
    let fleet = Fleet::start(1, 1).await;
    for (field, value) in [
        ("max_tokens", json!(0)),
        ("min_tokens", json!(99)),
        ("stream", json!("yes")),
        ("stream_options", json!({"include_usage": true})),
    ] {
        let mut bad = body(PROMPT, 8);
        bad[field] = value;
        let answer = fleet.router.post("/v1/completions", &bad).await;
        assert_eq!(answer.status(), 400, "{field}");
        let error: Value = answer.json().await.unwrap();
        assert_eq!(error["error"]["param"], field, "{error}");
    }
    for (field, value) in [("logprobs", json!("x")), ("n", json!("x"))] {
        let mut bad = body(PROMPT, 8);
        bad[field] = value;
        let answer = fleet.router.post("/v1/completions", &bad).await;
        assert_eq!(answer.status(), 400, "{field}");
    }
    assert_eq!(fleet.prefill[0].state().await["requests"]["finished"], 0);
    fleet.decode[0]
        .fault(json!({"kind": "status", "value": 400, "path": "/v1/", "count": 1}))
        .await;
    let answer = fleet.router.post("/v1/completions", &body(PROMPT, 8)).await;
    assert_eq!(answer.status(), 400);
    let abandoned = r#"handoffs_total{result="abandoned"}"#;
    assert_eq!(fleet.router.metric(abandoned).await, 1.0, "decode pulled nothing");
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn flags_that_cannot_work_end_the_process_at_start() {
    for (flag, value) in [
        ("--tau", "7"),
        ("--layers", "0"),
        ("--max-requests", "0"),
        ("--document", "/nowhere.json"),
    ] {
        let mut router = tokio::process::Command::new(env!("CARGO_BIN_EXE_coterie-router"));
        let ended = router
            .args(["--decode", "127.0.0.1:9", flag, value])
            .output()
            .await
            .unwrap();
        assert_eq!(ended.status.code(), Some(64), "{flag}");
        assert!(String::from_utf8_lossy(&ended.stderr).contains(flag), "{flag}");
    }
}

#[tokio::test]
async fn silent_connections_are_closed_and_make_room() {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };
    let flags = ["--header-timeout", "200ms", "--max-connections", "1"];
    let fleet = Fleet::with_flags(1, 1, &flags).await;
    let address = fleet.router.base.strip_prefix("http://").unwrap();
    for first in ["", "PRI * HT", "POST /v1"] {
        let mut silent = TcpStream::connect(address).await.unwrap();
        silent.write_all(first.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = silent.read_to_end(&mut answer).await;
    }
    success(fleet.router.post("/v1/completions", &body(PROMPT, 1)).await).await;
}

//! Answers have the fields, in the order and with the types and nulls, of the answers recorded from vLLM.

use super::common::{Worker, events, experts, fixture, settings, start};
use hyper::Method;
use serde_json::{Value, json};

const PROMPT: &str = "def fibonacci(n):\n    if n < 2:\n        return n\n    return ";

/// Keys in order with the kinds of their values; lists show their first element.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.iter().map(|(k, v)| (k.clone(), shape(v))).collect()),
        Value::Array(items) => Value::Array(items.first().map(shape).into_iter().collect()),
        Value::String(_) => "string".into(),
        Value::Number(n) => (if n.is_f64() { "float" } else { "integer" }).into(),
        other => other.clone(),
    }
}

fn assert_same_shape(ours: &Value, recorded: &Value) {
    // As text, because equality of JSON objects does not look at the order of keys.
    assert_eq!(shape(ours).to_string(), shape(recorded).to_string());
}

fn recorded(name: &str) -> Value {
    serde_json::from_str(&fixture(name)).unwrap()
}

async fn worker(capture: bool, connector: bool) -> Worker {
    let mut settings = settings();
    settings.capture = capture;
    if !connector {
        settings.side_channel = None;
    }
    start(settings).await
}

#[tokio::test]
async fn completion_and_chat_with_experts() {
    let worker = worker(true, false).await;
    let answer = worker
        .complete(&json!({ "model": "tiny", "prompt": PROMPT, "max_tokens": 1, "return_token_ids": true }))
        .await;
    assert_same_shape(&answer, &recorded("vllm-0.30-completion-prefill.json"));
    assert_eq!(experts(&answer).0, [21, 6, 4]);

    let chat = json!({ "messages": [{ "role": "user", "content": "Hola, qué tal" }], "max_tokens": 1, "return_token_ids": true });
    let answer = worker.post("/v1/chat/completions", &chat).await;
    assert_same_shape(&answer, &recorded("vllm-0.30-chat-prefill.json"));
    assert!(answer["id"].as_str().unwrap().starts_with("chatcmpl-"));
}

#[tokio::test]
async fn hand_off_with_and_without_experts() {
    let worker = worker(false, true).await;
    assert_same_shape(
        &worker.prefill(&PROMPT.into()).await,
        &recorded("vllm-0.30-pd-prefill.json"),
    );
    let capturing = self::worker(true, true).await;
    let answer = capturing.prefill(&PROMPT.into()).await;
    assert_same_shape(&answer, &recorded("vllm-0.30-pd-prefill-with-experts.json"));
}

#[tokio::test]
async fn streams_with_and_without_usage() {
    let worker = worker(false, true).await;
    let mut body = json!({
        "prompt": PROMPT, "max_tokens": 4, "stream": true, "return_token_ids": true, "temperature": 0,
        "stream_options": { "include_usage": true },
    });
    let (_, stream) = worker.call(Method::POST, "/v1/completions", &body).await;
    let (ours, theirs) = (events(&stream), events(&fixture("vllm-0.30-completion-stream.txt")));
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_same_shape(ours, theirs);
    }
    body["stream_options"] = Value::Null;
    body["max_tokens"] = 8.into();
    let (_, stream) = worker.call(Method::POST, "/v1/completions", &body).await;
    for (ours, theirs) in events(&stream)
        .iter()
        .zip(&events(&fixture("vllm-0.30-pd-decode-stream.txt")))
    {
        assert_same_shape(ours, theirs);
    }
}

#[tokio::test]
async fn models_and_metrics() {
    let worker = worker(false, true).await;
    worker.complete(&json!({ "prompt": PROMPT, "max_tokens": 2 })).await;
    let (_, models) = worker.call(Method::GET, "/v1/models", &Value::Null).await;
    assert_same_shape(
        &serde_json::from_str(&models).unwrap(),
        &recorded("vllm-0.30-models.json"),
    );

    let (_, page) = worker.call(Method::GET, "/metrics", &Value::Null).await;
    let types = |page: &str| -> std::collections::BTreeMap<String, String> {
        let lines = page.lines().filter_map(|l| l.strip_prefix("# TYPE vllm:"));
        lines
            .filter_map(|l| l.split_once(' '))
            .map(|(n, t)| (n.to_owned(), t.to_owned()))
            .collect()
    };
    let (ours, theirs) = (types(&page), types(&fixture("vllm-0.30-decode-metrics.txt")));
    for (name, kind) in &ours {
        // One counter that 0.30 lacks and later versions have.
        if name != "nixl_num_notifications_after_expiry_total" {
            assert_eq!(theirs.get(name), Some(kind), "{name}");
        }
    }
    for needed in [
        "num_requests_running",
        "kv_cache_usage_perc",
        "time_to_first_token_seconds",
        "nixl_num_kv_expired_reqs_total",
    ] {
        assert!(ours.contains_key(needed), "{needed}");
    }
    assert!(
        page.contains("vllm:request_success_total{engine=\"0\",model_name=\"tiny\",finished_reason=\"length\"} 1.0")
    );
    assert!(page.contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"tiny\"} 2.0"));
}

#[tokio::test]
async fn request_id_is_the_clients() {
    let worker = worker(false, true).await;
    let client = coterie_engine_sim::load::HttpClient::new(
        [(
            hyper::header::HeaderName::from_static("x-request-id"),
            "req-1".parse().unwrap(),
        )]
        .into_iter()
        .collect(),
    );
    let body = json!({ "prompt": PROMPT, "max_tokens": 1, "kv_transfer_params": { "do_remote_decode": true } });
    let url = format!("{}/v1/completions", worker.url);
    let (_, answer) = client
        .exchange(Method::POST, &url, body.to_string().into_bytes())
        .await
        .unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["id"], "cmpl-req-1");
    let remote = answer["kv_transfer_params"]["remote_request_id"].as_str().unwrap();
    assert!(
        remote.starts_with("cmpl-req-1-0-") && remote.len() == "cmpl-req-1-0-bf2c4fb6".len(),
        "{remote}"
    );
}

#[tokio::test]
async fn several_prompts_choices_echo_stop_and_logprobs() {
    let worker = worker(false, false).await;
    let answer = worker
        .complete(&json!({ "prompt": [PROMPT, "Le "], "n": 2, "max_tokens": 3, "temperature": 0, "echo": true }))
        .await;
    let choices = answer["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 4);
    assert!(
        choices[1]["text"].as_str().unwrap().starts_with(PROMPT)
            && choices[2]["text"].as_str().unwrap().starts_with("Le ")
    );
    assert_eq!(answer["usage"]["completion_tokens"], 12);

    let answer = worker
        .complete(&json!({ "prompt": PROMPT, "max_tokens": 16, "temperature": 0, "stop": ["_FAIL"], "logprobs": 2 }))
        .await;
    assert_eq!(super::common::text(&answer), "err(EXIT");
    assert_eq!(
        (
            &answer["choices"][0]["finish_reason"],
            &answer["choices"][0]["stop_reason"]
        ),
        (&"stop".into(), &"_FAIL".into())
    );
    let logprobs = &answer["choices"][0]["logprobs"];
    assert_eq!(logprobs["tokens"][0], "err");
    assert_eq!(logprobs["top_logprobs"][0].as_object().unwrap().len(), 2);
}

#[tokio::test]
async fn bad_requests_get_openai_errors() {
    let worker = worker(false, true).await;
    let cases = [
        (
            json!({ "prompt": "a", "model": "other" }),
            404,
            "`other` does not exist",
        ),
        (json!({ "prompt": "a", "max_tokens": 0 }), 400, "at least 1"),
        (json!({ "prompt": "a", "max_tokens": 5000 }), 400, "2048"),
        (json!({ "prompt": vec![5; 3000] }), 400, "2048"),
        (json!({ "prompt": [99999] }), 400, "vocabulary"),
        (json!({ "prompt": "" }), 400, "empty"),
        (json!({ "prompt": "a", "temperature": -1 }), 400, "temperature"),
        (json!({ "prompt": "a", "best_of": 3 }), 400, "best_of"),
        (
            json!({ "prompt": ["a", "b"], "kv_transfer_params": { "do_remote_decode": true } }),
            400,
            "one prompt",
        ),
        (json!({ "prompt": { "a": 1 } }), 400, "invalid"),
        (json!({ "max_tokens": 3 }), 400, "prompt"),
    ];
    for (body, status, part) in cases {
        let (got, text) = worker.call(Method::POST, "/v1/completions", &body).await;
        assert_eq!(got, status, "{body}: {text}");
        let error: Value = serde_json::from_str(&text).unwrap();
        assert!(error["error"]["message"].as_str().unwrap().contains(part), "{text}");
        assert_eq!(error["error"]["code"], status);
    }
    let mut small = settings();
    small.kv_blocks = 2;
    let worker = start(small).await;
    let (status, text) = worker
        .call(
            Method::POST,
            "/v1/completions",
            &json!({ "prompt": "a", "max_tokens": 100 }),
        )
        .await;
    assert_eq!(status, 400);
    assert!(text.contains("32"), "{text}");
}

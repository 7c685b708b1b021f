//! Answers through the router are those of one worker alone.

use serde_json::{Value, json};

use super::common::{Engine, Fleet, MODEL, PROMPT, body, content, events, recording, success, token_ids};

const PROMPTS: [&str; 3] = [
    PROMPT,
    "La función devuelve un puntero a la estructura, o NULL si ",
    "这个程序用于显示系统中的文件和目录。使用以下选项可以改变输出的格式：",
];

fn requests() -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    for prompt in PROMPTS {
        for (temperature, seed) in [(0.0, 1), (0.8, 2)] {
            let common = json!({"model": MODEL, "max_tokens": 24, "temperature": temperature, "seed": seed, "return_token_ids": true});
            let mut completion = common.clone();
            completion["prompt"] = json!(prompt);
            all.push(("/v1/completions", completion));
            let mut chat = common;
            chat["messages"] = json!([{"role": "user", "content": prompt}]);
            all.push(("/v1/chat/completions", chat));
        }
    }
    let recording = recording();
    all.push((
        "/v1/completions",
        json!({"model": MODEL, "prompt": recording.prompt(17), "max_tokens": 128, "return_token_ids": true}),
    ));
    all
}

#[tokio::test]
async fn whole_answers_are_those_of_one_worker_for_every_policy() {
    let alone = Engine::recorded(false).await;
    for policy in ["LocalityBand", "LeastLoaded", "RoundRobin", "PowerOfTwoChoices"] {
        let fleet = Fleet::recorded(2, 2, &["--policy", policy]).await;
        for (path, body) in requests() {
            let expected = success(alone.post(path, &body).await).await;
            let answer = success(fleet.router.post(path, &body).await).await;
            assert_eq!(content(answer), content(expected), "{policy} {path} {body}");
        }
        for worker in &fleet.decode {
            let state = worker.state().await;
            assert_eq!(
                state["prefill"]["tokens"], 0,
                "the decode worker must not have prefilled"
            );
        }
        fleet.router.at_rest().await;
    }
}

#[tokio::test]
async fn streams_are_those_of_one_worker_event_by_event() {
    let (alone, fleet) = (Engine::recorded(false).await, Fleet::recorded(2, 2, &[]).await);
    for (path, mut body) in requests() {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
        let expected = alone.post(path, &body).await.text().await.unwrap();
        let answer = fleet.router.post(path, &body).await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream; charset=utf-8");
        let answer = answer.text().await.unwrap();
        assert!(answer.ends_with("data: [DONE]\n\n"), "{answer}");
        let strip = |stream: &str| events(stream).into_iter().map(content).collect::<Vec<_>>();
        assert_eq!(strip(&answer), strip(&expected), "{path} {body}");
    }
    fleet.router.at_rest().await;
    let tpot = r#"time_per_output_token_seconds_count{endpoint="completions"}"#;
    assert!(fleet.router.metric(tpot).await > 0.0);
}

#[tokio::test]
async fn one_token_is_one_token_and_prefill_never_shows() {
    let fleet = Fleet::start(1, 1).await;
    let answer = fleet.router.complete(&body(PROMPT, 1)).await;
    assert_eq!(answer["usage"]["completion_tokens"], 1);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert!(answer["kv_transfer_params"].is_null());
    let two = fleet.router.complete(&body(PROMPT, 2)).await;
    assert_eq!(token_ids(&two)[0], token_ids(&answer)[0]);
}

#[tokio::test]
async fn a_fleet_without_prefill_workers_serves_and_shows_no_experts() {
    let plain = Fleet::of(
        Vec::new(),
        vec![Engine::start(true).await, Engine::start(true).await],
        &[],
    )
    .await;
    let alone = Engine::start(false).await;
    let body = body(PROMPT, 16);
    let expected = success(alone.post("/v1/completions", &body).await).await;
    let answer = plain.router.complete(&body).await;
    assert!(answer["choices"][0]["routed_experts"].is_null(), "{answer}");
    assert_eq!(content(answer), content(expected));
    plain.router.at_rest().await;
}

#[tokio::test]
async fn what_a_hand_off_cannot_carry_goes_to_decode_alone() {
    let (alone, fleet) = (Engine::start(false).await, Fleet::start(1, 2).await);
    for (extra, reason) in [
        (json!({"n": 2}), "SeveralAnswers"),
        (json!({"echo": true}), "Echo"),
        (json!({"prompt": ["a", "b"]}), "SeveralPrompts"),
        (json!({"prompt_logprobs": 1}), "PromptLogprobs"),
    ] {
        let mut body = body(PROMPT, 4);
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        let expected = alone.post("/v1/completions", &body).await;
        let answer = fleet.router.post("/v1/completions", &body).await;
        assert_eq!(answer.status(), expected.status(), "{extra}");
        let (answer, expected): (Value, Value) = (answer.json().await.unwrap(), expected.json().await.unwrap());
        assert_eq!(content(answer), content(expected), "{extra}");
        let counted = format!("decode_only_requests_total{{reason=\"{reason}\"}}");
        assert_eq!(fleet.router.metric(&counted).await, 1.0, "{reason}");
    }
    assert_eq!(fleet.prefill[0].state().await["requests"]["finished"], 0);
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_client_cannot_steer() {
    let fleet = Fleet::start(1, 1).await;
    let expected = token_ids(&fleet.router.complete(&body(PROMPT, 8)).await);
    let mut steering = body(PROMPT, 8);
    steering["kv_transfer_params"] = json!({"do_remote_prefill": true, "remote_host": "192.0.2.1", "remote_port": 1,
        "remote_engine_id": "x", "remote_request_id": "y", "remote_block_ids": [[1]], "remote_num_tokens": 5});
    steering["request_id"] = json!("mine");
    steering["priority"] = json!(-100);
    let request = fleet
        .router
        .client
        .post(format!("{}/v1/completions", fleet.router.base));
    let answer = request
        .header("x-request-id", "client-7")
        .header("x-data-parallel-rank", "9")
        .json(&steering);
    let answer = answer.send().await.unwrap();
    assert_eq!(answer.headers()["x-request-id"], "client-7");
    let answer = success(answer).await;
    assert_eq!(token_ids(&answer), expected);
    let id = answer["id"].as_str().unwrap();
    assert!(
        id.starts_with("cmpl-") && !id.contains("client-7") && !id.contains("mine"),
        "{id}"
    );
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn models_and_unknown_paths() {
    let fleet = Fleet::start(1, 1).await;
    let router = &fleet.router;
    let models = success(
        router
            .client
            .get(format!("{}/v1/models", router.base))
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(models["data"][0]["id"], MODEL);
    let unknown = router.post("/v1/embeddings", &json!({})).await;
    assert_eq!(unknown.status(), 404);
    let unknown: Value = unknown.json().await.unwrap();
    assert_eq!(unknown["error"]["code"], "not_found");
    let wrong = router
        .client
        .get(format!("{}/v1/completions", router.base))
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), 405);
}

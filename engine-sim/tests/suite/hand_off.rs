//! Prefill on one worker, decode on another.

use std::sync::Arc;
use std::time::Duration;

use super::common::{recording, settings, start, start_with, text, token_ids};
use coterie_engine_sim::engine::ManualClock;
use hyper::Method;
use serde_json::{Value, json};

const PROMPTS: [&str; 3] = [
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return ",
    "La función devuelve un puntero a la estructura, o NULL si ",
    "这个程序用于显示系统中的文件和目录。使用以下选项可以改变输出的格式：",
];

#[tokio::test]
async fn a_pair_answers_as_one_worker_token_for_token() {
    let (prefill, decode, alone) = (
        start(settings()).await,
        start(settings()).await,
        start(settings()).await,
    );
    for prompt in PROMPTS {
        for (temperature, seed) in [(0.0, 1), (0.8, 1), (0.8, 2)] {
            let mut body = json!({
                "prompt": prompt, "max_tokens": 40, "temperature": temperature, "seed": seed, "return_token_ids": true,
            });
            let expected = alone.complete(&body).await;
            let first = prefill.prefill(&prompt.into()).await;
            body["kv_transfer_params"] = first["kv_transfer_params"].clone();
            let answer = decode.complete(&body).await;
            assert_eq!(token_ids(&answer), token_ids(&expected), "{prompt:?} at {temperature}");
            assert_eq!(text(&answer), text(&expected));
            assert_eq!(answer["kv_transfer_params"], Value::Null);
        }
    }
    let state = prefill
        .state_when("all blocks are free", |s| s["kv_blocks"]["pinned"] == 0)
        .await;
    assert_eq!(state["kv_blocks"]["free"], state["kv_blocks"]["total"]);
    assert_eq!(
        decode.state().await["prefill"]["tokens"],
        0,
        "the decode worker must not have computed a prompt"
    );
}

#[tokio::test]
async fn a_recorded_prompt_is_answered_from_the_recording_by_a_pair() {
    let recording = recording();
    let (prefill, decode) = (start(settings()).await, start(settings()).await);
    for request in [0, 17, 400] {
        let prompt = json!(recording.prompt(request));
        let first = prefill.prefill(&prompt).await;
        let answer = decode
            .complete(&json!({
                "prompt": prompt, "max_tokens": 128, "return_token_ids": true,
                "kv_transfer_params": first["kv_transfer_params"],
            }))
            .await;
        assert_eq!(token_ids(&answer), recording.generated(request));
    }
    assert_eq!(decode.state().await["foreign_pulls"], 0);
}

/// A second pull after the blocks were freed and filled for someone else: the text is wrong, as with a real engine.
#[tokio::test]
async fn a_second_pull_reads_whoever_has_the_blocks_now() {
    let (prefill, decode) = (start(settings()).await, start(settings()).await);
    let recording = recording();
    let (one, two) = (json!(recording.prompt(3)), json!(recording.prompt(4)));
    for (first, second, recorded) in [(json!(PROMPTS[0]), json!(PROMPTS[1]), false), (one, two, true)] {
        let hand_off = prefill.prefill(&first).await["kv_transfer_params"].clone();
        let body = json!({
            "prompt": first, "max_tokens": 24, "temperature": 0, "return_token_ids": true, "kv_transfer_params": hand_off,
        });
        let right = token_ids(&decode.complete(&body).await);
        prefill
            .state_when("the pull freed the blocks", |s| s["kv_blocks"]["pinned"] == 0)
            .await;
        let other = prefill.prefill(&second).await["kv_transfer_params"].clone();
        let reused = &hand_off["remote_block_ids"][0][0];
        assert!(
            other["remote_block_ids"][0].as_array().unwrap().contains(reused),
            "{other} reuses block {reused}"
        );
        let wrong = token_ids(&decode.complete(&body).await);
        assert_ne!(wrong, right);
        let notices = decode.state().await["foreign_pulls"].as_u64().unwrap();
        assert_eq!(notices, u64::from(recorded));
        let mut end = body.clone();
        end["prompt"] = second;
        end["kv_transfer_params"] = other;
        decode.complete(&end).await;
        prefill
            .state_when("the last pull freed the blocks", |s| s["kv_blocks"]["pinned"] == 0)
            .await;
    }
}

#[tokio::test]
async fn a_lease_that_runs_out_frees_the_blocks() {
    let clock = Arc::new(ManualClock::default());
    let prefill = start_with(settings(), Arc::clone(&clock) as _).await;
    let hand_off = prefill.prefill(&PROMPTS[0].into()).await["kv_transfer_params"].clone();
    clock.advance(Duration::from_secs(479));
    assert_eq!(prefill.state().await["kv_blocks"]["pinned"], 2);
    clock.advance(Duration::from_secs(1));
    let state = prefill
        .state_when("the lease is over", |s| s["lease_expiries"] == 1)
        .await;
    assert_eq!(state["kv_blocks"]["free"], state["kv_blocks"]["total"]);
    // A decode worker that comes too late reads what is there and its notice is counted.
    let decode = start(settings()).await;
    let body = json!({ "prompt": PROMPTS[0], "max_tokens": 2, "kv_transfer_params": hand_off });
    decode.complete(&body).await;
    let late = "vllm:nixl_num_notifications_after_expiry_total{engine=\"0\",model_name=\"tiny\"} 1.0";
    while !prefill
        .call(Method::GET, "/metrics", &Value::Null)
        .await
        .1
        .contains(late)
    {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_rejected_request_frees_the_blocks_on_the_prefill_worker() {
    let (prefill, decode) = (start(settings()).await, start(settings()).await);
    decode.fault(json!({ "kind": "reject_kv", "count": 1 })).await;
    for (body, status) in [
        (json!({ "max_tokens": 4 }), 429),
        (json!({ "max_tokens": 4, "temperature": -1 }), 400),
    ] {
        let mut body = body;
        body["prompt"] = PROMPTS[0].into();
        body["kv_transfer_params"] = prefill.prefill(&PROMPTS[0].into()).await["kv_transfer_params"].clone();
        let (got, text) = decode.call(Method::POST, "/v1/completions", &body).await;
        assert_eq!(got, status, "{text}");
        prefill
            .state_when("the blocks are free", |s| s["kv_blocks"]["pinned"] == 0)
            .await;
    }
}

#[tokio::test]
async fn kv_of_a_dead_or_restarted_worker_fails_the_request() {
    let (prefill, decode) = (start(settings()).await, start(settings()).await);
    let mut hand_off = prefill.prefill(&PROMPTS[0].into()).await["kv_transfer_params"].clone();
    let ask = |hand_off: &Value| json!({ "prompt": PROMPTS[0], "max_tokens": 4, "kv_transfer_params": hand_off });
    hand_off["remote_engine_id"] = "another".into();
    let (status, text) = decode.call(Method::POST, "/v1/completions", &ask(&hand_off)).await;
    assert!(
        status == 500 && text.contains("KV load failed") && text.contains("restarted"),
        "{status} {text}"
    );
    prefill.server.stop().await.unwrap();
    let (status, text) = decode.call(Method::POST, "/v1/completions", &ask(&hand_off)).await;
    assert!(status == 500 && text.contains("KV load failed"), "{status} {text}");
    let state = decode.state().await;
    assert_eq!(
        (&state["requests"]["failed"], &state["kv_blocks"]["free"]),
        (&2.into(), &state["kv_blocks"]["total"])
    );
    // Without an address the prompt is computed here, as vLLM does.
    decode.complete(&ask(&json!({ "do_remote_prefill": true }))).await;
}

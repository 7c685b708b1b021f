//! Clients that leave: everything upstream ends at once and every counter goes back.

use std::time::Duration;

use futures::StreamExt;
use serde_json::json;

use super::common::{Engine, Fleet, PROMPT, body, streamed, until};

#[tokio::test]
async fn during_the_prefill() {
    let fleet = Fleet::start(1, 1).await;
    fleet.prefill[0].fault(json!({"kind": "hang", "path": "/v1/"})).await;
    let request = fleet
        .router
        .client
        .post(format!("{}/v1/completions", fleet.router.base));
    let request = request
        .json(&body(PROMPT, 8))
        .timeout(Duration::from_millis(300))
        .send();
    assert!(request.await.unwrap_err().is_timeout());
    fleet.router.at_rest().await;
    let gone = r#"requests_total{endpoint="completions",outcome="ClientGone"}"#;
    assert_eq!(fleet.router.metric(gone).await, 1.0);
    assert_eq!(fleet.decode[0].state().await["requests"]["finished"], 0);
}

#[tokio::test]
async fn while_a_whole_answer_is_made() {
    let fleet = Fleet::start(1, 1).await;
    fleet.decode[0].fault(json!({"kind": "hang", "path": "/v1/"})).await;
    let request = fleet
        .router
        .client
        .post(format!("{}/v1/completions", fleet.router.base));
    let request = request
        .json(&body(PROMPT, 8))
        .timeout(Duration::from_millis(300))
        .send();
    assert!(request.await.unwrap_err().is_timeout());
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn in_the_middle_of_streams() {
    let fleet = Fleet::of(vec![Engine::start(true).await], vec![Engine::slow(20.0).await], &[]).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        let answer = fleet.router.post("/v1/completions", &streamed(PROMPT, 200)).await;
        let mut stream = answer.bytes_stream();
        stream.next().await.unwrap().unwrap();
        streams.push(stream);
    }
    let decode = || async {
        let fleet = fleet.router.fleet().await;
        fleet.workers.iter().find(|w| w.role == "decode").unwrap().own
    };
    assert_eq!(decode().await, 8, "each stream holds its place");
    drop(streams);
    fleet.router.at_rest().await;
    until("the engine has stopped working", || async {
        fleet.decode[0].state().await["active"]["running"] == 0
    })
    .await;
    let gone = r#"requests_total{endpoint="completions",outcome="ClientGone"}"#;
    assert_eq!(fleet.router.metric(gone).await, 8.0);
}

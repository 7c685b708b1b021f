//! The drain.

use futures::StreamExt;

use super::common::{Engine, Fleet, PROMPT, body, streamed, success, until};

#[tokio::test]
async fn streams_finish_new_requests_are_taken_for_the_delay_and_the_process_ends() {
    let prefill = vec![Engine::start(true).await];
    let decode = vec![Engine::slow(10.0).await];
    let mut fleet = Fleet::of(prefill, decode, &["--drain-delay", "400ms", "--drain-timeout", "30s"]).await;
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = fleet
            .router
            .post("/v1/completions", &streamed(PROMPT, 120))
            .await
            .bytes_stream();
        let first = stream.next().await.unwrap().unwrap();
        streams.push((first.to_vec(), stream));
    }
    assert_eq!(fleet.router.ready().await, 200);
    fleet.router.drain.cancel();
    until("unready", || async { fleet.router.ready().await == 503 }).await;
    let late = fleet.router.post("/v1/completions", &body(PROMPT, 2)).await;
    assert_eq!(late.headers()["connection"], "close");
    success(late).await;
    for (mut bytes, mut stream) in streams {
        while let Some(more) = stream.next().await {
            bytes.extend_from_slice(&more.unwrap());
        }
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    }
    assert!(
        fleet.router.process.take().unwrap().drained().await.unwrap(),
        "every stream finished"
    );
    let refused = fleet
        .router
        .client
        .get(format!("{}/v1/models", fleet.router.base))
        .send()
        .await;
    assert!(refused.unwrap_err().is_connect());
}

#[tokio::test]
async fn a_stream_longer_than_the_drain_time_out_does_not_hold_the_process() {
    let fleet = Fleet::of(
        vec![Engine::start(true).await],
        vec![Engine::slow(200.0).await],
        &["--drain-delay", "0s", "--drain-timeout", "100ms"],
    );
    let mut fleet = fleet.await;
    let mut stream = fleet
        .router
        .post("/v1/completions", &streamed(PROMPT, 200))
        .await
        .bytes_stream();
    stream.next().await.unwrap().unwrap();
    fleet.router.drain.cancel();
    assert!(!fleet.router.process.take().unwrap().drained().await.unwrap());
}

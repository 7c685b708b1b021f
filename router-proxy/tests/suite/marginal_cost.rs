//! The MarginalCost policy, without a table.

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::json;

use super::common::{Engine, Fleet, PROMPT, body, recording};

async fn finished(engines: &[Engine]) -> Vec<u64> {
    let states = join_all(engines.iter().map(Engine::state)).await;
    states
        .iter()
        .map(|s| s["requests"]["finished"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn requests_are_chosen_by_their_experts_and_leave_nothing_behind() {
    let fleet = Fleet::recorded(2, 3, &["--policy", "MarginalCost"]).await;
    let recording = recording();
    let requests: Vec<_> = (0..24)
        .map(|i| {
            let mut whole = body("", 24);
            whole["prompt"] = json!(recording.prompt(i * 30));
            whole
        })
        .collect();
    join_all(requests.iter().map(|r| fleet.router.complete(r))).await;
    assert_eq!(
        fleet.router.metric(r#"decisions_total{reason="MarginalCost"}"#).await,
        24.0
    );
    assert_eq!(fleet.router.metric("expected_distinct_experts_count").await, 24.0);
    let expected = fleet.router.metric("expected_distinct_experts_sum").await / 24.0;
    assert!((4.0..=64.0).contains(&expected), "experts per layer: {expected}");
    let share = finished(&fleet.decode).await;
    assert!(share.iter().all(|n| *n > 0), "every worker has a part: {share:?}");
    fleet.router.at_rest().await;
    // An idle fleet again: a request alone is expected to use its own experts only, 4 a layer.
    let before = fleet.router.metric("expected_distinct_experts_sum").await;
    fleet.router.complete(&body(PROMPT, 4)).await;
    let alone = fleet.router.metric("expected_distinct_experts_sum").await - before;
    assert!((3.9..4.1).contains(&alone), "{alone}");
}

#[tokio::test]
async fn without_counts_it_goes_by_load_and_says_so() {
    let fleet = Fleet::with_flags(1, 2, &["--policy", "MarginalCost"]).await;
    fleet.prefill[0].fault(json!({"kind": "no_experts", "count": 1})).await;
    fleet.router.complete(&body(PROMPT, 4)).await;
    let by: BTreeMap<&str, f64> = [
        (
            "NoSignature",
            fleet.router.metric(r#"decisions_total{reason="NoSignature"}"#).await,
        ),
        (
            "NoTable",
            fleet.router.metric(r#"decisions_total{reason="NoTable"}"#).await,
        ),
    ]
    .into();
    assert_eq!((by["NoSignature"], by["NoTable"]), (1.0, 0.0));
    fleet.router.at_rest().await;
}

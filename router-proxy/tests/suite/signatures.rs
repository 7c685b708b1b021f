//! Signatures that come, and that do not.

use coterie_crds::admin::{STATISTICS_PATH, StatisticsReport};
use serde_json::json;

use super::common::{Fleet, PROMPT, body};

async fn statistics(fleet: &Fleet) -> StatisticsReport {
    fleet.router.admin(STATISTICS_PATH).await.json().await.unwrap()
}

#[tokio::test]
async fn a_missing_or_malformed_signature_fails_no_request_and_is_counted() {
    let fleet = Fleet::start(1, 2).await;
    fleet.router.complete(&body(PROMPT, 4)).await;
    for (fault, result) in [
        (json!({"kind": "no_experts", "count": 1}), "missing"),
        (
            json!({"kind": "malformed_experts", "value": "truncated", "count": 1}),
            "malformed",
        ),
        (
            json!({"kind": "malformed_experts", "value": "not_base64", "count": 1}),
            "malformed",
        ),
        (
            json!({"kind": "malformed_experts", "value": "wrong_shape", "count": 1}),
            "geometry",
        ),
        (
            json!({"kind": "malformed_experts", "value": "wrong_expert", "count": 1}),
            "geometry",
        ),
    ] {
        let series = format!("signature_requests_total{{result=\"{result}\"}}");
        let before = fleet.router.metric(&series).await;
        fleet.prefill[0].fault(fault.clone()).await;
        fleet.router.complete(&body(PROMPT, 4)).await;
        assert_eq!(fleet.router.metric(&series).await, before + 1.0, "{fault}");
    }
    let report = statistics(&fleet).await;
    assert_eq!(report.slide_ms, 150_000);
    let sum = |f: fn(&coterie_crds::admin::Slide) -> u64| report.slides.iter().map(f).sum::<u64>();
    assert_eq!((sum(|s| s.requests), sum(|s| s.signed)), (6, 1));
    assert_eq!(sum(|s| s.missing.get("Malformed").copied().unwrap_or(0)), 2);
    assert_eq!(sum(|s| s.missing.get("Geometry").copied().unwrap_or(0)), 2);
    assert_eq!(sum(|s| s.missing.get("Missing").copied().unwrap_or(0)), 1);
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_model_of_another_shape_is_seen_as_such() {
    let fleet = Fleet::with_flags(1, 1, &["--layers", "48", "--experts", "128", "--top-k", "8"]).await;
    fleet.router.complete(&body(PROMPT, 4)).await;
    assert_eq!(
        fleet
            .router
            .metric(r#"signature_requests_total{result="geometry"}"#)
            .await,
        1.0
    );
}

#[tokio::test]
async fn without_a_table_the_reason_says_so() {
    let fleet = Fleet::start(1, 1).await;
    fleet.router.complete(&body(PROMPT, 2)).await;
    let counted = |reason: &str| format!("decisions_total{{reason=\"{reason}\"}}");
    assert_eq!(fleet.router.metric(&counted("NoTable")).await, 1.0);
    assert_eq!(fleet.router.metric(&counted("NoSignature")).await, 0.0);
}

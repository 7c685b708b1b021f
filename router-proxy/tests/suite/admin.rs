//! The admin port.

use coterie_crds::admin::{FLEET_PATH, SAMPLES_PATH, STATE_PATH, STATISTICS_PATH};
use coterie_locality::{Sample, sample::SampleReader};

use super::common::{Fleet, PROMPT, body, recording, streamed};

#[tokio::test]
async fn nothing_is_shown_without_the_key_and_a_new_key_counts_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "first\n").unwrap();
    let fleet = Fleet::with_flags(1, 1, &["--admin-token-file", path.to_str().unwrap()]).await;
    for admin in [
        STATE_PATH,
        STATISTICS_PATH,
        SAMPLES_PATH,
        FLEET_PATH,
        "/admin/v1/unknown",
    ] {
        assert_eq!(fleet.router.admin(admin).await.status(), 401, "{admin}");
        for wrong in ["first", "Bearer", "Bearer firs", "Bearer first1", "Basic first"] {
            assert_eq!(
                fleet.router.admin_as(admin, wrong).await.status(),
                401,
                "{admin} {wrong}"
            );
        }
    }
    assert_eq!(fleet.router.admin_as(STATE_PATH, "Bearer first").await.status(), 200);
    std::fs::write(&path, "second").unwrap();
    assert_eq!(fleet.router.admin_as(STATE_PATH, "Bearer first").await.status(), 401);
    assert_eq!(fleet.router.admin_as(STATE_PATH, "Bearer second").await.status(), 200);
    std::fs::write(&path, "").unwrap();
    assert_eq!(
        fleet.router.admin_as(STATE_PATH, "Bearer ").await.status(),
        503,
        "an empty key opens nothing"
    );
}

#[tokio::test]
async fn samples_carry_counts_tokens_and_weight_but_no_text() {
    let fleet = Fleet::recorded(1, 1, &["--max-samples", "4"]).await;
    let recording = recording();
    for request in 0..5 {
        let mut whole = body("", 8);
        whole["prompt"] = serde_json::json!(recording.prompt(request));
        fleet.router.complete(&whole).await;
    }
    let stream = fleet.router.post("/v1/completions", &streamed(PROMPT, 9)).await;
    stream.text().await.unwrap();
    fleet.router.at_rest().await;
    let bytes = fleet.router.admin(SAMPLES_PATH).await.bytes().await.unwrap();
    let samples: Vec<Sample> = SampleReader::new(&bytes[..]).unwrap().map(Result::unwrap).collect();
    assert_eq!(samples.len(), 4);
    assert!(samples.iter().all(|s| s.weight == 1.5 && s.fingerprint.model == "tiny"));
    for sample in &samples {
        let counts = sample.prefill_counts.as_ref().unwrap();
        counts.check_conservation().unwrap();
        assert_eq!(counts.tokens(), sample.prompt_tokens);
        assert!(sample.decode_counts.is_none());
    }
    let newest = &samples[0];
    assert_eq!(newest.generated_tokens, 9, "counted in passing from the stream");
    assert!(samples[1..].iter().all(|s| s.generated_tokens == 8));
    let one = fleet
        .router
        .admin(&format!("{SAMPLES_PATH}?limit=1"))
        .await
        .bytes()
        .await
        .unwrap();
    assert_eq!(SampleReader::new(&one[..]).unwrap().count(), 1);
    let none = fleet
        .router
        .admin(&format!("{SAMPLES_PATH}?since={}", u64::MAX))
        .await
        .bytes()
        .await
        .unwrap();
    assert_eq!(SampleReader::new(&none[..]).unwrap().count(), 0);
}

#[tokio::test]
async fn the_fleet_is_shown_with_loads() {
    let fleet = Fleet::start(2, 3).await;
    let shown = fleet.router.fleet().await;
    let names: Vec<&str> = shown.workers.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["decode-0", "decode-1", "decode-2", "prefill-0", "prefill-1"]);
    assert!(shown.workers.iter().all(|w| w.routable && w.own == 0));
    super::common::until("decode workers report", || async {
        let shown = fleet.router.fleet().await;
        shown
            .workers
            .iter()
            .filter(|w| w.role == "decode")
            .all(|w| w.reported == Some(0))
    })
    .await;
    assert_eq!(fleet.router.ready().await, 200);
}

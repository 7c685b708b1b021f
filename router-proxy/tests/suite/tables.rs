//! Tables: routed by, swapped while serving, refused when bad.

use std::path::Path;

use coterie_locality::{
    ActivationCounts, CentroidTable, Fingerprint, Geometry, Transform,
    fit::FitReport,
    table::{Baselines, Precision, digest},
    transform::TransformKind,
};
use serde_json::json;

use super::common::{Fleet, MODEL, PROMPT, body, recording, until};

/// A table whose centroids are the prefill signatures of recorded requests.
fn table(model: &str, requests: &[usize]) -> Vec<u8> {
    let geometry = Geometry::new(6, 64, 4).unwrap();
    let transform = Transform::all_layers(TransformKind::Count, &geometry).unwrap();
    let recording = recording();
    let mut centroids = Vec::new();
    for request in requests {
        let cells = (0..6)
            .flat_map(|l| recording.prefill_counts(*request, l))
            .map(|c| u32::from(*c));
        let counts = ActivationCounts::from_cells(&geometry, cells.collect(), 1).unwrap();
        let mut signature = vec![0.0; transform.dim()];
        transform.signature(&counts, &mut signature).unwrap();
        centroids.extend(signature);
    }
    let table = CentroidTable {
        version: 1,
        fingerprint: Fingerprint::new(model, geometry),
        transform,
        centroids,
        tau: 0.01,
        baselines: Baselines::default(),
        report: FitReport::default(),
        predictors: None,
        text: None,
    };
    table.encode(Precision::F32).unwrap()
}

fn put(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    std::fs::write(&new, bytes).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[tokio::test]
async fn requests_go_where_their_experts_are_and_a_new_table_takes_over_while_serving() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.bin");
    let (first, second) = (table(MODEL, &[3, 400, 700]), table(MODEL, &[700, 3]));
    put(&path, &first);
    let fleet = Fleet::recorded(2, 3, &["--table", path.to_str().unwrap(), "--max-load-ratio", "100"]).await;
    let state = fleet.router.state().await;
    assert_eq!(state.digest.as_deref(), Some(digest(&first).as_str()));
    let recording = recording();
    let workers = fleet.router.fleet().await.workers;
    for (cluster, request) in [(0, 3), (1, 400), (2, 700)] {
        let home = workers.iter().find(|w| w.clusters == [cluster]).unwrap();
        let engine = fleet.decode.iter().find(|e| e.address == home.address).unwrap();
        let before = engine.state().await["requests"]["finished"].as_u64().unwrap();
        let mut whole = body("", 8);
        whole["prompt"] = json!(recording.prompt(request));
        for _ in 0..3 {
            fleet.router.complete(&whole).await;
        }
        let after = engine.state().await["requests"]["finished"].as_u64().unwrap();
        assert_eq!(after - before, 3, "request {request} belongs to {}", home.name);
    }
    let report: coterie_crds::admin::StatisticsReport = fleet
        .router
        .admin(coterie_crds::admin::STATISTICS_PATH)
        .await
        .json()
        .await
        .unwrap();
    let slide = &report.slides[0];
    assert_eq!(slide.cluster_counts, [3, 3, 3]);
    assert!((slide.fit_sum - 9.0).abs() < 1e-3, "{}", slide.fit_sum);

    let serving = async {
        for _ in 0..20 {
            fleet.router.complete(&body(PROMPT, 8)).await;
        }
    };
    let swap = async {
        put(&path, &second);
        until("the new table is in use", || async {
            fleet.router.state().await.digest == Some(digest(&second))
        })
        .await;
    };
    tokio::join!(serving, swap);
    let state = fleet.router.state().await;
    assert_eq!((state.generation, state.problem), (2, None));
    fleet.router.complete(&body(PROMPT, 8)).await;
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_bad_table_leaves_the_last_good_one_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.bin");
    let good = table(MODEL, &[3, 400]);
    put(&path, &good);
    let fleet = Fleet::with_flags(1, 2, &["--table", path.to_str().unwrap()]).await;
    let other_model = table("other", &[3, 400]);
    for (bad, word) in [
        (&b"rubbish"[..], "preamble"),
        (&good[..good.len() / 2], "compressed body"),
        (&other_model, "made for other"),
    ] {
        put(&path, bad);
        until("the problem is shown", || async {
            fleet.router.state().await.problem.is_some_and(|p| p.contains(word))
        })
        .await;
        let state = fleet.router.state().await;
        assert_eq!(state.digest.as_deref(), Some(digest(&good).as_str()), "{word}");
        assert_eq!(fleet.router.ready().await, 200);
        fleet.router.complete(&body(PROMPT, 4)).await;
        assert_eq!(fleet.router.metric("routing_problem").await, 1.0);
    }
    assert_eq!(
        fleet.router.metric(r#"rejected_updates_total{what="table"}"#).await,
        3.0
    );
    put(&path, &good);
    until("the problem is over", || async {
        fleet.router.state().await.problem.is_none()
    })
    .await;
    assert_eq!(fleet.router.metric("routing_problem").await, 0.0);
}

#[tokio::test]
async fn a_router_that_starts_on_a_bad_table_serves_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.bin");
    put(&path, b"rubbish");
    let fleet = Fleet::with_flags(1, 2, &["--table", path.to_str().unwrap()]).await;
    assert_eq!(fleet.router.ready().await, 200);
    fleet.router.complete(&body(PROMPT, 4)).await;
    let state = fleet.router.state().await;
    assert!(state.digest.is_none() && state.problem.is_some());
    let good = table(MODEL, &[3, 400]);
    put(&path, &good);
    until("the table is in use", || async {
        fleet.router.state().await.digest.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_document_of_an_unknown_version_leaves_the_last_good_one_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("document.json");
    let mut document = json!({
        "version": 1, "generation": 7, "deployment": "ns/d",
        "model": {"name": MODEL, "layers": 6, "experts": 64, "topK": 4},
        "policy": "LeastLoaded", "localityBand": {"minCandidates": 1, "maxLoadRatio": 1.5},
        "prefill": {"policy": "PrefixHash", "prefixBytes": 1024, "loadFactor": 1.25},
        "disaggregated": true, "connector": "Nixl", "statistics": {"windowMs": 600_000, "maxSamples": 10}
    });
    put(&path, document.to_string().as_bytes());
    let fleet = Fleet::with_flags(1, 1, &["--document", path.to_str().unwrap()]).await;
    assert_eq!(fleet.router.state().await.generation, 7);
    document["generation"] = json!(8);
    for (version, word) in [(json!(2), "version 2 is unknown"), (json!("x"), "routing document")] {
        document["version"] = version;
        put(&path, document.to_string().as_bytes());
        until("the problem is shown", || async {
            fleet.router.state().await.problem.is_some_and(|p| p.contains(word))
        })
        .await;
        assert_eq!(fleet.router.state().await.generation, 7);
        fleet.router.complete(&body(PROMPT, 4)).await;
    }
    std::fs::remove_file(&path).unwrap();
    until("the loss is shown", || async {
        fleet
            .router
            .state()
            .await
            .problem
            .is_some_and(|p| p.contains("No such file"))
    })
    .await;
    fleet.router.complete(&body(PROMPT, 4)).await;
    document["version"] = json!(1);
    put(&path, document.to_string().as_bytes());
    until("the new document is in use", || async {
        fleet.router.state().await.generation == 8
    })
    .await;
}

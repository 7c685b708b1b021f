//! Signatures of requests' text: with engines that return no experts, without prefill workers, and in the place of counts that do not come.

use std::{path::PathBuf, sync::OnceLock};

use coterie_crds::admin::{self, SAMPLES_PATH, STATISTICS_PATH, StatisticsReport};
use coterie_locality::{
    ActivationCounts, CentroidTable, Fingerprint, FitOptions, Geometry, Sample, Source, fit, fit::Tau, nearest,
    predictor::NgramCounter, sample::SampleReader, table::Precision,
};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::common::{Engine, Fleet, MODEL, body, streamed, success};

/// Kinds of text that share no words and, in the table, no experts.
const KINDS: [&str; 3] = [
    "der Hund und die Katze ",
    "fn main() -> u32 { ",
    "SELECT name FROM users ",
];

fn text(kind: usize, words: usize) -> String {
    KINDS[kind].repeat(words)
}

/// Requests whose kind tells both their words and their experts.
fn samples() -> Vec<Sample> {
    let geometry = Geometry::new(6, 64, 4).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let samples = (0..120).map(|i| {
        let kind = i % 3;
        let mut draw = |tokens: usize| {
            let mut rows = Vec::new();
            for _ in 0..tokens * 6 {
                let of = if rng.gen_bool(0.1) { rng.gen_range(0..3) } else { kind };
                let first = of as u8 * 16 + rng.gen_range(0..4u8) * 4;
                rows.extend([first, first + 1, first + 2, first + 3]);
            }
            ActivationCounts::from_rows(&geometry, &rows, tokens).unwrap()
        };
        let mut sample = Sample::new(Fingerprint::new(MODEL, geometry));
        sample.prefill_counts = Some(draw(12));
        sample.decode_counts = Some(draw(40));
        let mut counter = NgramCounter::new();
        for _ in 0..rng.gen_range(3..12) {
            let of = if rng.gen_bool(0.1) { rng.gen_range(0..3) } else { kind };
            counter.push(KINDS[of].as_bytes());
        }
        sample.ngrams = counter.ngrams();
        sample
    });
    samples.collect()
}

fn fitted(options: FitOptions) -> CentroidTable {
    let quick = FitOptions {
        clusters: 3,
        pairs: 2_000,
        resamples: 20,
        tau: Tau::Fixed(0.01),
        ..options
    };
    let mut table = fit(&samples(), &quick, None).unwrap().0;
    // The band of source Prefill holds every worker: nothing of it may be used for text.
    table.tau = 2.0;
    table
}

/// A table that knows text.
fn table() -> &'static CentroidTable {
    static TABLE: OnceLock<CentroidTable> = OnceLock::new();
    TABLE.get_or_init(|| fitted(FitOptions::default()))
}

fn file(table: &CentroidTable) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.bin");
    std::fs::write(&path, table.encode(Precision::F32).unwrap()).unwrap();
    (folder, path)
}

async fn engines(count: usize) -> Vec<Engine> {
    let mut engines = Vec::new();
    for _ in 0..count {
        engines.push(Engine::start(false).await);
    }
    engines
}

/// Engines without capture; with `prefill` 0, plain workers.
async fn fleet(
    prefill: usize,
    decode: usize,
    table: Option<&CentroidTable>,
    flags: &[&str],
) -> (Fleet, Option<TempDir>) {
    let (folder, path) = table.map(file).unzip();
    let mut all = vec!["--max-load-ratio", "100"];
    if let Some(path) = &path {
        all.extend(["--table", path.to_str().unwrap()]);
    }
    all.extend(flags);
    (
        Fleet::of(engines(prefill).await, engines(decode).await, &all).await,
        folder,
    )
}

/// The decode worker that carries the cluster of a text.
async fn home(fleet: &Fleet, text: &str) -> usize {
    let (predictors, part) = (
        table().predictors.as_ref().unwrap(),
        table().source(Source::Text).unwrap(),
    );
    let mut counter = NgramCounter::new();
    counter.push(text.as_bytes());
    let mut values = vec![0.0; 6 * 64];
    predictors.text_into(&counter, &mut values).unwrap();
    let mut signature = vec![0.0; part.transform.dim()];
    part.transform.signature_of_values(&values, &mut signature).unwrap();
    let scores: Vec<f32> = part
        .centroids
        .chunks_exact(part.transform.dim())
        .map(|c| c.iter().zip(&signature).map(|(a, b)| a * b).sum())
        .collect();
    let cluster = nearest(&scores).unwrap().cluster as u32;
    let workers = fleet.router.fleet().await.workers;
    let worker = workers.iter().find(|w| w.text_clusters.contains(&cluster)).unwrap();
    let engine = fleet.decode.iter().position(|e| e.address == worker.address);
    engine.unwrap()
}

async fn finished(engine: &Engine) -> u64 {
    engine.state().await["requests"]["finished"].as_u64().unwrap()
}

/// Every kind goes to its own worker.
async fn parted(fleet: &Fleet) {
    let mut homes = Vec::new();
    for kind in 0..3 {
        let home = home(fleet, &text(kind, 4)).await;
        let before = finished(&fleet.decode[home]).await;
        for _ in 0..3 {
            fleet.router.complete(&body(&text(kind, 4), 4)).await;
        }
        assert_eq!(finished(&fleet.decode[home]).await - before, 3, "kind {kind}");
        homes.push(home);
    }
    homes.sort_unstable();
    assert_eq!(homes, [0, 1, 2], "one worker for each kind");
    assert_eq!(source(fleet, "Text").await, 9.0);
    assert_eq!(fleet.router.metric(r#"decisions_total{reason="Band"}"#).await, 9.0);
    fleet.router.at_rest().await;
}

async fn source(fleet: &Fleet, source: &str) -> f64 {
    let series = format!("signature_sources_total{{source=\"{source}\"}}");
    fleet.router.metric(&series).await
}

async fn result(fleet: &Fleet, result: &str) -> f64 {
    let series = format!("signature_requests_total{{result=\"{result}\"}}");
    fleet.router.metric(&series).await
}

async fn fallback(fleet: &Fleet, reason: &str) -> f64 {
    let series = format!("signature_text_fallbacks_total{{reason=\"{reason}\"}}");
    fleet.router.metric(&series).await
}

async fn statistics(fleet: &Fleet) -> StatisticsReport {
    fleet.router.admin(STATISTICS_PATH).await.json().await.unwrap()
}

fn ids() -> Value {
    let mut whole = body("", 4);
    whole["prompt"] = json!([5, 6, 7, 8, 9, 10, 11, 12]);
    whole
}

#[tokio::test]
async fn text_parts_requests_whose_engines_return_no_experts() {
    let (fleet, _folder) = fleet(2, 3, Some(table()), &["--signature-source", "Text"]).await;
    parted(&fleet).await;
    assert_eq!(fallback(&fleet, "Missing").await, 0.0, "counts were not wanted");
    assert_eq!(fleet.router.metric(r#"handoffs_total{result="used"}"#).await, 9.0);
    let report = statistics(&fleet).await;
    assert_eq!(report.slides.len(), 1);
    let slide = &report.slides[0];
    assert_eq!((slide.source, slide.signed), (admin::Source::Text, 9));
    assert_eq!(slide.cluster_counts, [3, 3, 3]);
}

#[tokio::test]
async fn plain_workers_are_chosen_by_text_and_get_the_clients_bytes() {
    let (fleet, _folder) = fleet(0, 3, Some(table()), &[]).await;
    parted(&fleet).await;
    assert_eq!(fallback(&fleet, "NoPrefill").await, 9.0);
    assert_eq!(
        fleet
            .router
            .metric(r#"decode_only_requests_total{reason="NoPrefillWorker"}"#)
            .await,
        0.0,
        "nothing is amiss in a fleet without a prefill pool"
    );
    // Streams, chats and several answers too.
    let stream = fleet.router.post("/v1/completions", &streamed(&text(1, 4), 6)).await;
    assert!(stream.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    let chat = json!({"model": MODEL, "max_tokens": 4, "messages": [{"role": "user", "content": text(2, 4)}]});
    let at = home(&fleet, &text(2, 4)).await;
    let before = finished(&fleet.decode[at]).await;
    success(fleet.router.post("/v1/chat/completions", &chat).await).await;
    assert_eq!(finished(&fleet.decode[at]).await - before, 1, "chat");
    let mut twice = body(&text(0, 4), 4);
    twice["n"] = json!(2);
    let direct = success(fleet.decode[0].post("/v1/completions", &twice).await).await;
    let routed = fleet.router.complete(&twice).await;
    assert_eq!(routed["choices"], direct["choices"]);
    fleet.router.at_rest().await;

    let bytes = fleet.router.admin(SAMPLES_PATH).await.bytes().await.unwrap();
    let samples: Vec<Sample> = SampleReader::new(&bytes[..]).unwrap().map(Result::unwrap).collect();
    assert_eq!(samples.len(), 12);
    let mut expected = NgramCounter::new();
    expected.push(text(2, 4).as_bytes());
    assert!(samples.iter().any(|s| s.ngrams == expected.ngrams()));
    assert!(samples.iter().all(|s| s.source == Source::Text && s.cluster.is_some()));
    assert!(samples.iter().all(|s| s.prefill_counts.is_none()));
}

#[tokio::test]
async fn auto_takes_counts_where_they_come_and_text_where_not() {
    let (_folder, path) = file(table());
    let flags = ["--max-load-ratio", "100", "--table", path.to_str().unwrap()];
    let fleet = Fleet::of(vec![Engine::start(true).await], engines(3).await, &flags).await;
    fleet.router.complete(&body(&text(0, 4), 4)).await;
    assert_eq!(
        (source(&fleet, "Prefill").await, source(&fleet, "Text").await),
        (1.0, 0.0)
    );
    for (fault, reason) in [
        (json!({"kind": "no_experts", "count": 1}), "Missing"),
        (
            json!({"kind": "malformed_experts", "value": "truncated", "count": 1}),
            "Malformed",
        ),
        (
            json!({"kind": "malformed_experts", "value": "wrong_shape", "count": 1}),
            "Geometry",
        ),
    ] {
        fleet.prefill[0].fault(fault).await;
        let home = home(&fleet, &text(1, 4)).await;
        let before = finished(&fleet.decode[home]).await;
        fleet.router.complete(&body(&text(1, 4), 4)).await;
        assert_eq!(finished(&fleet.decode[home]).await - before, 1, "{reason}");
        assert_eq!(fallback(&fleet, reason).await, 1.0);
    }
    // Ids have counts, and without them nothing: the engine's fault is the reason that is shown.
    fleet.router.complete(&ids()).await;
    assert_eq!(
        (source(&fleet, "Prefill").await, source(&fleet, "Text").await),
        (2.0, 3.0)
    );
    fleet.prefill[0].fault(json!({"kind": "no_experts", "count": 1})).await;
    fleet.router.complete(&ids()).await;
    assert_eq!(
        (result(&fleet, "missing").await, result(&fleet, "no_text").await),
        (1.0, 0.0)
    );
    assert_eq!(
        (result(&fleet, "signed").await, source(&fleet, "None").await),
        (5.0, 1.0)
    );
    let report = statistics(&fleet).await;
    let of = |source| report.slides.iter().find(|s| s.source == source).unwrap();
    assert_eq!(
        (of(admin::Source::Prefill).signed, of(admin::Source::Prefill).requests),
        (2, 3)
    );
    assert_eq!(of(admin::Source::Text).signed, 3);
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn a_table_without_text_leaves_auto_with_counts_and_text_with_load() {
    let plain = fitted(FitOptions {
        predictors: None,
        ..FitOptions::default()
    });
    assert!(plain.text.is_none());
    let (_folder, path) = file(&plain);
    let flags = ["--table", path.to_str().unwrap()];
    let auto = Fleet::of(vec![Engine::start(true).await], engines(2).await, &flags).await;
    auto.router.complete(&body(&text(0, 4), 4)).await;
    auto.prefill[0].fault(json!({"kind": "no_experts", "count": 1})).await;
    auto.router.complete(&body(&text(0, 4), 4)).await;
    assert_eq!(
        (source(&auto, "Prefill").await, result(&auto, "missing").await),
        (1.0, 1.0)
    );

    let (text_only, _same) = fleet(0, 2, Some(&plain), &["--signature-source", "Text"]).await;
    text_only.router.complete(&body(&text(0, 4), 4)).await;
    assert_eq!(result(&text_only, "no_text_source").await, 1.0);
    let by = |reason: &str| format!("decisions_total{{reason=\"{reason}\"}}");
    assert_eq!(text_only.router.metric(&by("NoSignature")).await, 1.0);
    let slide = statistics(&text_only).await.slides.remove(0);
    assert_eq!((slide.source, slide.missing["NoTextSource"]), (admin::Source::Text, 1));

    let (no_table, _none) = fleet(0, 2, None, &["--signature-source", "Text"]).await;
    no_table.router.complete(&body(&text(0, 4), 4)).await;
    assert_eq!(no_table.router.metric(&by("NoTable")).await, 1.0);
    assert_eq!(result(&no_table, "no_text_source").await, 1.0);
}

#[tokio::test]
async fn prompts_without_text_go_by_load_and_any_bytes_are_text() {
    let (fleet, _folder) = fleet(1, 2, Some(table()), &["--signature-source", "Text"]).await;
    fleet.router.complete(&ids()).await;
    assert_eq!(
        (result(&fleet, "no_text").await, source(&fleet, "None").await),
        (1.0, 1.0)
    );
    assert_eq!(
        fleet.router.metric(r#"decisions_total{reason="NoSignature"}"#).await,
        1.0
    );
    for odd in ["\u{0}\u{1}\u{7f}\u{fffd}\u{10ffff}", "x", "日本語のテキスト"] {
        fleet.router.complete(&body(odd, 4)).await;
    }
    let mut two = body("", 4);
    two["prompt"] = json!([text(0, 2), text(0, 3)]);
    fleet.router.complete(&two).await;
    assert_eq!(
        (result(&fleet, "signed").await, source(&fleet, "Text").await),
        (4.0, 4.0)
    );
    fleet.router.at_rest().await;
}

#[tokio::test]
async fn marginal_cost_gets_the_frequencies_that_the_text_foretells() {
    let flags = ["--signature-source", "Text", "--policy", "MarginalCost"];
    let (fleet, _folder) = fleet(0, 3, Some(table()), &flags).await;
    fleet.router.complete(&body(&text(0, 4), 4)).await;
    fleet.router.complete(&ids()).await;
    assert_eq!(
        fleet.router.metric(r#"decisions_total{reason="MarginalCost"}"#).await,
        1.0
    );
    assert_eq!(
        fleet.router.metric(r#"decisions_total{reason="NoSignature"}"#).await,
        1.0
    );
    // A request alone is expected to use its own experts only, 4 a layer.
    let alone = fleet.router.metric("expected_distinct_experts_sum").await;
    assert!((3.9..4.1).contains(&alone), "{alone}");
    fleet.router.at_rest().await;
}

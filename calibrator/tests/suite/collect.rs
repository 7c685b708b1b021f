//! Prompts to samples to a table.

use std::net::TcpListener;

use coterie_calibrator::collect::probe::Probe;

use crate::cli::Bench;
use crate::common::{engine, fingerprint, recorded_prompts};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_give_samples_with_both_counts_and_a_table_with_rho() {
    let engine = engine(true).await;
    let (_, prompts) = recorded_prompts(120);
    let probe = Probe::resolve(&[engine.address().to_string()]).await.unwrap();
    let samples = probe.collect(&fingerprint(), &prompts).await.unwrap();
    assert_eq!(samples.len(), 120);
    for sample in &samples {
        let (prefill, decode) = (
            sample.prefill_counts.as_ref().unwrap(),
            sample.decode_counts.as_ref().unwrap(),
        );
        assert_eq!(prefill.tokens(), sample.prompt_tokens);
        assert_eq!((decode.tokens(), sample.generated_tokens), (16, 16));
        prefill.check_conservation().unwrap();
        decode.check_conservation().unwrap();
    }
    // The order of the samples is the order of the prompts, so a run is the same each time.
    let again = probe.collect(&fingerprint(), &prompts).await.unwrap();
    assert!(
        samples
            .iter()
            .zip(&again)
            .all(|(a, b)| a.prefill_counts == b.prefill_counts)
    );

    let bench = Bench::new();
    bench.samples("samples", &samples);
    let fitted = bench.json("fit samples --clusters 4 --out table");
    assert_eq!(
        (
            &fitted["clusters"],
            &fitted["report"]["samples"],
            &fitted["report"]["decodeSamples"]
        ),
        (&4.into(), &120.into(), &120.into())
    );
    let rho = fitted["report"]["rho"].as_f64().unwrap();
    assert!(rho > 0.3, "the recording's rho is about 0.6, the fit says {rho}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_without_capture_are_the_inputs_fault_and_say_what_to_do() {
    let engine = engine(false).await;
    let probe = Probe::resolve(&[engine.address().to_string()]).await.unwrap();
    let error = probe
        .collect(&fingerprint(), &recorded_prompts(20).1)
        .await
        .unwrap_err();
    assert_eq!((error.reason(), error.exit_code()), ("NoExperts", 65));
    assert!(error.to_string().contains("--enable-return-routed-experts"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_geometry_is_refused() {
    let engine = engine(true).await;
    let probe = Probe::resolve(&[engine.address().to_string()]).await.unwrap();
    let other = coterie_locality::Fingerprint::new("tiny-moe", coterie_locality::Geometry::new(7, 64, 4).unwrap());
    let error = probe.collect(&other, &recorded_prompts(20).1).await.unwrap_err();
    assert_eq!(error.reason(), "NoExperts", "{error}");
}

#[tokio::test]
async fn engines_that_cannot_be_reached_are_worth_a_retry() {
    let _ = coterie_service::start("test", &coterie_service::ServiceArgs::default());
    // A port that nobody listens on: bound, read, and let go.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let probe = Probe::resolve(&[free.to_string()]).await.unwrap();
    let error = probe.collect(&fingerprint(), &recorded_prompts(4).1).await.unwrap_err();
    assert_eq!((error.reason(), error.exit_code()), ("EnginesUnreachable", 75));
    let error = Probe::resolve(&["no-such-host.invalid:1".to_owned()])
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 75);
}

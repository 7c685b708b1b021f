//! Samples from routers' admin ports.

use axum::{Router, http::HeaderMap, http::StatusCode, routing::get};
use coterie_calibrator::collect::live::Routers;
use coterie_crds::admin::SAMPLES_PATH;
use coterie_locality::{ActivationCounts, Fingerprint, Geometry, Sample, sample::SampleWriter};

use crate::common::fingerprint;

fn sample(fingerprint: Fingerprint, counted: bool) -> Sample {
    let counts = ActivationCounts::zeros(&fingerprint.geometry);
    Sample {
        prefill_counts: counted.then_some(counts),
        ..Sample::new(fingerprint)
    }
}

fn container() -> Vec<u8> {
    let other = Fingerprint::new("other", Geometry::new(6, 64, 4).unwrap());
    let mut writer = SampleWriter::new(Vec::new()).unwrap();
    for _ in 0..30 {
        writer.write(&sample(fingerprint(), true)).unwrap();
    }
    writer.write(&sample(fingerprint(), false)).unwrap();
    writer.write(&sample(other, true)).unwrap();
    writer.finish().unwrap()
}

async fn serve(body: Vec<u8>) -> std::net::SocketAddr {
    let answer = move |headers: HeaderMap| async move {
        match headers.get("authorization").and_then(|value| value.to_str().ok()) {
            Some("Bearer secret") => (StatusCode::OK, body),
            _ => (StatusCode::UNAUTHORIZED, Vec::new()),
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route(SAMPLES_PATH, get(answer))).await });
    address
}

async fn collect(body: Vec<u8>, token: &str, limit: usize) -> Result<Vec<Sample>, coterie_calibrator::error::Error> {
    let _ = coterie_service::start("test", &coterie_service::ServiceArgs::default());
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, format!("{token}\n")).unwrap();
    let admin = serve(body).await.to_string();
    Routers { admin, token_file }.collect(&fingerprint(), 0, limit, 1).await
}

#[tokio::test]
async fn keeps_samples_of_this_model_that_have_counts_up_to_the_limit() {
    assert_eq!(collect(container(), "secret", 100).await.unwrap().len(), 30);
    assert_eq!(collect(container(), "secret", 10).await.unwrap().len(), 10);
}

#[tokio::test]
async fn a_refused_key_is_final_and_a_broken_stream_worth_a_retry() {
    assert_eq!(
        collect(container(), "wrong", 10).await.unwrap_err().reason(),
        "KeyRefused"
    );
    let mut cut = container();
    cut.truncate(cut.len() / 2);
    assert_eq!(collect(cut, "secret", 10).await.unwrap_err().exit_code(), 75);
    assert_eq!(
        collect(b"not a container".to_vec(), "secret", 10)
            .await
            .unwrap_err()
            .exit_code(),
        75
    );
}

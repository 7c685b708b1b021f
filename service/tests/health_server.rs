//! The health server over a real socket.

use coterie_service::{Readiness, health_server, metrics::Metrics};
use prometheus_client::metrics::counter::Counter;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn ready_only_when_every_gate_is_open_and_metrics_carry_the_prefix() {
    coterie_service::start("test", &coterie_service::ServiceArgs::default()).unwrap();
    let (metrics, readiness) = (Metrics::default(), Readiness::default());
    let counter = metrics.register("coterie_test", |registry| {
        let counter = Counter::<u64>::default();
        registry.register("requests", "Requests seen", counter.clone());
        counter
    });
    counter.inc();
    let gate = readiness.gate("document");
    let server = health_server::bind("127.0.0.1:0".parse().unwrap(), metrics, readiness)
        .await
        .unwrap();
    let base = format!("http://{}", server.address().unwrap());
    let stop = CancellationToken::new();
    let running = tokio::spawn(server.run(stop.clone()));

    let closed = reqwest::get(format!("{base}/readyz")).await.unwrap();
    assert_eq!(closed.status(), 503);
    assert_eq!(closed.text().await.unwrap(), "waiting for: document\n");
    gate.open();
    assert_eq!(reqwest::get(format!("{base}/readyz")).await.unwrap().status(), 200);
    assert_eq!(reqwest::get(format!("{base}/livez")).await.unwrap().status(), 200);
    let text = reqwest::get(format!("{base}/metrics"))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(text.contains("coterie_test_requests_total 1"), "{text}");

    stop.cancel();
    running.await.unwrap().unwrap();
}

//! METRICS.md is made from the registry's own descriptions.

use std::{collections::BTreeSet, fmt::Write, path::Path};

use coterie_router::described_metrics;

use super::common::{Fleet, PROMPT, body, streamed};

fn page() -> String {
    let mut page = String::from(
        "# Metrics of coterie-router\n\nMade from the registry by `UPDATE=1 cargo test -p coterie-router metrics_page`; do not edit.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for metric in described_metrics() {
        let labels = metric.labels.join(", ");
        writeln!(
            page,
            "| `{}` | {} | {labels} | {} |",
            metric.name, metric.kind, metric.help
        )
        .unwrap();
    }
    page
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("METRICS.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        committed,
        page(),
        "run: UPDATE=1 cargo test -p coterie-router metrics_page"
    );
}

#[tokio::test]
async fn every_described_metric_is_scraped_and_no_other() {
    let fleet = Fleet::start(1, 1).await;
    fleet.router.complete(&body(PROMPT, 4)).await;
    let stream = fleet.router.post("/v1/completions", &streamed(PROMPT, 4)).await;
    stream.text().await.unwrap();
    let scraped = fleet.router.metrics().await;
    let scraped: BTreeSet<&str> = scraped
        .lines()
        .filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let described = described_metrics();
    let described: BTreeSet<&str> = described.iter().map(|d| d.name.trim_end_matches("_total")).collect();
    assert_eq!(scraped, described);
}

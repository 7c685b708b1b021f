//! METRICS.md is made from the registry's own text.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

use std::{collections::BTreeMap, fmt::Write, path::Path};

use coterie_operator::{
    error::Category,
    metrics::{
        Controller, ControllerLabels, ErrorLabels, OperatorMetrics, RunLabels, RunReasonLabel, SignalLabel,
        fleet_labels,
    },
    owner::Fleet,
};
use coterie_service::metrics::Metrics;

/// One series of every metric, for empty families have no text.
fn text() -> String {
    let registry = Metrics::default();
    let metrics = OperatorMetrics::register(&registry);
    let controller = Controller::Fleet;
    metrics
        .reconcile_seconds
        .get_or_create(&ControllerLabels { controller })
        .observe(0.1);
    metrics
        .reconcile_errors
        .get_or_create(&ErrorLabels {
            controller,
            category: Category::Read,
        })
        .inc();
    metrics.writes.get_or_create(&ControllerLabels { controller }).inc();
    metrics
        .runs
        .get_or_create(&RunLabels {
            reason: RunReasonLabel::Initial,
        })
        .inc();
    let fleet = Fleet {
        namespace: "n".into(),
        name: "d".into(),
        uid: "u".into(),
    };
    metrics.set_signal(&fleet, SignalLabel::CentroidFit, 0.5, 0.5, 0.5);
    metrics.signature_coverage.get_or_create(&fleet_labels(&fleet)).set(1.0);
    metrics.drifted.get_or_create(&fleet_labels(&fleet)).set(0);
    registry.encode()
}

fn page() -> String {
    let text = text();
    let mut metrics: BTreeMap<&str, (&str, &str, String)> = BTreeMap::new();
    let kinds = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    for (name, kind) in kinds {
        let help = text
            .lines()
            .find_map(|line| line.strip_prefix("# HELP ")?.strip_prefix(name)?.strip_prefix(' '));
        let series = text
            .lines()
            .find(|line| !line.starts_with('#') && line.starts_with(name))
            .unwrap();
        let labels = series
            .split_once('{')
            .map_or("", |(_, rest)| rest.split_once('}').unwrap().0);
        let labels: Vec<&str> = labels
            .split(',')
            .filter_map(|label| Some(label.split_once('=')?.0))
            .filter(|label| *label != "le")
            .collect();
        metrics.insert(name, (kind, help.unwrap().trim_end_matches('.'), labels.join(", ")));
    }
    let mut page = String::from(
        "# Metrics of coterie-operator\n\nMade from the registry by `UPDATE=1 cargo test -p coterie-operator --test metrics_page`; do not edit.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for (name, (kind, help, labels)) in metrics {
        let suffix = if kind == "counter" { "_total" } else { "" };
        writeln!(page, "| `{name}{suffix}` | {kind} | {labels} | {help} |").unwrap();
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
        "run: UPDATE=1 cargo test -p coterie-operator --test metrics_page"
    );
}

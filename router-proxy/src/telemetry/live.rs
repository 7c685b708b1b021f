//! Metrics read from the routing state at each scrape: their labels are those of the workers that exist now.

use std::{fmt, sync::Arc};

use coterie_service::metrics::Metrics;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::catalog::{Described, PREFIX};
use crate::core::Core;

/// The routing state as metrics.
#[derive(Debug)]
pub(crate) struct LiveMetrics {
    core: Arc<Core>,
}

type Labels = Vec<(&'static str, String)>;
type Values = Vec<(Labels, f64)>;

const WORKER: &[&str] = &["worker", "role"];

/// Names, labels and help of what [`LiveMetrics::values`] gives, in its order.
const DESCRIPTIONS: [(&str, &[&str], &str); 9] = [
    (
        "document_generation",
        &[],
        "Generation of the routing document in use; 0: none yet",
    ),
    (
        "routing_problem",
        &[],
        "1 while the newest routing document or table is not in use; ask the admin port's state why",
    ),
    (
        "table_info",
        &["table", "digest"],
        "1 for the centroid table in use; the digest is shortened",
    ),
    (
        "table_age_seconds",
        &[],
        "Time since the table in use was taken; absent without one",
    ),
    ("samples", &[], "Samples held for calibration"),
    ("worker_routable", WORKER, "1 if requests may go to the worker"),
    (
        "worker_own_requests",
        WORKER,
        "Requests of this router at the worker, reserved or running",
    ),
    (
        "worker_reported_requests",
        WORKER,
        "Requests running and waiting at the worker as its engine last said; absent without a fresh report",
    ),
    ("worker_load_requests", WORKER, "Load by which workers are compared"),
];

impl LiveMetrics {
    /// Registers the collector; gives the descriptions.
    pub(crate) fn register(metrics: &Metrics, core: &Arc<Core>) -> Vec<Described> {
        let this = Self { core: Arc::clone(core) };
        metrics.register(PREFIX, |registry| registry.register_collector(Box::new(this)));
        Self::described()
    }

    pub(crate) fn described() -> Vec<Described> {
        let describe = |(name, labels, help): (&str, &'static [&'static str], &'static str)| Described {
            name: format!("{PREFIX}_{name}"),
            kind: "gauge",
            labels,
            help,
        };
        DESCRIPTIONS.into_iter().map(describe).collect()
    }

    fn values(&self) -> [Values; DESCRIPTIONS.len()] {
        let view = self.core.routing.view();
        let now = self.core.clock.monotonic_ms();
        let one = |value: f64| vec![(Labels::new(), value)];
        let flag = |on: bool| f64::from(u8::from(on));
        let table = view.active.as_ref().and_then(|a| a.table.as_ref());
        let fleet = view.fleet(now);
        let workers = |value: &dyn Fn(&coterie_crds::admin::Worker) -> Option<f64>| -> Values {
            let labels = |w: &coterie_crds::admin::Worker| vec![("worker", w.name.clone()), ("role", w.role.clone())];
            fleet
                .workers
                .iter()
                .filter_map(|w| Some((labels(w), value(w)?)))
                .collect()
        };
        [
            one(view.active.as_ref().map_or(0.0, |a| a.document.generation as f64)),
            one(flag(self.core.routing.problem().is_some())),
            table.map_or_else(Values::new, |t| {
                vec![(vec![("table", t.name.clone()), ("digest", short(&t.digest))], 1.0)]
            }),
            table.map_or_else(Values::new, |t| one(now.saturating_sub(t.since_ms) as f64 / 1000.0)),
            one(self.core.statistics.kept_samples() as f64),
            workers(&|w| Some(flag(w.routable))),
            workers(&|w| Some(w.own as f64)),
            workers(&|w| w.reported.map(|r| r as f64)),
            view.members
                .iter()
                .map(|m| {
                    let labels = vec![
                        ("worker", m.spec.name.clone()),
                        ("role", m.spec.role.as_str().to_owned()),
                    ];
                    (labels, f64::from(m.worker.load(now)))
                })
                .collect(),
        ]
    }
}

impl Collector for LiveMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for ((name, _, help), values) in DESCRIPTIONS.into_iter().zip(self.values()) {
            let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            encode(encoder, &values)?;
        }
        Ok(())
    }
}

fn encode(mut encoder: MetricEncoder<'_>, values: &Values) -> Result<(), fmt::Error> {
    for (labels, value) in values {
        let gauge = ConstGauge::new(*value);
        if labels.is_empty() {
            encoder.encode_gauge(value)?;
        } else {
            gauge.encode(encoder.encode_family(labels)?)?;
        }
    }
    Ok(())
}

/// Enough of a digest to tell tables apart.
fn short(digest: &str) -> String {
    digest.trim_start_matches("sha256:").chars().take(12).collect()
}

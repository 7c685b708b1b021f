//! The fit's report in the words of the API: decimals are strings.

use std::time::Duration;

use coterie_crds::v1alpha1::{Baselines, RunReport};
use coterie_locality::CentroidTable;

/// Longest list of cluster shares that the API takes.
const MAX_SHARES: usize = 4096;

/// The report of a fitted table.
pub fn run_report(table: &CentroidTable, collected: Duration, fitted: Duration) -> RunReport {
    let report = &table.report;
    RunReport {
        samples: clamp(report.samples),
        replayed: clamp(report.decode_samples),
        layers: clamp(report.layers.len() as u64),
        rho: report.rho.map(|rho| format!("{rho:.2}")),
        predicted_gain: report.predicted_gain.map(|gain| format!("{gain:.3}")),
        balance: Some(format!("{:.2}", report.balance)),
        collect_seconds: Some(format!("{:.1}", collected.as_secs_f64())),
        fit_seconds: Some(format!("{:.2}", fitted.as_secs_f64())),
    }
}

/// The baselines of a fitted table.
pub fn baselines(table: &CentroidTable) -> Baselines {
    let base = &table.baselines;
    Baselines {
        fit: format!("{:.5}", base.fit_mean),
        fit_error: format!("{:.6}", base.fit_se),
        skew: format!("{:.4}", base.skew),
        samples: clamp(base.requests),
        cluster_shares: base
            .cluster_shares
            .iter()
            .take(MAX_SHARES)
            .map(|share| format!("{share:.5}"))
            .collect(),
    }
}

/// How the table turns counts into a signature, for people.
pub fn transform(table: &CentroidTable) -> String {
    let transform = &table.transform;
    format!(
        "{:?}, {} of {} layers",
        transform.kind(),
        transform.kept_layers().len(),
        transform.geometry().layers
    )
}

fn clamp(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

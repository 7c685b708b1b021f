//! Which old tables and runs are deleted.

use std::time::Duration;

use coterie_crds::v1alpha1::{CalibrationRun, CentroidTable, RunPhase, TablePhase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::{attempt::elapsed, promotion, queue};

/// Tables kept beside the active one.
const KEPT_TABLES: usize = 4;
/// Finished runs kept.
const KEPT_RUNS: usize = 20;
/// Runs of the last day are kept in any case: the daily budget counts them.
const DAY: Duration = Duration::from_secs(86_400);

/// Names of tables to delete: neither active, nor waiting for a decision, nor among the newest.
pub fn old_tables(tables: &[CentroidTable], active: Option<&str>) -> Vec<String> {
    promotion::by_age(tables)
        .into_iter()
        .rev()
        .filter(|t| Some(t.name_any().as_str()) != active)
        .filter(|t| {
            matches!(
                t.status.as_ref().and_then(|s| s.phase),
                Some(TablePhase::Superseded | TablePhase::Rejected)
            )
        })
        .skip(KEPT_TABLES)
        .map(ResourceExt::name_any)
        .collect()
}

/// Names of runs to delete.
pub fn old_runs(runs: &[CalibrationRun], now: &Time) -> Vec<String> {
    let finished = |r: &&CalibrationRun| !matches!(queue::phase(r), RunPhase::Pending | RunPhase::Running);
    queue::by_age(runs)
        .into_iter()
        .rev()
        .filter(finished)
        .skip(KEPT_RUNS)
        .filter(|r| {
            r.metadata
                .creation_timestamp
                .as_ref()
                .is_some_and(|t| elapsed(t, now) > DAY)
        })
        .map(ResourceExt::name_any)
        .collect()
}

//! Whether a drifted fleet may start a re-fit now: one at a time, a cooldown between two, a daily budget.

use std::time::Duration;

use coterie_crds::{
    quantity,
    v1alpha1::{CalibrationRun, Drift, DriftMode, DriftStatus, RunPhase, RunReason},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::SignedDuration};

use crate::calibration::{attempt::elapsed, queue};

const DAY: Duration = Duration::from_secs(86_400);

/// Answer to a wish for a re-fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may start.
    Open,
    /// The spec asks for watching only.
    Observe,
    /// A run is not finished.
    RunNotFinished,
    /// The last re-fit is too recent.
    Cooldown,
    /// The last 24 hours had as many as allowed.
    DailyBudget,
}

impl Gate {
    /// Word for the status; none when open.
    pub fn skipped_reason(&self) -> Option<String> {
        (*self != Self::Open).then(|| format!("{self:?}"))
    }
}

/// When the last drift run was started: by the status, or by the runs that exist.
pub fn last_refit(status: Option<&DriftStatus>, runs: &[CalibrationRun]) -> Option<Time> {
    let by_runs = drift_runs(runs).filter_map(|r| r.metadata.creation_timestamp.clone());
    status
        .and_then(|s| s.last_refit_time.clone())
        .into_iter()
        .chain(by_runs)
        .max_by_key(|t| t.0)
}

/// End of the cooldown.
pub fn next_eligible(last: &Time, drift: &Drift) -> Option<Time> {
    let cooldown = SignedDuration::try_from(cooldown(drift)).ok()?;
    Some(Time(last.0.checked_add(cooldown).ok()?))
}

/// Decides.
pub fn gate(drift: &Drift, last: Option<&Time>, runs: &[CalibrationRun], now: &Time) -> Gate {
    if drift.mode != DriftMode::Refit {
        return Gate::Observe;
    }
    let unfinished = |r: &CalibrationRun| matches!(queue::phase(r), RunPhase::Pending | RunPhase::Running);
    if runs.iter().any(unfinished) {
        return Gate::RunNotFinished;
    }
    if last.is_some_and(|last| elapsed(last, now) < cooldown(drift)) {
        return Gate::Cooldown;
    }
    let today = drift_runs(runs)
        .filter_map(|r| r.metadata.creation_timestamp.as_ref())
        .filter(|t| elapsed(t, now) < DAY)
        .count();
    if today >= usize::try_from(drift.max_refits_per_day).unwrap_or(1) {
        return Gate::DailyBudget;
    }
    Gate::Open
}

fn drift_runs(runs: &[CalibrationRun]) -> impl Iterator<Item = &CalibrationRun> {
    runs.iter().filter(|r| r.spec.reason == RunReason::Drift)
}

fn cooldown(drift: &Drift) -> Duration {
    // The API server checked it; should it be unreadable all the same, wait long rather than re-fit without end.
    quantity::duration(&drift.cooldown).unwrap_or(DAY)
}

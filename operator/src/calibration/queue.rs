//! One run at a time; the newest of those that wait is next, older ones are superseded.

use coterie_crds::v1alpha1::{CalibrationRun, RunPhase};
use kube::ResourceExt;

/// What the queue says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Runs with a Job; more than one only after two operators worked at once.
    pub running: Vec<String>,
    /// The run that is next.
    pub next: Option<String>,
    /// Runs that a newer one makes pointless.
    pub superseded: Vec<String>,
}

/// Phase of a run; one without status is Pending.
pub fn phase(run: &CalibrationRun) -> RunPhase {
    run.status.as_ref().map(|s| s.phase).unwrap_or_default()
}

/// Runs from oldest to newest.
pub fn by_age(runs: &[CalibrationRun]) -> Vec<&CalibrationRun> {
    let mut sorted: Vec<&CalibrationRun> = runs.iter().collect();
    sorted.sort_by_key(|r| (r.metadata.creation_timestamp.as_ref().map(|t| t.0), r.name_any()));
    sorted
}

/// Looks at all runs of a fleet. Runs that are being deleted do not count.
pub fn queue(runs: &[CalibrationRun]) -> Queue {
    let alive: Vec<&CalibrationRun> = by_age(runs)
        .into_iter()
        .filter(|r| r.metadata.deletion_timestamp.is_none())
        .collect();
    let names = |wanted: RunPhase| -> Vec<String> {
        alive
            .iter()
            .filter(|r| phase(r) == wanted)
            .map(|r| r.name_any())
            .collect()
    };
    let mut pending = names(RunPhase::Pending);
    Queue {
        running: names(RunPhase::Running),
        next: pending.pop(),
        superseded: pending,
    }
}

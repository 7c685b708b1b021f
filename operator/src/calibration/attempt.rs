//! What became of a run's Job: from the Job's conditions, its pods' termination messages and the table that should be there.

use std::time::Duration;

use coterie_crds::{
    names,
    outcome::{MAX_OUTCOME_BYTES, Outcome},
    v1alpha1::{CalibrationRunStatus, CentroidTable, RunPhase, TablePhase},
};
use k8s_openapi::{
    api::{batch::v1::Job, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{ResourceExt, runtime::reflector::Store};

use super::job::CONTAINER;
use crate::{fleet::workers, owner::Fleet};

/// How long a finished Job's table may be incomplete.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// What a run's pods say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodsSay {
    /// Outcome of the attempt that ended last.
    pub outcome: Option<Outcome>,
    /// Why a pod of the run cannot start.
    pub trouble: Option<String>,
}

/// Reads the pods of a run.
pub fn pods_say(store: &Store<Pod>, fleet: &Fleet, run: &str) -> PodsSay {
    let pods = store.state_filter(|pod| {
        pod.metadata.namespace.as_deref() == Some(fleet.namespace.as_str())
            && pod.labels().get(names::LABEL_RUN).is_some_and(|r| r == run)
    });
    let mut ended: Vec<_> = pods
        .iter()
        .filter_map(|pod| {
            let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
            let status = statuses.iter().find(|c| c.name == CONTAINER)?;
            let terminated = status.state.as_ref()?.terminated.as_ref()?;
            Some((terminated.finished_at.clone().map(|t| t.0), terminated.message.clone()?))
        })
        .collect();
    ended.sort_by_key(|(at, _)| *at);
    PodsSay {
        outcome: ended.last().and_then(|(_, message)| parse(message)),
        trouble: pods.iter().find_map(|p| workers::view(p).trouble),
    }
}

fn parse(message: &str) -> Option<Outcome> {
    if message.len() > MAX_OUTCOME_BYTES {
        return None;
    }
    serde_json::from_str(message).ok()
}

/// The table of a run. Attempts that were cut short may have left incomplete ones: a verified one counts first, then the newest.
pub fn table_of<'a>(run: &str, tables: &'a [CentroidTable]) -> Option<&'a CentroidTable> {
    tables.iter().filter(|t| t.spec.run == run).max_by_key(|t| {
        let phase = t.status.as_ref().and_then(|s| s.phase);
        (
            phase.is_some_and(|p| p != TablePhase::Rejected),
            t.metadata.creation_timestamp.as_ref().map(|at| at.0),
        )
    })
}

/// The status of a Running run. `table` is the one that it published.
pub fn advance(
    before: &CalibrationRunStatus,
    job: Option<&Job>,
    pods: &PodsSay,
    table: Option<&CentroidTable>,
    now: &Time,
) -> CalibrationRunStatus {
    let verdict = judge(job, pods, table, now);
    let mut status = before.clone();
    status.phase = verdict.phase;
    status.reason = Some(verdict.reason);
    status.message = Some(verdict.message);
    if verdict.phase == RunPhase::Succeeded {
        status.table = table.map(ResourceExt::name_any);
        status.report = table
            .map(|t| t.spec.report.clone())
            .or_else(|| pods.outcome.as_ref().and_then(|o| o.report.clone()));
    }
    if verdict.phase != RunPhase::Running && status.completion_time.is_none() {
        status.completion_time = Some(now.clone());
    }
    status
}

struct Judged {
    phase: RunPhase,
    reason: String,
    message: String,
}

fn judge(job: Option<&Job>, pods: &PodsSay, table: Option<&CentroidTable>, now: &Time) -> Judged {
    let Some(job) = job else {
        if verified(table) {
            return published();
        }
        return is(
            RunPhase::Failed,
            "JobLost",
            "the Job disappeared before it was done".into(),
        );
    };
    let condition = |kind: &str| {
        job.status
            .iter()
            .flat_map(|s| s.conditions.iter().flatten())
            .find(|c| c.type_ == kind && c.status == "True")
    };
    if let Some(failed) = condition("Failed") {
        return match &pods.outcome {
            Some(outcome) => is(RunPhase::Failed, &outcome.reason, outcome.message.clone()),
            None => is(
                RunPhase::Failed,
                failed.reason.as_deref().unwrap_or("JobFailed"),
                failed
                    .message
                    .clone()
                    .unwrap_or_else(|| "the Job failed without a message".into()),
            ),
        };
    }
    if let Some(complete) = condition("Complete") {
        let since = complete
            .last_transition_time
            .as_ref()
            .or(job.metadata.creation_timestamp.as_ref());
        return completed(table, since.map_or(Duration::ZERO, |t| elapsed(t, now)));
    }
    if let Some(trouble) = &pods.trouble {
        return is(RunPhase::Running, "PodNotStarting", trouble.clone());
    }
    match &pods.outcome {
        Some(outcome) if job.status.as_ref().and_then(|s| s.failed).unwrap_or(0) > 0 => is(
            RunPhase::Running,
            "Retrying",
            format!("an attempt failed and is retried: {}", outcome.message),
        ),
        _ => is(RunPhase::Running, "JobRunning", "the calibration Job runs".into()),
    }
}

/// A Job that succeeded `waited` ago.
fn completed(table: Option<&CentroidTable>, waited: Duration) -> Judged {
    if verified(table) {
        return published();
    }
    let status = table.and_then(|t| t.status.as_ref());
    if status.and_then(|s| s.phase) == Some(TablePhase::Rejected) {
        let why = status.and_then(|s| s.message.clone());
        return is(
            RunPhase::Failed,
            "TableRejected",
            why.unwrap_or_else(|| "the table was rejected".into()),
        );
    }
    if table.is_none() && waited > PATIENCE {
        return is(
            RunPhase::Failed,
            "TableMissing",
            "the Job succeeded, but its table does not exist".into(),
        );
    }
    is(RunPhase::Running, "Verifying", "the table is being verified".into())
}

fn verified(table: Option<&CentroidTable>) -> bool {
    let phase = table.and_then(|t| t.status.as_ref()).and_then(|s| s.phase);
    phase.is_some_and(|p| p != TablePhase::Rejected)
}

fn published() -> Judged {
    is(
        RunPhase::Succeeded,
        "TablePublished",
        "the table is published and verified".into(),
    )
}

fn is(phase: RunPhase, reason: &str, message: String) -> Judged {
    Judged {
        phase,
        reason: reason.to_owned(),
        message,
    }
}

/// Time from `then` to `now`; none if the clocks disagree.
pub fn elapsed(then: &Time, now: &Time) -> Duration {
    Duration::try_from(now.0.duration_since(then.0)).unwrap_or(Duration::ZERO)
}

//! The calibration controller's part of the status.

use coterie_crds::{
    conditions::{self, reason},
    routing::RoutingDocument,
    v1alpha1::{
        CalibrationRun, CalibrationStatus, CentroidTable, MoEDeploymentSpec, MoEDeploymentStatus, RunPhase, TableStatus,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use serde::Serialize;

use super::queue;
use crate::{
    drift::gate::Gate,
    kube_io::conditions::{Transition, Verdict, merge, owned},
};

/// Condition types that this controller owns.
pub const KINDS: [&str; 2] = [conditions::CALIBRATED, conditions::TABLE_PROPAGATED];

/// The fields that this controller owns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnStatus {
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<CalibrationStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<TableStatus>,
}

impl OwnStatus {
    /// What the status says now.
    pub fn current(status: &MoEDeploymentStatus) -> Self {
        Self {
            conditions: owned(&status.conditions, &KINDS),
            calibration: status.calibration.clone(),
            table: status.table.clone(),
        }
    }
}

/// What the status is derived from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Runs, as they are now.
    pub runs: &'a [CalibrationRun],
    /// The active table.
    pub active: Option<&'a CentroidTable>,
    /// The routing document that is there.
    pub document: Option<&'a RoutingDocument>,
    /// The requestID that a run exists for.
    pub observed_request_id: Option<&'a str>,
    /// Whether and when a drift run may start, if drift asks for one.
    pub gate: Option<&'a Gate>,
    /// Earliest time of the next drift run.
    pub next_eligible: Option<&'a Time>,
    /// Generation of the spec.
    pub generation: Option<i64>,
    /// Decode workers that the spec declares.
    pub decode_workers: i32,
}

/// Why no run may begin yet. A fleet may serve without prefill workers, but only they return the experts that a run collects.
pub fn hinders(current: &MoEDeploymentStatus, spec: &MoEDeploymentSpec) -> Option<&'static str> {
    if !crate::kube_io::conditions::is_true(&current.conditions, conditions::AVAILABLE) {
        return Some("the fleet does not serve yet");
    }
    let declared = spec.prefill.as_ref().is_some_and(|pool| pool.replicas > 0);
    let ready = current.prefill.as_ref().map_or(0, |pool| pool.ready);
    (declared && ready == 0).then_some("no prefill worker is ready, and a run collects experts from them")
}

/// Derives the status.
pub fn derive(facts: &Facts<'_>, current: &MoEDeploymentStatus, now: &Time) -> (OwnStatus, Vec<Transition>) {
    let newest = queue::by_age(facts.runs).pop();
    let table = facts.active.map(|table| table_status(table, current, now));
    let verdicts = [
        calibrated(facts, table.as_ref(), newest),
        propagated(facts, table.as_ref(), current),
    ];
    let (conditions, transitions) = merge(&current.conditions, &verdicts, facts.generation, now);
    let calibration = CalibrationStatus {
        observed_request_id: facts.observed_request_id.map(Into::into),
        last_run: newest.map(ResourceExt::name_any),
        last_run_phase: newest.map(|run| format!("{:?}", queue::phase(run))),
        next_eligible_time: facts.next_eligible.cloned(),
        skipped_reason: facts.gate.and_then(Gate::skipped_reason),
    };
    let status = OwnStatus {
        conditions,
        calibration: (calibration != CalibrationStatus::default()).then_some(calibration),
        table,
    };
    (status, transitions)
}

fn table_status(table: &CentroidTable, current: &MoEDeploymentStatus, now: &Time) -> TableStatus {
    let name = table.name_any();
    let since = current
        .table
        .as_ref()
        .filter(|t| t.name == name && t.digest == table.spec.digest)
        .and_then(|t| t.activated_time.clone());
    TableStatus {
        name,
        digest: table.spec.digest.clone(),
        activated_time: Some(since.unwrap_or_else(|| now.clone())),
        rho: table
            .spec
            .report
            .rho
            .as_ref()
            .and_then(|rho| rho.parse::<f64>().ok())
            .map(|rho| format!("{rho:.2}")),
        clusters: table.spec.clusters,
    }
}

fn calibrated(facts: &Facts<'_>, table: Option<&TableStatus>, newest: Option<&CalibrationRun>) -> Verdict {
    let kind = conditions::CALIBRATED;
    if let Some(table) = table {
        let rho = table.rho.as_ref().map(|rho| format!(", rho {rho}")).unwrap_or_default();
        let message = format!(
            "CentroidTable {} is active: {} clusters{rho}{}{}",
            table.name,
            table.clusters,
            stands_in(facts.active),
            other_size(table.clusters, facts.decode_workers)
        );
        return Verdict::new(kind, true, reason::TABLE_ACTIVE, message);
    }
    let Some(run) = newest else {
        return Verdict::new(
            kind,
            false,
            reason::NO_TABLE,
            "the first calibration starts when the fleet serves",
        );
    };
    let name = run.name_any();
    let said = run
        .status
        .as_ref()
        .and_then(|s| s.message.as_deref())
        .unwrap_or("queued");
    let waiting = run
        .status
        .as_ref()
        .is_some_and(|s| s.reason.as_deref() == Some(reason::WAITING_FOR_SAMPLES));
    match queue::phase(run) {
        RunPhase::Pending if waiting => Verdict::new(
            kind,
            false,
            reason::WAITING_FOR_SAMPLES,
            format!("CalibrationRun {name}: {said}"),
        ),
        RunPhase::Pending | RunPhase::Running => {
            Verdict::new(kind, false, reason::RUNNING, format!("CalibrationRun {name}: {said}"))
        }
        RunPhase::Failed => {
            let after = "correct it, then set spec.calibration.requestID to a new value";
            Verdict::new(
                kind,
                false,
                reason::RUN_FAILED,
                format!("CalibrationRun {name}: {said}; {after}"),
            )
        }
        RunPhase::Succeeded | RunPhase::Superseded => {
            let message = format!(
                "no table fits the model, although CalibrationRun {name} ended; set spec.calibration.requestID to a new value to calibrate again"
            );
            Verdict::new(kind, false, reason::NO_TABLE, message)
        }
    }
}

/// What to know of an older table that serves because the one that was active was deleted.
fn stands_in(active: Option<&CentroidTable>) -> String {
    let note = active.and_then(|t| t.status.as_ref()).and_then(|s| s.message.as_ref());
    note.map(|note| format!("; {note}")).unwrap_or_default()
}

/// What to know of a table that was fitted for another number of decode workers.
fn other_size(clusters: i32, workers: i32) -> String {
    if workers == 0 || clusters == workers {
        return String::new();
    }
    format!("; {clusters} clusters for {workers} workers; set a new requestID to fit again")
}

fn propagated(facts: &Facts<'_>, table: Option<&TableStatus>, current: &MoEDeploymentStatus) -> Verdict {
    let kind = conditions::TABLE_PROPAGATED;
    let Some(table) = table else {
        return Verdict::new(kind, false, reason::NO_TABLE, "no table is active");
    };
    let carried = facts
        .document
        .filter(|d| d.table.as_ref().is_some_and(|t| t.digest == table.digest));
    let acknowledged = current
        .router
        .as_ref()
        .and_then(|r| r.acknowledged_generation)
        .map(i64::unsigned_abs);
    match carried {
        Some(document) if acknowledged >= Some(document.generation) => Verdict::new(
            kind,
            true,
            reason::ACKNOWLEDGED,
            format!("all ready routers route by {}", table.name),
        ),
        // Later changes of the document do not take the table away again.
        Some(_) if held_before(current, table) => Verdict::new(
            kind,
            true,
            reason::ACKNOWLEDGED,
            format!("all ready routers route by {}", table.name),
        ),
        _ => Verdict::new(
            kind,
            false,
            reason::WAITING_FOR_ROUTERS,
            format!("some ready router does not route by {} yet", table.name),
        ),
    }
}

fn held_before(current: &MoEDeploymentStatus, table: &TableStatus) -> bool {
    let same = current
        .table
        .as_ref()
        .is_some_and(|t| t.digest == table.digest && t.name == table.name);
    same && crate::kube_io::conditions::is_true(&current.conditions, conditions::TABLE_PROPAGATED)
}

//! `status` of a MoEDeployment. Each block has one owner, named in its description.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// What was observed of the fleet.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoEDeploymentStatus {
    /// Generation of the spec that the fleet controller last carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions, one owner each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The prefill pool. Owner: fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill: Option<PoolStatus>,
    /// The decode pool. Owner: fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode: Option<PoolStatus>,
    /// The routers. Owner: fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterStatus>,
    /// Images as resolved when the fleet was created; an operator upgrade does not change them. Owner: fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Images>,
    /// Label selector of the decode workers, for the scale subresource. Owner: fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Revision that the spec asks for. Owner: fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Calibration. Owner: calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationStatus>,
    /// The active centroid table. Owner: calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableStatus>,
    /// What signatures are made from just now. Owner: drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<SignatureStatus>,
    /// Drift. Owner: drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftStatus>,
}

/// A pool as observed.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// Workers asked for.
    pub desired: i32,
    /// Workers that exist.
    pub replicas: i32,
    /// Workers that are ready.
    pub ready: i32,
    /// Workers of the current revision.
    pub updated: i32,
    /// `ready/desired`, for `kubectl get`.
    pub summary: String,
}

/// The routers as observed.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouterStatus {
    /// Routers asked for.
    pub desired: i32,
    /// Routers that are ready.
    pub ready: i32,
    /// Generation of the routing document last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Generation that all ready routers acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_generation: Option<i64>,
}

/// Images as resolved when the fleet was created.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Images {
    /// Router image.
    pub router: String,
    /// Calibrator image.
    pub calibrator: String,
}

/// Calibration as observed.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CalibrationStatus {
    /// The last `spec.calibration.requestID` for which a run was started.
    #[serde(default, rename = "observedRequestID", skip_serializing_if = "Option::is_none")]
    pub observed_request_id: Option<String>,
    /// Name of the newest CalibrationRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// Its phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_phase: Option<String>,
    /// Before this time no drift run starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_eligible_time: Option<Time>,
    /// Why a wanted run was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_reason: Option<String>,
}

/// The active centroid table.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableStatus {
    /// Name of the CentroidTable.
    pub name: String,
    /// Digest of its payload.
    pub digest: String,
    /// When it became active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activated_time: Option<Time>,
    /// Prefill-decode correlation at the fit, two decimals; absent if the fit had no decode counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<String>,
    /// Clusters.
    pub clusters: i32,
}

/// Signatures as made in the last window.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignatureStatus {
    /// `Prefill`, `Text`, `Mixed` (both, at least 5 % each) or `None`.
    pub source: String,
    /// Reason of the condition SignaturesAvailable.
    pub reason: String,
}

/// Drift as judged.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftStatus {
    /// `Stable`, `Suspected`, `Drifted`, `Unknown` or `Off`.
    pub verdict: String,
    /// When the verdict last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// When the last drift run was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refit_time: Option<Time>,
    /// Signals, changed only when a verdict changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub signals: Vec<SignalStatus>,
}

/// A drift signal.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalStatus {
    /// `CentroidFit` or `ClusterSkew`.
    pub name: String,
    /// `On`, `Off` or `Unknown`.
    pub state: String,
    /// Live value, two decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<String>,
    /// The active table's baseline, two decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Why it is unknown, or what it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

//! `CalibrationRun`: one attempt at a centroid table.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One attempt at a centroid table. `kubectl create` one to calibrate now; deleting it cancels it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "coterie.dev",
    version = "v1alpha1",
    kind = "CalibrationRun",
    plural = "calibrationruns",
    shortname = "calrun",
    category = "coterie",
    namespaced,
    status = "CalibrationRunStatus",
    derive = "PartialEq",
    doc = "One attempt at a centroid table. Create one to calibrate now; deleting it cancels it.",
    selectable = ".spec.deployment",
    printcolumn(name = "Deployment", type_ = "string", json_path = ".spec.deployment"),
    printcolumn(name = "Why", type_ = "string", json_path = ".spec.reason"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Table", type_ = "string", json_path = ".status.table"),
    printcolumn(name = "Samples", type_ = "integer", json_path = ".status.report.samples"),
    printcolumn(name = "Rho", type_ = "string", json_path = ".status.report.rho"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 58 && !self.metadata.name.contains('.')")
        .message("metadata.name must have no dots and at most 58 characters: the Job and the table are named after the run")
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("spec is immutable: create another CalibrationRun"))]
#[serde(rename_all = "camelCase")]
pub struct CalibrationRunSpec {
    /// Name of the MoEDeployment, in the same namespace.
    #[schemars(length(min = 1, max = 40))]
    pub deployment: String,
    /// Why it runs.
    #[serde(default)]
    pub reason: RunReason,
    /// Where samples come from; default: as the MoEDeployment says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<super::CalibrationSource>,
    /// Only live samples taken at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_since: Option<Time>,
}

/// Why a run was started.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunReason {
    /// The fleet had no table.
    Initial,
    /// A person asked.
    #[default]
    Manual,
    /// Traffic drifted.
    Drift,
}

/// What became of a run.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CalibrationRunStatus {
    /// Where the run stands.
    #[serde(default)]
    pub phase: RunPhase,
    /// One word on the phase, for machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence on it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Name of the Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Name of the published table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// When the Job was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The fit's report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<RunReport>,
}

/// Phases of a run.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunPhase {
    /// Waits for the fleet or for another run.
    #[default]
    Pending,
    /// Its Job runs.
    Running,
    /// Its table was published and verified.
    Succeeded,
    /// It ended without a table.
    Failed,
    /// A newer run took its place before it began.
    Superseded,
}

/// The report of a fit. Decimals are strings.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// Samples fitted on.
    pub samples: i32,
    /// Of these, samples with decode counts.
    #[serde(default)]
    pub replayed: i32,
    /// MoE layers kept in the signature.
    pub layers: i32,
    /// Prefill-decode correlation (Spearman) on held-out samples; absent without decode counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub rho: Option<String>,
    /// Predicted fall in distinct experts per step against least-loaded, as a fraction; absent without decode counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub predicted_gain: Option<String>,
    /// Largest cluster's share of the samples x K.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub balance: Option<String>,
    /// Seconds spent collecting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub collect_seconds: Option<String>,
    /// Seconds spent fitting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub fit_seconds: Option<String>,
}

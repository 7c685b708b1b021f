//! `CentroidTable`: transform, centroids and baselines, identified by their digest.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Geometry, RunReport};

/// A fitted centroid table. Its payload is in immutable ConfigMaps; it never changes.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "coterie.dev",
    version = "v1alpha1",
    kind = "CentroidTable",
    plural = "centroidtables",
    shortname = "ctable",
    category = "coterie",
    namespaced,
    status = "CentroidTableStatus",
    derive = "PartialEq",
    doc = "A fitted centroid table. Its payload is in immutable ConfigMaps; it never changes.",
    selectable = ".spec.deployment",
    printcolumn(name = "Deployment", type_ = "string", json_path = ".spec.deployment"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Clusters", type_ = "integer", json_path = ".spec.clusters"),
    printcolumn(name = "Samples", type_ = "integer", json_path = ".spec.report.samples"),
    printcolumn(name = "Rho", type_ = "string", json_path = ".spec.report.rho"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("spec is immutable: calibrate again for another table"))]
#[serde(rename_all = "camelCase")]
pub struct CentroidTableSpec {
    /// Name of the MoEDeployment, in the same namespace.
    #[schemars(length(min = 1, max = 40))]
    pub deployment: String,
    /// Name of the CalibrationRun that made it.
    #[schemars(length(min = 1, max = 63))]
    pub run: String,
    /// What the table is valid for.
    pub fingerprint: Fingerprint,
    /// How counts become a signature, e.g. `CountIdf, 6 of 6 layers`.
    #[schemars(length(max = 256))]
    pub transform: String,
    /// Clusters.
    #[schemars(range(min = 1, max = 4096))]
    pub clusters: i32,
    /// Digest of the joined payload.
    #[schemars(length(max = 80), regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// Bytes of the joined payload.
    #[schemars(range(min = 1, max = 67108864))]
    pub payload_bytes: i64,
    /// Names of the ConfigMaps that hold the payload, in order.
    #[schemars(length(min = 1, max = 128), inner(length(min = 1, max = 253)))]
    pub chunks: Vec<String>,
    /// The fit's report.
    pub report: RunReport,
    /// What drift is judged against.
    pub baselines: Baselines,
}

/// What a table is valid for.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fingerprint {
    /// Served model name.
    #[schemars(length(min = 1, max = 253))]
    pub model: String,
    /// Geometry of the MoE layers.
    pub geometry: Geometry,
}

/// What drift is judged against: held-out samples, judged as routers judge. Decimals are strings.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Baselines {
    /// Mean similarity to the nearest centroid.
    #[schemars(length(max = 24))]
    pub fit: String,
    /// Standard error of `fit`.
    #[schemars(length(max = 24))]
    pub fit_error: String,
    /// Busiest cluster's share x K.
    #[schemars(length(max = 24))]
    pub skew: String,
    /// Held-out samples behind these.
    pub samples: i32,
    /// Each cluster's share of the samples.
    #[schemars(length(max = 4096), inner(length(max = 24)))]
    pub cluster_shares: Vec<String>,
}

/// Where a table stands. Only the operator writes it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CentroidTableStatus {
    /// The phase; absent until the payload was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<TablePhase>,
    /// A sentence on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it became active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activated_time: Option<Time>,
}

/// Phases of a table.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TablePhase {
    /// Complete and verified.
    Candidate,
    /// What the routers route by.
    Active,
    /// A newer one is active.
    Superseded,
    /// Incomplete, corrupt or not for this fleet.
    Rejected,
}

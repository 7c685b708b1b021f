//! `MoEDeployment`: a fleet of prefill and decode workers that serves one mixture-of-experts model.

mod calibration;
mod drift;
mod engine;
mod pool;
mod routing;
mod status;

pub use calibration::*;
pub use drift::*;
pub use engine::*;
pub use pool::*;
pub use routing::*;
pub use status::*;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// A fleet that serves one mixture-of-experts model: its pools of workers, its router, its calibration.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "coterie.dev",
    version = "v1alpha1",
    kind = "MoEDeployment",
    plural = "moedeployments",
    shortname = "moe",
    category = "all",
    namespaced,
    status = "MoEDeploymentStatus",
    derive = "PartialEq",
    doc = "A fleet that serves one mixture-of-experts model: its pools of workers, its router, its calibration.",
    scale(
        spec_replicas_path = ".spec.decode.replicas",
        status_replicas_path = ".status.decode.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.model.name"),
    printcolumn(name = "Prefill", type_ = "string", json_path = ".status.prefill.summary"),
    printcolumn(name = "Decode", type_ = "string", json_path = ".status.decode.summary"),
    printcolumn(name = "Table", type_ = "string", json_path = ".status.table.name"),
    printcolumn(name = "Drift", type_ = "string", json_path = ".status.drift.verdict"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name must be a DNS label (no dots) that begins with a letter, of at most 40 characters: child objects append to it")
)]
#[x_kube(
    validation = Rule::new("has(self.prefill) == (self.engine.transfer.connector != 'None')")
        .message("spec.prefill and spec.engine.transfer.connector belong together: a prefill pool needs a connector, and connector None means no prefill pool"),
    validation = Rule::new("!has(self.calibration) || !has(self.calibration.prompts) || has(self.prefill)")
        .message("spec.calibration.prompts needs spec.prefill: prompts are replayed on prefill workers"),
)]
#[serde(rename_all = "camelCase")]
pub struct MoEDeploymentSpec {
    /// The model to serve.
    pub model: Model,
    /// The serving engine, the same for both pools.
    pub engine: Engine,
    /// The prefill pool. Leave it out for plain workers that do both; then `engine.transfer.connector` must be `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill: Option<Pool>,
    /// The decode pool; the scale subresource targets it.
    pub decode: Pool,
    /// How requests are routed.
    #[serde(default)]
    pub routing: Routing,
    /// How the centroid table is made.
    #[serde(default)]
    pub calibration: Calibration,
    /// When traffic counts as drifted, and what then happens.
    #[serde(default)]
    pub drift: Drift,
}

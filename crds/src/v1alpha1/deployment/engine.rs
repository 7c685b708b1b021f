//! `spec.model` and `spec.engine`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::DNS_SUBDOMAIN_PATTERN;

/// The model to serve.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Served model name: what clients put into a request's `model`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Where the engine finds the model.
    pub source: ModelSource,
    /// Geometry of the MoE layers; a table fits one geometry only.
    pub geometry: Geometry,
}

/// Where the engine finds the model: exactly one of the fields.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.volume) != has(self.path)").message("set exactly one of spec.model.source.volume and spec.model.source.path"))]
#[serde(rename_all = "camelCase")]
pub struct ModelSource {
    /// A PersistentVolumeClaim, mounted read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<ModelVolume>,
    /// A folder of the engine's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = "^/"))]
    #[x_kube(validation = Rule::new("!self.matches('(^|/)[.][.](/|$)')").message("spec.model.source.path must not contain .."))]
    pub path: Option<String>,
}

/// A model on a PersistentVolumeClaim.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelVolume {
    /// Name of the claim, in the fleet's namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN_PATTERN))]
    pub claim_name: String,
    /// Folder inside the volume; default: its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    #[x_kube(validation = Rule::new("!self.matches('(^|/)[.][.](/|$)')").message("spec.model.source.volume.path must not contain .."))]
    pub path: Option<String>,
}

/// Geometry of the model's MoE layers (dense layers are not counted).
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.topK <= self.experts").message("spec.model.geometry.topK must not exceed experts"))]
#[serde(rename_all = "camelCase")]
pub struct Geometry {
    /// MoE layers.
    #[schemars(range(min = 1, max = 256))]
    pub layers: i32,
    /// Experts per layer.
    #[schemars(range(min = 2, max = 1024))]
    pub experts: i32,
    /// Experts chosen per token and layer.
    #[schemars(range(min = 1, max = 64))]
    pub top_k: i32,
}

/// The serving engine.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Engine {
    /// Which engine the image holds.
    #[serde(default)]
    pub kind: EngineKind,
    /// Container image.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// Command that starts the engine, before its arguments. Default: `vllm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), inner(length(max = 1024)))]
    pub command: Option<Vec<String>>,
    /// How KV moves from prefill to decode workers.
    #[serde(default)]
    pub transfer: Transfer,
    /// Further arguments for workers of both pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Environment of workers of both pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub env: Vec<EnvVar>,
}

/// Serving engines.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EngineKind {
    /// vLLM, or an engine with vLLM's command line and HTTP API.
    #[default]
    #[serde(rename = "VLLM")]
    Vllm,
}

/// KV transfer between the pools.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transfer {
    /// The connector. `None` means no prefill pool.
    #[serde(default)]
    pub connector: Connector,
}

/// KV connectors.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Connector {
    /// vLLM's NixlConnector; decode workers pull.
    #[default]
    Nixl,
    /// No hand-off.
    None,
}

/// One environment variable.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Its name. `POD_IP`, `VLLM_NIXL_SIDE_CHANNEL_HOST` and `VLLM_NIXL_SIDE_CHANNEL_PORT` are the operator's.
    #[schemars(length(min = 1, max = 256), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    #[x_kube(validation = Rule::new("!(self in ['POD_IP', 'VLLM_NIXL_SIDE_CHANNEL_HOST', 'VLLM_NIXL_SIDE_CHANNEL_PORT'])").message("POD_IP, VLLM_NIXL_SIDE_CHANNEL_HOST and VLLM_NIXL_SIDE_CHANNEL_PORT are set by the operator: remove the variable"))]
    pub name: String,
    /// Its value.
    #[schemars(length(max = 8192))]
    pub value: String,
}

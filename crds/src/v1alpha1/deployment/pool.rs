//! `spec.prefill` and `spec.decode`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::EnvVar;
use crate::quantity::DURATION_PATTERN;

/// A pool of workers.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    /// Workers.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: i32,
    /// GPUs of each worker. Leave it out for engines that need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
    /// Further arguments for this pool's workers, after `spec.engine.args`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Environment of this pool's workers; wins over `spec.engine.env`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub env: Vec<EnvVar>,
    /// How a change of the spec reaches the workers.
    #[serde(default)]
    pub update: Update,
    /// How long a worker that is asked to stop may finish its streams; then it is killed. At most 24h.
    #[serde(default = "drain")]
    #[schemars(length(max = 32), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = Rule::new("duration(self) <= duration('24h')").message("drain must be at most 24h"))]
    pub drain: String,
}

/// GPUs of a worker.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpus {
    /// Extended resource that the device plugin offers.
    #[serde(default = "amd_gpu")]
    #[schemars(length(min = 3, max = 253), regex(pattern = "^[a-z0-9.-]+/[A-Za-z0-9._-]+$"))]
    pub resource: String,
    /// GPUs per worker.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    pub per_worker: i32,
    /// Value of the node label `amd.com/gpu.product-name`, e.g. `AMD_Instinct_MI300X_OAM`; default: any node with the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub product: Option<String>,
}

/// How a change of the spec reaches the workers of a pool.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Update {
    /// Workers of the pool that may be missing, in a rollout or a disruption.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_unavailable: i32,
}

impl Default for Update {
    fn default() -> Self {
        Self { max_unavailable: one() }
    }
}

fn one() -> i32 {
    1
}
fn drain() -> String {
    "60s".to_owned()
}
fn amd_gpu() -> String {
    "amd.com/gpu".to_owned()
}

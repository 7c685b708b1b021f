//! The routing document: one ConfigMap per fleet, written by the operator, watched by its routers through the API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Format version that this build writes and reads.
pub const DOCUMENT_VERSION: u32 = 1;

/// Everything a router needs to know beyond its live workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutingDocument {
    /// Format version; a router refuses one that it does not know and keeps the last good document.
    pub version: u32,
    /// Grows with every change.
    pub generation: u64,
    /// `namespace/name` of the MoEDeployment.
    pub deployment: String,
    /// The model served.
    pub model: Model,
    /// How decode workers are chosen.
    pub policy: PolicyKind,
    /// What signatures are made from.
    #[serde(default)]
    pub signature: Signature,
    /// Parameters of `LocalityBand`.
    pub locality_band: LocalityBand,
    /// How prefill workers are chosen.
    pub prefill: Prefill,
    /// The active centroid table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableRef>,
    /// Cluster of each decode worker, by pod name. Workers that are missing are placed by `coterie_locality::assign`.
    #[serde(default)]
    pub assignment: BTreeMap<String, u32>,
    /// Revisions that may be routed to; empty: none is routable yet.
    #[serde(default)]
    pub revisions: Vec<String>,
    /// Whether the fleet has a prefill pool.
    pub disaggregated: bool,
    /// P/D transfer between the pools.
    pub connector: Connector,
    /// Statistics and samples.
    pub statistics: Statistics,
}

/// The model that a fleet serves, as its fingerprint needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Served model name.
    pub name: String,
    /// MoE layers.
    pub layers: u32,
    /// Experts per layer.
    pub experts: u32,
    /// Experts chosen per token and layer.
    pub top_k: u32,
}

/// Decode policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyKind {
    /// Least-loaded worker within tau of the best similarity, under a load guard.
    LocalityBand,
    /// Where the fleet's total cost rises least, by the experts that each batch is expected to use. Needs no table; one sharpens it.
    MarginalCost,
    /// Least-loaded worker.
    LeastLoaded,
    /// One after the other.
    RoundRobin,
    /// The less loaded of two drawn workers.
    PowerOfTwoChoices,
}

/// What signatures are made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    /// The source.
    #[serde(default)]
    pub source: SignatureSource,
}

/// Sources of signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignatureSource {
    /// For each request: its prefill counts where the engine's answer has them, else its text where the table knows text.
    #[default]
    Auto,
    /// Prefill counts only.
    Prefill,
    /// The request's text only; nothing of the engine's answer.
    Text,
}

/// Parameters of the locality band.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalityBand {
    /// Width in cosine units; absent: the table's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tau: Option<f32>,
    /// Fewest workers in the band.
    pub min_candidates: u32,
    /// Load guard, as a multiple of the mean load.
    pub max_load_ratio: f32,
}

/// How prefill workers are chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prefill {
    /// The policy.
    pub policy: PrefillPolicyKind,
    /// Bytes of the prompt that are hashed.
    pub prefix_bytes: u32,
    /// Load guard of the hash ring.
    pub load_factor: f32,
}

/// Prefill policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrefillPolicyKind {
    /// Consistent hash over the prompt's first bytes, with a load guard.
    PrefixHash,
    /// Least-loaded worker.
    LeastLoaded,
}

/// P/D transfer protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Connector {
    /// vLLM's NixlConnector, pull.
    Nixl,
    /// No hand-off: every worker does both.
    None,
}

/// Where the active table's payload is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableRef {
    /// Name of the CentroidTable.
    pub name: String,
    /// Digest of the joined payload, `sha256:...`.
    pub digest: String,
    /// Names of the ConfigMaps, in order.
    pub chunks: Vec<String>,
}

/// What routers keep about requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statistics {
    /// Sliding window, in milliseconds; it slides by a quarter. Slide index = Unix time / (window / 4).
    pub window_ms: u64,
    /// Most samples that a router's reservoir holds.
    pub max_samples: u32,
}

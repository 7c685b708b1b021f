//! JSON of a router's admin port. All paths need `Authorization: Bearer <key>`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Path of [`State`]: the acknowledgement of a routing document.
pub const STATE_PATH: &str = "/admin/v1/state";
/// Path of [`StatisticsReport`].
pub const STATISTICS_PATH: &str = "/admin/v1/statistics";
/// Path of the sample stream (`coterie_locality::sample` container). Query: `since` (Unix ms, default 0), `limit`.
pub const SAMPLES_PATH: &str = "/admin/v1/samples";
/// Path of [`Fleet`].
pub const FLEET_PATH: &str = "/admin/v1/fleet";

/// What a router currently routes by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Generation of the routing document in use; 0: none yet.
    pub generation: u64,
    /// Digest of the table in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Revisions routed to.
    #[serde(default)]
    pub revisions: Vec<String>,
    /// Why the newest document or table is not in use, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A router's statistics over its own requests, a slide at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatisticsReport {
    /// Length of a slide, in milliseconds.
    pub slide_ms: u64,
    /// The router's clock, Unix ms.
    pub now_ms: u64,
    /// Slides of the last windows, oldest first; the newest may still be filling. Empty slides are left out.
    pub slides: Vec<Slide>,
}

/// Statistics of one slide under one table. A table swap begins a second entry with the same index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Slide {
    /// Unix ms / slide length.
    pub index: u64,
    /// Digest of the table that scored these requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What these signatures were made from, or would have been. Each source has its own centroids, so its own entry.
    #[serde(default)]
    pub source: Source,
    /// Requests that reached the choice of a decode worker.
    pub requests: u64,
    /// Of these, requests with a signature.
    pub signed: u64,
    /// Requests without a signature, by reason (`Missing`, `Malformed`, `Geometry`, `Empty`, `NoText`, `NoTextSource`).
    #[serde(default)]
    pub missing: BTreeMap<String, u64>,
    /// Signed requests by nearest cluster of the source, K of them; empty where the table has none.
    #[serde(default)]
    pub cluster_counts: Vec<u64>,
    /// Sum over signed requests of the similarity to the nearest centroid.
    #[serde(default)]
    pub fit_sum: f64,
    /// Sum of squares of the same.
    #[serde(default)]
    pub fit_sum_squares: f64,
}

/// What a signature is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// The request's prefill counts.
    #[default]
    Prefill,
    /// The request's text.
    Text,
}

/// A router's view of its workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fleet {
    /// Prefill and decode workers, sorted by name.
    pub workers: Vec<Worker>,
}

/// One worker as a router sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worker {
    /// Pod name.
    pub name: String,
    /// `prefill` or `decode`.
    pub role: String,
    /// `host:port`.
    pub address: String,
    /// Fleet revision.
    pub revision: String,
    /// Whether requests may go there.
    pub routable: bool,
    /// Why not, if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Requests reserved or running there through this router.
    pub own: u64,
    /// Requests running and waiting there as the engine last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<u64>,
    /// Clusters of source Prefill that it carries.
    #[serde(default)]
    pub clusters: Vec<u32>,
    /// Clusters of source Text that it carries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_clusters: Vec<u32>,
}

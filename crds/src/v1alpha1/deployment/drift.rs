//! `spec.drift`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{DECIMAL_PATTERN, DURATION_PATTERN};

/// When traffic counts as drifted, and what then happens.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// What happens on drift.
    #[serde(default)]
    pub mode: DriftMode,
    /// Window over which live traffic is judged; it slides by a quarter. It lengthens itself while it holds fewer than 200 requests.
    #[serde(default = "window")]
    #[schemars(length(max = 32), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = Rule::new("duration(self) >= duration('4s') && duration(self) <= duration('24h')").message("spec.drift.window must be between 4s and 24h"))]
    pub window: String,
    /// Centroid fit counts as dropped when it falls by this fraction of the table's baseline.
    #[serde(default = "max_fit_drop")]
    #[schemars(length(max = 16), regex(pattern = DECIMAL_PATTERN))]
    pub max_fit_drop: String,
    /// Cluster skew counts as risen above min(this, (K + 1) / 2) x the table's baseline. No signal at K = 1.
    #[serde(default = "max_cluster_skew")]
    #[schemars(length(max = 16), regex(pattern = DECIMAL_PATTERN))]
    pub max_cluster_skew: String,
    /// Consecutive slides of the window for which a signal must hold.
    #[serde(default = "sustain")]
    #[schemars(range(min = 1, max = 100))]
    pub sustain: i32,
    /// Shortest time between two drift runs.
    #[serde(default = "cooldown")]
    #[schemars(length(max = 32), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = Rule::new("duration(self) <= duration('168h')").message("spec.drift.cooldown must be at most 168h"))]
    pub cooldown: String,
    /// Most drift runs in 24 hours.
    #[serde(default = "max_refits_per_day")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_refits_per_day: i32,
}

impl Default for Drift {
    fn default() -> Self {
        Self {
            mode: DriftMode::default(),
            window: window(),
            max_fit_drop: max_fit_drop(),
            max_cluster_skew: max_cluster_skew(),
            sustain: sustain(),
            cooldown: cooldown(),
            max_refits_per_day: max_refits_per_day(),
        }
    }
}

/// What happens on drift.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriftMode {
    /// A calibration run starts.
    #[default]
    Refit,
    /// The condition `Drifted` says so; nothing starts.
    Observe,
    /// Live traffic is not judged.
    Off,
}

fn window() -> String {
    "10m".to_owned()
}
fn max_fit_drop() -> String {
    "0.15".to_owned()
}
fn max_cluster_skew() -> String {
    "2.0".to_owned()
}
fn sustain() -> i32 {
    2
}
fn cooldown() -> String {
    "15m".to_owned()
}
fn max_refits_per_day() -> i32 {
    12
}

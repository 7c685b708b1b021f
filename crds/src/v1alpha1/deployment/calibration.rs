//! `spec.calibration`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::DNS_SUBDOMAIN_PATTERN;

/// How the centroid table is made.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.minSamples <= self.samples").message("spec.calibration.minSamples must not exceed samples"))]
#[x_kube(validation = Rule::new("self.source != 'Prompts' || has(self.prompts)").message("spec.calibration.source Prompts needs spec.calibration.prompts"))]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// Any text; a new value asks for one calibration run. Echoed in `status.calibration.observedRequestID`.
    #[serde(default, rename = "requestID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub request_id: Option<String>,
    /// Where samples come from.
    #[serde(default)]
    pub source: CalibrationSource,
    /// Prompts to calibrate from; they are generated and replayed on the prefill pool, so there must be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Prompts>,
    /// Most samples that a run takes.
    #[serde(default = "samples")]
    #[schemars(range(min = 8, max = 100000))]
    pub samples: i32,
    /// Fewest samples that a run is content with.
    #[serde(default = "min_samples")]
    #[schemars(range(min = 8, max = 100000))]
    pub min_samples: i32,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            request_id: None,
            source: CalibrationSource::default(),
            prompts: None,
            samples: samples(),
            min_samples: min_samples(),
        }
    }
}

/// Where samples come from.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CalibrationSource {
    /// `Prompts` if prompts are given, else `Live`.
    #[default]
    Auto,
    /// The routers' reservoirs of live traffic.
    Live,
    /// The given prompts, generated and replayed on the prefill workers.
    Prompts,
}

/// Prompts to calibrate from.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompts {
    /// JSON lines of OpenAI request bodies (completions or chat) in a ConfigMap of the fleet's namespace.
    pub config_map: ConfigMapKey,
}

/// A key of a ConfigMap.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKey {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN_PATTERN))]
    pub name: String,
    /// Its key.
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

fn samples() -> i32 {
    1000
}
fn min_samples() -> i32 {
    200
}

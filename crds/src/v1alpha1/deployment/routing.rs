//! `spec.routing`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::DECIMAL_PATTERN;

/// How requests are routed.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// How the decode worker is chosen. Without a table, `LocalityBand` chooses as `LeastLoaded` does.
    #[serde(default)]
    pub policy: Policy,
    /// What requests are told apart by.
    #[serde(default)]
    pub signature: Signature,
    /// Parameters of `LocalityBand`.
    #[serde(default)]
    pub locality_band: LocalityBand,
    /// How the prefill worker is chosen.
    #[serde(default)]
    pub prefill: PrefillRouting,
    /// The router itself.
    #[serde(default)]
    pub router: Router,
}

/// Decode policies.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// The least-loaded worker within tau of the best similarity, under a load guard.
    #[default]
    LocalityBand,
    /// Where the fleet's total cost rises least, by the experts that each batch is expected to use. Needs no table; one sharpens it.
    MarginalCost,
    /// The least-loaded worker.
    LeastLoaded,
    /// One after the other.
    RoundRobin,
    /// The less loaded of two drawn workers.
    PowerOfTwoChoices,
}

/// What a request's signature, its expected use of experts, is made from.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signature {
    /// `Auto`: for each request, its prefill counts where the engine's answer has them, else its text. `Prefill`: counts only. `Text`: text
    /// only, with engines that return no experts and without a prefill pool too. Text needs a table that knows text; requests without any
    /// signature go to the least-loaded worker.
    #[serde(default)]
    pub source: SignatureSource,
}

/// Sources of signatures.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignatureSource {
    /// Prefill counts where they come, else text.
    #[default]
    Auto,
    /// Prefill counts only.
    Prefill,
    /// Text only.
    Text,
}

/// Parameters of the locality band.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalityBand {
    /// Width of the band in cosine units, as a decimal; `Auto` takes the table's own.
    #[serde(default = "auto")]
    #[schemars(length(max = 16), regex(pattern = r"^(Auto|[01](\.[0-9]{1,6})?)$"))]
    pub tau: String,
    /// Fewest workers in the band.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub min_candidates: i32,
    /// How uneven loads may be for locality's sake, as about this x the mean load; less while the mean is below 4 / (this - 1). At least 1.
    #[serde(default = "max_load_ratio")]
    #[schemars(length(max = 16), regex(pattern = r"^[1-9][0-9]{0,3}(\.[0-9]{1,6})?$"))]
    pub max_load_ratio: String,
}

impl Default for LocalityBand {
    fn default() -> Self {
        Self {
            tau: auto(),
            min_candidates: one(),
            max_load_ratio: max_load_ratio(),
        }
    }
}

/// How the prefill worker is chosen.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrefillRouting {
    /// The policy.
    #[serde(default)]
    pub policy: PrefillPolicy,
    /// Bytes of the prompt that `PrefixHash` hashes.
    #[serde(default = "prefix_bytes")]
    #[schemars(range(min = 1, max = 1048576))]
    pub prefix_bytes: i32,
    /// `PrefixHash` passes over a worker whose load exceeds this x the mean. At least 1.
    #[serde(default = "load_factor")]
    #[schemars(length(max = 16), regex(pattern = DECIMAL_PATTERN))]
    #[x_kube(validation = Rule::new("double(self) >= 1.0").message("spec.routing.prefill.loadFactor must be at least 1"))]
    pub load_factor: String,
}

impl Default for PrefillRouting {
    fn default() -> Self {
        Self {
            policy: PrefillPolicy::default(),
            prefix_bytes: prefix_bytes(),
            load_factor: load_factor(),
        }
    }
}

/// Prefill policies.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrefillPolicy {
    /// Consistent hash over the prompt's first bytes, with a load guard: requests that share a prefix share its cache.
    #[default]
    PrefixHash,
    /// The least-loaded worker.
    LeastLoaded,
}

/// The router Deployment.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Router {
    /// Replicas; each takes any request.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 100))]
    pub replicas: i32,
    /// Container image; default: the one that the operator was installed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub image: Option<String>,
}

impl Default for Router {
    fn default() -> Self {
        Self {
            replicas: two(),
            image: None,
        }
    }
}

fn auto() -> String {
    "Auto".to_owned()
}
fn one() -> i32 {
    1
}
fn two() -> i32 {
    2
}
fn max_load_ratio() -> String {
    "1.5".to_owned()
}
fn prefix_bytes() -> i32 {
    1024
}
fn load_factor() -> String {
    "1.25".to_owned()
}

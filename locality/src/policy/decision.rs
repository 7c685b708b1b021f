//! What a policy answers, and why.

use serde::{Deserialize, Serialize};

/// Why a worker was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// Its turn.
    RoundRobin,
    /// By chance.
    Random,
    /// Lowest load of all.
    LeastLoaded,
    /// Lower load of two.
    PowerOfTwoChoices,
    /// Lowest load inside the locality band.
    Band,
    /// The load guard refused every worker of the band: the most similar ones that it allows.
    BandWidened,
    /// Lowest load among the workers of the request's domain.
    Domain,
    /// Where the fleet's total cost rises least.
    MarginalCost,
    /// No signature: lowest load of all.
    NoSignature,
    /// There is no table to compare signatures with: lowest load of all. Said by callers; a policy sees no tables.
    NoTable,
}

impl Reason {
    /// Every reason, for metrics that must exist before they are counted.
    pub const ALL: [Self; 10] = [
        Self::RoundRobin,
        Self::Random,
        Self::LeastLoaded,
        Self::PowerOfTwoChoices,
        Self::Band,
        Self::BandWidened,
        Self::Domain,
        Self::MarginalCost,
        Self::NoSignature,
        Self::NoTable,
    ];

    /// The name used in labels and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "RoundRobin",
            Self::Random => "Random",
            Self::LeastLoaded => "LeastLoaded",
            Self::PowerOfTwoChoices => "PowerOfTwoChoices",
            Self::Band => "Band",
            Self::BandWidened => "BandWidened",
            Self::Domain => "Domain",
            Self::MarginalCost => "MarginalCost",
            Self::NoSignature => "NoSignature",
            Self::NoTable => "NoTable",
        }
    }
}

/// A choice and how it came about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Index of the chosen worker.
    pub worker: usize,
    /// Workers the choice was among.
    pub band: usize,
    /// Highest similarity of any worker; absent without a signature.
    pub best_similarity: Option<f32>,
    /// Similarity of the chosen worker; absent without a signature.
    pub chosen_similarity: Option<f32>,
    /// Whether the load guard sent the request outside its band.
    pub spilled: bool,
    /// Distinct experts that the chosen worker's batch is expected to load in a step, mean per layer, with this request; absent where the
    /// policy does not look at batches.
    pub distinct_experts: Option<f32>,
    /// Why.
    pub reason: Reason,
}

impl Decision {
    pub(super) fn by_load(worker: usize, band: usize, reason: Reason) -> Self {
        Self {
            worker,
            band,
            best_similarity: None,
            chosen_similarity: None,
            spilled: false,
            distinct_experts: None,
            reason,
        }
    }
}

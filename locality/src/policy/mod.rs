//! Routing policies: which worker gets a request. The router and the fleet simulator use the same code.

mod least_loaded;
mod locality_band;
#[cfg(test)]
mod locality_band_tests;
mod power_of_two;
mod random;
mod round_robin;
mod ties;

use rand::RngCore;
use serde::{Deserialize, Serialize};

pub use least_loaded::LeastLoaded;
pub use locality_band::{LocalityBand, LocalityBandError};
pub use power_of_two::PowerOfTwoChoices;
pub use random::Random;
pub use round_robin::RoundRobin;
pub use ties::Ties;

/// What a policy knows of the live workers. Worker `i` has `loads[i]` and `similarity[i]`.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    /// Load of each worker in requests; fractions occur where reports age.
    pub loads: &'a [f32],
    /// Cosine of the request's signature to each worker; absent without signature or table.
    pub similarity: Option<&'a [f32]>,
}

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
    /// No signature: lowest load of all.
    NoSignature,
    /// There is no table to compare signatures with: lowest load of all. Said by callers; a policy sees no tables.
    NoTable,
}

impl Reason {
    /// Every reason, for metrics that must exist before they are counted.
    pub const ALL: [Self; 8] = [
        Self::RoundRobin,
        Self::Random,
        Self::LeastLoaded,
        Self::PowerOfTwoChoices,
        Self::Band,
        Self::BandWidened,
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
    /// Why.
    pub reason: Reason,
}

impl Decision {
    fn by_load(worker: usize, band: usize, reason: Reason) -> Self {
        Self {
            worker,
            band,
            best_similarity: None,
            chosen_similarity: None,
            spilled: false,
            reason,
        }
    }
}

/// Chooses a worker for each request. Shared by threads; chance comes from the caller's generator, so that a seed reproduces a run.
pub trait Policy: Send + Sync {
    /// The worker for one request; `None` when there is no worker.
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision>;
}

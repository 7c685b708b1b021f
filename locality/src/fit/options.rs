//! What can be asked of a fit, and why it refuses.

use crate::kmeans::{Balance, KMeansError, KMeansOptions};
use crate::predictor::LearnOptions;
use crate::table::MAX_CLUSTERS;
use crate::transform::{TransformError, TransformKind};

/// Samples with decode counts below which rho, layer selection and evaluation are left out.
pub const MIN_DECODE_SAMPLES: usize = 20;

/// Which layers a signature keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerChoice {
    /// All of them.
    All,
    /// Greedy forward selection by rho; all of them where too few samples have decode counts.
    Greedy,
}

/// Width of the locality band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tau {
    /// This cosine.
    Fixed(f32),
    /// This quantile (0..1) of the gap between the two best scores of held-out samples: that share of requests has a choice of clusters.
    Quantile(f64),
}

/// Options of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitOptions {
    /// Clusters K.
    pub clusters: usize,
    /// Seed of every random choice.
    pub seed: u64,
    /// How counts become signatures.
    pub transform: TransformKind,
    /// Which layers a signature keeps.
    pub layer_selection: LayerChoice,
    /// Bounds on cluster sizes.
    pub balance: Balance,
    /// K-means runs.
    pub restarts: usize,
    /// Share of samples held out, 0.05..=0.5.
    pub held_out: f64,
    /// Width of the band.
    pub tau: Tau,
    /// Pairs of requests drawn for rho and for layer selection.
    pub pairs: usize,
    /// Resamplings behind the interval of rho.
    pub resamples: usize,
    /// Requests in each simulated batch.
    pub batch: usize,
    /// How to learn predictors; `None`: learn none, and have no source Text.
    pub predictors: Option<LearnOptions>,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            clusters: 8,
            seed: 1,
            transform: TransformKind::CountIdf,
            layer_selection: LayerChoice::Greedy,
            balance: Balance::Upper,
            restarts: 4,
            held_out: 0.25,
            tau: Tau::Quantile(0.25),
            pairs: 30_000,
            resamples: 200,
            batch: 16,
            predictors: Some(LearnOptions::default()),
        }
    }
}

impl FitOptions {
    /// How the signatures of any source are clustered.
    pub(super) fn kmeans(&self) -> KMeansOptions {
        KMeansOptions {
            clusters: self.clusters,
            seed: self.seed,
            restarts: self.restarts,
            balance: self.balance,
            ..KMeansOptions::default()
        }
    }

    pub(super) fn check(&self) -> Result<(), FitError> {
        let bad = |text: String| Err(FitError::Options(text));
        if !(1..=MAX_CLUSTERS).contains(&self.clusters) {
            return bad(format!("clusters is {}, must be 1 to {MAX_CLUSTERS}", self.clusters));
        }
        if !(0.05..=0.5).contains(&self.held_out) {
            return bad(format!("held-out share is {}, must be 0.05 to 0.5", self.held_out));
        }
        match self.tau {
            Tau::Fixed(tau) if !(0.0..=2.0).contains(&tau) => bad(format!("tau is {tau}, must be 0 to 2")),
            Tau::Quantile(q) if !(0.0..=1.0).contains(&q) => bad(format!("tau quantile is {q}, must be 0 to 1")),
            _ => Ok(()),
        }
    }
}

/// Why there is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// An option out of range.
    #[error("fit: {0}")]
    Options(String),
    /// Not enough samples with prefill counts above zero and a weight above zero.
    #[error(
        "fit: {usable} of {given} samples have prefill counts (not all 0) and a weight above 0, {needed} are needed for {clusters} clusters; collect more samples, replay those without counts on an engine that returns routed experts, or ask for fewer clusters"
    )]
    TooFewSamples {
        /// Samples that can be used.
        usable: usize,
        /// Samples given.
        given: usize,
        /// Samples needed.
        needed: usize,
        /// Clusters asked for.
        clusters: usize,
    },
    /// Samples of more than one model.
    #[error("fit: samples are of different models or geometries ({0} and {1}); fit each by itself")]
    MixedModels(String, String),
    /// Samples that do not fit their own geometry.
    #[error("fit: {0}")]
    Transform(#[from] TransformError),
    /// K-means refused.
    #[error("fit: {0}")]
    KMeans(#[from] KMeansError),
    /// A result that does not pass the table's own checks.
    #[error("fit: result refused: {0}")]
    Internal(String),
}

//! ELDR with its periodic re-fit: the same band, over centroids that follow the traffic.

use std::sync::{Mutex, PoisonError};

use rand::RngCore;

use super::{Candidates, Decision, LocalityBand, Policy, Reason, Ties};
use crate::refit::{Refit, RefitError};
use crate::score::dot;

/// Worker `i` is centroid `i`, as in the artifact: the group of workers is fixed.
#[derive(Debug)]
pub struct EldrOnline {
    band: LocalityBand,
    /// Seconds that a fit takes: its result is used from then on.
    fit_seconds: f64,
    state: Mutex<Online>,
}

#[derive(Debug)]
struct Online {
    refit: Refit,
    /// When the running fit is done, and what it comes to.
    pending: Option<(f64, Result<Vec<f32>, String>)>,
    similarity: Vec<f32>,
}

/// A policy that cannot be, or a request that it refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EldrOnlineError {
    /// tau out of range.
    #[error(transparent)]
    Band(#[from] super::LocalityBandError),
    /// A signature that does not fit.
    #[error(transparent)]
    Refit(#[from] RefitError),
    /// Another number of workers than of centroids.
    #[error("ELDR: {workers} workers for {centroids} centroids; one each is needed")]
    Workers {
        /// Workers given.
        workers: usize,
        /// Centroids.
        centroids: usize,
    },
}

impl EldrOnline {
    /// For `workers` workers. `min_candidates` is 1 for the artifact's rule `v1`, 2 for `min2_v1`. Fits take no time unless
    /// [`Self::with_fit_seconds`] says so.
    pub fn new(refit: Refit, workers: usize, tau: f32, min_candidates: usize) -> Result<Self, EldrOnlineError> {
        let mut band = LocalityBand::new(tau, min_candidates, None)?;
        band.ties = Ties::LowestIndex;
        let centroids = refit.clusters();
        if workers != centroids {
            return Err(EldrOnlineError::Workers { workers, centroids });
        }
        Ok(Self {
            band,
            fit_seconds: 0.0,
            state: Mutex::new(Online {
                refit,
                pending: None,
                similarity: vec![0.0; workers],
            }),
        })
    }

    /// Lets results of fits be used this much later than their start.
    #[must_use]
    pub fn with_fit_seconds(self, fit_seconds: f64) -> Self {
        Self { fit_seconds, ..self }
    }

    /// Chooses for a request with this signature, and lets it take part in the next fit.
    pub fn route(
        &self,
        signature: &[f32],
        loads: &[f32],
        now: f64,
        rng: &mut dyn RngCore,
    ) -> Result<Option<Decision>, EldrOnlineError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Online {
            refit,
            pending,
            similarity,
        } = &mut *state;
        if loads.len() != refit.clusters() {
            let (workers, centroids) = (loads.len(), refit.clusters());
            return Err(EldrOnlineError::Workers { workers, centroids });
        }
        if let Some((_, fit)) = pending.take_if(|(done, _)| *done <= now) {
            refit.finish(fit);
        }
        if let Some(job) = refit.offer(signature, now)? {
            *pending = Some((now + self.fit_seconds, job.run()));
        }
        for (similarity, centroid) in similarity.iter_mut().zip(refit.centroids().chunks_exact(refit.dim())) {
            *similarity = dot(signature, centroid);
        }
        let candidates = Candidates {
            loads,
            similarity: Some(similarity),
            now,
            ..Candidates::default()
        };
        Ok(self.band.choose(&candidates, rng))
    }

    /// The centroids in use and the fits that led to them.
    pub fn refit(&self) -> Refit {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).refit.clone()
    }
}

impl Policy for EldrOnline {
    /// Least-loaded where the artifact would fail: without a signature, or after the group of workers changed.
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision> {
        if let Some(signature) = candidates.signature
            && let Ok(decision) = self.route(signature, candidates.loads, candidates.now, rng)
        {
            return decision;
        }
        let (worker, band) =
            super::ties::least_loaded(candidates.loads, 0..candidates.loads.len(), Ties::LowestIndex, rng)?;
        Some(Decision::by_load(worker, band, Reason::NoSignature))
    }
}

//! Marginal cost: a request goes where the time that all running requests wait for a step rises least.
//!
//! A worker with n requests that are expected to use d distinct experts takes T = base + per expert x d + per request x n for a step. With the
//! request, the total rises by (n + 1) T(with it) - n T(now): its own step, and what it adds to everybody else's. Distinct experts come from
//! the requests' expected decode frequencies, the law from observed steps. It needs no table; where there is one, similarity sharpens the
//! forecast. An idle worker costs least whatever the experts, so at low load the rule is least-loaded.

mod fixed;
mod state;
mod step_time;
#[cfg(test)]
mod step_time_tests;
mod summary;
#[cfg(test)]
mod tests;
mod union;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rand::RngCore;

use super::{Candidates, Decision, Frequencies, LeastLoaded, Policy, Reason, WorkerId};
use crate::geometry::Geometry;
use state::State;
pub use step_time::StepLaw;
pub use summary::{SummaryError, UnionSummary};

/// The policy with what it knows of every worker's batch. Choosing takes a read lock, events a write lock.
#[derive(Debug)]
pub struct MarginalCost {
    cells: usize,
    layers: usize,
    affinity: f32,
    state: RwLock<State>,
}

/// Weight of similarity beside the batch at hand: a centroid stands for hundreds of requests, a batch for those of the moment.
const AFFINITY: f32 = 1.0;

impl MarginalCost {
    /// For a model of this geometry.
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            cells: geometry.cells(),
            layers: geometry.layers,
            affinity: AFFINITY,
            state: RwLock::new(State::new(geometry.cells())),
        }
    }

    /// Another weight of similarity, 0 for none: the experts a request adds to a worker count 1 - weight x (similarity - mean similarity).
    #[must_use]
    pub fn with_affinity(self, affinity: f32) -> Self {
        let affinity = if affinity.is_finite() { affinity.max(0.0) } else { 0.0 };
        Self { affinity, ..self }
    }

    /// The step-time law as learned so far; `None` before the first observation.
    pub fn law(&self) -> Option<StepLaw> {
        self.read().law()
    }

    /// What this policy's own requests use at a worker, to be sent to other routers. `None` for a worker it has not used.
    pub fn summary(&self, worker: WorkerId) -> Option<UnionSummary> {
        self.read().summary(worker)
    }

    /// What the requests of all other routers use at a worker, merged; replaces what was said before. One of other geometry is ignored.
    pub fn set_others(&self, worker: WorkerId, others: &UnionSummary) {
        if others.cells().len() == self.cells {
            self.write().set_others(worker, others);
        }
    }

    fn usable<'a>(&self, frequencies: Option<&'a Frequencies>) -> Option<&'a [i16]> {
        frequencies.map(Frequencies::cells).filter(|f| f.len() == self.cells)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Policy for MarginalCost {
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision> {
        let Some(frequencies) = self.usable(candidates.frequencies) else {
            let decision = LeastLoaded.choose(candidates, rng)?;
            let reason = Reason::NoSignature;
            return Some(Decision { reason, ..decision });
        };
        let (worker, distinct) = self.read().cheapest(frequencies, self.affinity, candidates, rng)?;
        let similarity = candidates.usable_similarity();
        let mut decision = Decision::by_load(worker, candidates.loads.len(), Reason::MarginalCost);
        decision.best_similarity = similarity.map(|s| s.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        decision.chosen_similarity = similarity.and_then(|s| s.get(worker).copied());
        decision.distinct_experts = Some(distinct / self.layers.max(1) as f32);
        Some(decision)
    }

    fn started(&self, worker: WorkerId, frequencies: Option<&Frequencies>, _now: f64) {
        if let Some(frequencies) = self.usable(frequencies) {
            self.write().started(worker, frequencies);
        }
    }

    fn finished(&self, worker: WorkerId, frequencies: Option<&Frequencies>, _now: f64) {
        if let Some(frequencies) = self.usable(frequencies) {
            self.write().finished(worker, frequencies);
        }
    }

    fn observed(&self, worker: WorkerId, load: f32, seconds: f64) {
        self.write().observed(worker, load, seconds);
    }

    fn workers(&self, live: &[WorkerId]) {
        self.write().keep(live);
    }
}

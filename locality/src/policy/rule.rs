//! What a policy sees and is told.

use std::fmt;

use rand::RngCore;

use super::{Decision, Frequencies};

/// One life of a worker, as the caller numbers them. A worker that restarted is another one: its engine has forgotten everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u64);

/// What a policy knows of the live workers and of the request. Worker `i` has `loads[i]`, `similarity[i]` and `workers[i]`.
///
/// Only `loads` is needed by every policy; what is absent makes a policy fall back to load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidates<'a> {
    /// Load of each worker in requests; fractions occur where reports age.
    pub loads: &'a [f32],
    /// Cosine of the request's signature to each worker; absent without signature or table.
    pub similarity: Option<&'a [f32]>,
    /// Who they are, for policies with a memory; empty: worker `i` is `WorkerId(i)`.
    pub workers: &'a [WorkerId],
    /// The request's signature itself, for policies that keep their own centroids.
    pub signature: Option<&'a [f32]>,
    /// The request's expected decode frequencies.
    pub frequencies: Option<&'a Frequencies>,
    /// The request's true domain, which only a simulation knows.
    pub domain: Option<u32>,
    /// Seconds on the caller's monotonic clock.
    pub now: f64,
}

impl Candidates<'_> {
    /// The worker at an index.
    pub fn worker(&self, index: usize) -> WorkerId {
        self.workers.get(index).copied().unwrap_or(WorkerId(index as u64))
    }

    /// Similarity, where it is one number for each worker.
    pub(super) fn usable_similarity(&self) -> Option<&[f32]> {
        self.similarity
            .filter(|s| s.len() == self.loads.len() && s.iter().all(|v| v.is_finite()))
    }
}

/// Chooses a worker for each request. Shared by threads; chance comes from the caller's generator and time from its clock, so that a seed
/// reproduces a run.
///
/// The events after [`Policy::choose`] feed policies with a memory; others ignore them. Each `finished` must follow a `started` of the same
/// policy with the same arguments.
pub trait Policy: Send + Sync + fmt::Debug {
    /// The worker for one request; `None` when there is no worker.
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision>;

    /// A request was given to a worker.
    fn started(&self, _worker: WorkerId, _frequencies: Option<&Frequencies>, _now: f64) {}

    /// A request left the worker it had been given to, on whatever path.
    fn finished(&self, _worker: WorkerId, _frequencies: Option<&Frequencies>, _now: f64) {}

    /// A worker took `seconds` per output token over the last few tokens of a stream, while its load was `load` requests.
    fn observed(&self, _worker: WorkerId, _load: f32, _seconds: f64) {}

    /// The live workers from now on; what is known of others is forgotten.
    fn workers(&self, _live: &[WorkerId]) {}
}

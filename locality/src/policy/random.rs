//! Any worker.

use rand::{Rng, RngCore};

use super::{Candidates, Decision, Policy, Reason};

/// Uniformly by chance.
#[derive(Debug, Default)]
pub struct Random;

impl Policy for Random {
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision> {
        let workers = candidates.loads.len();
        (workers > 0).then(|| Decision::by_load(rng.gen_range(0..workers), workers, Reason::Random))
    }
}

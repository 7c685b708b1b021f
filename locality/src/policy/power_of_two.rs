//! The better of two workers drawn by chance.

use rand::{Rng, RngCore};

use super::{Candidates, Decision, Policy, Reason};

/// Two distinct workers by chance, then the lower load; the first drawn wins a tie.
#[derive(Debug, Default)]
pub struct PowerOfTwoChoices;

impl Policy for PowerOfTwoChoices {
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision> {
        let loads = candidates.loads;
        if loads.len() < 2 {
            return (!loads.is_empty()).then(|| Decision::by_load(0, 1, Reason::PowerOfTwoChoices));
        }
        let first = rng.gen_range(0..loads.len());
        let offset = rng.gen_range(1..loads.len());
        let second = (first + offset) % loads.len();
        let worker = if loads.get(second)? < loads.get(first)? {
            second
        } else {
            first
        };
        Some(Decision::by_load(worker, 2, Reason::PowerOfTwoChoices))
    }
}

//! The worker with the fewest requests.

use rand::RngCore;

use super::{Candidates, Decision, Policy, Reason, Ties, ties};

/// Lowest load; equal loads by chance.
#[derive(Debug, Default)]
pub struct LeastLoaded;

impl Policy for LeastLoaded {
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision> {
        let all = 0..candidates.loads.len();
        let (worker, band) = ties::least_loaded(candidates.loads, all, Ties::Spread, rng)?;
        Some(Decision::by_load(worker, band, Reason::LeastLoaded))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn picks(seed: u64, loads: &[f32], n: usize) -> Vec<usize> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let candidates = Candidates {
            loads,
            similarity: None,
            ..Candidates::default()
        };
        (0..n)
            .map(|_| LeastLoaded.choose(&candidates, &mut rng).unwrap().worker)
            .collect()
    }

    #[test]
    fn takes_the_lowest_and_spreads_ties_by_seed() {
        assert_eq!(picks(1, &[3.0, 1.0, 2.0], 1), [1]);
        let tied = [0.0; 4];
        assert_eq!(picks(7, &tied, 30), picks(7, &tied, 30));
        let many = picks(7, &tied, 4000);
        for worker in 0..4 {
            let share = many.iter().filter(|w| **w == worker).count();
            assert!((850..1150).contains(&share), "worker {worker} got {share} of 4000");
        }
    }
}

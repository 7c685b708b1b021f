//! A seeded uniform choice of at most N things of a stream, in the stream's order.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) struct Reservoir<T> {
    kept: Vec<(u64, T)>,
    most: usize,
    seen: u64,
    rng: Xoshiro256PlusPlus,
}

impl<T> Reservoir<T> {
    pub(super) fn new(most: usize, seed: u64) -> Self {
        Self {
            kept: Vec::new(),
            most,
            seen: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Offers the next thing; each of those offered so far is kept with the same probability.
    pub(super) fn offer(&mut self, thing: T) {
        let position = self.seen;
        self.seen += 1;
        if self.kept.len() < self.most {
            self.kept.push((position, thing));
            return;
        }
        let draw = self.rng.gen_range(0..self.seen);
        let slot = usize::try_from(draw).ok().and_then(|at| self.kept.get_mut(at));
        if let Some(slot) = slot {
            *slot = (position, thing);
        }
    }

    /// What was kept with its position in the stream, in order, and how many were offered.
    pub(super) fn finish(mut self) -> (Vec<(u64, T)>, u64) {
        self.kept.sort_unstable_by_key(|(position, _)| *position);
        (self.kept, self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(most: usize, seed: u64, n: u64) -> Vec<u64> {
        let mut reservoir = Reservoir::new(most, seed);
        (0..n).for_each(|i| reservoir.offer(i));
        let (kept, seen) = reservoir.finish();
        assert_eq!(seen, n);
        kept.into_iter()
            .map(|(position, thing)| {
                assert_eq!(position, thing);
                thing
            })
            .collect()
    }

    #[test]
    fn keeps_all_of_a_short_stream_and_a_uniform_choice_of_a_long_one() {
        assert_eq!(choose(5, 1, 3), [0, 1, 2]);
        assert_eq!(choose(5, 1, 100), choose(5, 1, 100));
        let mut times = [0u32; 20];
        for seed in 0..2000 {
            let kept = choose(5, seed, 20);
            assert!(kept.len() == 5 && kept.is_sorted());
            for i in kept {
                times[i as usize] += 1;
            }
        }
        assert!(times.iter().all(|t| (400..600).contains(t)), "{times:?}");
    }
}

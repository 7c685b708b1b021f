//! A bounded sample of finished requests, the recent ones more likely than the old.
//!
//! A full reservoir of n takes every new sample in the place of a random one, so a sample of age a (in samples) is still there with
//! probability (1 - 1/n)^a: traffic of the last n requests or so, with a tail.

use std::{collections::VecDeque, sync::Arc};

use coterie_locality::Sample;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const BUCKET_MS: u64 = 60_000;
/// A day of minutes.
const MAX_BUCKETS: usize = 1_440;

#[derive(Debug)]
pub(super) struct Reservoir {
    samples: Vec<Arc<Sample>>,
    rng: Xoshiro256PlusPlus,
    /// Samples offered, by minute, oldest first.
    seen: VecDeque<(u64, u64)>,
}

impl Reservoir {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            samples: Vec::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            seen: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// Takes a sample; `most` is the size that the routing document asks for now.
    pub(super) fn offer(&mut self, sample: Sample, most: usize) {
        // Samples of another model are of no use to anybody any more.
        if self
            .samples
            .first()
            .is_some_and(|s| s.fingerprint != sample.fingerprint)
        {
            self.samples.clear();
            self.seen.clear();
        }
        self.saw(sample.time_unix_ms);
        while self.samples.len() > most {
            let victim = self.rng.gen_range(0..self.samples.len());
            self.samples.swap_remove(victim);
        }
        let sample = Arc::new(sample);
        if self.samples.len() < most {
            self.samples.push(sample);
        } else if most > 0 {
            let victim = self.rng.gen_range(0..most);
            if let Some(place) = self.samples.get_mut(victim) {
                *place = sample;
            }
        }
    }

    /// Samples from `since_ms` on, newest first, at most `limit`, and the requests that each stands for.
    pub(super) fn since(&self, since_ms: u64, limit: usize) -> (Vec<Arc<Sample>>, f32) {
        let mut chosen: Vec<Arc<Sample>> = self
            .samples
            .iter()
            .filter(|s| s.time_unix_ms >= since_ms)
            .cloned()
            .collect();
        chosen.sort_by_key(|s| std::cmp::Reverse(s.time_unix_ms));
        chosen.truncate(limit);
        let bucket = since_ms / BUCKET_MS;
        let seen: u64 = self.seen.iter().filter(|(b, _)| *b >= bucket).map(|(_, n)| n).sum();
        let weight = seen.max(chosen.len() as u64) as f32 / chosen.len().max(1) as f32;
        (chosen, weight)
    }

    fn saw(&mut self, at_ms: u64) {
        let bucket = at_ms / BUCKET_MS;
        match self.seen.back_mut() {
            // A clock that steps back counts into the newest minute.
            Some((last, n)) if *last >= bucket => *n += 1,
            _ => self.seen.push_back((bucket, 1)),
        }
        if self.seen.len() > MAX_BUCKETS {
            self.seen.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use coterie_locality::{Fingerprint, Geometry};

    use super::*;

    fn sample(model: &str, at_ms: u64) -> Sample {
        let mut sample = Sample::new(Fingerprint::new(model, Geometry::new(1, 4, 2).unwrap()));
        sample.time_unix_ms = at_ms;
        sample
    }

    fn filled(seed: u64, offered: u64, most: usize) -> Reservoir {
        let mut reservoir = Reservoir::new(seed);
        for at in 0..offered {
            reservoir.offer(sample("m", at), most);
        }
        reservoir
    }

    #[test]
    fn it_is_bounded_seeded_and_prefers_recent_requests() {
        let times = |r: &Reservoir| {
            r.since(0, usize::MAX)
                .0
                .iter()
                .map(|s| s.time_unix_ms)
                .collect::<Vec<_>>()
        };
        let one = filled(1, 10_000, 100);
        assert_eq!(times(&one), times(&filled(1, 10_000, 100)));
        assert_eq!(one.len(), 100);
        let recent = times(&one).iter().filter(|t| **t >= 9_500).count();
        assert!(recent > 90, "{recent} of 100 are of the last 500");
        assert!(times(&one).windows(2).all(|w| w[0] >= w[1]), "newest first");
    }

    #[test]
    fn weights_carry_the_traffic_seen() {
        let reservoir = filled(1, 1_000, 100);
        let (all, weight) = reservoir.since(0, usize::MAX);
        assert_eq!(weight * all.len() as f32, 1_000.0);
        assert_eq!(reservoir.since(0, 10).0.len(), 10);
        assert_eq!(reservoir.since(u64::MAX, 10), (Vec::new(), 0.0));
    }

    #[test]
    fn it_shrinks_on_demand_and_forgets_another_model() {
        let mut reservoir = filled(1, 100, 100);
        reservoir.offer(sample("m", 100), 10);
        assert_eq!(reservoir.len(), 10);
        reservoir.offer(sample("m", 101), 0);
        assert_eq!(reservoir.len(), 0);
        let mut reservoir = filled(1, 100, 100);
        reservoir.offer(sample("other", 100), 100);
        assert_eq!(reservoir.len(), 1);
    }
}

//! Each worker in turn.

use std::sync::atomic::{AtomicUsize, Ordering};

use rand::RngCore;

use super::{Candidates, Decision, Policy, Reason};

/// Cyclic from worker 0.
#[derive(Debug, Default)]
pub struct RoundRobin {
    next: AtomicUsize,
}

impl Policy for RoundRobin {
    fn choose(&self, candidates: &Candidates<'_>, _rng: &mut dyn RngCore) -> Option<Decision> {
        let workers = candidates.loads.len();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        Some(Decision::by_load(
            turn.checked_rem(workers)?,
            workers,
            Reason::RoundRobin,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_turns_from_zero() {
        let (policy, mut rng) = (RoundRobin::default(), rand::rngs::mock::StepRng::new(0, 1));
        let candidates = Candidates {
            loads: &[9.0, 0.0, 0.0],
            similarity: None,
            ..Candidates::default()
        };
        let picks: Vec<_> = (0..7)
            .map(|_| policy.choose(&candidates, &mut rng).unwrap().worker)
            .collect();
        assert_eq!(picks, [0, 1, 2, 0, 1, 2, 0]);
        assert!(
            policy
                .choose(
                    &Candidates {
                        loads: &[],
                        similarity: None,
                        ..Candidates::default()
                    },
                    &mut rng
                )
                .is_none()
        );
    }
}

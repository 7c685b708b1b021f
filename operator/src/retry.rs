//! Growing delays for objects whose reconcile fails: one bad object neither spins nor slows the others.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(300);

/// Failures in a row, by object.
#[derive(Debug)]
pub struct Backoff<K> {
    failures: Mutex<HashMap<K, u32>>,
}

impl<K> Default for Backoff<K> {
    fn default() -> Self {
        Self {
            failures: Mutex::default(),
        }
    }
}

impl<K: Hash + Eq> Backoff<K> {
    /// Counts a failure and tells how long to wait: half a second, doubled each time, at most five minutes.
    pub fn failed(&self, key: K) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(key).or_default();
        let delay = FIRST.saturating_mul(1_u32 << (*count).min(16)).min(LONGEST);
        *count = count.saturating_add(1);
        delay
    }

    /// Forgets the failures of an object that succeeded or is gone.
    pub fn clear(&self, key: &K) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_for_each_object_alone() {
        let backoff = Backoff::default();
        let delays: Vec<_> = (0..12).map(|_| backoff.failed("a")).collect();
        assert!(
            delays.windows(2).all(|w| w[0] <= w[1]),
            "delays never shrink: {delays:?}"
        );
        assert_eq!(delays.last(), Some(&LONGEST));
        assert_eq!(backoff.failed("b"), FIRST, "another object starts afresh");
        backoff.clear(&"a");
        assert_eq!(backoff.failed("a"), FIRST, "success forgets");
    }
}

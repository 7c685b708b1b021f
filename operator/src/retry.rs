//! Growing delays for objects whose reconcile fails: one bad object neither spins nor slows the others.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::error::Category;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(300);
/// No watch follows somebody else's object.
const LONGEST_UNWATCHED: Duration = Duration::from_secs(10);

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
    /// Counts a failure and tells how long to wait: half a second, doubled each time, at most five minutes, or less where nothing but a
    /// look can tell that the cause is gone.
    pub fn failed(&self, key: K, category: Category) -> Duration {
        let longest = if category == Category::Foreign {
            LONGEST_UNWATCHED
        } else {
            LONGEST
        };
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(key).or_default();
        let delay = FIRST.saturating_mul(1_u32 << (*count).min(16)).min(longest);
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
        let delays: Vec<_> = (0..12).map(|_| backoff.failed("a", Category::Write)).collect();
        assert!(
            delays.windows(2).all(|w| w[0] <= w[1]),
            "delays never shrink: {delays:?}"
        );
        assert_eq!(delays.last(), Some(&LONGEST));
        assert_eq!(
            backoff.failed("b", Category::Write),
            FIRST,
            "another object starts afresh"
        );
        backoff.clear(&"a");
        assert_eq!(backoff.failed("a", Category::Write), FIRST, "success forgets");
    }

    #[test]
    fn an_object_that_belongs_to_somebody_else_is_looked_at_often() {
        let backoff = Backoff::default();
        let delays: Vec<_> = (0..20).map(|_| backoff.failed("a", Category::Foreign)).collect();
        assert_eq!(delays.first(), Some(&FIRST));
        assert!(delays.iter().all(|d| *d <= LONGEST_UNWATCHED));
    }
}

//! Ejection of workers that cannot be reached: back-off, then one request at a time until one gets through.

use super::{Worker, lock};

/// Failures in a row before a worker is ejected: one may be the worker's restart seen by chance.
const FAILURES_TO_EJECT: u32 = 2;
const FIRST_BACKOFF_MS: u64 = 500;
const LONGEST_BACKOFF_MS: u64 = 10_000;

#[derive(Debug, Default)]
pub(super) struct Health {
    failures: u32,
    ejected_until_ms: Option<u64>,
}

impl Worker {
    /// A connection could not be made.
    pub(crate) fn unreachable(&self, now_ms: u64) {
        let mut health = lock(&self.health);
        health.failures = health.failures.saturating_add(1);
        if let Some(extra) = health.failures.checked_sub(FAILURES_TO_EJECT) {
            let backoff = FIRST_BACKOFF_MS
                .saturating_mul(1 << extra.min(10))
                .min(LONGEST_BACKOFF_MS);
            health.ejected_until_ms = Some(now_ms.saturating_add(backoff));
        }
    }

    /// The worker answered, whatever it said.
    pub(crate) fn answered(&self) {
        *lock(&self.health) = Health::default();
    }

    /// Whether requests may go there. After its back-off an ejected worker gets a single request at a time; that this one is in flight is
    /// seen from the worker's own count, so no flag can be left standing.
    pub(crate) fn available(&self, now_ms: u64) -> bool {
        match lock(&self.health).ejected_until_ms {
            None => true,
            Some(until) => now_ms >= until && self.own() == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::worker::{Reservation, Role, Worker, WorkerSpec};

    #[test]
    fn ejects_backs_off_and_lets_one_probe_through() {
        let worker = Arc::new(Worker::new(&WorkerSpec {
            name: "d0".into(),
            role: Role::Decode,
            incarnation: String::new(),
            address: String::new(),
            revision: String::new(),
            unready: None,
        }));
        worker.unreachable(0);
        assert!(worker.available(0), "one failure is not enough");
        worker.unreachable(0);
        assert!(!worker.available(499));
        assert!(worker.available(500));
        let probe = Reservation::new(Arc::clone(&worker));
        assert!(!worker.available(500), "one probe at a time");
        worker.unreachable(500);
        drop(probe);
        assert!(!worker.available(1_499), "the back-off doubles");
        assert!(worker.available(1_500));
        worker.answered();
        assert!(worker.available(1_500));
        for _ in 0..100 {
            worker.unreachable(2_000);
        }
        assert!(worker.available(12_000), "the back-off is bounded");
    }
}

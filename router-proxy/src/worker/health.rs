//! Ejection of workers that cannot be reached or whose answers fail: back-off, then one request for each back-off until one gets through.

use super::{Worker, lock};

/// Failed connections in a row before a worker is ejected: one may be the worker's restart seen by chance.
const UNREACHABLE_TO_EJECT: u32 = 2;
/// Failures of any kind in a row before a worker that can be reached is ejected: an engine may fail a request or two for its own sake.
const FAILED_TO_EJECT: u32 = 3;
const FIRST_BACKOFF_MS: u64 = 500;
const LONGEST_BACKOFF_MS: u64 = 15_000;

#[derive(Debug, Default)]
pub(super) struct Health {
    failures: u32,
    ejections: u32,
    ejected_until_ms: Option<u64>,
}

impl Health {
    fn failed(&mut self, now_ms: u64, to_eject: u32) {
        // Requests that were on their way when the worker was ejected say nothing new.
        if self.ejected_until_ms.is_some_and(|until| now_ms < until) {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= to_eject {
            self.eject(now_ms);
        }
    }

    fn eject(&mut self, now_ms: u64) {
        let backoff = FIRST_BACKOFF_MS
            .saturating_mul(1 << self.ejections.min(10))
            .min(LONGEST_BACKOFF_MS);
        self.ejections = self.ejections.saturating_add(1);
        self.ejected_until_ms = Some(now_ms.saturating_add(backoff));
    }
}

impl Worker {
    /// A connection could not be made.
    pub(crate) fn unreachable(&self, now_ms: u64) {
        lock(&self.health).failed(now_ms, UNREACHABLE_TO_EJECT);
    }

    /// The worker took a request and failed it: a server error, a broken answer, or none in time.
    pub(crate) fn failed(&self, now_ms: u64) {
        lock(&self.health).failed(now_ms, FAILED_TO_EJECT);
    }

    /// The worker served a request, or refused it for what it asks.
    pub(crate) fn answered(&self) {
        *lock(&self.health) = Health::default();
    }

    /// Whether requests may go there.
    pub(crate) fn available(&self, now_ms: u64) -> bool {
        lock(&self.health).ejected_until_ms.is_none_or(|until| now_ms >= until)
    }

    /// A request was given to the worker. If it is ejected and its back-off is over, this request is the probe: the next back-off begins
    /// now, so that no other follows unless this one gets through, and a probe that never ends holds nothing up.
    pub(crate) fn given(&self, now_ms: u64) {
        let mut health = lock(&self.health);
        if health.ejected_until_ms.is_some_and(|until| now_ms >= until) {
            health.eject(now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::worker::{Role, Worker, WorkerSpec};

    fn worker() -> Worker {
        Worker::new(&WorkerSpec {
            name: "d0".into(),
            role: Role::Decode,
            incarnation: String::new(),
            address: String::new(),
            revision: String::new(),
            unready: None,
        })
    }

    #[test]
    fn ejects_backs_off_and_lets_one_probe_through() {
        let worker = worker();
        worker.unreachable(0);
        assert!(worker.available(0), "one failure is not enough");
        worker.unreachable(0);
        assert!(!worker.available(499));
        assert!(worker.available(500));
        worker.given(500);
        assert!(!worker.available(500), "one probe at a time");
        worker.unreachable(600);
        assert!(!worker.available(1_499), "the back-off doubles");
        assert!(worker.available(1_500));
        worker.answered();
        assert!(worker.available(1_500));
        let mut now = 2_000;
        for _ in 0..100 {
            worker.failed(now);
            worker.given(now);
            now += 20_000;
        }
        worker.failed(now);
        assert!(!worker.available(now + 14_999));
        assert!(worker.available(now + 15_000), "the back-off is bounded");
    }

    #[test]
    fn failures_in_a_row_eject_and_late_ones_do_not_lengthen_the_back_off() {
        let worker = worker();
        for _ in 0..5 {
            worker.failed(0);
            worker.failed(0);
            worker.answered();
        }
        assert!(worker.available(0), "never three in a row");
        for _ in 0..100 {
            worker.failed(0);
        }
        assert!(!worker.available(499));
        assert!(worker.available(500));
    }
}

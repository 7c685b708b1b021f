//! Load of a worker = own requests + what others put there, as its engine last reported.

use std::sync::{Arc, atomic::Ordering};

use coterie_locality::{Policy, policy::Frequencies};

use super::{Worker, lock};
use crate::clock::Clock;

/// Reports older than this are ignored.
const MAX_REPORT_AGE_MS: u64 = 5_000;

/// What an engine said of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// Requests running and waiting.
    requests: u64,
    /// Own requests that had been sent there by then: the report contains them.
    own_then: u64,
    at_ms: u64,
}

impl Worker {
    /// Own requests, reserved or running.
    pub(crate) fn own(&self) -> u64 {
        self.own.load(Ordering::Acquire)
    }

    /// Own requests that were sent to the worker and are not finished.
    pub(crate) fn dispatched(&self) -> u64 {
        self.dispatched.load(Ordering::Acquire)
    }

    /// Keeps a report. `own_before` and `own_after` are [`Self::dispatched`] around the scrape: the engine counted at some moment between,
    /// and the larger number errs towards counting no request twice.
    pub(crate) fn reported(&self, requests: u64, own_before: u64, own_after: u64, now_ms: u64) {
        *lock(&self.report) = Some(Report {
            requests,
            own_then: own_before.max(own_after),
            at_ms: now_ms,
        });
    }

    /// Requests in the last report that is fresh enough.
    pub(crate) fn report(&self, now_ms: u64) -> Option<u64> {
        self.fresh_report(now_ms).map(|r| r.requests)
    }

    /// Load in requests.
    pub(crate) fn load(&self, now_ms: u64) -> f32 {
        let others = self
            .fresh_report(now_ms)
            .map_or(0, |r| r.requests.saturating_sub(r.own_then));
        (self.own().saturating_add(others)) as f32
    }

    fn fresh_report(&self, now_ms: u64) -> Option<Report> {
        (*lock(&self.report)).filter(|r| now_ms.saturating_sub(r.at_ms) <= MAX_REPORT_AGE_MS)
    }
}

/// A place at a worker, given back when dropped, on whatever path.
#[derive(Debug)]
pub(crate) struct Reservation {
    worker: Arc<Worker>,
    dispatched: bool,
    placed: Option<Placed>,
}

/// What the policy that chose the worker was told, to be taken back.
#[derive(Debug)]
struct Placed {
    policy: Arc<dyn Policy>,
    frequencies: Option<Frequencies>,
    clock: Clock,
}

impl Reservation {
    pub(crate) fn new(worker: Arc<Worker>) -> Self {
        worker.own.fetch_add(1, Ordering::AcqRel);
        Self {
            worker,
            dispatched: false,
            placed: None,
        }
    }

    /// Tells the policy that the request starts here; that it has left follows when the place is given back.
    pub(crate) fn place(&mut self, policy: Arc<dyn Policy>, frequencies: Option<Frequencies>, clock: Clock) {
        policy.started(self.worker.id, frequencies.as_ref(), clock.seconds());
        self.placed = Some(Placed {
            policy,
            frequencies,
            clock,
        });
    }

    /// Tells the policy how long the worker takes for a token just now.
    pub(crate) fn observed(&self, seconds: f64) {
        if let Some(placed) = &self.placed {
            let load = self.worker.load(placed.clock.monotonic_ms());
            placed.policy.observed(self.worker.id, load, seconds);
        }
    }

    pub(crate) fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// The request is on its way to the worker.
    pub(crate) fn dispatch(&mut self) {
        if !self.dispatched {
            self.dispatched = true;
            self.worker.dispatched.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.worker.own.fetch_sub(1, Ordering::AcqRel);
        if self.dispatched {
            self.worker.dispatched.fetch_sub(1, Ordering::AcqRel);
        }
        if let Some(placed) = &self.placed {
            let now = placed.clock.seconds();
            placed.policy.finished(self.worker.id, placed.frequencies.as_ref(), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{Role, WorkerSpec};

    fn worker() -> Arc<Worker> {
        Arc::new(Worker::new(&WorkerSpec {
            name: "d0".into(),
            role: Role::Decode,
            incarnation: "1".into(),
            address: "10.0.0.1:8000".into(),
            revision: "r".into(),
            unready: None,
        }))
    }

    #[test]
    fn load_is_own_plus_what_others_sent_and_reports_age_out() {
        let worker = worker();
        let mut one = Reservation::new(Arc::clone(&worker));
        one.dispatch();
        one.dispatch();
        let two = Reservation::new(Arc::clone(&worker));
        assert_eq!((worker.own(), worker.dispatched()), (2, 1));
        worker.reported(5, 0, 1, 1_000);
        assert_eq!(worker.load(6_000), 6.0, "2 own + 4 of others");
        assert_eq!(worker.load(6_001), 2.0, "the report is too old");
        assert_eq!(worker.report(6_001), None);
        worker.reported(0, 1, 1, 7_000);
        assert_eq!(worker.load(7_000), 2.0, "a report that lags never lowers the own count");
        drop((one, two));
        assert_eq!((worker.own(), worker.dispatched()), (0, 0));
    }
}

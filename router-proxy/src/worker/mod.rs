//! Workers: who they are, how loaded they are, whether they answer.

mod health;
mod load;
pub(crate) mod scrape;

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use coterie_locality::policy::WorkerId;
pub(crate) use load::Reservation;

use health::Health;
use load::Report;

/// Which leg a worker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    Prefill,
    Decode,
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Prefill => coterie_crds::names::ROLE_PREFILL,
            Self::Decode => coterie_crds::names::ROLE_DECODE,
        }
    }
}

/// What discovery says of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerSpec {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// One life of the worker: a pod that comes back under its name has another one, and fresh counters.
    pub(crate) incarnation: String,
    /// `host:port`; empty while the worker has none.
    pub(crate) address: String,
    pub(crate) revision: String,
    /// Why discovery would not send requests there.
    pub(crate) unready: Option<&'static str>,
}

/// One life of one worker, with its counters.
#[derive(Debug)]
pub(crate) struct Worker {
    /// This life's number, for policies that remember workers.
    pub(crate) id: WorkerId,
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) incarnation: String,
    pub(crate) address: String,
    pub(crate) revision: String,
    own: AtomicU64,
    dispatched: AtomicU64,
    report: Mutex<Option<Report>>,
    health: Mutex<Health>,
}

impl Worker {
    pub(crate) fn new(spec: &WorkerSpec) -> Self {
        static LIVES: AtomicU64 = AtomicU64::new(0);
        Self {
            id: WorkerId(LIVES.fetch_add(1, Ordering::Relaxed)),
            name: spec.name.clone(),
            role: spec.role,
            incarnation: spec.incarnation.clone(),
            address: spec.address.clone(),
            revision: spec.revision.clone(),
            own: AtomicU64::new(0),
            dispatched: AtomicU64::new(0),
            report: Mutex::new(None),
            health: Mutex::new(Health::default()),
        }
    }

    /// Whether the specification is of this very life.
    pub(crate) fn is(&self, spec: &WorkerSpec) -> bool {
        self.name == spec.name
            && self.role == spec.role
            && self.incarnation == spec.incarnation
            && self.address == spec.address
            && self.revision == spec.revision
    }
}

/// A mutex whose data stay sound whatever panicked while holding it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

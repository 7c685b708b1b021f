//! What the drift monitor remembers of each fleet between polls. Lost at a restart, which costs at most `sustain` slides.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use coterie_locality::drift::{DriftState, Signals, Verdict};

use crate::owner::Fleet;

/// One fleet's memory.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// The state machine.
    pub state: DriftState,
    /// Digest of the table under which slides were judged.
    pub digest: String,
    /// The newest slide judged.
    pub judged: Option<u64>,
    /// Its signals and verdict.
    pub last: Option<(Signals, Verdict)>,
    /// Since when routers have not answered.
    pub silent_since: Option<Instant>,
}

impl Remembered {
    /// How long routers have been silent.
    pub fn silent_for(&self, now: Instant) -> Duration {
        self.silent_since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

/// All fleets' memories.
#[derive(Debug, Default)]
pub struct DriftMemory {
    fleets: Mutex<HashMap<Fleet, Remembered>>,
}

impl DriftMemory {
    /// Works on one fleet's memory.
    pub fn with<T>(&self, fleet: &Fleet, work: impl FnOnce(&mut Remembered) -> T) -> T {
        let mut fleets = self.fleets.lock().unwrap_or_else(PoisonError::into_inner);
        work(fleets.entry(fleet.clone()).or_default())
    }

    /// All fleets remembered.
    pub fn known(&self) -> Vec<Fleet> {
        let fleets = self.fleets.lock().unwrap_or_else(PoisonError::into_inner);
        fleets.keys().cloned().collect()
    }

    /// Forgets a fleet that is gone.
    pub fn forget(&self, fleet: &Fleet) {
        self.fleets.lock().unwrap_or_else(PoisonError::into_inner).remove(fleet);
    }
}

//! What the drift monitor remembers of each fleet between polls. Lost at a restart, which costs at most `sustain` slides.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use coterie_locality::{
    drift::{DriftState, Signals, SlideSummary, Thresholds, Verdict, judge, select_window},
    table::Baselines,
};

use super::window::{MAX_SLIDES, SLIDES_PER_WINDOW};
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
    /// Judges every slide up to `last` that became complete since the last time, in order. `slides` are those of the active table.
    pub fn advance(
        &mut self,
        baselines: &Baselines,
        slides: &[SlideSummary],
        last: u64,
        thresholds: &Thresholds,
        sustain: u32,
    ) {
        let Some(first) = slides.first().map(|s| s.slide) else {
            return;
        };
        // At a start only the newest slides are judged: enough to know whether a signal has lasted.
        let oldest = last.saturating_sub(u64::from(sustain).max(SLIDES_PER_WINDOW));
        let begin = self.judged.map_or(oldest, |judged| judged + 1).max(oldest).max(first);
        for slide in begin..=last {
            let window = select_window(slides, slide, SLIDES_PER_WINDOW, MAX_SLIDES, thresholds.min_requests);
            let signals = judge(baselines, window, thresholds);
            let verdict = self.state.advance(&self.digest, slide, &signals, sustain);
            self.judged = Some(slide);
            self.last = Some((signals, verdict));
        }
    }

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

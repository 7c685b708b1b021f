//! Time, read in one place: parts that need it take numbers, so that tests give their own.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the process started: for ages and back-offs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Never goes backwards.
    pub(crate) fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The same in seconds, as policies take it.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Unix time in milliseconds, the same on every router: for slides and samples.
    pub(crate) fn unix_ms() -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
    }
}

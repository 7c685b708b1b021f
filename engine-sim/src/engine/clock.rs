//! Time as the engine sees it: a monotonic reading, replaceable in tests.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// A monotonic clock.
pub trait Clock: Send + Sync + 'static {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;

    /// The engine is about to sleep for `left`. A simulated clock moves on instead, by `left` or to an earlier moment at which something
    /// happens, and returns true: the engine then does not sleep.
    fn skip(&self, left: Duration) -> bool {
        let _ = left;
        false
    }
}

/// The system's clock, counted from its creation.
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A clock that moves when told to.
#[derive(Default)]
pub struct ManualClock(Mutex<Duration>);

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! One client's request, from its head to its end on whatever path.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::OwnedSemaphorePermit;

use crate::{
    core::{Core, Endpoint},
    telemetry::ClientOutcome,
};

/// Counted as in flight until dropped; a request that nobody says anything else of was left by its client.
#[derive(Debug)]
pub(super) struct ClientTurn {
    core: Arc<Core>,
    endpoint: Endpoint,
    outcome: ClientOutcome,
    began: Instant,
    _place: OwnedSemaphorePermit,
}

impl ClientTurn {
    pub(super) fn new(core: Arc<Core>, endpoint: Endpoint, place: OwnedSemaphorePermit) -> Self {
        core.metrics.request_began();
        Self {
            core,
            endpoint,
            outcome: ClientOutcome::ClientGone,
            began: Instant::now(),
            _place: place,
        }
    }

    pub(super) fn ends(&mut self, outcome: ClientOutcome) {
        self.outcome = outcome;
    }

    /// The stream's first byte is on its way.
    pub(super) fn first_byte(&self) {
        self.core.metrics.first_token(self.endpoint, self.began.elapsed());
    }

    /// The stream's pace.
    pub(super) fn per_token(&self, each: Duration) {
        self.core.metrics.per_token(self.endpoint, each);
    }
}

impl Drop for ClientTurn {
    fn drop(&mut self) {
        self.core.metrics.request_ended(self.endpoint, self.outcome);
    }
}

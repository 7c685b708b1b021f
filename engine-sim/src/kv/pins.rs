//! Hand-offs waiting for the decode worker: their blocks stay pinned until pulled, rejected or past the lease.

use std::collections::HashMap;
use std::time::Duration;

struct Pin {
    blocks: Vec<u32>,
    expires: Duration,
}

/// Pinned blocks by request id. Times are readings of one monotonic clock.
#[derive(Default)]
pub struct Pins {
    by_request: HashMap<String, Pin>,
}

impl Pins {
    /// Pins a finished prefill's blocks until `expires`.
    pub fn hold(&mut self, request: String, blocks: Vec<u32>, expires: Duration) {
        self.by_request.insert(request, Pin { blocks, expires });
    }

    /// Ends a hand-off and returns its blocks; None if it is unknown or already ended.
    pub fn release(&mut self, request: &str) -> Option<Vec<u32>> {
        self.by_request.remove(request).map(|pin| pin.blocks)
    }

    /// Ends the hand-offs whose lease has run out.
    pub fn expire(&mut self, now: Duration) -> Vec<(String, Vec<u32>)> {
        let over: Vec<String> = self
            .by_request
            .iter()
            .filter(|(_, pin)| pin.expires <= now)
            .map(|(id, _)| id.clone())
            .collect();
        over.into_iter()
            .filter_map(|id| self.release(&id).map(|blocks| (id, blocks)))
            .collect()
    }

    /// When the next lease runs out.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.by_request.values().map(|pin| pin.expires).min()
    }

    /// Hand-offs waiting.
    pub fn len(&self) -> usize {
        self.by_request.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.by_request.is_empty()
    }

    /// Blocks pinned.
    pub fn blocks(&self) -> usize {
        self.by_request.values().map(|pin| pin.blocks.len()).sum()
    }
}

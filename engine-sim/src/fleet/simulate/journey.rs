//! One request's way through the fleet.

use super::events::Nanos;
use crate::fleet::workload::Arrival;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Not yet.
    Pending,
    /// All tokens were sent.
    Finished,
    /// Its worker died after the first token, or too often.
    Failed,
    /// No decode worker was live.
    Refused,
}

/// A request and its times.
#[derive(Clone, Copy, Debug)]
pub struct Journey {
    /// What came in.
    pub arrival: Arrival,
    /// When.
    pub at: Nanos,
    /// When the decode worker was chosen last.
    pub placed: Nanos,
    /// First token.
    pub first: Option<Nanos>,
    /// Last token, or failure.
    pub ended: Nanos,
    /// Decode worker, once chosen.
    pub worker: Option<u32>,
    /// Router it came in by.
    pub router: u32,
    /// Times it was started anew, beginning with 0.
    pub attempt: u32,
    /// Tokens sent.
    pub tokens: u32,
    /// How it ended.
    pub end: End,
    /// Whether its place counts at its router now.
    pub(super) held: bool,
    /// Whether it was sent to its worker.
    pub(super) dispatched: bool,
}

impl Journey {
    pub(super) fn new(arrival: Arrival, at: Nanos, router: u32) -> Self {
        Self {
            arrival,
            at,
            placed: 0,
            first: None,
            ended: 0,
            worker: None,
            router,
            attempt: 0,
            tokens: 0,
            end: End::Pending,
            held: false,
            dispatched: false,
        }
    }

    /// Seconds to the first token.
    pub fn ttft_s(&self) -> Option<f64> {
        Some((self.first? - self.at) as f64 / 1e9)
    }

    /// Seconds per output token after the first; `None` for unfinished requests and those of one token.
    pub fn tpot_s(&self) -> Option<f64> {
        (self.end == End::Finished && self.tokens > 1)
            .then(|| Some((self.ended - self.first?) as f64 / 1e9 / f64::from(self.tokens - 1)))
            .flatten()
    }
}

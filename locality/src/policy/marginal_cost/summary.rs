//! What routers tell each other about their requests at a worker: one byte per cell.

use super::fixed::LOG_ONE;

/// Steps of a summary's logarithm per unit: 255 of them reach a survival of one in eight million.
const STEPS: u32 = 16;

/// -ln of the chance that none of a router's requests uses a cell, [L, E], and how many requests these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnionSummary {
    requests: u32,
    cells: Box<[u8]>,
}

/// Summaries of different geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("union summary: {got} cells where {expected} were expected")]
pub struct SummaryError {
    got: usize,
    expected: usize,
}

impl UnionSummary {
    /// Takes a received summary: cells in steps of 1/16, 255 standing for all above.
    pub fn new(requests: u32, cells: impl Into<Box<[u8]>>) -> Self {
        let cells = cells.into();
        Self { requests, cells }
    }

    pub(super) fn of(requests: u32, logs: &[u32]) -> Self {
        let step = LOG_ONE / STEPS;
        let cell = |log: &u32| ((u64::from(*log) + u64::from(step / 2)) / u64::from(step)).min(255) as u8;
        Self {
            requests,
            cells: logs.iter().map(cell).collect(),
        }
    }

    /// Adds another router's requests.
    pub fn merge(&mut self, other: &Self) -> Result<(), SummaryError> {
        let (got, expected) = (other.cells.len(), self.cells.len());
        if got != expected {
            return Err(SummaryError { got, expected });
        }
        self.requests = self.requests.saturating_add(other.requests);
        for (cell, more) in self.cells.iter_mut().zip(&other.cells) {
            *cell = cell.saturating_add(*more);
        }
        Ok(())
    }

    /// Requests summed up.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Cells [L, E].
    pub fn cells(&self) -> &[u8] {
        &self.cells
    }

    /// Cells in the steps of [`LOG_ONE`].
    pub(super) fn logs(&self) -> impl Iterator<Item = u32> + '_ {
        self.cells.iter().map(|c| u32::from(*c) * (LOG_ONE / STEPS))
    }
}

//! Sums over all that happened, for means and for checks that nothing was lost.

use super::decode::StepCount;
use super::events::Nanos;

/// Sums of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Decode steps of the whole run.
    pub all_steps: u64,
    /// Tokens that decode steps made in the whole run.
    pub all_step_tokens: u64,
    /// Decode steps in the measured time.
    pub steps: u64,
    /// Sum of batch sizes of these.
    pub batch: u64,
    /// Sum of distinct experts of these, over all layers.
    pub distinct: u64,
    /// Sum of the distinct experts of each step's busiest rank, over all layers.
    pub busiest_rank: u64,
    /// Sum of distinct experts weighted by the batch: what a token sees.
    pub distinct_of_tokens: u64,
    /// Seconds of these steps.
    pub busy_s: f64,
    /// Request-seconds in steps, by worker.
    pub request_s: Vec<f64>,
    /// Requests pre-empted, whole run.
    pub preempted: u64,
    /// Prefill steps, whole run.
    pub prefill_steps: u64,
    /// Prompt tokens computed by the prefill pool, whole run.
    pub prefill_tokens: u64,
    /// Requests started anew after a loss, whole run.
    pub restarted: u64,
    /// Decode tokens made for requests that were started anew or failed, whole run.
    pub lost_tokens: u64,
    /// Decisions by the routers, whole run.
    pub decisions: u64,
    /// Times that a router fitted its centroids anew, whole run.
    pub refits: u64,
    /// Integral of requests in the decode pool over time, request-seconds, whole run.
    pub in_decode_s: f64,
    pub(super) in_decode: u64,
    pub(super) since: Nanos,
}

impl Tally {
    pub(super) fn step(&mut self, worker: usize, work: &StepCount, step_s: f64, measured: bool) {
        self.all_steps += 1;
        self.all_step_tokens += u64::from(work.batch);
        if measured {
            self.steps += 1;
            self.batch += u64::from(work.batch);
            self.distinct += u64::from(work.distinct);
            self.busiest_rank += u64::from(work.busiest_rank);
            self.distinct_of_tokens += u64::from(work.distinct) * u64::from(work.batch);
            self.busy_s += step_s;
            self.request_s[worker] += f64::from(work.batch) * step_s;
        }
    }

    /// The number of requests in the decode pool changes at `now`.
    pub(super) fn in_decode(&mut self, now: Nanos, change: i64) {
        self.in_decode_s += self.in_decode as f64 * (now - self.since) as f64 / 1e9;
        self.since = now;
        self.in_decode = self.in_decode.saturating_add_signed(change);
    }

    /// Busiest worker's request-seconds over the mean; 1 is even.
    pub fn skew(&self) -> f64 {
        let sum: f64 = self.request_s.iter().sum();
        let busiest = self.request_s.iter().copied().fold(0.0, f64::max);
        if sum > 0.0 {
            busiest * self.request_s.len() as f64 / sum
        } else {
            1.0
        }
    }
}

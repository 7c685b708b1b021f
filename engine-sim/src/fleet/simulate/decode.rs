//! A decode worker: continuous batching, KV capacity with pre-emption, and steps whose work is counted expert by expert.

use std::collections::VecDeque;

use super::activity::Activity;
use crate::fleet::gates::Recording;
use crate::fleet::law::{DecodeLaw, StepWork};
use crate::fleet::placement::StepCost;

/// What a decode worker may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecodeOptions {
    /// Most requests in a batch.
    pub max_batch: usize,
    /// Tokens of KV that fit.
    pub kv_tokens: u64,
    /// Recomputing a pre-empted request's KV delays the next step by this per token, in seconds.
    pub recompute_per_token_s: f64,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            max_batch: 1024,
            kv_tokens: u64::MAX,
            recompute_per_token_s: 20e-6,
        }
    }
}

/// A request on its worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) request: u32,
    /// Row of the gates.
    pub(super) gates: u32,
    /// Tokens of prompt and answer in the KV cache.
    pub(super) context: u32,
    /// Tokens generated here or before.
    pub(super) generated: u32,
    /// Tokens to generate in all.
    pub(super) wanted: u32,
    /// Whether its KV has to be computed again.
    pub(super) recompute: bool,
}

/// Whether a worker takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Loading its model.
    Starting,
    /// In routing.
    Live,
    /// Out of routing; finishes what it has.
    Draining,
    /// Gone.
    Gone,
}

/// What the step that has begun has to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepCount {
    /// Distinct experts, summed over layers.
    pub distinct: u32,
    /// Distinct experts of the busiest rank, summed over layers; equals `distinct` without expert parallelism.
    pub busiest_rank: u32,
    /// Tokens of KV that attention reads.
    pub kv_tokens: u64,
    /// Requests in the batch.
    pub batch: u32,
    /// Delay by recomputed KV, in seconds.
    pub recompute_s: f64,
}

impl StepCount {
    /// Seconds under a law.
    pub fn seconds(&self, law: &DecodeLaw) -> f64 {
        law.seconds(&StepWork {
            experts: f64::from(self.busiest_rank),
            batch: f64::from(self.batch),
            kv_tokens: self.kv_tokens as f64,
        })
    }
}

pub(super) struct DecodeWorker {
    pub(super) life: Life,
    pub(super) incarnation: u32,
    pub(super) stepping: bool,
    pub(super) running: Vec<Running>,
    pub(super) waiting: VecDeque<Running>,
    pub(super) kv_used: u64,
    pub(super) work: StepCount,
    pub(super) step_s: f64,
    union: Vec<u64>,
}

impl DecodeWorker {
    pub(super) fn new(life: Life, row_words: usize) -> Self {
        Self {
            life,
            incarnation: 0,
            stepping: false,
            running: Vec::new(),
            waiting: VecDeque::new(),
            kv_used: 0,
            work: StepCount::default(),
            step_s: 0.0,
            union: vec![0; row_words],
        }
    }

    /// Requests that the engine itself would report: running and waiting.
    pub(super) fn requests(&self) -> u32 {
        (self.running.len() + self.waiting.len()) as u32
    }

    /// Admits what fits, pre-empts what does not, and counts the step's work. `None`: there is nothing to do. Returns the number of
    /// pre-empted requests beside the work.
    pub(super) fn begin(
        &mut self,
        activity: &Activity,
        ranks: Option<(&Recording, &mut StepCost)>,
        options: &DecodeOptions,
    ) -> Option<(StepCount, u32)> {
        let mut recompute_tokens = 0u64;
        while self.running.len() < options.max_batch
            && let Some(next) = self.waiting.front()
        {
            // One token more than it has: the step writes it. A request that would not fit even alone runs alone.
            let need = u64::from(next.context) + 1 + self.running.len() as u64;
            if self.kv_used.saturating_add(need) > options.kv_tokens && !self.running.is_empty() {
                break;
            }
            self.kv_used += u64::from(next.context);
            if let Some(mut admitted) = self.waiting.pop_front() {
                if admitted.recompute {
                    recompute_tokens += u64::from(admitted.context);
                    admitted.recompute = false;
                }
                self.running.push(admitted);
            }
        }
        let mut preempted = 0;
        while self.running.len() > 1 && self.kv_used.saturating_add(self.running.len() as u64) > options.kv_tokens {
            let Some(mut last) = self.running.pop() else { break };
            self.kv_used -= u64::from(last.context);
            last.recompute = true;
            self.waiting.push_front(last);
            preempted += 1;
        }
        if self.running.is_empty() {
            return None;
        }
        self.union.fill(0);
        for job in &self.running {
            let row = activity.row(job.gates as usize, job.generated);
            self.union.iter_mut().zip(row).for_each(|(u, b)| *u |= b);
        }
        let distinct = self.union.iter().map(|w| w.count_ones()).sum();
        let busiest_rank = ranks.map_or(distinct, |(recording, cost)| {
            for job in &self.running {
                cost.add(&recording.requests[job.gates as usize].decode, job.generated as usize);
            }
            cost.finish().slowest
        });
        self.work = StepCount {
            distinct,
            busiest_rank,
            kv_tokens: self.kv_used,
            batch: self.running.len() as u32,
            recompute_s: recompute_tokens as f64 * options.recompute_per_token_s,
        };
        Some((self.work, preempted))
    }

    /// The step is over: every request has one token more. Calls `token` with each request and whether it is finished.
    pub(super) fn end(&mut self, mut token: impl FnMut(&Running, bool)) {
        let kv = &mut self.kv_used;
        self.running.retain_mut(|job| {
            job.generated += 1;
            job.context += 1;
            *kv += 1;
            let finished = job.generated >= job.wanted;
            token(job, finished);
            if finished {
                *kv -= u64::from(job.context);
            }
            !finished
        });
        self.stepping = false;
    }

    /// Distinct experts the current union names, `[layers][words]`.
    #[cfg(test)]
    pub(super) fn union(&self) -> &[u64] {
        &self.union
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;

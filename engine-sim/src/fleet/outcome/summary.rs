//! One run in figures.

use serde::Serialize;

use super::percentiles::Percentiles;
use crate::fleet::simulate::{End, Journey, Outcome};

/// Figures of one run, over its measured requests and the time between their arrivals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Requests of the whole run that were finished.
    pub finished: u64,
    /// That failed under way.
    pub failed: u64,
    /// That found no worker.
    pub refused: u64,
    /// Time per output token, milliseconds, of measured requests.
    pub tpot_ms: Percentiles,
    /// The same of requests of one domain or none.
    pub pure_tpot_ms: Percentiles,
    /// The same of requests that blend two domains.
    pub blended_tpot_ms: Percentiles,
    /// Time to first token, milliseconds.
    pub ttft_ms: Percentiles,
    /// Distinct experts per layer, mean over steps.
    pub distinct: f64,
    /// Distinct experts per layer, mean over tokens: what a request sees.
    pub distinct_of_tokens: f64,
    /// Distinct experts per layer of each step's busiest rank, mean over steps.
    pub busiest_rank: f64,
    /// Requests per step, mean.
    pub batch: f64,
    /// Busiest worker's request-seconds over the mean.
    pub skew: f64,
    /// Decode steps of the whole run.
    pub steps: u64,
    /// Tokens sent in the whole run.
    pub tokens: u64,
    /// Tokens per second in the measured time.
    pub tokens_per_s: f64,
    /// Requests pre-empted.
    pub preempted: u64,
    /// Requests started anew after a loss.
    pub restarted: u64,
    /// Times that routers fitted their centroids anew.
    pub refits: u64,
}

/// Makes the figures. `blended` says which rows of the gates blend domains.
pub fn summarise(outcome: &Outcome, blended: &dyn Fn(usize) -> bool) -> Summary {
    let count = |end: End| outcome.journeys.iter().filter(|j| j.end == end).count() as u64;
    let measured = outcome.journeys.get(outcome.measured.clone()).unwrap_or(&[]);
    let tpot = |keep: &dyn Fn(&Journey) -> bool| {
        let values = measured.iter().filter(|j| keep(j)).filter_map(Journey::tpot_s);
        Percentiles::of(values.map(|s| s * 1e3).collect())
    };
    let tally = &outcome.tally;
    let (steps, layers) = (tally.steps.max(1) as f64, outcome.layers as f64);
    Summary {
        finished: count(End::Finished),
        failed: count(End::Failed),
        refused: count(End::Refused),
        tpot_ms: tpot(&|_| true),
        pure_tpot_ms: tpot(&|j| !blended(j.arrival.request)),
        blended_tpot_ms: tpot(&|j| blended(j.arrival.request)),
        ttft_ms: Percentiles::of(measured.iter().filter_map(Journey::ttft_s).map(|s| s * 1e3).collect()),
        distinct: tally.distinct as f64 / steps / layers,
        distinct_of_tokens: tally.distinct_of_tokens as f64 / tally.batch.max(1) as f64 / layers,
        busiest_rank: tally.busiest_rank as f64 / steps / layers,
        batch: tally.batch as f64 / steps,
        skew: tally.skew(),
        steps: tally.all_steps,
        tokens: outcome.journeys.iter().map(|j| u64::from(j.tokens)).sum(),
        tokens_per_s: tally.batch as f64 / outcome.measured_s().max(1e-9),
        preempted: tally.preempted,
        restarted: tally.restarted,
        refits: tally.refits,
    }
}

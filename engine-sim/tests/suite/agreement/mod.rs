//! The fleet simulator against engines that get the same arrivals: exact on a simulated clock, within bounds in real time.
//!
//! A request's first token comes from its prefill, which takes no time here: the simulator's plain workers take requests straight into a batch. So an
//! engine is asked for one token more than the simulator, and the times of that first one are left out.

mod clock;
mod real_time;
mod simulated_time;

use std::time::Duration;

use coterie_engine_sim::engine::{PrefillLaw, StepLaw};
use coterie_engine_sim::fleet::gates::Recording;
use coterie_engine_sim::fleet::law::DecodeLaw;
use coterie_engine_sim::fleet::outcome::Percentiles;
use coterie_engine_sim::fleet::simulate::{Activity, FleetOptions, Journey, Outcome, Setup, Steering, simulate};
use coterie_engine_sim::fleet::workload::{Arrival, OutputLengths, Workload};
use coterie_locality::policy::Policy;

/// Milliseconds of a step: a fixed part, per distinct expert of the batch, per request. Sums of whole quarters of a microsecond: both sides round
/// them to the same nanosecond.
const STEP_MS: [f64; 3] = [15.0, 0.125, 0.5];

/// No part of the agreement: a plain worker's prefill is not simulated.
const NO_PREFILL: PrefillLaw = PrefillLaw {
    base_ms: 0.0,
    per_token_us: 0.0,
    time_scale: 1.0,
};

fn step_law() -> StepLaw {
    let [base_ms, per_expert_ms, per_request_ms] = STEP_MS;
    StepLaw {
        base_ms,
        per_expert_ms,
        per_request_ms,
        time_scale: 1.0,
    }
}

/// Requests, when they come, and what the simulator makes of them.
struct Simulated {
    arrivals: Vec<Arrival>,
    outcome: Outcome,
}

/// Poisson arrivals of recorded requests with log-normal lengths (median 20 tokens), through workers of at most `max_batch` requests.
fn simulated(workers: usize, max_batch: usize, rate: f64, duration_s: f64, policy: Box<dyn Policy>) -> Simulated {
    let path = super::common::folder("recordings/tiny-moe.npz");
    let recording = Recording::load(&path, None, 1).unwrap();
    let workload = Workload {
        output: OutputLengths::LogNormal {
            median: 20.0,
            sigma: 0.5,
            max: 100,
        },
        ..Workload::poisson(rate, duration_s, 1)
    };
    let arrivals = workload.arrivals(&recording, 11).unwrap();
    let mut options = FleetOptions::plain(workers);
    options.decode.max_batch = max_batch;
    let [base, per_expert, per_request] = STEP_MS.map(|ms| ms / 1e3);
    let setup = Setup {
        options: &options,
        activity: &Activity::new(&recording),
        law: &DecodeLaw::linear(base, per_expert, per_request),
        ranks: None,
        seed: 1,
    };
    let steering = Steering {
        policy,
        knowledge: std::sync::Arc::default(),
        table: None,
        refit: None,
        marginal: None,
    };
    let outcome = simulate(&setup, vec![steering], &arrivals);
    Simulated { arrivals, outcome }
}

impl Simulated {
    /// Indices of the requests that went to a worker.
    fn on_worker(&self, worker: u32) -> Vec<usize> {
        let journeys = self.outcome.journeys.iter().enumerate();
        let here = journeys.filter(|(_, j)| j.worker == Some(worker));
        here.map(|(i, _)| i).collect()
    }

    fn tpot_ms(&self) -> Percentiles {
        let seconds = self.outcome.journeys.iter().filter_map(Journey::tpot_s);
        Percentiles::of(seconds.map(|s| s * 1e3).collect())
    }

    fn mean_batch(&self) -> f64 {
        self.outcome.tally.batch as f64 / self.outcome.tally.steps as f64
    }
}

/// Milliseconds per token after the first, from the times of an engine's tokens without the prefill's; `None` for a single token.
fn tpot_ms(times: &[Duration]) -> Option<f64> {
    let (first, last) = (times.first()?, times.last()?);
    (times.len() > 1).then(|| last.saturating_sub(*first).as_secs_f64() * 1e3 / (times.len() - 1) as f64)
}

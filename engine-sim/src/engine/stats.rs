//! What the engine counts: the simulator's own figures (since the last reset) and vLLM's metrics (since start).

use super::histogram::Histogram;

const STEP_MS: &[f64] = &[
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0,
    22.0, 24.0, 26.0, 28.0, 30.0, 35.0, 40.0, 50.0, 75.0, 100.0, 200.0, 500.0, 1000.0,
];
const LATENCY: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
];
const PER_TOKEN: &[f64] = &[
    0.002, 0.004, 0.006, 0.008, 0.01, 0.012, 0.014, 0.016, 0.018, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2,
    0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
const REQUEST: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
];
const TOKENS: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0,
];
const ITERATION: &[f64] = &[
    1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0,
];
const TRANSFER: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0];
const TRANSFER_BYTES: &[f64] = &[
    2048.0,
    8192.0,
    32768.0,
    131072.0,
    524288.0,
    2097152.0,
    8388608.0,
    33554432.0,
    134217728.0,
];

/// The simulator's figures since the last reset.
#[derive(Clone, Debug)]
pub struct SimStats {
    /// Decode steps.
    pub steps: u64,
    /// Sum of batch sizes over decode steps.
    pub batch_sum: u64,
    /// Sum over decode steps of distinct experts, per layer.
    pub distinct_sum: Vec<u64>,
    /// Decode steps whose work did not fit their paced time.
    pub overrun_steps: u64,
    /// Decode steps by their real duration in milliseconds.
    pub step_ms: Histogram,
    /// Sum of the decode steps' paced time in milliseconds.
    pub paced_ms: f64,
    /// Sum of the decode steps' computing time in milliseconds.
    pub computing_ms: f64,
    /// Prefill steps.
    pub prefill_steps: u64,
    /// Prompt tokens of prefill steps.
    pub prefill_tokens: u64,
    /// Prefill steps whose work did not fit their paced time.
    pub prefill_overrun_steps: u64,
    /// Requests that finished by themselves.
    pub finished: u64,
    /// Requests whose client went away.
    pub aborted: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Finished requests that the recording answered.
    pub recorded: u64,
    /// Hand-offs freed because their lease ran out.
    pub lease_expiries: u64,
    /// Pulls whose blocks held another request's KV.
    pub foreign_pulls: u64,
}

impl SimStats {
    /// All zero, for a model of so many layers.
    pub fn new(layers: usize) -> Self {
        Self {
            steps: 0,
            batch_sum: 0,
            distinct_sum: vec![0; layers],
            overrun_steps: 0,
            step_ms: Histogram::new(STEP_MS),
            paced_ms: 0.0,
            computing_ms: 0.0,
            prefill_steps: 0,
            prefill_tokens: 0,
            prefill_overrun_steps: 0,
            finished: 0,
            aborted: 0,
            failed: 0,
            recorded: 0,
            lease_expiries: 0,
            foreign_pulls: 0,
        }
    }

    /// Mean of a sum over decode steps.
    pub fn per_step(&self, sum: f64) -> f64 {
        if self.steps == 0 { 0.0 } else { sum / self.steps as f64 }
    }
}

/// What vLLM counts, since start. Times in seconds.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "named after vLLM's metrics, whose help texts are in http/metrics.rs"
)]
pub struct EngineMetrics {
    pub prompt_tokens: u64,
    pub prompt_tokens_local: u64,
    pub prompt_tokens_external: u64,
    pub generation_tokens: u64,
    pub success_stop: u64,
    pub success_length: u64,
    pub success_abort: u64,
    pub success_error: u64,
    pub prefix_queries: u64,
    pub kv_expired_reqs: u64,
    pub failed_transfers: u64,
    pub failed_notifications: u64,
    pub notifications_after_expiry: u64,
    pub ttft: Histogram,
    pub inter_token: Histogram,
    pub per_output_token: Histogram,
    pub e2e: Histogram,
    pub queue: Histogram,
    pub inference: Histogram,
    pub prefill: Histogram,
    pub decode: Histogram,
    pub request_prompt_tokens: Histogram,
    pub request_generation_tokens: Histogram,
    pub request_max_tokens: Histogram,
    pub iteration_tokens: Histogram,
    pub prefill_computed_tokens: Histogram,
    pub xfer_time: Histogram,
    pub xfer_bytes: Histogram,
}

impl Default for EngineMetrics {
    fn default() -> Self {
        let of = Histogram::new;
        Self {
            prompt_tokens: 0,
            prompt_tokens_local: 0,
            prompt_tokens_external: 0,
            generation_tokens: 0,
            success_stop: 0,
            success_length: 0,
            success_abort: 0,
            success_error: 0,
            prefix_queries: 0,
            kv_expired_reqs: 0,
            failed_transfers: 0,
            failed_notifications: 0,
            notifications_after_expiry: 0,
            ttft: of(LATENCY),
            inter_token: of(PER_TOKEN),
            per_output_token: of(PER_TOKEN),
            e2e: of(REQUEST),
            queue: of(REQUEST),
            inference: of(REQUEST),
            prefill: of(REQUEST),
            decode: of(REQUEST),
            request_prompt_tokens: of(TOKENS),
            request_generation_tokens: of(TOKENS),
            request_max_tokens: of(TOKENS),
            iteration_tokens: of(ITERATION),
            prefill_computed_tokens: of(TOKENS),
            xfer_time: of(TRANSFER),
            xfer_bytes: of(TRANSFER_BYTES),
        }
    }
}

//! The result.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::measure::Outcome;

const MAX_ERRORS: usize = 5;

/// The last line of standard output.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Measured requests that were answered as expected.
    pub ok: usize,
    /// Measured requests that were not.
    pub failed: usize,
    /// Failures by kind.
    pub failed_by_kind: BTreeMap<&'static str, usize>,
    /// The first few failures.
    pub errors: Vec<String>,
    /// Failures during the warm-up.
    pub warmup_failed: usize,
    /// Seconds from the first measured request to the last answer.
    pub seconds: f64,
    /// Answered requests per second.
    pub requests_per_second: f64,
    /// Generated tokens per second.
    pub tokens_per_second: f64,
    /// Time to first token in milliseconds.
    pub ttft_ms: Option<Quantiles>,
    /// Time per output token after the first, per request, in milliseconds.
    pub tpot_ms: Option<Quantiles>,
    /// Time to the last token in milliseconds.
    pub total_ms: Option<Quantiles>,
    /// Measured requests by domain.
    pub domains: BTreeMap<String, usize>,
    /// Highest lag of a request's start behind its planned moment, in milliseconds; large values mean that the generator was too slow.
    pub start_lag_ms_max: f64,
    /// Each worker's figures over the measured part, or why there are none.
    pub workers: Vec<WorkerReport>,
}

/// Median, 99th percentile and mean.
#[derive(Debug, Serialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Mean.
    pub mean: f64,
}

/// A worker's figures.
#[derive(Debug, Serialize)]
pub struct WorkerReport {
    /// Its base URL.
    pub worker: String,
    /// `/sim/v1/state` at the end.
    pub state: Option<Value>,
    /// Why there is none.
    pub error: Option<String>,
}

/// Sums up outcomes of measured requests over `elapsed`.
pub(super) fn summarise(outcomes: Vec<Outcome>, elapsed: Duration) -> Report {
    let mut report = Report {
        seconds: elapsed.as_secs_f64(),
        ..Report::default()
    };
    let (mut ttfts, mut tpots, mut totals, mut generated) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for outcome in outcomes {
        match outcome {
            Outcome::Ok {
                ttft,
                tpot,
                total,
                tokens,
            } => {
                report.ok += 1;
                generated += tokens;
                ttfts.extend(ttft);
                tpots.extend(tpot);
                totals.push(total);
            }
            Outcome::Failed { kind, text } => {
                report.failed += 1;
                *report.failed_by_kind.entry(kind).or_default() += 1;
                if report.errors.len() < MAX_ERRORS {
                    report.errors.push(format!("{kind}: {text}"));
                }
            }
        }
    }
    let seconds = report.seconds.max(1e-9);
    report.requests_per_second = report.ok as f64 / seconds;
    report.tokens_per_second = generated as f64 / seconds;
    report.ttft_ms = quantiles(ttfts);
    report.tpot_ms = quantiles(tpots);
    report.total_ms = quantiles(totals);
    report
}

fn quantiles(times: Vec<Duration>) -> Option<Quantiles> {
    let mut ms: Vec<f64> = times.iter().map(|t| t.as_secs_f64() * 1000.0).collect();
    ms.sort_by(f64::total_cmp);
    let at = |q: f64| {
        let rank = (q * ms.len() as f64).ceil().max(1.0) as usize;
        ms.get(rank - 1).copied()
    };
    Some(Quantiles {
        p50: at(0.5)?,
        p99: at(0.99)?,
        mean: ms.iter().sum::<f64>() / ms.len() as f64,
    })
}

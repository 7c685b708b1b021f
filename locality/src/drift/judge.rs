//! One window against the baselines.
//!
//! A signal is on when its estimate passes the threshold and the interval of (live - baseline), with the errors of both, excludes zero:
//! a small window that looks bad by chance does not start a run.

use serde::{Deserialize, Serialize};

use super::summary::SlideSummary;
use crate::table::Baselines;

/// What is tolerated before a signal turns on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Fall of the mean centroid fit, as a fraction of the baseline.
    pub max_fit_drop: f64,
    /// Rise of cluster skew, as a multiple of the baseline; capped at (K + 1) / 2.
    pub max_cluster_skew: f64,
    /// Signed requests below which a window is not judged.
    pub min_requests: u64,
    /// Half-width of the interval in standard errors.
    pub z: f64,
}

impl Default for Thresholds {
    /// 15 % fit drop, twice the skew, 200 requests, 3.5 standard errors (two-sided chance below 1 in 2000 per window).
    fn default() -> Self {
        Self {
            max_fit_drop: 0.15,
            max_cluster_skew: 2.0,
            min_requests: 200,
            z: 3.5,
        }
    }
}

/// Whether a signal says that traffic has drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalState {
    /// Past its threshold, and not by chance.
    On,
    /// Within its threshold, or not told apart from chance.
    Off,
    /// Too few requests in the longest window allowed.
    InsufficientSamples,
    /// The table has no baseline for it, or there is only one cluster.
    NotAvailable,
}

/// One signal over one window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signal {
    /// Verdict on this window.
    pub state: SignalState,
    /// Live value.
    pub live: f64,
    /// The table's own value on held-out requests.
    pub baseline: f64,
    /// Value that the live one must pass.
    pub threshold: f64,
    /// Half-width of the interval of (live - baseline).
    pub margin: f64,
}

/// All signals over one window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signals {
    /// Requests in the window.
    pub requests: u64,
    /// Of these, signed.
    pub signed: u64,
    /// Mean similarity to the nearest centroid: on when it fell too far.
    pub fit: Signal,
    /// Busiest cluster's share times K: on when it rose too far.
    pub skew: Signal,
}

impl Signals {
    /// Signed requests as a share of all; `None` without requests.
    pub fn coverage(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.signed as f64 / self.requests as f64)
    }
}

/// Judges the merged slides of one window, all of one table, against its baselines.
pub fn judge(baselines: &Baselines, window: &[SlideSummary], thresholds: &Thresholds) -> Signals {
    let mut sum = window.first().cloned().unwrap_or_default();
    for slide in window.iter().skip(1) {
        // Slides of another table say nothing about this one; the caller selected by digest, so none is expected.
        let _ = sum.add(slide);
    }
    let enough = sum.signed >= thresholds.min_requests.max(2);
    Signals {
        requests: sum.requests,
        signed: sum.signed,
        fit: judge_fit(baselines, &sum, thresholds, enough),
        skew: judge_skew(baselines, &sum, thresholds, enough),
    }
}

fn judge_fit(baselines: &Baselines, sum: &SlideSummary, thresholds: &Thresholds, enough: bool) -> Signal {
    let n = sum.signed as f64;
    let live = if sum.signed > 0 { sum.fit_sum / n } else { 0.0 };
    let variance = if sum.signed > 1 {
        ((sum.fit_sum_squares - n * live * live) / (n - 1.0)).max(0.0)
    } else {
        0.0
    };
    let margin = thresholds.z * (variance / n.max(1.0) + baselines.fit_se * baselines.fit_se).sqrt();
    let threshold = baselines.fit_mean * (1.0 - thresholds.max_fit_drop);
    let on = live < threshold && baselines.fit_mean - live > margin;
    let available = baselines.fit_mean > 0.0 && baselines.requests > 0;
    Signal {
        state: state(available, enough, on),
        live,
        baseline: baselines.fit_mean,
        threshold,
        margin,
    }
}

fn judge_skew(baselines: &Baselines, sum: &SlideSummary, thresholds: &Thresholds, enough: bool) -> Signal {
    let k = sum.cluster_counts.len() as f64;
    let total: f64 = sum.cluster_counts.iter().sum();
    let busiest = sum.cluster_counts.iter().copied().fold(0.0, f64::max);
    let share = if total > 0.0 { busiest / total } else { 0.0 };
    let live = share * k;
    let variance = |share: f64, n: f64| (share * (1.0 - share)).max(0.0) / n.max(1.0);
    let baseline_share = if k > 0.0 {
        (baselines.skew / k).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let spread = variance(share, sum.signed as f64) + variance(baseline_share, baselines.requests as f64);
    let margin = thresholds.z * k * spread.sqrt();
    let threshold = thresholds.max_cluster_skew.min(k.midpoint(1.0)) * baselines.skew;
    let on = live > threshold && live - baselines.skew > margin;
    let available = k > 1.0 && baselines.skew > 0.0 && baselines.requests > 0;
    Signal {
        state: state(available, enough, on),
        live,
        baseline: baselines.skew,
        threshold,
        margin,
    }
}

fn state(available: bool, enough: bool, on: bool) -> SignalState {
    match (available, enough, on) {
        (false, _, _) => SignalState::NotAvailable,
        (_, false, _) => SignalState::InsufficientSamples,
        (_, _, true) => SignalState::On,
        (_, _, false) => SignalState::Off,
    }
}

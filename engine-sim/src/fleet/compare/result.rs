//! Results of a case, and changes against the load balancers of the same run.

use serde::Serialize;

use super::interval::Interval;
use crate::fleet::outcome::Summary;
use crate::fleet::steering::Contender;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Metric {
    /// Median TPOT.
    TpotP50,
    /// 95th percentile of TPOT.
    TpotP95,
    /// 99th percentile of TPOT.
    TpotP99,
    /// Median TPOT of requests of one domain.
    PureP50,
    /// 99th percentile of these.
    PureP99,
    /// Median TPOT of requests that blend two domains.
    BlendedP50,
    /// 99th percentile of these.
    BlendedP99,
    /// Median time to first token.
    TtftP50,
    /// Distinct experts per layer that a token sees.
    Distinct,
}

impl Metric {
    /// Its value in a run.
    pub fn of(self, summary: &Summary) -> f64 {
        match self {
            Self::TpotP50 => summary.tpot_ms.p50,
            Self::TpotP95 => summary.tpot_ms.p95,
            Self::TpotP99 => summary.tpot_ms.p99,
            Self::PureP50 => summary.pure_tpot_ms.p50,
            Self::PureP99 => summary.pure_tpot_ms.p99,
            Self::BlendedP50 => summary.blended_tpot_ms.p50,
            Self::BlendedP99 => summary.blended_tpot_ms.p99,
            Self::TtftP50 => summary.ttft_ms.p50,
            Self::Distinct => summary.distinct_of_tokens,
        }
    }
}

/// One contender's runs, one per seed.
#[derive(Clone, Debug, Serialize)]
pub struct ContenderResult {
    /// Who.
    pub contender: Contender,
    /// Runs, in order of the seeds.
    pub runs: Vec<Summary>,
}

/// A case's runs.
#[derive(Clone, Debug, Serialize)]
pub struct CaseResult {
    /// Name of the case.
    pub case: String,
    /// Decode workers.
    pub workers: usize,
    /// Arrivals a second.
    pub rate: f64,
    /// Seeds of the arrivals.
    pub seeds: Vec<u64>,
    /// Contenders.
    pub contenders: Vec<ContenderResult>,
}

/// Changes in percent against a baseline, paired by seed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Change {
    /// Against the best load balancer of the same arrivals, metric by metric.
    pub best: Interval,
    /// Against LeastLoaded.
    pub least_loaded: Interval,
}

impl ContenderResult {
    /// Mean over seeds.
    pub fn mean(&self, value: impl Fn(&Summary) -> f64) -> f64 {
        self.runs.iter().map(value).sum::<f64>() / self.runs.len().max(1) as f64
    }
}

impl CaseResult {
    /// Change of a metric, in percent; `None` without load balancers in the case.
    pub fn change(&self, contender: &ContenderResult, metric: Metric) -> Option<Change> {
        let balancers: Vec<&ContenderResult> = (self.contenders.iter())
            .filter(|c| c.contender.rule.is_load_balancer())
            .collect();
        let least_loaded =
            (balancers.iter()).find(|c| c.contender.rule == crate::fleet::steering::Rule::LeastLoaded)?;
        let percent = |ours: f64, theirs: f64| {
            if theirs > 0.0 {
                (ours / theirs - 1.0) * 100.0
            } else {
                0.0
            }
        };
        let (mut best, mut least) = (Vec::new(), Vec::new());
        for (seed, run) in contender.runs.iter().enumerate() {
            let ours = metric.of(run);
            let of = |c: &ContenderResult| c.runs.get(seed).map_or(f64::INFINITY, |r| metric.of(r));
            let lowest = balancers.iter().map(|c| of(c)).fold(f64::INFINITY, f64::min);
            best.push(percent(ours, lowest));
            least.push(percent(ours, of(least_loaded)));
        }
        Some(Change {
            best: Interval::of(&best),
            least_loaded: Interval::of(&least),
        })
    }
}

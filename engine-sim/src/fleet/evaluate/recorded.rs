//! Recorded gates: every policy with every predictor at three loads, 8 and 16 workers.

use std::fmt::Write;

use anyhow::Result;

use super::{Document, Evaluation};
use crate::fleet::compare::{CaseResult, ContenderResult, Interval, Metric, compare};
use crate::fleet::plot::{Bars, Group};
use crate::fleet::steering::{Contender, Rule};

pub(super) const LOADS: [(&str, f64); 3] = [("low", 3.0), ("medium", 27.0), ("high", 70.0)];

impl Evaluation {
    pub(super) fn recorded(&self, document: &mut Document) -> Result<()> {
        let contenders = Contender::all(&Rule::ALL, &self.calibration.predictors());
        let mut results = Vec::new();
        for workers in [8, 16] {
            for (load, batch) in LOADS {
                let case = self.case(&format!("{load}, {workers} workers"), workers, batch);
                let result = compare(&case, &contenders, &self.seeds(), &|| ())?;
                document.table(&format!("recorded-{workers}-{load}"), table(&result));
                results.push(result);
            }
        }
        for (name, metric) in [("p50", Metric::TpotP50), ("p99", Metric::TpotP99)] {
            document.figure(
                &format!("recorded-{name}"),
                figure(&results[..LOADS.len()], name, metric),
            );
        }
        document.data("recorded", &results)
    }
}

pub(super) fn signed(interval: Interval) -> String {
    format!("{:+.1} ± {:.1}", interval.mean, interval.half_width)
}

/// Of one load.
pub(super) fn table(result: &CaseResult) -> String {
    let mut out = format!(
        "{:.1} requests/s; LeastLoaded: TPOT p50 {:.2} ms, p99 {:.2} ms.\n\n",
        result.rate,
        least_loaded(result, |c| c.mean(|s| s.tpot_ms.p50)),
        least_loaded(result, |c| c.mean(|s| s.tpot_ms.p99)),
    );
    out.push_str("| policy | p50 | p99 | p50 vs LeastLoaded | p99 vs LeastLoaded | pure p50 / p99 | blended p50 / p99 | experts | skew |\n");
    out.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for contender in &result.contenders {
        let of = |metric| result.change(contender, metric);
        let best = |metric| of(metric).map_or_else(String::new, |c| signed(c.best));
        let least = |metric| of(metric).map_or_else(String::new, |c| signed(c.least_loaded));
        let short = |metric| of(metric).map_or(0.0, |c| c.best.mean);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {:+.1} / {:+.1} | {:+.1} / {:+.1} | {:.1} | {:.2} |",
            contender.contender,
            best(Metric::TpotP50),
            best(Metric::TpotP99),
            least(Metric::TpotP50),
            least(Metric::TpotP99),
            short(Metric::PureP50),
            short(Metric::PureP99),
            short(Metric::BlendedP50),
            short(Metric::BlendedP99),
            contender.mean(|s| s.distinct_of_tokens),
            contender.mean(|s| s.skew),
        );
    }
    out
}

fn least_loaded(result: &CaseResult, value: impl Fn(&ContenderResult) -> f64) -> f64 {
    let found = result.contenders.iter().find(|c| c.contender.rule == Rule::LeastLoaded);
    found.map_or(0.0, value)
}

fn figure(results: &[CaseResult], name: &str, metric: Metric) -> String {
    let shown = |c: &&ContenderResult| {
        let rule = c.contender.rule;
        let by_prefill = matches!(
            rule,
            Rule::EldrStatic | Rule::EldrOnline | Rule::LocalityBand | Rule::MarginalCost | Rule::MarginalCostTable
        );
        rule == Rule::LeastLoaded
            || by_prefill && c.contender.predictor == crate::fleet::steering::Predictor::Prefill
            || rule == Rule::MarginalCost && c.contender.predictor == crate::fleet::steering::Predictor::Truth
    };
    let names = results.first().map_or_else(Vec::new, |r| {
        r.contenders
            .iter()
            .filter(shown)
            .map(|c| c.contender.to_string())
            .collect()
    });
    let group = |result: &CaseResult| Group {
        name: result.case.clone(),
        bars: (result.contenders.iter().filter(shown))
            .map(|c| {
                result
                    .change(c, metric)
                    .map_or((0.0, 0.0), |c| (c.best.mean, c.best.half_width))
            })
            .collect(),
    };
    Bars {
        title: format!("TPOT {name} against the best load balancer of the same run"),
        x: "load".into(),
        y: "change in %".into(),
        names,
        groups: results.iter().map(group).collect(),
    }
    .svg()
}

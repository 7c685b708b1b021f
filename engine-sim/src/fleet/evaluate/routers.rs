//! Several routers: what it costs that each knows its own requests only, and what exchanged summaries mend.

use std::fmt::Write;

use anyhow::Result;

use super::recorded::signed;
use super::{Document, Evaluation};
use crate::fleet::compare::{CaseResult, Metric, compare};
use crate::fleet::simulate::Visibility;
use crate::fleet::steering::{Contender, Predictor, Rule};

const VIEWS: [(&str, Visibility); 3] = [
    ("own requests only", Visibility::OwnOnly),
    (
        "engines' reports, every 1 s",
        Visibility::Reports {
            interval_s: 1.0,
            delay_s: 0.05,
            max_age_s: 5.0,
        },
    ),
    (
        "exchange, every 0.1 s",
        Visibility::Exchange {
            interval_s: 0.1,
            delay_s: 0.002,
        },
    ),
];

impl Evaluation {
    pub(super) fn routers(&self, document: &mut Document) -> Result<()> {
        let contenders = [
            Rule::LeastLoaded,
            Rule::EldrStatic,
            Rule::LocalityBand,
            Rule::MarginalCost,
        ]
        .map(|rule| Contender::new(rule, Predictor::Prefill));
        let one = self.run_routers(1, Visibility::OwnOnly, &contenders)?;
        let mut out = String::from("| routers | each knows of the others | ");
        for contender in &one.contenders {
            let _ = write!(out, "{} p50 | p99 | ", contender.contender);
        }
        let _ = writeln!(out, "\n|---|---|{}", "---|".repeat(one.contenders.len() * 2));
        row(&mut out, &one, &one, 1, "-");
        let mut all = Vec::new();
        for routers in [2, 4, 8] {
            for (name, visibility) in VIEWS {
                let result = self.run_routers(routers, visibility, &contenders)?;
                row(&mut out, &result, &one, routers, name);
                all.push((routers, name, result));
            }
        }
        document.table("routers", out);
        document.data("routers", &(one, all))
    }

    fn run_routers(&self, routers: usize, visibility: Visibility, contenders: &[Contender]) -> Result<CaseResult> {
        let mut case = self.case(&format!("{routers} routers"), 8, 27.0);
        case.routers = routers;
        case.options.visibility = visibility;
        Ok(compare(&case, contenders, &self.seeds(), &|| ())?)
    }
}

/// Changes against one router with LeastLoaded, paired by seed.
fn row(out: &mut String, result: &CaseResult, one: &CaseResult, routers: usize, name: &str) {
    let _ = write!(out, "| {routers} | {name} | ");
    for contender in &result.contenders {
        for metric in [Metric::TpotP50, Metric::TpotP99] {
            let base = one.contenders.iter().find(|c| c.contender.rule == Rule::LeastLoaded);
            let pairs = base.iter().flat_map(|b| b.runs.iter().zip(&contender.runs));
            let changes: Vec<f64> = pairs
                .map(|(b, c)| (metric.of(c) / metric.of(b) - 1.0) * 100.0)
                .collect();
            let _ = write!(out, "{} | ", signed(crate::fleet::compare::Interval::of(&changes)));
        }
    }
    out.push('\n');
}

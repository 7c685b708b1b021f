//! Expert parallelism: placement x policy x degree, full factorial.

use std::fmt::Write;

use anyhow::Result;

use super::recorded::signed;
use super::{Document, Evaluation};
use crate::fleet::compare::{CaseResult, Interval, Metric, compare};
use crate::fleet::placement::{Learned, StepCost};
use crate::fleet::plot::{Bars, Group};
use crate::fleet::steering::{Contender, Predictor, Rule};

/// Requests per worker.
const BATCH: f64 = 27.0;
const PLACEMENTS: [(&str, Learned); 3] = [
    ("none", Learned::Linear),
    ("EPLB", Learned::Tokens),
    ("METRO", Learned::Activations { batch: BATCH }),
];

impl Evaluation {
    pub(super) fn ranks(&self, document: &mut Document) -> Result<()> {
        let contenders = [Rule::LeastLoaded, Rule::EldrStatic, Rule::MarginalCost]
            .map(|rule| Contender::new(rule, Predictor::Prefill));
        let mut out = String::from(
            "| ranks | placement | busiest rank's experts a layer, LeastLoaded | LeastLoaded p50 | p99 | EldrStatic p50 | p99 | MarginalCost p50 | p99 |\n|---|---|---|---|---|---|---|---|---|\n",
        );
        let (mut groups, mut all) = (Vec::new(), Vec::new());
        for degree in [1usize, 4, 8, 16] {
            let mut base: Option<CaseResult> = None;
            let mut bars = Vec::new();
            for (placement, learned) in PLACEMENTS {
                let cost = self.step_cost(learned, degree)?;
                let mut case = self.case(&format!("{placement}, {degree} ranks"), 8, BATCH);
                case.ranks = Some((self.calibration.judged(), &cost));
                let result = compare(&case, &contenders, &self.seeds(), &|| ())?;
                let base = base.get_or_insert_with(|| result.clone());
                let _ = write!(
                    out,
                    "| {degree} | {placement} | {:.2} | ",
                    result.contenders[0].mean(|s| s.busiest_rank)
                );
                for contender in &result.contenders {
                    for metric in [Metric::TpotP50, Metric::TpotP99] {
                        let pairs = base.contenders[0].runs.iter().zip(&contender.runs);
                        let changes: Vec<f64> = pairs
                            .map(|(b, c)| (metric.of(c) / metric.of(b) - 1.0) * 100.0)
                            .collect();
                        let change = Interval::of(&changes);
                        let _ = write!(out, "{} | ", signed(change));
                        if metric == Metric::TpotP50 {
                            bars.push((change.mean, change.half_width));
                        }
                    }
                }
                out.push('\n');
                all.push(result);
            }
            groups.push(Group {
                name: format!("{degree} ranks"),
                bars,
            });
        }
        let names = PLACEMENTS
            .iter()
            .flat_map(|(p, _)| contenders.iter().map(move |c| format!("{p} + {}", c.rule)));
        let bars = Bars {
            title: "TPOT p50 against no placement with LeastLoaded".into(),
            x: "expert-parallel ranks of a worker".into(),
            y: "change in %".into(),
            names: names.collect(),
            groups,
        };
        document.figure("ranks", bars.svg());
        document.table("ranks", out);
        document.data("ranks", &all)
    }

    /// Placements learn from the calibration half; EPLB and METRO get one copy per rank and layer more than there are experts.
    fn step_cost(&self, placement: Learned, ranks: usize) -> Result<StepCost> {
        let (calibrating, _) = self.recording.halves();
        let redundant = if ranks > 1 { ranks } else { 0 };
        Ok(placement.step_cost(&calibrating, ranks, redundant)?)
    }
}

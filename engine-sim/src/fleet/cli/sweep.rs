//! `coterie-sim sweep`.

use std::io::Write;

use anyhow::{Context, Result, ensure};

use super::args::SweepArgs;
use super::progress::bar;
use super::world::World;
use crate::fleet::compare::{Metric, compare_over};
use crate::fleet::plot::{Lines, Series};
use crate::fleet::steering::{Contender, Predictor, Rule};

pub(super) fn sweep(args: &SweepArgs, out: &mut dyn Write) -> Result<()> {
    ensure!(
        args.fleet.workload.replay.is_none(),
        "--replay: a trace has one load, there is nothing to sweep: use compare"
    );
    let world = World::load(&args.fleet, middle(&args.batch))?;
    let baseline = Contender::new(Rule::LeastLoaded, Predictor::None);
    let others = args.policies.iter().filter(|c| **c != baseline);
    let contenders: Vec<Contender> = [baseline].iter().chain(others).copied().collect();
    let seeds: Vec<u64> = (1..=u64::from(args.seeds)).collect();
    let bar = bar(args.batch.len() * contenders.len() * seeds.len(), "sweep");
    let named = |contender: &Contender| Series {
        name: contender.to_string(),
        points: Vec::new(),
    };
    let mut series: Vec<Series> = contenders.iter().map(named).collect();
    writeln!(
        out,
        "batch,policy,tpot_p50_ms,tpot_p99_ms,p50_change_percent,p99_change_percent,experts,skew"
    )?;
    for batch in &args.batch {
        let rate = world.rate(&args.fleet, *batch)?;
        let case = world.case(&args.fleet, format!("batch {batch}"), rate, *batch);
        let result = compare_over(&case, &|seed| world.arrivals(&case, seed), &contenders, &seeds, &|| {
            bar.inc(1);
        })?;
        for (contender, line) in result.contenders.iter().zip(&mut series) {
            let change = |metric| {
                result
                    .change(contender, metric)
                    .map(|c| c.least_loaded)
                    .unwrap_or_default()
            };
            let (p50, p99) = (change(Metric::TpotP50), change(Metric::TpotP99));
            writeln!(
                out,
                "{batch},{},{:.3},{:.3},{:+.2},{:+.2},{:.2},{:.3}",
                contender.contender,
                contender.mean(|s| s.tpot_ms.p50),
                contender.mean(|s| s.tpot_ms.p99),
                p50.mean,
                p99.mean,
                contender.mean(|s| s.distinct_of_tokens),
                contender.mean(|s| s.skew),
            )?;
            line.points.push((*batch, p50.mean, p50.half_width));
        }
    }
    bar.finish_and_clear();
    if let Some(path) = &args.plot {
        let lines = Lines {
            title: "TPOT p50 against LeastLoaded".into(),
            x: "requests per worker".into(),
            y: "change in %".into(),
            series,
            marks: Vec::new(),
        };
        std::fs::write(path, lines.svg()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The load in the middle of several, which placements are made for.
pub(super) fn middle(batches: &[f64]) -> f64 {
    let mut sorted = batches.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(1.0)
}

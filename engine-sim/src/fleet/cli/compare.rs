//! `coterie-sim compare`.

use std::io::Write;

use anyhow::{Context, Result};

use super::args::{CompareArgs, PlotMetric};
use super::progress::bar;
use super::sweep::middle;
use super::world::{GENEROUS, World};
use crate::fleet::compare::{CaseResult, Metric, compare_over, markdown, text};
use crate::fleet::plot::{Bars, Group};
use crate::fleet::steering::{Contender, Rule};

pub(super) fn compare(args: &CompareArgs, out: &mut dyn Write) -> Result<()> {
    let world = World::load(&args.fleet, middle(&args.batch))?;
    let contenders = contenders(args);
    let seeds: Vec<u64> = (1..=u64::from(args.seeds)).collect();
    let mut results: Vec<CaseResult> = Vec::new();
    for (rate, batch) in loads(args, &world)? {
        let name = if args.fleet.workload.replay.is_some() {
            "replay".to_owned()
        } else if args.rate.is_empty() {
            format!("batch {batch}")
        } else {
            format!("rate {rate}")
        };
        let case = world.case(&args.fleet, name, rate, batch);
        let bar = bar(contenders.len() * seeds.len(), &case.name);
        let result = compare_over(&case, &|seed| world.arrivals(&case, seed), &contenders, &seeds, &|| {
            bar.inc(1);
        })?;
        bar.finish_and_clear();
        if args.markdown {
            writeln!(out, "{}", markdown(&result))?;
        } else if !args.json {
            writeln!(out, "{}", text(&result))?;
        }
        results.push(result);
    }
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &results)?;
        writeln!(out)?;
    }
    if let Some(path) = &args.plot {
        std::fs::write(path, bars(&results, args.plot_metric))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A group of bars for each load, a bar for each contender that is no load balancer.
fn bars(results: &[CaseResult], metric: PlotMetric) -> String {
    let (metric, named) = match metric {
        PlotMetric::P50 => (Metric::TpotP50, "p50"),
        PlotMetric::P99 => (Metric::TpotP99, "p99"),
    };
    let shown = |result: &'_ CaseResult| -> Vec<usize> {
        let all = result.contenders.iter().enumerate();
        all.filter(|(_, c)| !c.contender.rule.is_load_balancer())
            .map(|(i, _)| i)
            .collect()
    };
    let names = results.first().map(|r| {
        let name = |i: usize| r.contenders[i].contender.to_string();
        shown(r).into_iter().map(name).collect()
    });
    let groups = results.iter().map(|result| Group {
        name: result.case.clone(),
        bars: shown(result)
            .into_iter()
            .map(|i| {
                let change = result.change(&result.contenders[i], metric);
                let change = change.map(|c| c.least_loaded).unwrap_or_default();
                (change.mean, change.half_width)
            })
            .collect(),
    });
    Bars {
        title: format!("TPOT {named} against LeastLoaded"),
        x: "load".into(),
        y: "change in %".into(),
        names: names.unwrap_or_default(),
        groups: groups.collect(),
    }
    .svg()
}

fn contenders(args: &CompareArgs) -> Vec<Contender> {
    let balancers = Rule::ALL.into_iter().filter(|r| r.is_load_balancer());
    let mut rules: Vec<Rule> = balancers.collect();
    rules.extend(args.policies.iter().filter(|r| !r.is_load_balancer()));
    Contender::all(&rules, &args.predictors)
}

/// Rates, and the mean batch to expect at each.
fn loads(args: &CompareArgs, world: &World) -> Result<Vec<(f64, f64)>> {
    if let Some(traced) = world.traced()? {
        return Ok(vec![traced]);
    }
    if args.rate.is_empty() {
        let with_rate = |batch: &f64| Ok((world.rate(&args.fleet, *batch)?, *batch));
        return args.batch.iter().map(with_rate).collect();
    }
    Ok(args.rate.iter().map(|rate| (*rate, GENEROUS)).collect())
}

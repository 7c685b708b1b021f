//! `coterie-sim compare`.

use std::io::Write;

use anyhow::Result;

use super::args::CompareArgs;
use super::progress::bar;
use super::world::{World, case};
use crate::fleet::compare::{CaseResult, compare as run, markdown, text};
use crate::fleet::steering::{Contender, Rule};

pub(super) fn compare(args: &CompareArgs, out: &mut dyn Write) -> Result<()> {
    let world = World::load(&args.fleet)?;
    let contenders = contenders(args);
    let seeds: Vec<u64> = (1..=u64::from(args.seeds)).collect();
    let mut results: Vec<CaseResult> = Vec::new();
    for (rate, batch) in loads(args, &world)? {
        let name = if args.rate.is_empty() {
            format!("batch {batch}")
        } else {
            format!("rate {rate}")
        };
        let case = case(&world, &args.fleet, name, rate, batch);
        let bar = bar(contenders.len() * seeds.len(), &case.name);
        let result = run(&case, &contenders, &seeds, &|| bar.inc(1))?;
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
    Ok(())
}

fn contenders(args: &CompareArgs) -> Vec<Contender> {
    let balancers = Rule::ALL.into_iter().filter(|r| r.is_load_balancer());
    let mut rules: Vec<Rule> = balancers.collect();
    rules.extend(args.policies.iter().filter(|r| !r.is_load_balancer()));
    Contender::all(&rules, &args.predictors)
}

/// Rates, and the mean batch to expect at each.
fn loads(args: &CompareArgs, world: &World) -> Result<Vec<(f64, f64)>> {
    if args.rate.is_empty() {
        let with_rate = |batch: &f64| Ok((world.rate(&args.fleet, *batch)?, *batch));
        return args.batch.iter().map(with_rate).collect();
    }
    // The batch is only needed for the length of the warm-up: a generous one.
    Ok(args.rate.iter().map(|rate| (*rate, 64.0)).collect())
}

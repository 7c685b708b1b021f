//! `coterie-sim run`.

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::args::RunArgs;
use super::world::World;
use crate::fleet::outcome::{Moment, Summary, timeline};

#[derive(Serialize)]
struct Report<'a> {
    policy: String,
    seed: u64,
    rate: f64,
    #[serde(flatten)]
    summary: &'a Summary,
    series: Vec<Moment>,
}

pub(super) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<()> {
    let world = World::load(&args.fleet, args.batch)?;
    let (rate, batch) = match (world.traced()?, args.rate) {
        (Some(traced), _) => traced,
        (None, Some(rate)) => (rate, args.batch),
        (None, None) => (world.rate(&args.fleet, args.batch)?, args.batch),
    };
    let case = world.case(&args.fleet, "run".into(), rate, batch);
    let arrivals = world.arrivals(&case, args.seed)?;
    args.policy.steering(&world.calibration, args.fleet.workers as usize)?;
    let begun = Instant::now();
    let outcome = case.run(&args.policy, &arrivals, args.seed)?;
    let took = begun.elapsed().as_secs_f64();
    let summary = case.summary(&outcome);
    let report = Report {
        policy: args.policy.to_string(),
        seed: args.seed,
        rate,
        summary: &summary,
        series: if args.every > 0.0 {
            timeline(&outcome, args.every)
        } else {
            Vec::new()
        },
    };
    writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    // Not in the JSON: the same seed gives the same bytes.
    eprintln!(
        "{} steps in {took:.2} s, {:.1} million a minute",
        summary.steps,
        summary.steps as f64 / took * 6e-5
    );
    Ok(())
}

//! `coterie-sim generate`.

use std::io::Write;

use anyhow::{Context, Result, bail, ensure};
use coterie_locality::Geometry;
use serde::Serialize;

use super::args::{GenerateArgs, TargetArgs};
use super::gates::MADE_UP;
use crate::fleet::gates::generate::{Generator, Match, Parameters, Plan, Shape, fit, preset};
use crate::fleet::gates::{Recording, Statistics, check_npz_size, write_npz};

/// Pairs of requests behind the statistics of whole recordings.
const PAIRS: usize = 20_000;
/// Requests of each trial of a search.
const TRIED: usize = 150;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    geometry: Geometry,
    parameters: Parameters,
    plan: &'a Plan,
    seed: u64,
    trials: usize,
    /// Squared misses in units of a noticeable one, averaged.
    error: f64,
    #[serde(flatten)]
    matched: &'a Match,
}

pub(super) fn generate(args: &GenerateArgs, out: &mut dyn Write) -> Result<()> {
    let like = match &args.like {
        Some(path) => Some(Recording::load(path, None, 1)?),
        None => None,
    };
    let (geometry, near) = match (&like, &args.geometry) {
        (Some(like), _) => (like.geometry, Shape::nearest(like.geometry)),
        (None, Some(shape)) => Shape::parse(shape).map_err(anyhow::Error::msg).context("--geometry")?,
        (None, None) => bail!("--like or --geometry is needed"),
    };
    let plan = plan(args, like.as_ref());
    ensure!(
        plan.blended == 0.0 || plan.domains > 1,
        "--blended: a blend needs at least 2 --domains"
    );
    check_npz_size(geometry, plan.requests, plan.output_tokens).map_err(anyhow::Error::msg)?;
    let target = target(&args.targets, like.as_ref(), near, geometry);
    let (parameters, trials) = parameters(args, &target, geometry, near, &plan)?;
    let recording = Generator::new(geometry, parameters, args.seed).recording(&plan);
    let bytes = write_npz(&recording).map_err(anyhow::Error::msg)?;
    std::fs::write(&args.out, &bytes).with_context(|| format!("cannot write {}", args.out.display()))?;
    let matched = Match {
        target,
        reached: statistics(&recording),
    };
    eprintln!(
        "{}: {} requests, {geometry}, {:.1} MB",
        args.out.display(),
        recording.len(),
        bytes.len() as f64 / 1e6
    );
    if args.json {
        let report = Report {
            geometry,
            parameters,
            plan: &plan,
            seed: args.seed,
            trials,
            error: matched.error(),
            matched: &matched,
        };
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        write!(out, "{matched}")?;
        writeln!(
            out,
            "error {:.2} (1: misses are noticeable), {trials} gates tried",
            matched.error()
        )?;
    }
    Ok(())
}

/// Of prompts that do not blend domains: blends hide what a domain does.
fn statistics(recording: &Recording) -> Statistics {
    let (pure, _) = recording.pure_and_blended();
    Statistics::of(if pure.len() < 2 { recording } else { &pure }, PAIRS, 1)
}

fn plan(args: &GenerateArgs, like: Option<&Recording>) -> Plan {
    let domains = like.map_or(0, |l| l.domain_names.len());
    let lengths = like.map(|l| {
        let prompts = || l.requests.iter().map(|r| r.prompt_tokens);
        let tokens = l.requests.iter().map(|r| r.decode.tokens()).max();
        (
            (prompts().min().unwrap_or(1), prompts().max().unwrap_or(1)),
            tokens.unwrap_or(1),
        )
    });
    let (prompts, tokens) = lengths.unwrap_or((MADE_UP.prompt_tokens, MADE_UP.output_tokens));
    Plan {
        requests: args.requests as usize,
        domains: args
            .domains
            .map_or(if domains == 0 { MADE_UP.domains } else { domains }, |d| d as usize),
        blended: args.blended,
        prompt_tokens: args.prompt_tokens.unwrap_or(prompts),
        output_tokens: args.output_tokens.map_or(tokens, |t| t as usize),
        ..MADE_UP
    }
}

/// Statistics given by hand, before those of the gates to imitate, before those that the shape's parameters were fitted to.
fn target(given: &TargetArgs, like: Option<&Recording>, near: Shape, geometry: Geometry) -> Statistics {
    let mut target = match like {
        Some(like) => statistics(like),
        None if given.any() => Statistics::default(),
        None => {
            let own = near.geometry().is_ok_and(|g| g == geometry);
            near.target().filter(|_| own).unwrap_or_default()
        }
    };
    let fields = [
        (&mut target.expert_correlation, given.correlation),
        (&mut target.rho, given.rho),
        (&mut target.domain_saving, given.domain_saving),
        (&mut target.overlap_within, given.overlap_within),
        (&mut target.overlap_between, given.overlap_between),
        (&mut target.kept, given.kept),
    ];
    for (field, given) in fields {
        *field = given.or(*field);
    }
    target.distinct.extend(given.distinct.iter().copied());
    target
}

/// Parameters by hand, of the shape, or found by a search for the target; and how many gates were tried.
fn parameters(
    args: &GenerateArgs,
    target: &Statistics,
    geometry: Geometry,
    near: Shape,
    plan: &Plan,
) -> Result<(Parameters, usize)> {
    let mut start = preset(near);
    if args.like.is_none() && !args.targets.any() {
        for (name, value) in args.parameters.iter().flat_map(|p| &p.0) {
            let field = match name.as_str() {
                "base" => &mut start.base,
                "domain" => &mut start.domain,
                "request" => &mut start.request,
                "phase" => &mut start.phase,
                "own" => &mut start.own,
                "persistence" => &mut start.persistence,
                "follow" => &mut start.follow,
                _ => bail!("--parameters has no {name:?}: base, domain, request, phase, own, persistence, follow"),
            };
            *field = *value as f32;
        }
        ensure!(
            start == start.clamped(),
            "--parameters: persistence is at most 0.95, follow at most 1, all others at most 6"
        );
        return Ok((start, 0));
    }
    if let Some(batch) = target
        .distinct
        .keys()
        .find(|b| !crate::fleet::gates::BATCHES.contains(b))
    {
        bail!(
            "--distinct: batches are measured at {:?}, not at {batch}",
            crate::fleet::gates::BATCHES
        );
    }
    let tried = Plan {
        requests: TRIED,
        blended: 0.0,
        output_tokens: plan.output_tokens.min(128),
        ..plan.clone()
    };
    let fitted = fit(target, geometry, &tried, start, args.trials as usize, args.seed);
    Ok((fitted.parameters, fitted.trials))
}

impl TargetArgs {
    fn any(&self) -> bool {
        let numbers = [
            self.correlation,
            self.rho,
            self.domain_saving,
            self.overlap_within,
            self.overlap_between,
            self.kept,
        ];
        numbers.iter().any(Option::is_some) || !self.distinct.is_empty()
    }
}

//! Parameters from statistics: a seeded random search with the same random numbers in every trial, so that the error is smooth.

use coterie_locality::Geometry;

use super::quick::{self, Quick};
use super::{Generator, Match, Parameters, Plan};
use crate::fleet::gates::Statistics;

/// Pairs from which a trial's statistics come.
const PAIRS: usize = 3000;
/// First and smallest step, in logarithms.
const STEPS: (f32, f32) = (0.5, 0.01);

/// Parameters, and how near they come.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The parameters.
    pub parameters: Parameters,
    /// Statistics of gates generated with them, beside the targets; from a seed that the search has not seen.
    pub matched: Match,
    /// Gates generated and compared.
    pub trials: usize,
}

/// Searches the parameters (all but `follow`, which `start` gives) whose gates have statistics near `target`, in at most `trials` trials; 150 do. `plan`
/// says how many domains, and how long prompts and outputs are; its number of requests is what each trial generates: 150 do.
///
/// Each trial moves all parameters at random; steps grow after a success and shrink after a failure, so that about one in five succeeds.
pub fn fit(
    target: &Statistics,
    geometry: Geometry,
    plan: &Plan,
    start: Parameters,
    trials: usize,
    seed: u64,
) -> Fitted {
    let measure = |parameters: Parameters, seed: u64| Match {
        target: target.clone(),
        reached: Statistics::of(&Generator::new(geometry, parameters, seed).recording(plan), PAIRS, seed),
    };
    let mut rng = Quick::new(seed, quick::SEARCH, 0);
    let mut best = start.clamped();
    let mut error = measure(best, seed).error();
    let (mut step, mut done) = (STEPS.0, 1);
    while done < trials && step > STEPS.1 {
        let candidate = moved(best, step, &mut rng);
        let found = measure(candidate, seed).error();
        done += 1;
        if found < error {
            (best, error) = (candidate, found);
            step = (step * 1.5).min(1.0);
        } else {
            step *= 0.9;
        }
    }
    Fitted {
        parameters: best,
        matched: measure(best, seed.wrapping_add(1)),
        trials: done,
    }
}

/// Deviations are scaled, from at least 0.05 so that one can come back from nothing; persistence is moved.
fn moved(mut p: Parameters, step: f32, rng: &mut Quick) -> Parameters {
    for value in [&mut p.base, &mut p.domain, &mut p.request, &mut p.phase, &mut p.own] {
        *value = value.max(0.05) * (step * rng.normal()).exp();
    }
    p.persistence += 0.3 * step * rng.normal();
    p.clamped()
}

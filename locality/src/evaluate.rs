//! What a routing rule does to the batches of decode workers: mean distinct experts per layer and step.
//!
//! A fleet of W workers is filled with requests in a seeded order, never holding the same request twice: it is kept at W x B running
//! requests, the oldest leaving when one arrives. A request uses expert e of layer l in a step with probability p[l, e] = decode counts
//! per token, so a batch is expected to load the sum of 1 - prod(1 - p) distinct experts. The mean is over running requests, not over
//! workers: a rule that piles requests on one worker pays for it.

use std::collections::{BTreeMap, VecDeque};

use rand::seq::SliceRandom;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::assign::{Assignment, assign};
use crate::counts::ActivationCounts;
use crate::fit::DistinctExperts;
use crate::policy::{Candidates, LeastLoaded, LocalityBand, Policy, Random};
use crate::score::scores;
use crate::table::CentroidTable;

/// How to simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvaluateOptions {
    /// Decode workers W; 0: as many as the table has clusters.
    pub workers: usize,
    /// Requests per worker B; made smaller where there are too few requests to fill the fleet without repeats.
    pub batch: usize,
    /// Load guard of the band.
    pub max_load_ratio: f32,
    /// Smallest band.
    pub min_candidates: usize,
    /// Passes over the requests, each in another order.
    pub passes: usize,
    /// Seed of orders and ties.
    pub seed: u64,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        Self {
            workers: 0,
            batch: 16,
            max_load_ratio: 1.5,
            min_candidates: 1,
            passes: 3,
            seed: 1,
        }
    }
}

/// One request to simulate.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationRequest<'a> {
    /// Counts that its signature is made from.
    pub prefill: &'a ActivationCounts,
    /// Counts over its generated tokens.
    pub decode: &'a ActivationCounts,
    /// Its domain, where known: numbers from 0.
    pub domain: Option<u32>,
}

/// Simulates `LeastLoaded`, random, the table's locality band and, if every request has a domain, routing by domain. `None` with fewer
/// than two requests per worker, or requests that do not fit the table.
pub fn evaluate(
    table: &CentroidTable,
    requests: &[EvaluationRequest<'_>],
    options: &EvaluateOptions,
) -> Option<DistinctExperts> {
    let workers = if options.workers == 0 {
        table.clusters()
    } else {
        options.workers
    };
    let batch = options.batch.min(requests.len() / workers.max(1));
    if workers == 0 || batch < 2 {
        return None;
    }
    let fleet = Fleet::new(requests, workers, batch, options)?;
    let names: Vec<String> = (0..workers).map(|w| format!("worker-{w:04}")).collect();
    let band = |tau| LocalityBand::new(tau, options.min_candidates, Some(options.max_load_ratio)).ok();
    let by_table = assign(&table.cluster_shares(), &names, &BTreeMap::default());
    let table_similarity = table_similarities(table, requests, &by_table)?;
    let domain_similarity = domain_similarities(requests, &names);
    let (by_tau, by_domain) = (band(table.tau)?, band(0.0)?);
    let oracle = || {
        domain_similarity
            .as_ref()
            .map(|similarity| fleet.run(&by_domain, Some(similarity)))
    };
    let ((least_loaded, random), (table, domain_oracle)) = rayon::join(
        || rayon::join(|| fleet.run(&LeastLoaded, None), || fleet.run(&Random, None)),
        || rayon::join(|| fleet.run(&by_tau, Some(&table_similarity)), oracle),
    );
    Some(DistinctExperts {
        batch,
        least_loaded,
        random,
        table,
        domain_oracle,
    })
}

/// Similarities [requests, workers] under the table.
fn table_similarities(
    table: &CentroidTable,
    requests: &[EvaluationRequest<'_>],
    assignment: &Assignment,
) -> Option<Vec<f32>> {
    let mut signature = vec![0.0; table.transform.dim()];
    let mut by_cluster = vec![0.0; table.clusters()];
    let mut out = vec![0.0; requests.len() * assignment.workers()];
    for (request, row) in requests.iter().zip(out.chunks_exact_mut(assignment.workers())) {
        table.transform.signature(request.prefill, &mut signature).ok()?;
        scores(table, &signature, &mut by_cluster).ok()?;
        assignment.similarity(&by_cluster, row);
    }
    Some(out)
}

/// 1 for the workers of a request's domain, else 0; workers are dealt to domains by their traffic.
fn domain_similarities(requests: &[EvaluationRequest<'_>], names: &[String]) -> Option<Vec<f32>> {
    let domains: Vec<u32> = requests.iter().map(|r| r.domain).collect::<Option<_>>()?;
    let number = domains.iter().max().map_or(0, |d| *d as usize + 1);
    if number > requests.len() {
        return None;
    }
    let mut shares = vec![0.0; number];
    for domain in &domains {
        shares[*domain as usize] += 1.0;
    }
    let assignment = assign(&shares, names, &BTreeMap::default());
    let mut out = vec![0.0; requests.len() * names.len()];
    for (domain, row) in domains.iter().zip(out.chunks_exact_mut(names.len())) {
        for (worker, similarity) in row.iter_mut().enumerate() {
            *similarity = f32::from(u8::from(assignment.clusters_of(worker).contains(domain)));
        }
    }
    Some(out)
}

struct Fleet {
    /// ln(1 - p) per request, [requests, L x E].
    survival: Vec<f32>,
    cells: usize,
    layers: usize,
    workers: usize,
    batch: usize,
    passes: usize,
    seed: u64,
}

impl Fleet {
    fn new(
        requests: &[EvaluationRequest<'_>],
        workers: usize,
        batch: usize,
        options: &EvaluateOptions,
    ) -> Option<Self> {
        let geometry = *requests.first()?.decode.geometry();
        let mut survival = Vec::with_capacity(requests.len() * geometry.cells());
        for request in requests {
            if *request.decode.geometry() != geometry || request.decode.tokens() == 0 {
                return None;
            }
            let tokens = request.decode.tokens() as f32;
            // A certain expert would have ln 0: it is taken as missing once in ten thousand steps, so that it can leave the sum again.
            survival.extend(
                request
                    .decode
                    .cells()
                    .iter()
                    .map(|c| (1.0 - (*c as f32 / tokens).min(0.9999)).ln()),
            );
        }
        Some(Self {
            survival,
            cells: geometry.cells(),
            layers: geometry.layers,
            workers,
            batch,
            passes: options.passes.max(1),
            seed: options.seed,
        })
    }

    /// Mean distinct experts per layer and step under a policy, `similarity` being [requests, workers].
    fn run(&self, policy: &dyn Policy, similarity: Option<&[f32]>) -> f64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let (mut sum, mut weight) = (0.0, 0.0);
        for _ in 0..self.passes {
            let (s, w) = self.pass(policy, similarity, &mut rng);
            sum += s;
            weight += w;
        }
        if weight > 0.0 { sum / weight } else { 0.0 }
    }

    fn pass(&self, policy: &dyn Policy, similarity: Option<&[f32]>, rng: &mut dyn RngCore) -> (f64, f64) {
        let requests = self.survival.len() / self.cells;
        let mut order: Vec<usize> = (0..requests).collect();
        order.shuffle(rng);
        let room = self.workers * self.batch;
        let mut loads = vec![0.0f32; self.workers];
        let mut unions = vec![0.0f32; self.workers * self.cells];
        let mut running: VecDeque<(usize, usize)> = VecDeque::with_capacity(room + 1);
        let (mut sum, mut weight) = (0.0, 0.0);
        // Two laps, so that the filled fleet sees every request arrive once. No request ever meets itself: the fleet holds at most all of
        // them, and the oldest leaves before the next one comes.
        for (arrival, request) in order.iter().chain(&order).copied().enumerate() {
            if running.len() == room
                && let Some((old, worker)) = running.pop_front()
            {
                loads[worker] -= 1.0;
                self.add(&mut unions, worker, old, -1.0);
            }
            let row = similarity.and_then(|s| s.get(request * self.workers..(request + 1) * self.workers));
            let Some(decision) = policy.choose(
                &Candidates {
                    loads: &loads,
                    similarity: row,
                    ..Candidates::default()
                },
                rng,
            ) else {
                continue;
            };
            loads[decision.worker] += 1.0;
            self.add(&mut unions, decision.worker, request, 1.0);
            running.push_back((request, decision.worker));
            if running.len() == room && arrival % (2 * self.batch) == 0 {
                for (load, union) in loads.iter().zip(unions.chunks_exact(self.cells)) {
                    sum += f64::from(*load) * self.distinct(union);
                    weight += f64::from(*load);
                }
            }
        }
        (sum, weight)
    }

    fn add(&self, unions: &mut [f32], worker: usize, request: usize, sign: f32) {
        let union = &mut unions[worker * self.cells..(worker + 1) * self.cells];
        let own = &self.survival[request * self.cells..(request + 1) * self.cells];
        union.iter_mut().zip(own).for_each(|(u, s)| *u += sign * s);
    }

    /// Expected distinct experts per layer of a batch with these summed ln(1 - p).
    fn distinct(&self, union: &[f32]) -> f64 {
        f64::from(union.iter().map(|u| 1.0 - u.min(0.0).exp()).sum::<f32>()) / self.layers as f64
    }
}

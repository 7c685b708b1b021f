//! A fleet of decode workers kept full: what a policy makes of its batches.
//!
//! W workers hold W x B requests; when one arrives, the oldest leaves. A request uses expert e of layer l in a step with the frequency that
//! was recorded of it, so a batch loads the sum of 1 - prod(1 - p) distinct experts. What a request *sees* is the distinct experts of the
//! batch that it runs in: means are over running requests, so a policy that piles them on one worker pays for it.

use std::collections::VecDeque;

use coterie_locality::{
    ActivationCounts,
    policy::{Candidates, Frequencies, Policy, WorkerId},
};
use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Seconds that a request runs: 128 tokens of about 20 ms. Only policies with a memory look at the clock.
const LIFETIME: f64 = 2.5;
/// Seconds of a decode step by the law that the recordings' own evaluation used, in arbitrary units: for policies that learn one.
fn step_seconds(distinct: f64, load: f32) -> f64 {
    (4.0 + 0.08 * distinct + 0.05 * f64::from(load)) / 1e3
}

/// Apart from the order of arrival, so that all policies meet the same one.
const CHOICE_STREAM: u64 = 0x4348_4f49;

/// Requests to simulate.
pub(super) struct Traffic {
    /// ln(1 - p), [N, L x E].
    survival: Vec<f32>,
    cells: usize,
    layers: usize,
    /// Kind of each request.
    kinds: Vec<usize>,
}

/// What a policy may know of each request.
#[derive(Clone, Copy, Default)]
pub(super) struct Knowledge<'a> {
    /// Similarity to each worker, [N, W].
    pub(super) similarity: Option<&'a [f32]>,
    /// Expected decode frequencies.
    pub(super) frequencies: Option<&'a [Frequencies]>,
}

/// A fleet's size and the seed of its arrivals.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) workers: usize,
    pub(super) batch: usize,
    pub(super) seed: u64,
}

/// What requests saw.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Distinct experts per layer and step, mean over requests.
    pub(super) distinct: f64,
    /// The same for each kind; absent where none of it ran.
    pub(super) by_kind: Vec<Option<f64>>,
    /// Busiest worker's requests over the mean.
    pub(super) busiest: f64,
}

#[derive(Clone, Default)]
struct Sum {
    value: f64,
    weight: f64,
}

impl Sum {
    fn add(&mut self, value: f64, weight: f64) {
        self.value += value * weight;
        self.weight += weight;
    }

    fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.value / self.weight)
    }
}

impl Traffic {
    /// Decode counts and kinds of the requests; all of one geometry.
    pub(super) fn new<'a>(requests: impl Iterator<Item = (&'a ActivationCounts, usize)>) -> Self {
        let mut traffic = Self {
            survival: Vec::new(),
            cells: 1,
            layers: 1,
            kinds: Vec::new(),
        };
        for (decode, kind) in requests {
            traffic.cells = decode.geometry().cells();
            traffic.layers = decode.geometry().layers;
            let tokens = decode.tokens().max(1) as f32;
            // A certain expert would have ln 0: it is taken as missing once in ten thousand steps, so that it can leave the sum again.
            let survival = |count: &u32| (1.0 - (*count as f32 / tokens).min(0.9999)).ln();
            traffic.survival.extend(decode.cells().iter().map(survival));
            traffic.kinds.push(kind);
        }
        traffic
    }

    pub(super) fn requests(&self) -> usize {
        self.kinds.len()
    }

    /// Runs every request once through the full fleet; `None` when there are too few to fill it.
    pub(super) fn run(&self, policy: &dyn Policy, knowledge: &Knowledge<'_>, size: &Size) -> Option<Seen> {
        let room = size.workers * size.batch;
        if room == 0 || room > self.requests() {
            return None;
        }
        let mut order: Vec<usize> = (0..self.requests()).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(size.seed));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(size.seed ^ CHOICE_STREAM);
        let mut fleet = Fleet::new(self, size.workers);
        let mut running: VecDeque<(usize, usize)> = VecDeque::with_capacity(room + 1);
        let kinds = self.kinds.iter().max().map_or(0, |most| most + 1);
        let (mut all, mut by_kind, mut busiest) = (Sum::default(), vec![Sum::default(); kinds], Sum::default());
        // Two laps, so that the filled fleet sees every request arrive once. No request meets itself: the oldest leaves first.
        for (arrival, request) in order.iter().chain(&order).copied().enumerate() {
            let now = arrival as f64 * LIFETIME / room as f64;
            let frequencies = |request: usize| knowledge.frequencies.and_then(|all| all.get(request));
            if running.len() == room
                && let Some((old, worker)) = running.pop_front()
            {
                fleet.change(worker, old, -1.0);
                policy.finished(WorkerId(worker as u64), frequencies(old), now);
            }
            let candidates = Candidates {
                loads: &fleet.loads,
                similarity: knowledge
                    .similarity
                    .and_then(|all| all.get(request * size.workers..(request + 1) * size.workers)),
                frequencies: frequencies(request),
                now,
                ..Candidates::default()
            };
            let worker = policy.choose(&candidates, &mut rng)?.worker;
            fleet.change(worker, request, 1.0);
            policy.started(WorkerId(worker as u64), frequencies(request), now);
            running.push_back((request, worker));
            if running.len() < room || arrival % size.batch.max(4) != 0 {
                continue;
            }
            for worker in 0..size.workers {
                let distinct = fleet.distinct(worker);
                let load = fleet.loads[worker];
                all.add(distinct, f64::from(load));
                policy.observed(
                    WorkerId(worker as u64),
                    load,
                    step_seconds(distinct * self.layers as f64, load),
                );
                for (sum, requests) in by_kind.iter_mut().zip(&fleet.kinds[worker]) {
                    sum.add(distinct, *requests as f64);
                }
            }
            busiest.add(
                f64::from(fleet.loads.iter().copied().fold(0.0, f32::max)) / size.batch as f64,
                1.0,
            );
        }
        Some(Seen {
            distinct: all.mean()?,
            by_kind: by_kind.iter().map(Sum::mean).collect(),
            busiest: busiest.mean()?,
        })
    }
}

struct Fleet<'a> {
    traffic: &'a Traffic,
    loads: Vec<f32>,
    /// Summed ln(1 - p), [W, L x E].
    unions: Vec<f32>,
    /// Requests of each kind on each worker.
    kinds: Vec<Vec<usize>>,
}

impl<'a> Fleet<'a> {
    fn new(traffic: &'a Traffic, workers: usize) -> Self {
        let kinds = traffic.kinds.iter().max().map_or(0, |most| most + 1);
        Self {
            traffic,
            loads: vec![0.0; workers],
            unions: vec![0.0; workers * traffic.cells],
            kinds: vec![vec![0; kinds]; workers],
        }
    }

    fn change(&mut self, worker: usize, request: usize, sign: f32) {
        let cells = self.traffic.cells;
        self.loads[worker] += sign;
        let count = &mut self.kinds[worker][self.traffic.kinds[request]];
        *count = if sign > 0.0 {
            *count + 1
        } else {
            count.saturating_sub(1)
        };
        let own = &self.traffic.survival[request * cells..(request + 1) * cells];
        for (sum, survival) in self.unions[worker * cells..(worker + 1) * cells].iter_mut().zip(own) {
            *sum += sign * survival;
        }
    }

    fn distinct(&self, worker: usize) -> f64 {
        let cells = self.traffic.cells;
        let union = &self.unions[worker * cells..(worker + 1) * cells];
        f64::from(union.iter().map(|sum| 1.0 - sum.min(0.0).exp()).sum::<f32>()) / self.traffic.layers as f64
    }
}

#[cfg(test)]
mod tests {
    use coterie_locality::{
        Geometry,
        policy::{LeastLoaded, LocalityBand},
    };

    use super::*;

    /// Two domains that share no expert: kept apart, a batch of any size loads the two experts of one domain; mixed, all four.
    #[test]
    fn what_requests_see_is_what_their_batch_loads() {
        let geometry = Geometry::new(1, 4, 2).unwrap();
        let counts = |domain: usize| {
            let cells = (0..4).map(|e| if e / 2 == domain { 100 } else { 0 }).collect();
            ActivationCounts::from_cells(&geometry, cells, 100).unwrap()
        };
        let both = [counts(0), counts(1)];
        let domains: Vec<usize> = (0..40).map(|at| at % 2).collect();
        let traffic = Traffic::new(domains.iter().map(|d| (&both[*d], *d)));
        let size = Size {
            workers: 2,
            batch: 8,
            seed: 3,
        };
        let similarity: Vec<f32> = domains.iter().flat_map(|d| [1.0 - *d as f32, *d as f32]).collect();
        let knowledge = Knowledge {
            similarity: Some(&similarity),
            ..Knowledge::default()
        };
        let by_domain = LocalityBand::new(0.0, 1, None).unwrap();
        let apart = traffic.run(&by_domain, &knowledge, &size).unwrap();
        assert!((apart.distinct - 2.0).abs() < 0.01, "{apart:?}");
        assert!(apart.by_kind.iter().all(|kind| (kind.unwrap() - 2.0).abs() < 0.01) && apart.busiest >= 1.0);
        let mixed = traffic.run(&LeastLoaded, &knowledge, &size).unwrap();
        assert!(mixed.distinct > 3.5 && (mixed.busiest - 1.0).abs() < 1e-6, "{mixed:?}");
        assert!(
            traffic
                .run(&LeastLoaded, &knowledge, &Size { batch: 21, ..size })
                .is_none()
        );
    }
}

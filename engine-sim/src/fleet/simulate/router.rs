//! One router replica: its view of the workers, its policy, and what it knows of requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use coterie_locality::policy::{Candidates, Frequencies, MarginalCost, Policy, UnionSummary, WorkerId};
use coterie_locality::{Assignment, CentroidTable, assign, scores};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::events::{Nanos, seconds};
use super::refit::{Refit, Refitter};
use super::view::{View, Visibility};

/// What a router can know of a request before it is decoded, by row of the gates.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// Expected decode frequencies.
    pub frequencies: Vec<Arc<Frequencies>>,
    /// Signatures under the table's transform, `[requests, D]`.
    pub signatures: Vec<f32>,
    /// Length of a signature; 0: there are none.
    pub dim: usize,
    /// Similarity to each cluster of the table, `[requests, K]`.
    pub clusters: Vec<f32>,
    /// True domains.
    pub domains: Vec<Option<u32>>,
}

/// A policy with what it needs.
pub struct Steering {
    /// The policy.
    pub policy: Box<dyn Policy>,
    /// What is known of requests.
    pub knowledge: Arc<Knowledge>,
    /// The table, for policies that compare signatures with centroids.
    pub table: Option<Arc<CentroidTable>>,
    /// Whether its centroids move.
    pub refit: Option<Refit>,
    /// The policy's own view of batches, where routers exchange summaries of it.
    pub marginal: Option<Arc<MarginalCost>>,
}

pub(super) struct Router {
    steering: Steering,
    pub(super) view: View,
    assignment: Assignment,
    known: BTreeMap<String, Vec<u32>>,
    ids: Vec<WorkerId>,
    loads: Vec<f32>,
    similarity: Vec<f32>,
    /// A table of its own, where centroids move.
    moving: Option<(CentroidTable, Refitter)>,
    scored: Vec<f32>,
    rng: Xoshiro256PlusPlus,
}

impl Router {
    pub(super) fn new(steering: Steering, rng: Xoshiro256PlusPlus) -> Self {
        let table = steering.table.as_deref().cloned();
        Self {
            moving: table.zip(steering.refit.map(Refitter::new)),
            scored: Vec::new(),
            steering,
            view: View::default(),
            assignment: Assignment::default(),
            known: BTreeMap::new(),
            ids: Vec::new(),
            loads: Vec::new(),
            similarity: Vec::new(),
            rng,
        }
    }

    /// The live workers from now on. Clusters move as little as the assignment allows.
    pub(super) fn workers(&mut self, live: &[u32], all: usize) {
        self.view.grow(all);
        self.ids = live.iter().map(|w| WorkerId(u64::from(*w))).collect();
        if let Some(table) = &self.steering.table {
            let names: Vec<String> = live.iter().map(|w| format!("decode-{w:05}")).collect();
            self.assignment = assign(&table.cluster_shares(), &names, &self.known);
            self.known = self.assignment.by_name(&names);
        }
        self.steering.policy.workers(&self.ids);
    }

    /// Chooses among the `live` workers and reserves a place; `None` without workers.
    pub(super) fn choose(&mut self, gates: u32, now: Nanos, visibility: &Visibility, live: &[u32]) -> Option<u32> {
        self.view.loads(now, visibility, live, &mut self.loads);
        let (row, knowledge) = (gates as usize, &self.steering.knowledge);
        let signature = (knowledge.dim > 0)
            .then(|| knowledge.signatures.get(row * knowledge.dim..(row + 1) * knowledge.dim))
            .flatten();
        if let (Some((table, refitter)), Some(signature)) = (&mut self.moving, signature) {
            self.scored.resize(table.clusters(), 0.0);
            let score = |table: &CentroidTable, out: &mut [f32]| scores(table, signature, out).is_ok();
            if score(table, &mut self.scored)
                && refitter.seen(seconds(now), gates, &self.scored, &knowledge.signatures, table)
            {
                score(table, &mut self.scored);
            }
        }
        let clusters = self.steering.table.as_ref().map_or(0, |t| t.clusters());
        let scored = (clusters > 0).then(|| knowledge.clusters.get(row * clusters..(row + 1) * clusters));
        let moved = self.moving.is_some().then_some(self.scored.as_slice());
        let similarity = moved.or(scored.flatten()).map(|scores| {
            self.similarity.resize(live.len(), -1.0);
            self.assignment.similarity(scores, &mut self.similarity);
            self.similarity.as_slice()
        });
        let frequencies = knowledge.frequencies.get(row);
        let candidates = Candidates {
            loads: &self.loads,
            similarity,
            workers: &self.ids,
            signature,
            frequencies: frequencies.map(AsRef::as_ref),
            domain: knowledge.domains.get(row).copied().flatten(),
            now: seconds(now),
        };
        let index = self.steering.policy.choose(&candidates, &mut self.rng)?.worker;
        let worker = *live.get(index)?;
        self.view.own[worker as usize] += 1;
        self.steering
            .policy
            .started(self.ids[index], frequencies.map(AsRef::as_ref), seconds(now));
        Some(worker)
    }

    /// A request gives its place back.
    pub(super) fn leaves(&mut self, gates: u32, worker: u32, dispatched: bool, now: Nanos) {
        self.view.own[worker as usize] -= 1;
        self.view.dispatched[worker as usize] -= u32::from(dispatched);
        let frequencies = self.steering.knowledge.frequencies.get(gates as usize);
        self.steering.policy.finished(
            WorkerId(u64::from(worker)),
            frequencies.map(AsRef::as_ref),
            seconds(now),
        );
    }

    /// Fits that this router made.
    pub(super) fn fits(&self) -> u32 {
        self.moving.as_ref().map_or(0, |(_, refitter)| refitter.fits)
    }

    /// What this router's requests use at a worker, for the other routers.
    pub(super) fn union(&self, worker: u32) -> Option<UnionSummary> {
        self.steering.marginal.as_ref()?.summary(WorkerId(u64::from(worker)))
    }

    /// What the other routers' requests use at a worker.
    pub(super) fn set_others(&self, worker: u32, others: &UnionSummary) {
        if let Some(marginal) = &self.steering.marginal {
            marginal.set_others(WorkerId(u64::from(worker)), others);
        }
    }

    /// Streams from a worker took `step_s` per token.
    pub(super) fn observed(&mut self, worker: u32, now: Nanos, visibility: &Visibility, step_s: f64) {
        if self.view.own[worker as usize] > 0 {
            self.view.loads(now, visibility, &[worker], &mut self.loads);
            let load = self.loads[0];
            self.steering.policy.observed(WorkerId(u64::from(worker)), load, step_s);
        }
    }
}

impl Knowledge {
    /// Scores all signatures against a table.
    pub fn score(&mut self, table: &CentroidTable) {
        let clusters = table.clusters();
        self.clusters.clear();
        if self.dim == 0 {
            return;
        }
        let mut row = vec![0.0; clusters];
        for signature in self.signatures.chunks_exact(self.dim) {
            if scores(table, signature, &mut row).is_err() {
                row.fill(0.0);
            }
            self.clusters.extend_from_slice(&row);
        }
    }
}

//! Exact assignment of N samples to K clusters of bounded size at least cost.
//!
//! A transportation problem, solved by successive shortest paths: samples are placed one after the other, and each placement may push
//! others from cluster to cluster along the cheapest chain. Chains run over the K clusters only: the edge from cluster a to b costs what
//! its cheapest sample pays for moving, kept in a heap per edge. Prices on the clusters keep all edges non-negative, so one Dijkstra run
//! over K nodes finds the chain: O(N (K^2 + c K log N)) for chains of length c, against O(N^3) for the replicated Hungarian matrix.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Input without a solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Costs that are not N x K finite numbers.
    #[error("assignment: costs are not a whole number of rows of finite numbers")]
    Costs,
    /// Bounds that N samples cannot satisfy.
    #[error("assignment: {samples} samples do not fit {clusters} clusters of {lower} to {upper}")]
    Capacity {
        /// Samples.
        samples: usize,
        /// Clusters.
        clusters: usize,
        /// Least samples of a cluster.
        lower: usize,
        /// Most samples of a cluster.
        upper: usize,
    },
}

/// The cluster of each sample, minimising the sum of `costs` [N, clusters] with `lower` to `upper` samples in every cluster.
pub fn assign_with_capacities(
    costs: &[f32],
    clusters: usize,
    lower: usize,
    upper: usize,
) -> Result<Vec<u32>, TransportError> {
    if clusters == 0 || !costs.len().is_multiple_of(clusters) || costs.iter().any(|c| !c.is_finite()) {
        return Err(TransportError::Costs);
    }
    let samples = costs.len() / clusters;
    let fits = lower <= upper && lower.saturating_mul(clusters) <= samples && samples <= upper.saturating_mul(clusters);
    if !fits {
        return Err(TransportError::Capacity {
            samples,
            clusters,
            lower,
            upper,
        });
    }
    let mut solver = Solver::new(costs, clusters, lower, upper);
    for sample in 0..samples {
        solver.place(sample);
    }
    Ok(solver.labels)
}

/// A sample's price for moving along an edge; ordered by price, then sample.
#[derive(Clone, Copy, PartialEq)]
struct Move {
    cost: f64,
    sample: u32,
}

impl Eq for Move {}

impl Ord for Move {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then(self.sample.cmp(&other.sample))
    }
}

impl PartialOrd for Move {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

struct Solver<'a> {
    costs: &'a [f32],
    k: usize,
    lower: usize,
    upper: usize,
    /// Reward for filling a cluster up to its lower bound: larger than any chain can cost.
    reward: f64,
    labels: Vec<u32>,
    sizes: Vec<usize>,
    prices: Vec<f64>,
    /// Cheapest moves from cluster a to b at a * k + b; entries of samples that have left a are dropped when seen.
    moves: Vec<BinaryHeap<Reverse<Move>>>,
    distance: Vec<f64>,
    settled: Vec<bool>,
    /// Cluster before this one on the chain, and the sample that moves; `usize::MAX` for the chain's first cluster.
    previous: Vec<(usize, u32)>,
}

const START: usize = usize::MAX;
const UNPLACED: u32 = u32::MAX;

impl<'a> Solver<'a> {
    fn new(costs: &'a [f32], k: usize, lower: usize, upper: usize) -> Self {
        let (low, high) = costs.iter().fold((0.0f64, 0.0f64), |(l, h), c| {
            (l.min(f64::from(*c)), h.max(f64::from(*c)))
        });
        let reward = if lower > 0 {
            (high - low + 1.0) * (k as f64 + 1.0)
        } else {
            0.0
        };
        Self {
            costs,
            k,
            lower,
            upper,
            reward,
            labels: vec![UNPLACED; costs.len() / k],
            sizes: vec![0; k],
            prices: vec![-reward; k],
            moves: (0..k * k).map(|_| BinaryHeap::new()).collect(),
            distance: vec![0.0; k],
            settled: vec![false; k],
            previous: vec![(START, 0); k],
        }
    }

    fn cost(&self, sample: usize, cluster: usize) -> f64 {
        f64::from(self.costs[sample * self.k + cluster])
    }

    /// What a cluster charges for one sample more; `None` when it is full.
    fn entry(&self, cluster: usize) -> Option<f64> {
        match self.sizes[cluster] {
            size if size < self.lower => Some(-self.reward),
            size if size < self.upper => Some(0.0),
            _ => None,
        }
    }

    fn place(&mut self, sample: usize) {
        let base = (0..self.k)
            .map(|c| self.cost(sample, c) + self.prices[c])
            .fold(f64::INFINITY, f64::min);
        for c in 0..self.k {
            self.distance[c] = self.cost(sample, c) + self.prices[c] - base;
            self.settled[c] = false;
            self.previous[c] = (START, sample as u32);
        }
        let mut best: Option<(f64, usize)> = None;
        loop {
            let next = (0..self.k)
                .filter(|c| !self.settled[*c])
                .min_by(|a, b| self.distance[*a].total_cmp(&self.distance[*b]));
            let Some(a) = next else { break };
            let here = self.distance[a];
            if best.is_some_and(|(total, _)| total <= here) {
                break;
            }
            self.settled[a] = true;
            if let Some(entry) = self.entry(a) {
                let total = here + (entry - self.prices[a]).max(0.0);
                if best.is_none_or(|(b, _)| total < b) {
                    best = Some((total, a));
                }
            }
            if self.sizes[a] > 0 {
                self.relax(a, here);
            }
        }
        // Capacities were checked: some cluster always has room.
        let Some((total, end)) = best else { return };
        for c in 0..self.k {
            if self.settled[c] && self.distance[c] < total {
                self.prices[c] += total - self.distance[c];
            }
        }
        self.push_along(end);
    }

    /// Tries the edges out of a settled cluster.
    fn relax(&mut self, a: usize, here: f64) {
        for b in 0..self.k {
            if self.settled[b] {
                continue;
            }
            let heap = &mut self.moves[a * self.k + b];
            while heap
                .peek()
                .is_some_and(|Reverse(m)| self.labels[m.sample as usize] as usize != a)
            {
                heap.pop();
            }
            if let Some(Reverse(cheapest)) = heap.peek() {
                let reduced = (cheapest.cost + self.prices[b] - self.prices[a]).max(0.0);
                if here + reduced < self.distance[b] {
                    self.distance[b] = here + reduced;
                    self.previous[b] = (a, cheapest.sample);
                }
            }
        }
    }

    /// Moves the samples of the chain that ends in `end`, last one first.
    fn push_along(&mut self, end: usize) {
        self.sizes[end] += 1;
        let mut to = end;
        loop {
            let (from, sample) = self.previous[to];
            self.labels[sample as usize] = to as u32;
            let here = self.cost(sample as usize, to);
            for b in (0..self.k).filter(|b| *b != to) {
                let cost = self.cost(sample as usize, b) - here;
                self.moves[to * self.k + b].push(Reverse(Move { cost, sample }));
            }
            if from == START {
                return;
            }
            to = from;
        }
    }
}

//! Which worker serves which clusters: a pure function of (traffic shares, sorted live workers, known assignment), so that every router
//! and the operator come to the same answer without talking.
//!
//! - Every worker carries at least one cluster; every cluster has at least one worker. With fewer workers than clusters a worker carries
//!   several clusters and its similarity is the best of theirs; with more, busy clusters get several workers.
//! - What the known assignment says of live workers is kept, unless a cluster would be left without a worker. Without one, workers are
//!   placed by rendezvous hashing under quotas, so that a worker that comes or goes moves few others.

use std::collections::BTreeMap;

use crate::stable_hash::stable_hash;

/// Clusters of each worker, aligned with the sorted worker names it was made for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    clusters: Vec<Vec<u32>>,
}

impl Assignment {
    /// Workers assigned.
    pub fn workers(&self) -> usize {
        self.clusters.len()
    }

    /// Clusters of one worker, ascending; empty for a worker that does not exist.
    pub fn clusters_of(&self, worker: usize) -> &[u32] {
        self.clusters.get(worker).map_or(&[], Vec::as_slice)
    }

    /// Writes each worker's similarity, the highest score among its clusters, to `out`. A worker without cluster gets -1.
    pub fn similarity(&self, scores: &[f32], out: &mut [f32]) {
        for (clusters, similarity) in self.clusters.iter().zip(out) {
            *similarity = clusters
                .iter()
                .filter_map(|c| scores.get(*c as usize))
                .fold(-1.0, |best: f32, score| best.max(*score));
        }
    }

    /// The assignment by worker name, as the routing document carries it. `workers` are the names it was made for.
    pub fn by_name(&self, workers: &[impl AsRef<str>]) -> BTreeMap<String, Vec<u32>> {
        workers
            .iter()
            .map(|w| w.as_ref().to_owned())
            .zip(self.clusters.iter().cloned())
            .collect()
    }
}

/// Places clusters on workers. `shares` has one traffic share per cluster (any scale), `workers` the live workers' names, sorted and
/// distinct, `known` what is already assigned (names that are not live and clusters that do not exist are ignored).
pub fn assign(shares: &[f64], workers: &[impl AsRef<str>], known: &BTreeMap<String, Vec<u32>>) -> Assignment {
    let names: Vec<&str> = workers.iter().map(AsRef::as_ref).collect();
    let mut state = Placement::new(shares, names.len());
    for (worker, name) in names.iter().enumerate() {
        for cluster in known.get(*name).into_iter().flatten() {
            state.put(worker, *cluster as usize);
        }
    }
    if state.clusters.iter().all(Vec::is_empty) {
        state.place_afresh(&names);
    }
    state.place_newcomers(&names);
    state.cover_orphans(&names);
    let mut clusters: Vec<Vec<u32>> = state
        .clusters
        .into_iter()
        .map(|c| c.into_iter().map(|c| c as u32).collect())
        .collect();
    for list in &mut clusters {
        list.sort_unstable();
    }
    Assignment { clusters }
}

struct Placement {
    /// Share of each cluster, all positive, adding up to 1.
    shares: Vec<f64>,
    /// Clusters of each worker.
    clusters: Vec<Vec<usize>>,
    /// Workers of each cluster.
    owners: Vec<usize>,
}

impl Placement {
    fn new(shares: &[f64], workers: usize) -> Self {
        // A cluster without traffic still needs a place: it counts as a hundredth of an even share.
        let sane = |s: f64| if s.is_finite() && s > 0.0 { s } else { 0.0 };
        let sum: f64 = shares.iter().map(|s| sane(*s)).sum();
        let even = 1.0 / shares.len().max(1) as f64;
        let scaled = shares.iter().map(|s| {
            if sum > 0.0 {
                (sane(*s) / sum).max(even * 0.01)
            } else {
                even
            }
        });
        Self {
            shares: scaled.collect(),
            clusters: vec![Vec::new(); workers],
            owners: vec![0; shares.len()],
        }
    }

    fn put(&mut self, worker: usize, cluster: usize) {
        if let (Some(owners), Some(clusters)) = (self.owners.get_mut(cluster), self.clusters.get_mut(worker))
            && !clusters.contains(&cluster)
        {
            clusters.push(cluster);
            *owners += 1;
        }
    }

    fn remove(&mut self, worker: usize, cluster: usize) {
        self.clusters[worker].retain(|c| *c != cluster);
        self.owners[cluster] -= 1;
    }

    /// Traffic that one owner of the cluster carries for it, were there `more` further owners.
    fn pressure(&self, cluster: usize, more: usize) -> f64 {
        self.shares[cluster] / (self.owners[cluster] + more).max(1) as f64
    }

    fn load(&self, worker: usize) -> f64 {
        self.clusters[worker].iter().map(|c| self.pressure(*c, 0)).sum()
    }

    /// Clusters by falling share; equal shares by index.
    fn by_share(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.shares.len()).collect();
        order.sort_by(|a, b| self.shares[*b].total_cmp(&self.shares[*a]).then(a.cmp(b)));
        order
    }

    fn place_afresh(&mut self, names: &[&str]) {
        if names.is_empty() || self.shares.is_empty() {
            return;
        }
        if names.len() >= self.shares.len() {
            self.place_one_each(names);
        } else {
            self.pack(names);
        }
    }

    /// At least as many workers as clusters: quotas by share, then the worker and cluster whose names agree best come first.
    fn place_one_each(&mut self, names: &[&str]) {
        let mut quota = self.quotas(names.len());
        for (worker, cluster) in by_affinity(names, quota.len()) {
            if quota[cluster] > 0 && self.clusters[worker].is_empty() {
                quota[cluster] -= 1;
                self.put(worker, cluster);
            }
        }
    }

    /// Workers per cluster: one each, every further one to the cluster with most traffic per worker. One worker more changes one quota.
    fn quotas(&self, workers: usize) -> Vec<usize> {
        let mut quota = vec![1usize; self.shares.len()];
        for _ in self.shares.len()..workers {
            let busiest = (0..quota.len())
                .max_by(|a, b| {
                    let per = |c: usize| self.shares[c] / quota[c] as f64;
                    per(*a).total_cmp(&per(*b)).then(b.cmp(a))
                })
                .unwrap_or(0);
            quota[busiest] += 1;
        }
        quota
    }

    /// Fewer workers than clusters: the same order, each worker taking clusters while it has room; what is left goes to the lightest.
    fn pack(&mut self, names: &[&str]) {
        let most = self.shares.len().div_ceil(names.len());
        let fair = 1.25 / names.len() as f64;
        let (mut left, mut empty) = (self.shares.len(), names.len());
        for (worker, cluster) in by_affinity(names, self.shares.len()) {
            if self.owners[cluster] > 0 {
                continue;
            }
            let vacant = self.clusters[worker].is_empty();
            let light = self.clusters[worker].len() < most && self.load(worker) + self.shares[cluster] <= fair;
            if vacant || (light && left > empty) {
                self.put(worker, cluster);
                left -= 1;
                empty -= usize::from(vacant);
            }
        }
        for cluster in self.by_share() {
            if self.owners[cluster] == 0 {
                let lightest = (0..names.len()).min_by(|a, b| self.load(*a).total_cmp(&self.load(*b)));
                self.put(lightest.unwrap_or(0), cluster);
            }
        }
    }

    /// Workers that the known assignment does not name: first to clusters nobody has, then to share the heaviest load.
    fn place_newcomers(&mut self, names: &[&str]) {
        let mut newcomers: Vec<usize> = (0..names.len()).filter(|w| self.clusters[*w].is_empty()).collect();
        newcomers.sort_by_key(|w| (stable_hash(&[names[*w].as_bytes()]), *w));
        for worker in newcomers {
            if let Some(orphan) = self.by_share().into_iter().find(|c| self.owners[*c] == 0) {
                self.put(worker, orphan);
                continue;
            }
            let busiest = (0..self.shares.len())
                .max_by(|a, b| self.pressure(*a, 0).total_cmp(&self.pressure(*b, 0)).then(b.cmp(a)));
            let crowded = self.heaviest_crowded(worker);
            match (crowded, busiest) {
                // A worker with several clusters hands over some, unless a single cluster weighs more than all it carries.
                (Some(giver), Some(busy)) if self.load(giver) >= self.pressure(busy, 0) => self.relieve(worker),
                (_, Some(busy)) => self.put(worker, busy),
                (_, None) => {}
            }
        }
    }

    /// The most loaded worker with several clusters; the first of equals.
    fn heaviest_crowded(&self, but: usize) -> Option<usize> {
        (0..self.clusters.len())
            .filter(|w| *w != but && self.clusters[*w].len() > 1)
            .max_by(|a, b| self.load(*a).total_cmp(&self.load(*b)).then(b.cmp(a)))
    }

    /// Takes clusters from the most loaded of crowded workers, one after the other, as long as that makes the heavier of the two lighter: the
    /// cluster that does most for it, and of equals the one with least traffic, since all that moves starts cold.
    fn relieve(&mut self, worker: usize) {
        while let Some(giver) = self.heaviest_crowded(worker) {
            let (before, own) = (self.load(giver), self.load(worker));
            let heavier = |cluster: usize| {
                let share = self.pressure(cluster, 0);
                // To nine decimals, so that sums in another order do not choose.
                (((before - share).max(own + share) * 1e9).round(), share)
            };
            let best = self.clusters[giver]
                .iter()
                .copied()
                .filter(|c| !self.clusters[worker].contains(c))
                .map(|c| (heavier(c), c))
                .min_by(|(a, x), (b, y)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(x.cmp(y)));
            match best {
                Some(((after, _), cluster)) if after < (before * 1e9).round() => {
                    self.remove(giver, cluster);
                    self.put(worker, cluster);
                }
                _ => return,
            }
        }
    }

    /// Clusters that lost their last worker. A worker whose cluster has others switches over; else the lightest takes one more.
    fn cover_orphans(&mut self, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        for cluster in self.by_share() {
            if self.owners[cluster] > 0 {
                continue;
            }
            let spare = (0..names.len())
                .filter_map(|w| match self.clusters[w].as_slice() {
                    [only] if self.owners[*only] > 1 => Some((w, *only)),
                    _ => None,
                })
                // Whose leaving costs the others least: the lowest traffic per remaining worker.
                .min_by(|a, b| {
                    let after = |c: usize| self.shares[c] / (self.owners[c] - 1) as f64;
                    after(a.1)
                        .total_cmp(&after(b.1))
                        .then(affinity(names[b.0], cluster).cmp(&affinity(names[a.0], cluster)))
                });
            if let Some((worker, old)) = spare {
                self.remove(worker, old);
                self.put(worker, cluster);
                continue;
            }
            let lightest = (0..names.len()).min_by(|a, b| {
                let tie = affinity(names[*b], cluster).cmp(&affinity(names[*a], cluster));
                self.load(*a).total_cmp(&self.load(*b)).then(tie)
            });
            if let Some(worker) = lightest {
                self.put(worker, cluster);
            }
        }
    }
}

/// All pairs of worker and cluster, those that agree best first.
fn by_affinity(names: &[&str], clusters: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut pairs: Vec<(u64, usize, usize)> = (0..names.len())
        .flat_map(|w| (0..clusters).map(move |c| (w, c)))
        .map(|(w, c)| (affinity(names[w], c), w, c))
        .collect();
    pairs.sort_unstable_by(|a, b| b.cmp(a));
    pairs.into_iter().map(|(_, w, c)| (w, c))
}

/// How well a worker's name and a cluster agree: fixed for ever, independent of all other workers.
fn affinity(name: &str, cluster: usize) -> u64 {
    stable_hash(&[name.as_bytes(), &(cluster as u64).to_le_bytes()])
}

#[cfg(test)]
#[path = "assign_tests.rs"]
mod tests;

//! Whole K-means: balanced beside k-means-constrained, plain beside scikit-learn, on the same unit vectors.

use coterie_locality::{
    Geometry,
    kmeans::{Balance, KMeansOptions, kmeans},
};
use serde_json::json;

use super::{assignment::peer_labels, signatures::unit_signatures};
use crate::{
    exchange::write_f32,
    peer::{path, seconds},
    report::Table,
    suite::{Suite, say},
    timing::{Times, human, on_threads},
};

/// Measures all sizes.
pub(super) fn run(suite: &mut Suite) -> anyhow::Result<()> {
    let mut table = Table::new(
        "kmeans",
        [
            "what",
            "N, D, K, starts",
            "ours 1 thread",
            "ours 2 threads",
            "peer 1 thread",
            "peer 2 threads",
            "peer / ours",
            "our objective",
            "peer's",
            "largest cluster, ours / peer's",
        ],
    );
    // Samples, clusters, starts, seeds.
    let sizes: &[(usize, usize, usize, usize)] = if suite.quick {
        &[(500, 8, 2, 1)]
    } else {
        &[(1000, 16, 4, 3), (1000, 64, 2, 2), (10_000, 16, 1, 1)]
    };
    for (samples, clusters, starts, seeds) in sizes.iter().copied() {
        let (rows, dim) = unit_signatures(Geometry::new(48, 128, 8)?, samples, 31)?;
        let data = Data {
            rows,
            dim,
            clusters,
            starts,
            seeds,
        };
        for peer in [Peer::Constrained, Peer::Plain] {
            say(&format!("kmeans {} {samples} x {clusters}", peer.name()));
            one(suite, &data, peer, &mut table)?;
        }
    }
    suite.report.table(table);
    Ok(())
}

struct Data {
    rows: Vec<f32>,
    dim: usize,
    clusters: usize,
    starts: usize,
    seeds: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Peer {
    Constrained,
    Plain,
}

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Self::Constrained => "balanced, k-means-constrained",
            Self::Plain => "plain, scikit-learn",
        }
    }

    fn function(self) -> &'static str {
        match self {
            Self::Constrained => "kmeans_constrained",
            Self::Plain => "kmeans_plain",
        }
    }

    fn balance(self) -> Balance {
        match self {
            Self::Constrained => Balance::Upper,
            Self::Plain => Balance::None,
        }
    }
}

fn one(suite: &mut Suite, data: &Data, peer: Peer, table: &mut Table) -> anyhow::Result<()> {
    let samples = data.rows.len() / data.dim;
    let file = suite.file(&format!("unit-{samples}-{}.npy", data.dim));
    if !file.exists() {
        write_f32(&file, &[samples, data.dim], &data.rows)?;
    }
    let mut peers = suite.peers()?;
    let mut ours = [Times::default(), Times::default()];
    let mut theirs = [Times::default(), Times::default()];
    let (mut own, mut other) = (Outcome::default(), Outcome::default());
    for seed in 1..=data.seeds as u64 {
        for ((threads, peer_process), (mine, yours)) in peers.iter_mut().zip(ours.iter_mut().zip(&mut theirs)) {
            let mut labels = Vec::new();
            let options = KMeansOptions {
                clusters: data.clusters,
                seed,
                restarts: data.starts,
                balance: peer.balance(),
                ..KMeansOptions::default()
            };
            mine.add(on_threads(*threads, || {
                Times::of(1, |_| {
                    labels = kmeans(&data.rows, data.dim, &[], None, &options)
                        .map(|c| c.labels)
                        .unwrap_or_default();
                })
            })?);
            own.add(data, &labels);
            let arguments = json!({
                "rows": path(&file), "clusters": data.clusters, "most": samples.div_ceil(data.clusters),
                "starts": data.starts, "seed": seed, "iterations": options.max_iterations,
            });
            let answer = peer_process.call(peer.function(), &arguments)?;
            yours.add(seconds(&answer)?);
            other.add(data, &peer_labels(&answer)?);
        }
    }
    let [own_one, own_two] = ours.map(|times| times.median());
    let [one, two] = theirs.map(|times| times.median());
    table.row([
        peer.name().to_owned(),
        format!("{samples}, {}, {}, {}", data.dim, data.clusters, data.starts),
        human(own_one),
        human(own_two),
        human(one),
        human(two),
        format!("{:.1}", one.min(two) / own_one.min(own_two)),
        format!("{:.5}", own.mean()),
        format!("{:.5}", other.mean()),
        format!("{} / {}", own.largest, other.largest),
    ]);
    if peer == Peer::Constrained {
        suite.report.bar(
            format!("objective of balanced K-means, N = {samples}, K = {}", data.clusters),
            "≥ k-means-constrained's",
            format!("{:+.5}", own.mean() - other.mean()),
            own.mean() >= other.mean() - 1e-6,
        );
    }
    Ok(())
}

/// Objectives of several runs.
#[derive(Default)]
struct Outcome {
    objectives: Vec<f64>,
    largest: usize,
}

impl Outcome {
    fn add(&mut self, data: &Data, labels: &[u32]) {
        self.objectives.push(spherical_objective(data, labels));
        let size = |cluster| labels.iter().filter(|label| **label as usize == cluster).count();
        let largest = (0..data.clusters).map(size).max().unwrap_or(0);
        self.largest = self.largest.max(largest);
    }

    fn mean(&self) -> f64 {
        self.objectives.iter().sum::<f64>() / self.objectives.len() as f64
    }
}

/// Mean similarity of samples to the normalised mean of their cluster: what spherical K-means makes large. The sum of a cluster's
/// similarities to it is the length of the cluster's sum.
fn spherical_objective(data: &Data, labels: &[u32]) -> f64 {
    let mut sums = vec![0.0f64; data.clusters * data.dim];
    for (row, label) in data.rows.chunks_exact(data.dim).zip(labels) {
        let start = *label as usize * data.dim;
        let sum = sums.iter_mut().skip(start).take(data.dim);
        sum.zip(row).for_each(|(s, v)| *s += f64::from(*v));
    }
    let length = |sum: &[f64]| sum.iter().map(|v| v * v).sum::<f64>().sqrt();
    sums.chunks_exact(data.dim).map(length).sum::<f64>() / labels.len() as f64
}

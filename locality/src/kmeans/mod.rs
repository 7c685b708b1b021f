//! Balanced spherical K-means: unit vectors into clusters of bounded size, assigned exactly in every iteration.

mod align;
mod seeding;
#[cfg(test)]
mod tests;
mod transport;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

pub use align::align;
pub(crate) use align::renumber;
pub use transport::{TransportError, assign_with_capacities};

use crate::transform::normalise;
use crate::vectors::similarities;

/// How to cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KMeansOptions {
    /// Clusters K.
    pub clusters: usize,
    /// Seed of the first centroids.
    pub seed: u64,
    /// First centroids tried; the run with the best objective after a few iterations goes on. At least 1; a warm start makes it 1.
    pub restarts: usize,
    /// Most iterations of a run.
    pub max_iterations: usize,
    /// Bounds on cluster sizes.
    pub balance: Balance,
}

/// Iterations after which runs from different first centroids are compared.
const SOUNDING_ITERATIONS: usize = 3;

/// Bounds on cluster sizes, in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// At most ceil(N / K), as in ELDR.
    Upper,
    /// Every size floor(N / K) or ceil(N / K).
    Even,
    /// No bound: plain spherical K-means.
    None,
}

impl Default for KMeansOptions {
    fn default() -> Self {
        Self {
            clusters: 8,
            seed: 1,
            restarts: 4,
            max_iterations: 50,
            balance: Balance::Upper,
        }
    }
}

/// The result of a clustering.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// Cluster of each sample.
    pub labels: Vec<u32>,
    /// Unit vectors, K x D row-major.
    pub centroids: Vec<f32>,
    /// Weighted mean similarity of samples to their centroid: higher is better.
    pub objective: f64,
    /// Iterations of the kept run, at most `max_iterations` after its first few.
    pub iterations: usize,
}

/// Input that cannot be clustered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KMeansError {
    /// Sizes that do not fit each other.
    #[error("k-means: {0}")]
    Shape(&'static str),
    /// Fewer samples than clusters.
    #[error("k-means: {samples} samples for {clusters} clusters; at least one each is needed")]
    TooFew {
        /// Samples given.
        samples: usize,
        /// Clusters asked for.
        clusters: usize,
    },
    /// A number that is not finite.
    #[error("k-means: a sample or weight is not finite")]
    NotFinite,
}

/// Clusters the unit rows of `rows` [N, dim]. `weights` (N values, or empty for 1 each) say how many requests a sample stands for: they
/// weigh centroids and objective, while sizes count samples. `warm` are centroids to start from.
pub fn kmeans(
    rows: &[f32],
    dim: usize,
    weights: &[f32],
    warm: Option<&[f32]>,
    options: &KMeansOptions,
) -> Result<Clustering, KMeansError> {
    let samples = check(rows, dim, weights, warm, options)?;
    let weight = |i: usize| weights.get(i).copied().unwrap_or(1.0);
    if let Some(centroids) = warm {
        return lloyd(rows, dim, samples, &weight, centroids.to_vec(), options);
    }
    // Runs are told apart after a few iterations; only the best goes on until nothing moves.
    let sounding = KMeansOptions {
        max_iterations: SOUNDING_ITERATIONS.min(options.max_iterations),
        ..*options
    };
    let mut best: Option<Clustering> = None;
    for run in 0..options.restarts.max(1) {
        let first = first_centroids(rows, dim, &weight, run, options);
        let found = lloyd(rows, dim, samples, &weight, first, &sounding)?;
        if best.as_ref().is_none_or(|b| found.objective > b.objective) {
            best = Some(found);
        }
    }
    let best = best.ok_or(KMeansError::Shape("no run"))?;
    if best.iterations < sounding.max_iterations {
        return Ok(best);
    }
    let mut finished = lloyd(rows, dim, samples, &weight, best.centroids, options)?;
    finished.iterations += best.iterations;
    Ok(finished)
}

/// Each run draws from its own stretch of the seed's stream.
fn first_centroids(
    rows: &[f32],
    dim: usize,
    weight: &impl Fn(usize) -> f32,
    run: usize,
    options: &KMeansOptions,
) -> Vec<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    for _ in 0..run {
        rng.jump();
    }
    seeding::plus_plus(rows, dim, weight, options.clusters, &mut rng)
}

fn check(
    rows: &[f32],
    dim: usize,
    weights: &[f32],
    warm: Option<&[f32]>,
    options: &KMeansOptions,
) -> Result<usize, KMeansError> {
    if dim == 0 || !rows.len().is_multiple_of(dim) || options.clusters == 0 {
        return Err(KMeansError::Shape(
            "rows are not a whole number of vectors, or there are no clusters",
        ));
    }
    let samples = rows.len() / dim;
    if samples < options.clusters {
        return Err(KMeansError::TooFew {
            samples,
            clusters: options.clusters,
        });
    }
    if !weights.is_empty() && weights.len() != samples {
        return Err(KMeansError::Shape("weights are not one per sample"));
    }
    if warm.is_some_and(|c| c.len() != options.clusters * dim) {
        return Err(KMeansError::Shape(
            "warm start has another number or length of centroids",
        ));
    }
    let finite = rows
        .iter()
        .chain(weights)
        .chain(warm.unwrap_or(&[]))
        .all(|v| v.is_finite());
    if finite && weights.iter().all(|w| *w >= 0.0) {
        Ok(samples)
    } else {
        Err(KMeansError::NotFinite)
    }
}

fn lloyd(
    rows: &[f32],
    dim: usize,
    samples: usize,
    weight: &impl Fn(usize) -> f32,
    mut centroids: Vec<f32>,
    options: &KMeansOptions,
) -> Result<Clustering, KMeansError> {
    let mut labels: Vec<u32> = Vec::new();
    let mut iterations = 0;
    let mut scores = similarities(rows, &centroids, dim);
    while iterations < options.max_iterations.max(1) {
        iterations += 1;
        let next = label(&scores, samples, options)?;
        if next == labels {
            break;
        }
        labels = next;
        let moved = update(rows, dim, weight, &labels, &mut centroids);
        scores = similarities(rows, &centroids, dim);
        if !moved {
            break;
        }
    }
    let (mut sum, mut total) = (0.0, 0.0);
    for (i, (label, row)) in labels.iter().zip(scores.chunks_exact(options.clusters)).enumerate() {
        sum += f64::from(weight(i)) * f64::from(row[*label as usize]);
        total += f64::from(weight(i));
    }
    Ok(Clustering {
        labels,
        centroids,
        objective: if total > 0.0 { sum / total } else { 0.0 },
        iterations,
    })
}

fn label(scores: &[f32], samples: usize, options: &KMeansOptions) -> Result<Vec<u32>, KMeansError> {
    let k = options.clusters;
    let most = samples.div_ceil(k);
    let (lower, upper) = match options.balance {
        Balance::Upper => (0, most),
        Balance::Even => (samples / k, most),
        Balance::None => {
            let nearest = |row| crate::score::nearest(row).map_or(0, |n| n.cluster as u32);
            return Ok(scores.chunks_exact(k).map(nearest).collect());
        }
    };
    let costs: Vec<f32> = scores.iter().map(|s| 1.0 - s).collect();
    assign_with_capacities(&costs, k, lower, upper).map_err(|_| KMeansError::NotFinite)
}

/// New centroids: normalised weighted means of the members. An empty cluster, or one whose mean is zero, keeps its centroid. Whether any
/// centroid moved noticeably.
fn update(rows: &[f32], dim: usize, weight: &impl Fn(usize) -> f32, labels: &[u32], centroids: &mut [f32]) -> bool {
    let mut sums = vec![0.0f32; centroids.len()];
    for (i, (row, label)) in rows.chunks_exact(dim).zip(labels).enumerate() {
        let w = weight(i);
        let start = *label as usize * dim;
        for (sum, value) in sums[start..start + dim].iter_mut().zip(row) {
            *sum += w * value;
        }
    }
    let mut moved = false;
    for (sum, centroid) in sums.chunks_exact_mut(dim).zip(centroids.chunks_exact_mut(dim)) {
        if normalise(sum) > 1e-6 {
            moved |= sum
                .iter()
                .zip(centroid.iter())
                .any(|(a, b)| (a - b).abs() > 1e-8 + 1e-5 * b.abs());
            centroid.copy_from_slice(sum);
        }
    }
    moved
}

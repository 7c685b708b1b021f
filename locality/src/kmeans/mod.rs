//! Balanced spherical K-means: unit vectors into clusters of bounded size, assigned exactly in every iteration.

mod align;
mod seeding;
mod sizes;
#[cfg(test)]
mod tests;
mod transport;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

pub(crate) use align::renumber;
pub use align::{align, over_common_layers};
pub use transport::{TransportError, assign_with_capacities};

use crate::transform::normalise;
use crate::vectors::{similarities, weighted_sum};

/// How to cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KMeansOptions {
    /// Clusters K.
    pub clusters: usize,
    /// Seed of the first centroids.
    pub seed: u64,
    /// First centroids tried, each run to its end on at most 64 samples per cluster; the best run goes on with all samples. At least 1;
    /// a warm start makes it 1.
    pub restarts: usize,
    /// Most iterations of a run.
    pub max_iterations: usize,
    /// Bounds on cluster sizes.
    pub balance: Balance,
}

/// Apart from the draws of first centroids.
const SUBSET_STREAM: u64 = 0x5355_4253;
/// Samples per cluster that runs from different first centroids are compared on.
const SAMPLES_PER_START: usize = 64;

/// Bounds on cluster sizes: in samples where all weigh the same, else in the requests they stand for, as close as whole samples come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// At most ceil(N / K), as in ELDR.
    Upper,
    /// Every size floor(N / K) or ceil(N / K).
    Even,
    /// Between two percentages of the even share N / K, rounded outwards.
    Within {
        /// Least size, 0..=100 %.
        least: u16,
        /// Most, at least 100 %.
        most: u16,
    },
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
    /// Iterations of the kept run, at most `max_iterations`, and as many again where it began on part of the samples.
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
/// weigh centroids, objective and sizes. `warm` are centroids to start from.
pub fn kmeans(
    rows: &[f32],
    dim: usize,
    weights: &[f32],
    warm: Option<&[f32]>,
    options: &KMeansOptions,
) -> Result<Clustering, KMeansError> {
    let samples = check(rows, dim, weights, warm, options)?;
    let all = Weighted { rows, dim, weights };
    if let Some(centroids) = warm {
        return lloyd(all, centroids.to_vec(), options);
    }
    let most = options.clusters.saturating_mul(SAMPLES_PER_START);
    let (some_rows, some_weights);
    let some = if samples > most {
        (some_rows, some_weights) = all.draw(most, options.seed);
        Weighted {
            rows: &some_rows,
            dim,
            weights: &some_weights,
        }
    } else {
        all
    };
    let mut best: Option<Clustering> = None;
    for run in 0..options.restarts.max(1) {
        let found = lloyd(some, first_centroids(some, run, options), options)?;
        if best.as_ref().is_none_or(|b| found.objective > b.objective) {
            best = Some(found);
        }
    }
    let best = best.ok_or(KMeansError::Shape("no run"))?;
    if samples <= most {
        return Ok(best);
    }
    let mut finished = lloyd(all, best.centroids, options)?;
    finished.iterations += best.iterations;
    Ok(finished)
}

/// Clusters the unit rows of `rows` [N, dim] anew from `centroids` [K, dim], whose numbers the new ones keep: a re-fit on live traffic.
pub fn refit(rows: &[f32], dim: usize, centroids: &[f32]) -> Result<Clustering, KMeansError> {
    let options = KMeansOptions {
        clusters: centroids.len() / dim.max(1),
        ..KMeansOptions::default()
    };
    let mut found = kmeans(rows, dim, &[], Some(centroids), &options)?;
    let numbers = align(centroids, &found.centroids, dim).ok_or(KMeansError::NotFinite)?;
    found.centroids = renumber(&found.centroids, dim, &numbers);
    for label in &mut found.labels {
        *label = numbers[*label as usize] as u32;
    }
    Ok(found)
}

/// Rows with their weights; none means 1 each.
#[derive(Clone, Copy)]
struct Weighted<'a> {
    rows: &'a [f32],
    dim: usize,
    weights: &'a [f32],
}

impl<'a> Weighted<'a> {
    fn len(&self) -> usize {
        self.rows.len() / self.dim
    }

    fn row(&self, i: usize) -> &'a [f32] {
        self.rows.get(i * self.dim..(i + 1) * self.dim).unwrap_or(&[])
    }

    fn weight(&self, i: usize) -> f32 {
        self.weights.get(i).copied().unwrap_or(1.0)
    }

    /// `number` of the rows in their order, copied.
    fn draw(&self, number: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ SUBSET_STREAM);
        let mut chosen = rand::seq::index::sample(&mut rng, self.len(), number.min(self.len())).into_vec();
        chosen.sort_unstable();
        (
            chosen.iter().flat_map(|i| self.row(*i)).copied().collect(),
            chosen.iter().map(|i| self.weight(*i)).collect(),
        )
    }
}

/// Each run draws from its own stretch of the seed's stream.
fn first_centroids(samples: Weighted<'_>, run: usize, options: &KMeansOptions) -> Vec<f32> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    for _ in 0..run {
        rng.jump();
    }
    seeding::plus_plus(samples, options.clusters, &mut rng)
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
    // No early way out: so the loop is a vector one.
    let finite = |part: &[f32]| !part.iter().fold(false, |bad, v| bad | !v.is_finite());
    let finite = rows.par_chunks(1 << 16).all(finite) && finite(weights) && finite(warm.unwrap_or(&[]));
    if finite && weights.iter().all(|w| *w >= 0.0) {
        Ok(samples)
    } else {
        Err(KMeansError::NotFinite)
    }
}

fn lloyd(samples: Weighted<'_>, mut centroids: Vec<f32>, options: &KMeansOptions) -> Result<Clustering, KMeansError> {
    let k = options.clusters;
    let mut labels: Vec<u32> = Vec::new();
    let mut iterations = 0;
    let mut scores = similarities(samples.rows, &centroids, samples.dim);
    while iterations < options.max_iterations.max(1) {
        iterations += 1;
        let next = sizes::label(&scores, k, samples.weights, options.balance)?;
        if next == labels {
            break;
        }
        labels = next;
        let moved = update(samples, &labels, &mut centroids);
        scores = similarities(samples.rows, &centroids, samples.dim);
        if !moved {
            break;
        }
    }
    let (mut sum, mut total) = (0.0, 0.0);
    for (i, (label, row)) in labels.iter().zip(scores.chunks_exact(k)).enumerate() {
        let weight = f64::from(samples.weight(i));
        sum += weight * f64::from(row[*label as usize]);
        total += weight;
    }
    Ok(Clustering {
        labels,
        centroids,
        objective: if total > 0.0 { sum / total } else { 0.0 },
        iterations,
    })
}

/// New centroids: normalised weighted means of the members, summed in their order. An empty cluster, or one whose mean is zero, keeps its
/// centroid. Whether any centroid moved noticeably.
fn update(samples: Weighted<'_>, labels: &[u32], centroids: &mut [f32]) -> bool {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); centroids.len() / samples.dim];
    for (i, label) in labels.iter().enumerate() {
        members[*label as usize].push(i);
    }
    let replace = |(centroid, members): (&mut [f32], &Vec<usize>)| {
        let rows = members.iter().map(|i| (samples.row(*i), samples.weight(*i)));
        let mut sum = weighted_sum(rows, samples.dim);
        if normalise(&mut sum) <= 1e-6 {
            return false;
        }
        let pairs = sum.iter().zip(centroid.iter());
        let moved = pairs.fold(false, |moved, (a, b)| moved | ((a - b).abs() > 1e-8 + 1e-5 * b.abs()));
        centroid.copy_from_slice(&sum);
        moved
    };
    let moved: Vec<bool> = centroids
        .par_chunks_exact_mut(samples.dim)
        .zip(&members)
        .map(replace)
        .collect();
    moved.contains(&true)
}

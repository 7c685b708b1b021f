//! First centroids: seeded greedy k-means++ on unit vectors.

use rand::{Rng, RngCore};

use super::Weighted;
use crate::vectors::similarities;

/// The first sample by weight; then, of a few drawn with probability proportional to weight x squared distance to the nearest chosen one,
/// the one that leaves the least of that sum.
pub(super) fn plus_plus(from: Weighted<'_>, clusters: usize, rng: &mut dyn RngCore) -> Vec<f32> {
    let (samples, dim) = (from.len(), from.dim);
    let trials = 2 + clusters.max(1).ilog2() as usize;
    let mut distances: Vec<f64> = Vec::new();
    let mut centroids: Vec<f32> = Vec::with_capacity(clusters * dim);
    for cluster in 0..clusters {
        let mut best: Option<(f64, usize, Vec<f64>)> = None;
        for _ in 0..if cluster == 0 { 1 } else { trials } {
            let chosen = draw(samples, |i| mass(from, &distances, i), rng);
            let after = distances_with(from, &distances, chosen);
            let left: f64 = (0..samples).map(|i| mass(from, &after, i)).sum();
            if best.as_ref().is_none_or(|(least, ..)| left < *least) {
                best = Some((left, chosen, after));
            }
        }
        if let Some((_, chosen, after)) = best {
            centroids.extend_from_slice(from.row(chosen));
            distances = after;
        }
    }
    centroids
}

/// Before the first choice nothing is near: only the weight counts.
fn mass(from: Weighted<'_>, distances: &[f64], i: usize) -> f64 {
    f64::from(from.weight(i)) * distances.get(i).copied().unwrap_or(1.0)
}

/// Squared distance of each sample to the nearest chosen one, `chosen` among them.
fn distances_with(from: Weighted<'_>, distances: &[f64], chosen: usize) -> Vec<f64> {
    let to_chosen = similarities(from.rows, from.row(chosen), from.dim);
    let squared = to_chosen.iter().map(|s| f64::from(2.0 - 2.0 * s).max(0.0));
    squared
        .enumerate()
        .map(|(i, d)| distances.get(i).map_or(d, |nearest| nearest.min(d)))
        .collect()
}

fn draw(samples: usize, mass: impl Fn(usize) -> f64, rng: &mut dyn RngCore) -> usize {
    let total: f64 = (0..samples).map(&mass).sum();
    if total <= 0.0 {
        return rng.gen_range(0..samples);
    }
    let mut left = rng.gen_range(0.0..1.0) * total;
    let mut last = 0;
    for i in (0..samples).filter(|i| mass(*i) > 0.0) {
        last = i;
        left -= mass(i);
        if left <= 0.0 {
            break;
        }
    }
    last
}

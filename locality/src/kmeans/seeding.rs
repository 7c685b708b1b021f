//! First centroids: seeded k-means++ on unit vectors.

use rand::{Rng, RngCore};

use super::Weighted;
use crate::vectors::similarities;

/// The first sample by weight, each next one with probability proportional to weight x squared distance to the nearest chosen one.
pub(super) fn plus_plus(from: Weighted<'_>, clusters: usize, rng: &mut dyn RngCore) -> Vec<f32> {
    let (samples, dim) = (from.len(), from.dim);
    let mut distances = vec![1.0f64; samples];
    let mut centroids: Vec<f32> = Vec::with_capacity(clusters * dim);
    for _ in 0..clusters {
        let chosen = draw(samples, |i| f64::from(from.weight(i)) * distances[i], rng);
        let first = centroids.is_empty();
        centroids.extend_from_slice(from.row(chosen));
        for (distance, similarity) in distances.iter_mut().zip(similarities(from.rows, from.row(chosen), dim)) {
            let squared = f64::from(2.0 - 2.0 * similarity).max(0.0);
            *distance = if first { squared } else { distance.min(squared) };
        }
    }
    centroids
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

//! Samples made ready for learning: sorted by content, so that their order changes nothing, with targets, weights and groups.

use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::products::{products_f32, products_f64};
use super::ridge::Targets;
use crate::geometry::Geometry;
use crate::sample::Sample;
use crate::stable_hash::stable_hash;

/// Random signs that stand for a row of targets.
const SKETCH: usize = 96;
const SKETCH_SEED: u64 = 0x534b_4554;
/// Generated tokens at which sampling noise is about as large as what sets a request's decode apart from its prediction.
const NOISE_TOKENS: f64 = 32.0;
const LEAST_WEIGHT: f64 = 1e-3;
/// Regions of traffic that are left out at once.
const GROUPS: [usize; GROUPINGS] = [8, 3];
/// Divisions of the traffic into regions: fine, for many kinds of traffic, and coarse, for few.
pub(super) const GROUPINGS: usize = 2;
const GROUP_ROUNDS: usize = 10;

/// Samples with decode counts, in an order of their own.
pub(super) struct Ready<'a> {
    pub(super) geometry: Geometry,
    /// Indices into the caller's samples.
    pub(super) index: Vec<usize>,
    pub(super) samples: Vec<&'a Sample>,
    /// Mean 1.
    pub(super) weights: Vec<f64>,
    /// Mean decode frequencies \[cells\].
    pub(super) mean: Vec<f32>,
    /// Decode frequencies less the mean, [N, cells].
    pub(super) rows: Vec<f32>,
    /// [SKETCH, N]
    sketch: Vec<f64>,
    /// Group of each sample, for each grouping.
    pub(super) groups: [Vec<Option<usize>>; GROUPINGS],
}

impl<'a> Ready<'a> {
    pub(super) fn new(geometry: &Geometry, given: &[&'a Sample], most: usize) -> Option<Self> {
        let usable = |s: &Sample| {
            s.weight > 0.0
                && s.decode_counts
                    .as_ref()
                    .is_some_and(|c| c.tokens() > 0 && c.geometry() == geometry)
                && s.prefill_counts.as_ref().is_none_or(|c| c.geometry() == geometry)
        };
        let mut order: Vec<(u64, usize)> = given
            .par_iter()
            .enumerate()
            .filter(|(_, s)| usable(s))
            .map(|(i, s)| (content(s), i))
            .collect();
        order.sort_unstable();
        order.truncate(most);
        let index: Vec<usize> = order.iter().map(|(_, i)| *i).collect();
        let samples: Vec<&Sample> = index.iter().map(|i| given[*i]).collect();
        if samples.is_empty() {
            return None;
        }
        let mut weights: Vec<f64> = samples
            .iter()
            .map(|s| {
                let tokens = s
                    .decode_counts
                    .as_ref()
                    .map_or(0, crate::counts::ActivationCounts::tokens) as f64;
                f64::from(s.weight) * tokens / (tokens + NOISE_TOKENS)
            })
            .collect();
        let mean_weight = weights.iter().sum::<f64>() / weights.len() as f64;
        for weight in &mut weights {
            *weight = (*weight / mean_weight).max(LEAST_WEIGHT);
        }
        let cells = geometry.cells();
        let mut rows = vec![0.0f32; samples.len() * cells];
        rows.par_chunks_exact_mut(cells)
            .zip(&samples)
            .for_each(|(row, sample)| {
                if let Some(counts) = &sample.decode_counts {
                    crate::predictor::own_frequencies(counts, row);
                }
            });
        let mean = weighted_mean(&rows, &weights, cells);
        rows.par_chunks_exact_mut(cells)
            .for_each(|row| row.iter_mut().zip(&mean).for_each(|(v, m)| *v -= m));
        let sketch = sketch(&rows, cells);
        let groups = GROUPS.map(|wanted| group(&sketch, samples.len(), wanted));
        Some(Self {
            geometry: *geometry,
            index,
            samples,
            weights,
            mean,
            rows,
            sketch,
            groups,
        })
    }

    /// Targets, weights and groups of some of the samples.
    pub(super) fn targets(&self, among: &[usize]) -> (Targets, Vec<f64>, [Vec<Option<usize>>; GROUPINGS]) {
        let (n, cells) = (self.samples.len(), self.geometry.cells());
        let row = |i: &usize| self.rows[i * cells..(i + 1) * cells].iter().copied();
        let targets = Targets {
            n: among.len(),
            cells,
            rows: among.iter().flat_map(row).collect(),
            sketch: self
                .sketch
                .chunks_exact(n)
                .flat_map(|row| among.iter().map(|i| row[*i]))
                .collect(),
        };
        let groups = std::array::from_fn(|g| among.iter().map(|i| self.groups[g][*i]).collect());
        (targets, among.iter().map(|i| self.weights[*i]).collect(), groups)
    }
}

/// A number that depends on what was sampled only.
fn content(sample: &Sample) -> u64 {
    let mut parts = Vec::new();
    for counts in [&sample.decode_counts, &sample.prefill_counts].into_iter().flatten() {
        parts.extend(counts.cells().iter().flat_map(|c| c.to_le_bytes()));
        parts.extend(counts.tokens().to_le_bytes());
    }
    for (bucket, count) in &sample.ngrams {
        parts.extend(bucket.to_le_bytes());
        parts.extend(count.to_le_bytes());
    }
    stable_hash(&[&parts, &sample.weight.to_le_bytes()])
}

pub(super) fn weighted_mean(rows: &[f32], weights: &[f64], cells: usize) -> Vec<f32> {
    let total: f64 = weights.iter().sum();
    let mut sums = vec![0.0f64; cells];
    for (row, w) in rows.chunks_exact(cells).zip(weights) {
        sums.iter_mut().zip(row).for_each(|(s, v)| *s += w * f64::from(*v));
    }
    sums.iter().map(|s| (s / total.max(f64::MIN_POSITIVE)) as f32).collect()
}

fn sketch(rows: &[f32], cells: usize) -> Vec<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SKETCH_SEED);
    let (mut bits, mut left) = (0u64, 0);
    let mut sign = || {
        if left == 0 {
            (bits, left) = (rng.next_u64(), 63);
        }
        left -= 1;
        bits >>= 1;
        if bits & 1 == 0 { 1.0f32 } else { -1.0 }
    };
    let signs: Vec<f32> = (0..SKETCH * cells).map(|_| sign()).collect();
    products_f32(&signs, rows, cells)
        .iter()
        .map(|v| f64::from(*v))
        .collect()
}

/// Regions of alike decode behaviour: K-means on sketches, started from samples far from each other. A region of few or of most samples
/// is none: leaving it out would say nothing.
fn group(sketch: &[f64], n: usize, wanted: usize) -> Vec<Option<usize>> {
    let points: Vec<f64> = super::products::transposed(sketch, n);
    let q = sketch.len() / n;
    let squares: Vec<f64> = points.chunks_exact(q).map(|p| p.iter().map(|v| v * v).sum()).collect();
    let wanted = wanted.min(n / 8);
    if wanted < 2 {
        return vec![None; n];
    }
    let distance = |p: usize, centre: &[f64]| -> f64 {
        points[p * q..(p + 1) * q]
            .iter()
            .zip(centre)
            .map(|(a, b)| (a - b) * (a - b))
            .sum()
    };
    // Farthest first among the samples nearer to the mean than most: outliers make no regions.
    let mut sorted = squares.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let limit = sorted[n * 9 / 10];
    let mut centres: Vec<f64> = Vec::new();
    let mut nearest = squares.clone();
    for _ in 0..wanted {
        let mut far = 0;
        for i in 0..n {
            if squares[i] <= limit && (nearest[i] > nearest[far] || squares[far] > limit) {
                far = i;
            }
        }
        let centre = points[far * q..(far + 1) * q].to_vec();
        for (i, near) in nearest.iter_mut().enumerate() {
            *near = near.min(distance(i, &centre));
        }
        centres.extend(centre);
    }
    let mut member = vec![0usize; n];
    for _ in 0..GROUP_ROUNDS {
        let similar = products_f64(&points, &centres, q);
        let norms: Vec<f64> = centres
            .chunks_exact(q)
            .map(|c| c.iter().map(|v| v * v).sum::<f64>() / 2.0)
            .collect();
        for (m, row) in member.iter_mut().zip(similar.chunks_exact(wanted)) {
            let mut best = 0;
            for c in 1..wanted {
                if row[c] - norms[c] > row[best] - norms[best] {
                    best = c;
                }
            }
            *m = best;
        }
        for c in 0..wanted {
            let own: Vec<usize> = (0..n).filter(|i| member[*i] == c).collect();
            if own.is_empty() {
                continue;
            }
            let centre = &mut centres[c * q..(c + 1) * q];
            centre.fill(0.0);
            for i in &own {
                centre
                    .iter_mut()
                    .zip(&points[i * q..(i + 1) * q])
                    .for_each(|(s, v)| *s += v / own.len() as f64);
            }
        }
    }
    let sizes: Vec<usize> = (0..wanted)
        .map(|c| member.iter().filter(|m| **m == c).count())
        .collect();
    member
        .iter()
        .map(|m| (sizes[*m] >= 3 && sizes[*m] * 2 <= n).then_some(*m))
        .collect()
}

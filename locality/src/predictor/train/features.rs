//! Features of samples: kernels for learning, and the maps' inputs from what was learned.

use rayon::prelude::*;

use super::products::{gram_f32, products_f32, transposed};
use super::samples::{GROUPINGS, Ready, weighted_mean};
use crate::predictor::maps::{log_count, log_counts};
use crate::predictor::ngrams::NGRAM_BUCKETS;

/// Text features are brought to rows of this many buckets at a time.
const PANEL: usize = 2048;
const BUCKETS: usize = NGRAM_BUCKETS as usize;
/// Samples with a bucket at which it is half known.
const HALF_KNOWN: f32 = 5.0;

/// Unit rows of log-counts, sparse.
pub(super) struct TextFeatures {
    rows: Vec<Vec<(u32, f32)>>,
}

pub(super) fn text_features(ready: &Ready<'_>, among: &[usize]) -> TextFeatures {
    let logs = log_counts();
    let rows = among
        .par_iter()
        .map(|i| {
            let mut row: Vec<(u32, f32)> = ready.samples[*i]
                .ngrams
                .iter()
                .filter(|(bucket, _)| *bucket < NGRAM_BUCKETS)
                .map(|(bucket, count)| (*bucket, log_count(logs, u16::try_from(*count).unwrap_or(u16::MAX))))
                .collect();
            let norm = row
                .iter()
                .map(|(_, v)| v * v)
                .sum::<f32>()
                .sqrt()
                .max(f32::MIN_POSITIVE);
            for (_, value) in &mut row {
                *value /= norm;
            }
            row
        })
        .collect();
    TextFeatures { rows }
}

impl TextFeatures {
    /// Inner products [N, N] of the rows and a constant feature of 1, so that the intercept is learned too.
    pub(super) fn kernel(&self) -> Vec<f64> {
        let n = self.rows.len();
        let mut kernel = vec![1.0f64; n * n];
        let mut dense = vec![0.0f32; n * PANEL];
        for first in (0..BUCKETS).step_by(PANEL) {
            dense
                .par_chunks_exact_mut(PANEL)
                .zip(&self.rows)
                .for_each(|(out, row)| {
                    out.fill(0.0);
                    let start = row.partition_point(|(b, _)| (*b as usize) < first);
                    for (bucket, value) in row[start..].iter().take_while(|(b, _)| (*b as usize) < first + PANEL) {
                        out[*bucket as usize - first] = *value;
                    }
                });
            let part = gram_f32(&dense, PANEL);
            kernel.par_iter_mut().zip(part).for_each(|(k, p)| *k += f64::from(p));
        }
        kernel
    }

    /// Features' sum by dual weights [rank, N]: the map's input [buckets, rank].
    pub(super) fn input(&self, dual: &[f64], rank: usize) -> Vec<f32> {
        let n = self.rows.len();
        let by_sample = transposed(dual, n);
        let mut out = vec![0.0f32; BUCKETS * rank];
        for (row, dual) in self.rows.iter().zip(by_sample.chunks_exact(rank)) {
            for (bucket, value) in row {
                let slot = &mut out[*bucket as usize * rank..(*bucket as usize + 1) * rank];
                slot.iter_mut().zip(dual).for_each(|(s, d)| *s += value * *d as f32);
            }
        }
        out
    }
}

/// Centred prefill frequencies, and the factor that gives their kernel a mean diagonal of 1.
pub(super) struct PrefillFeatures {
    rows: Vec<f32>,
    pub(super) mean: Vec<f32>,
    factor: f64,
}

pub(super) fn prefill_features(ready: &Ready<'_>, among: &[usize]) -> PrefillFeatures {
    let cells = ready.geometry.cells();
    let mut rows = vec![0.0f32; among.len() * cells];
    rows.par_chunks_exact_mut(cells).zip(among).for_each(|(row, i)| {
        if let Some(counts) = &ready.samples[*i].prefill_counts {
            crate::predictor::own_frequencies(counts, row);
        }
    });
    let weights: Vec<f64> = among.iter().map(|i| ready.weights[*i]).collect();
    let mean = weighted_mean(&rows, &weights, cells);
    rows.par_chunks_exact_mut(cells)
        .for_each(|row| row.iter_mut().zip(&mean).for_each(|(v, m)| *v -= m));
    let squares: f64 = rows
        .chunks_exact(cells)
        .map(|row| row.iter().map(|v| f64::from(v * v)).sum::<f64>())
        .sum();
    let factor = among.len() as f64 / squares.max(1e-12);
    PrefillFeatures { rows, mean, factor }
}

impl PrefillFeatures {
    /// As for text.
    pub(super) fn kernel(&self) -> Vec<f64> {
        let products = gram_f32(&self.rows, self.mean.len());
        products.par_iter().map(|p| 1.0 + self.factor * f64::from(*p)).collect()
    }

    /// The map's input [cells, rank]: takes frequencies as they are.
    pub(super) fn input(&self, dual: &[f64], rank: usize) -> Vec<f32> {
        let cells = self.mean.len();
        let n = self.rows.len() / cells;
        let dual: Vec<f32> = dual.iter().map(|v| (v * self.factor) as f32).collect();
        let input = products_f32(&transposed(&self.rows, cells), &dual, n);
        debug_assert_eq!(input.len(), cells * rank);
        input
    }
}

/// How many calibrated samples have each bucket, over all and by group.
pub(super) struct Known {
    all: Vec<u32>,
    by_group: [Vec<Vec<u32>>; GROUPINGS],
}

impl Known {
    pub(super) fn new(ready: &Ready<'_>, among: &[usize]) -> Self {
        let last = |groups: &Vec<Option<usize>>| groups.iter().flatten().max().map_or(0, |g| g + 1);
        let mut known = Self {
            all: vec![0; BUCKETS],
            by_group: ready
                .groups
                .each_ref()
                .map(|groups| vec![vec![0; BUCKETS]; last(groups)]),
        };
        for i in among {
            for (bucket, _) in ready.samples[*i].ngrams.iter().filter(|(b, _)| *b < NGRAM_BUCKETS) {
                known.all[*bucket as usize] += 1;
                for (counts, groups) in known.by_group.iter_mut().zip(&ready.groups) {
                    if let Some(group) = groups[*i] {
                        counts[group][*bucket as usize] += 1;
                    }
                }
            }
        }
        known
    }

    /// How well each bucket is known, 0..=255.
    pub(super) fn all(&self) -> Vec<u8> {
        self.all.iter().map(|n| level(*n)).collect()
    }

    /// Known share of a sample's text, had it (or a whole group of a grouping) not been calibrated with.
    pub(super) fn share(&self, ngrams: &[(u32, u32)], without: Option<(usize, usize)>) -> f32 {
        let logs = log_counts();
        let group = without.and_then(|(grouping, group)| self.by_group.get(grouping)?.get(group));
        let (mut squares, mut known) = (0.0f32, 0.0f32);
        for (bucket, count) in ngrams.iter().filter(|(b, _)| *b < NGRAM_BUCKETS) {
            let at = *bucket as usize;
            let others = self.all[at] - group.map_or(1.min(self.all[at]), |g| g[at]);
            let feature = log_count(logs, u16::try_from(*count).unwrap_or(u16::MAX));
            squares += feature * feature;
            known += feature * feature * f32::from(level(others));
        }
        if squares > 0.0 { known / squares / 255.0 } else { 0.0 }
    }
}

fn level(samples: u32) -> u8 {
    (255.0 * samples as f32 / (samples as f32 + HALF_KNOWN)).round() as u8
}

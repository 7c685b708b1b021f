//! Samples made ready: checked, split, transformed.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::options::{FitError, FitOptions, LayerChoice, MIN_DECODE_SAMPLES};
use crate::counts::ActivationCounts;
use crate::layers::select_layers;
use crate::sample::Sample;
use crate::spearman::{Rho, rho_with_interval, sample_pairs};
use crate::table::Fingerprint;
use crate::transform::{Transform, TransformKind, fit_idf, normalise};
use crate::vectors::pair_distances;

/// Apart from the fit's own draws, so that changing one does not shift the others.
const SPLIT_STREAM: u64 = 0x5350_4c49;
const PAIR_STREAM: u64 = 0x5041_4952;

pub(super) struct Prepared<'a> {
    samples: Vec<&'a Sample>,
    pub(super) fingerprint: Fingerprint,
    /// Indices of fitted samples, ascending.
    pub(super) fitted: Vec<usize>,
    /// Indices of held-out samples, ascending.
    pub(super) held_out: Vec<usize>,
    pub(super) decode_samples: usize,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(given: &'a [Sample], options: &FitOptions) -> Result<Self, FitError> {
        let usable = |s: &&Sample| {
            let counts = s.prefill_counts.as_ref();
            counts.is_some_and(|c| c.cells().iter().any(|n| *n > 0)) && s.weight > 0.0
        };
        let samples: Vec<&Sample> = given.iter().filter(usable).collect();
        let held = ((samples.len() as f64 * options.held_out).round() as usize).max(1);
        let needed = ((options.clusters.max(2) as f64 / (1.0 - options.held_out)).ceil() as usize) + 1;
        let Some(first) = samples.first().filter(|_| samples.len() >= needed) else {
            return Err(FitError::TooFewSamples {
                usable: samples.len(),
                given: given.len(),
                needed,
                clusters: options.clusters,
            });
        };
        let fingerprint = first.fingerprint.clone();
        if let Some(other) = samples.iter().find(|s| !s.fingerprint.matches(&fingerprint)) {
            let name = |f: &Fingerprint| format!("{} {}", f.model, f.geometry);
            return Err(FitError::MixedModels(name(&fingerprint), name(&other.fingerprint)));
        }
        let (fitted, held_out) = split(samples.len(), held, options.seed);
        let decode_samples = samples.iter().filter(|s| decoded(s).is_some()).count();
        Ok(Self {
            samples,
            fingerprint,
            fitted,
            held_out,
            decode_samples,
        })
    }

    pub(super) fn samples(&self) -> usize {
        self.samples.len()
    }

    pub(super) fn prefill(&self, i: usize) -> Option<&'a ActivationCounts> {
        self.samples.get(i).and_then(|s| s.prefill_counts.as_ref())
    }

    pub(super) fn decode(&self, i: usize) -> Option<&'a ActivationCounts> {
        self.samples.get(i).and_then(|s| decoded(s))
    }

    /// Layer mask and weights, from fitted samples only, with the unit signatures that they give those samples, and these samples' weights.
    pub(super) fn transform(&self, options: &FitOptions) -> Result<(Transform, Vec<f32>, Vec<f32>), FitError> {
        let (kind, idf) = self.weights(options.transform);
        let weighted = self.transform_of(kind, &idf, options)?;
        let (rows, weights) = self.clustered(&weighted)?;
        // Weights that only an expert has which nobody uses leave hardly a signature.
        let enough = weights.len() >= options.clusters.max(self.fitted.len().div_ceil(2));
        if kind != TransformKind::CountIdf || enough {
            return Ok((weighted, rows, weights));
        }
        let counts = self.transform_of(TransformKind::Count, &[], options)?;
        let (rows, weights) = self.clustered(&counts)?;
        Ok((counts, rows, weights))
    }

    fn transform_of(&self, kind: TransformKind, idf: &[f32], options: &FitOptions) -> Result<Transform, FitError> {
        let geometry = self.fingerprint.geometry;
        let layers = match options.layer_selection {
            LayerChoice::Greedy => self.greedy_layers(kind, idf, options),
            LayerChoice::All => None,
        };
        let layers = layers.unwrap_or_else(|| (0..geometry.layers as u16).collect());
        let kept: Vec<f32> = if kind == TransformKind::CountIdf {
            layers
                .iter()
                .flat_map(|l| &idf[usize::from(*l) * geometry.experts..][..geometry.experts])
                .copied()
                .collect()
        } else {
            Vec::new()
        };
        Ok(Transform::new(kind, &geometry, layers, kept)?)
    }

    /// IDF for all layers. Where every request uses every expert it tells nothing and plain counts take its place.
    fn weights(&self, kind: TransformKind) -> (TransformKind, Vec<f32>) {
        if kind != TransformKind::CountIdf {
            return (kind, Vec::new());
        }
        let counts = self.fitted.iter().filter_map(|i| self.prefill(*i));
        match fit_idf(&self.fingerprint.geometry, counts).filter(|w| w.iter().any(|w| *w > 0.0)) {
            Some(idf) => (TransformKind::CountIdf, idf),
            None => (TransformKind::Count, Vec::new()),
        }
    }

    fn greedy_layers(&self, kind: TransformKind, idf: &[f32], options: &FitOptions) -> Option<Vec<u16>> {
        let geometry = self.fingerprint.geometry;
        let among = self.with_decode(&self.fitted)?;
        // Selection compares sums over layers, so rows stay as they are: counts mapped and weighted, not normalised.
        let all = Transform::new(kind, &geometry, (0..geometry.layers as u16).collect(), idf.to_vec()).ok()?;
        let mut signal = vec![0.0; among.len() * all.dim()];
        for (row, i) in signal.chunks_exact_mut(all.dim()).zip(&among) {
            let norm = all.signature(self.prefill(*i)?, row).ok()?;
            for value in row {
                *value *= norm;
            }
        }
        let pairs = sample_pairs(among.len(), options.pairs, options.seed ^ PAIR_STREAM);
        let target = pair_distances(&decode_rows(&self.decodes(&among)), geometry.cells(), &pairs);
        select_layers(&signal, geometry.layers, geometry.experts, &pairs, &target).map(|s| s.kept)
    }

    /// Rho of signature distance and decode distance over held-out samples; over all where too few are held out.
    pub(super) fn rho(&self, transform: &Transform, options: &FitOptions) -> Option<Rho> {
        let among = match self.with_decode(&self.held_out) {
            Some(held) => held,
            None => self.with_decode(&(0..self.samples.len()).collect::<Vec<_>>())?,
        };
        let (signatures, _) = self.signatures(transform, &among).ok()?;
        rho(&signatures, transform.dim(), &self.decodes(&among), options)
    }

    /// Those with decode counts, if they are enough to say anything.
    fn with_decode(&self, among: &[usize]) -> Option<Vec<usize>> {
        let found: Vec<usize> = among.iter().copied().filter(|i| self.decode(*i).is_some()).collect();
        (found.len() >= MIN_DECODE_SAMPLES).then_some(found)
    }

    fn decodes(&self, among: &[usize]) -> Vec<&'a ActivationCounts> {
        among.iter().filter_map(|i| self.decode(*i)).collect()
    }

    /// Unit signatures and weights of the fitted samples. One whose signature is zero (only experts that everyone uses) is left out: it
    /// is near no centroid, and would make one of zeros.
    fn clustered(&self, transform: &Transform) -> Result<(Vec<f32>, Vec<f32>), FitError> {
        let (mut rows, mut weights) = self.signatures(transform, &self.fitted)?;
        let (dim, mut kept) = (transform.dim(), 0);
        for i in 0..weights.len() {
            let row = i * dim..(i + 1) * dim;
            if rows[row.clone()].iter().any(|v| *v != 0.0) {
                rows.copy_within(row, kept * dim);
                weights[kept] = weights[i];
                kept += 1;
            }
        }
        rows.truncate(kept * dim);
        weights.truncate(kept);
        Ok((rows, weights))
    }

    /// Unit signatures and weights of these samples, zero signatures among them.
    pub(super) fn signatures(&self, transform: &Transform, among: &[usize]) -> Result<(Vec<f32>, Vec<f32>), FitError> {
        let mut rows = vec![0.0; among.len() * transform.dim()];
        let mut weights = Vec::with_capacity(among.len());
        for (i, row) in among.iter().zip(rows.chunks_exact_mut(transform.dim())) {
            if let Some(counts) = self.prefill(*i) {
                transform.signature(counts, row)?;
                weights.push(self.samples.get(*i).map_or(1.0, |s| s.weight));
            }
        }
        Ok((rows, weights))
    }
}

/// Decode counts that say anything.
pub(super) fn decoded(sample: &Sample) -> Option<&ActivationCounts> {
    sample.decode_counts.as_ref().filter(|c| c.tokens() > 0)
}

/// A seeded split of 0..n: the indices to fit and the `held` ones to hold out, each ascending.
pub(super) fn split(n: usize, held: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut held_out: Vec<usize> = (0..n).collect();
    held_out.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed ^ SPLIT_STREAM));
    let mut fitted = held_out.split_off(held);
    fitted.sort_unstable();
    held_out.sort_unstable();
    (fitted, held_out)
}

/// Rho of the distances between unit `signatures` [N, dim] and between the decode counts of the same N requests; absent with too few.
pub(super) fn rho(signatures: &[f32], dim: usize, decode: &[&ActivationCounts], options: &FitOptions) -> Option<Rho> {
    let n = decode.len();
    let cells = decode.first().filter(|_| n >= MIN_DECODE_SAMPLES)?.cells().len();
    let seed = options.seed ^ PAIR_STREAM;
    let pairs = sample_pairs(n, options.pairs, seed);
    let signal = pair_distances(signatures, dim, &pairs);
    let target = pair_distances(&decode_rows(decode), cells, &pairs);
    rho_with_interval(&pairs, &signal, &target, n, options.resamples, seed)
}

/// Normalised raw decode counts of all layers.
fn decode_rows(decode: &[&ActivationCounts]) -> Vec<f32> {
    let mut rows = Vec::new();
    for counts in decode {
        let start = rows.len();
        rows.extend(counts.cells().iter().map(|c| *c as f32));
        normalise(&mut rows[start..]);
    }
    rows
}

//! Samples made ready: checked, split, transformed.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::options::{FitError, FitOptions, LayerChoice, MIN_DECODE_SAMPLES};
use crate::counts::ActivationCounts;
use crate::layers::select_layers;
use crate::sample::{Sample, Source};
use crate::spearman::{Rho, rho_with_interval, sample_pairs};
use crate::table::Fingerprint;
use crate::transform::{Transform, TransformKind, fit_idf, normalise};
use crate::vectors::pair_distances;

/// Apart from the fit's own draws, so that changing one does not shift the others.
pub(super) const SPLIT_STREAM: u64 = 0x5350_4c49;
pub(super) const PAIR_STREAM: u64 = 0x5041_4952;

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
            let counted = s
                .prefill_counts
                .as_ref()
                .is_some_and(|c| c.cells().iter().any(|n| *n > 0));
            s.source == Source::Prefill && counted && s.weight > 0.0
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
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(options.seed ^ SPLIT_STREAM));
        let mut fitted = order.split_off(held);
        fitted.sort_unstable();
        order.sort_unstable();
        let with_decode = |s: &&&Sample| s.decode_counts.as_ref().is_some_and(|c| c.tokens() > 0);
        let decode_samples = samples.iter().filter(with_decode).count();
        Ok(Self {
            samples,
            fingerprint,
            fitted,
            held_out: order,
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
        self.samples
            .get(i)
            .and_then(|s| s.decode_counts.as_ref())
            .filter(|c| c.tokens() > 0)
    }

    /// Layer mask and weights, from fitted samples only.
    pub(super) fn transform(&self, options: &FitOptions) -> Result<Transform, FitError> {
        let geometry = self.fingerprint.geometry;
        let (kind, idf) = self.weights(options.transform);
        let layers = match options.layer_selection {
            LayerChoice::Greedy => self.greedy_layers(kind, &idf, options),
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
        if kind == TransformKind::CountIdf && kept.iter().all(|w| *w == 0.0) {
            return Ok(Transform::new(TransformKind::Count, &geometry, layers, Vec::new())?);
        }
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
        let target = pair_distances(&self.decode_rows(&among), geometry.cells(), &pairs);
        select_layers(&signal, geometry.layers, geometry.experts, &pairs, &target).map(|s| s.kept)
    }

    /// Rho of signature distance and decode distance over held-out samples; over all where too few are held out.
    pub(super) fn rho(&self, transform: &Transform, options: &FitOptions) -> Option<Rho> {
        let among = match self.with_decode(&self.held_out) {
            Some(held) => held,
            None => self.with_decode(&(0..self.samples.len()).collect::<Vec<_>>())?,
        };
        let (signatures, _) = self.signatures(transform, &among).ok()?;
        let pairs = sample_pairs(among.len(), options.pairs, options.seed ^ PAIR_STREAM);
        let signal = pair_distances(&signatures, transform.dim(), &pairs);
        let target = pair_distances(&self.decode_rows(&among), self.fingerprint.geometry.cells(), &pairs);
        rho_with_interval(
            &pairs,
            &signal,
            &target,
            among.len(),
            options.resamples,
            options.seed ^ PAIR_STREAM,
        )
    }

    /// Those with decode counts, if they are enough to say anything.
    fn with_decode(&self, among: &[usize]) -> Option<Vec<usize>> {
        let found: Vec<usize> = among.iter().copied().filter(|i| self.decode(*i).is_some()).collect();
        (found.len() >= MIN_DECODE_SAMPLES).then_some(found)
    }

    /// Normalised raw decode counts of all layers.
    fn decode_rows(&self, among: &[usize]) -> Vec<f32> {
        let cells = self.fingerprint.geometry.cells();
        let mut rows: Vec<f32> = among
            .iter()
            .filter_map(|i| self.decode(*i))
            .flat_map(|counts| counts.cells().iter().map(|c| *c as f32))
            .collect();
        for row in rows.chunks_exact_mut(cells) {
            normalise(row);
        }
        rows
    }

    /// Unit signatures and weights of these samples. One whose signature is zero (only experts that everyone uses) is left out.
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

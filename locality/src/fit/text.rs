//! Source Text: centroids, tau and baselines from what the text map says of samples that it has not seen.

use rayon::prelude::*;

use super::baselines::measure;
use super::options::{FitError, FitOptions};
use super::prepare::{decoded, rho, split};
use super::report::SourceReport;
use crate::kmeans::kmeans;
use crate::predictor::{Learned, NgramCounter, Predictors};
use crate::sample::Sample;
use crate::spearman::Rho;
use crate::table::{CentroidTable, TextSource};
use crate::transform::{Transform, TransformKind};

/// What the text map is, and what it said of the samples it was learned from.
pub(super) struct TextFit<'a> {
    pub(super) predictors: &'a Predictors,
    pub(super) learned: Option<&'a Learned>,
    /// Transform of source Prefill: predictions are treated the same way.
    pub(super) transform: &'a Transform,
    pub(super) options: &'a FitOptions,
    pub(super) previous: Option<&'a CentroidTable>,
}

impl TextFit<'_> {
    /// `samples` are of the table's model. `None` without a text map or with too few samples that have text.
    pub(super) fn run(&self, samples: &[&Sample]) -> Result<Option<(TextSource, SourceReport)>, FitError> {
        let options = self.options;
        let among: Vec<usize> = (0..samples.len())
            .filter(|i| !samples[*i].ngrams.is_empty() && samples[*i].weight > 0.0)
            .collect();
        let held = ((among.len() as f64 * options.held_out).round() as usize).max(1);
        if self.predictors.text().is_none() || among.len() < options.clusters.max(2) + held {
            return Ok(None);
        }
        let transform = text_transform(self.transform)?;
        let dim = transform.dim();
        let mut rows = vec![0.0f32; among.len() * dim];
        rows.par_chunks_exact_mut(dim)
            .zip(&among)
            .try_for_each(|(row, i)| self.signature(samples, *i, &transform, row))?;
        let (fitted, kept_out) = split(among.len(), held, options.seed);
        let select = |of: &[usize]| -> (Vec<f32>, Vec<f32>) {
            let row = |at: &usize| rows[at * dim..(at + 1) * dim].iter().copied();
            (
                of.iter().flat_map(row).collect(),
                of.iter().map(|at| samples[among[*at]].weight).collect(),
            )
        };
        let (signatures, weights) = select(&fitted);
        let clustering = kmeans(&signatures, dim, &weights, None, &options.kmeans())?;
        let old = self.previous.and_then(|p| p.text.as_ref());
        let centroids = super::keep_numbers(
            clustering.centroids,
            &transform,
            old.map(|o| (&o.transform, &o.centroids[..])),
        );
        let (held_out, held_weights) = select(&kept_out);
        let mut measured = measure(&held_out, &held_weights, &centroids, dim, options);
        let held_samples: Vec<&Sample> = kept_out.iter().map(|at| samples[among[*at]]).collect();
        let rho = self.rho(&held_out, dim, &held_samples);
        measured.baselines.rho = rho.map(|r| r.value);
        measured.baselines.rho_se = rho.map(|r| r.standard_error);
        let report = SourceReport {
            samples: among.len() as u64,
            rho: rho.map(|r| r.value),
            rho_interval: rho.map(|r| r.interval),
            objective: clustering.objective,
            balance: measured.baselines.skew,
        };
        let source = TextSource {
            transform,
            centroids,
            tau: measured.tau,
            baselines: measured.baselines.rounded(),
        };
        Ok(Some((source, report.rounded())))
    }

    /// Signature of what the map says of a sample that it has not seen.
    fn signature(&self, samples: &[&Sample], i: usize, transform: &Transform, row: &mut [f32]) -> Result<(), FitError> {
        let mut frequencies = vec![0.0; transform.geometry().cells()];
        if !self.learned.is_some_and(|l| l.unseen_text_into(i, &mut frequencies)) {
            let text = NgramCounter::from_ngrams(&samples[i].ngrams);
            let predicted = self.predictors.text_into(&text, &mut frequencies);
            predicted.map_err(|e| FitError::Internal(e.to_string()))?;
        }
        transform.signature_of_values(&frequencies, row)?;
        Ok(())
    }

    /// Rho over the held-out samples with decode counts; absent with too few.
    fn rho(&self, signatures: &[f32], dim: usize, samples: &[&Sample]) -> Option<Rho> {
        let (mut rows, mut decode) = (Vec::new(), Vec::new());
        for (row, sample) in signatures.chunks_exact(dim).zip(samples) {
            if let Some(counts) = decoded(sample) {
                rows.extend_from_slice(row);
                decode.push(counts);
            }
        }
        rho(&rows, dim, &decode, self.options)
    }
}

/// The same layers and weights as for counts. What is only used or not is no matter of predictions, which are hardly ever 0.
fn text_transform(of: &Transform) -> Result<Transform, FitError> {
    match of.kind() {
        TransformKind::Binary | TransformKind::GateProbability => Ok(Transform::new(
            TransformKind::Count,
            of.geometry(),
            of.kept_layers().to_vec(),
            Vec::new(),
        )?),
        _ => Ok(of.clone()),
    }
}

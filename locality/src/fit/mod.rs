//! The fit: samples to a centroid table.
//!
//! Signatures need prefill counts only. Rho, layer selection and the evaluation need decode counts too and are left out where fewer than
//! [`MIN_DECODE_SAMPLES`] samples have them. A seeded part of the samples is held out: tau, baselines, rho and evaluation come from it,
//! as routers will see requests that the fit never saw.

mod baselines;
mod options;
mod prepare;
mod report;
#[cfg(test)]
mod tests;

pub use options::{FitError, FitOptions, LayerChoice, MIN_DECODE_SAMPLES, Tau};
pub use report::{DistinctExperts, FitReport};

use crate::evaluate::{EvaluateOptions, EvaluationRequest, evaluate};
use crate::kmeans::{self, KMeansOptions, kmeans};
use crate::sample::Sample;
use crate::table::CentroidTable;
use crate::transform::Transform;
use prepare::Prepared;

/// Fits a table. `previous` is the table in use, whose cluster numbers the new one keeps as far as it can. The same samples in the same
/// order, options and previous table give the same result on every machine and thread count.
pub fn fit(
    samples: &[Sample],
    options: &FitOptions,
    previous: Option<&CentroidTable>,
) -> Result<(CentroidTable, FitReport), FitError> {
    options.check()?;
    let prepared = Prepared::new(samples, options)?;
    let transform = prepared.transform(options)?;
    let dim = transform.dim();
    let (fitted, weights) = prepared.signatures(&transform, &prepared.fitted)?;
    let clustering = kmeans(
        &fitted,
        dim,
        &weights,
        None,
        &KMeansOptions {
            clusters: options.clusters,
            seed: options.seed,
            restarts: options.restarts,
            balance: options.balance,
            ..KMeansOptions::default()
        },
    )?;
    let centroids = keep_numbers(clustering.centroids, &transform, previous);
    let (held_out, held_weights) = prepared.signatures(&transform, &prepared.held_out)?;
    let measured = baselines::measure(&held_out, &held_weights, &centroids, dim, options);
    let mut table = CentroidTable {
        version: 1,
        fingerprint: prepared.fingerprint.clone(),
        transform,
        centroids,
        tau: match options.tau {
            Tau::Fixed(tau) => tau,
            Tau::Quantile(_) => measured.tau,
        },
        baselines: measured.baselines,
        report: FitReport::default(),
    };
    let rho = prepared.rho(&table.transform, options);
    table.baselines.rho = rho.map(|r| r.value);
    table.baselines.rho_se = rho.map(|r| r.standard_error);
    let simulated = simulate(&prepared, &table, options);
    table.report = FitReport {
        samples: prepared.samples() as u64,
        decode_samples: prepared.decode_samples as u64,
        layers: table.transform.kept_layers().to_vec(),
        clusters: options.clusters as u64,
        rho: rho.map(|r| r.value),
        rho_interval: rho.map(|r| r.interval),
        objective: clustering.objective,
        balance: table.baselines.skew,
        distinct_experts: simulated,
        predicted_gain: simulated.map(|s| s.gain()),
        seed: options.seed,
    }
    .rounded();
    table.baselines = table.baselines.rounded();
    table.validate().map_err(|e| FitError::Internal(e.to_string()))?;
    let report = table.report.clone();
    Ok((table, report))
}

/// Numbers clusters like the previous table's, where both live in the same signature space.
fn keep_numbers(centroids: Vec<f32>, transform: &Transform, previous: Option<&CentroidTable>) -> Vec<f32> {
    let same_space = |old: &&CentroidTable| {
        old.transform.geometry() == transform.geometry() && old.transform.kept_layers() == transform.kept_layers()
    };
    let Some(old) = previous.filter(same_space) else {
        return centroids;
    };
    match kmeans::align(&old.centroids, &centroids, transform.dim()) {
        Some(numbers) => kmeans::renumber(&centroids, transform.dim(), &numbers),
        None => centroids,
    }
}

/// Simulated batches of held-out requests, or of all where too few are held out to fill small batches.
fn simulate(prepared: &Prepared<'_>, table: &CentroidTable, options: &FitOptions) -> Option<DistinctExperts> {
    let requests = |among: &[usize]| -> Vec<EvaluationRequest<'_>> {
        among
            .iter()
            .filter_map(|i| {
                let (prefill, decode) = (prepared.prefill(*i)?, prepared.decode(*i)?);
                Some(EvaluationRequest {
                    prefill,
                    decode,
                    domain: None,
                })
            })
            .collect()
    };
    let mut chosen = requests(&prepared.held_out);
    if chosen.len() < options.clusters * 8 {
        chosen.extend(requests(&prepared.fitted));
    }
    evaluate(
        table,
        &chosen,
        &EvaluateOptions {
            batch: options.batch,
            seed: options.seed,
            ..EvaluateOptions::default()
        },
    )
}

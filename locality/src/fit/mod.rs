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
mod text;

pub use options::{FitError, FitOptions, LayerChoice, MIN_DECODE_SAMPLES, Tau};
pub use report::{DistinctExperts, FitReport, SourceReport};

use crate::evaluate::{EvaluateOptions, EvaluationRequest, evaluate};
use crate::kmeans::{self, kmeans};
use crate::predictor::{PredictorReport, Predictors, learn};
use crate::sample::Sample;
use crate::table::{CentroidTable, TextSource};
use crate::transform::Transform;
use prepare::Prepared;
use text::TextFit;

/// Fits a table. `previous` is the table in use, whose cluster numbers the new one keeps as far as it can. The same samples in the same
/// order, options and previous table give the same result on every machine and thread count.
pub fn fit(
    samples: &[Sample],
    options: &FitOptions,
    previous: Option<&CentroidTable>,
) -> Result<(CentroidTable, FitReport), FitError> {
    options.check()?;
    let prepared = Prepared::new(samples, options)?;
    let (transform, fitted, weights) = prepared.transform(options)?;
    let dim = transform.dim();
    let clustering = kmeans(&fitted, dim, &weights, None, &options.kmeans())?;
    let old = previous.map(|p| (&p.transform, &p.centroids[..]));
    let centroids = keep_numbers(clustering.centroids, &transform, old);
    let (held_out, held_weights) = prepared.signatures(&transform, &prepared.held_out)?;
    let measured = baselines::measure(&held_out, &held_weights, &centroids, dim, options);
    let mut table = CentroidTable {
        version: 1,
        fingerprint: prepared.fingerprint.clone(),
        transform,
        centroids,
        tau: measured.tau,
        baselines: measured.baselines,
        report: FitReport::default(),
        predictors: None,
        text: None,
    };
    let of_model: Vec<&Sample> = samples
        .iter()
        .filter(|s| s.fingerprint.matches(&table.fingerprint))
        .collect();
    let same_model = |p: &&CentroidTable| p.fingerprint.matches(&table.fingerprint);
    let predicted = predict(&of_model, &table.transform, options, previous.filter(same_model))?;
    if predicted.predictors.is_some() {
        table.version = 2;
    }
    table.predictors = predicted.predictors;
    let (text, text_report) = predicted.text.unzip();
    table.text = text;
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
        predictors: predicted.report,
        predictors_kept: predicted.kept,
        text: text_report,
    }
    .rounded();
    table.baselines = table.baselines.rounded();
    table.validate().map_err(|e| FitError::Internal(e.to_string()))?;
    let report = table.report.clone();
    Ok((table, report))
}

/// Numbers clusters like the previous table's, by their cosine over the layers that both keep. Without such layers they stay as they are.
fn keep_numbers(centroids: Vec<f32>, transform: &Transform, previous: Option<(&Transform, &[f32])>) -> Vec<f32> {
    let Some((before, old)) = previous.filter(|(t, _)| t.geometry() == transform.geometry()) else {
        return centroids;
    };
    let (olds, news, dim) = kmeans::over_common_layers((before, old), (transform, &centroids));
    match kmeans::align(&olds, &news, dim) {
        Some(numbers) => kmeans::renumber(&centroids, transform.dim(), &numbers),
        None => centroids,
    }
}

/// What a fit gives beside the centroids of source Prefill.
#[derive(Default)]
struct Predicted {
    predictors: Option<Predictors>,
    report: Option<PredictorReport>,
    kept: bool,
    text: Option<(TextSource, SourceReport)>,
}

/// Learns predictors, or keeps those of the table in use, and fits source Text by them.
fn predict(
    samples: &[&Sample],
    transform: &Transform,
    options: &FitOptions,
    previous: Option<&CentroidTable>,
) -> Result<Predicted, FitError> {
    let Some(how) = &options.predictors else {
        return Ok(Predicted::default());
    };
    let learned = learn(transform.geometry(), samples, how)
        .filter(|l| l.predictors.text().is_some() || l.predictors.prefill().is_some());
    let old = previous.and_then(|p| p.predictors.as_ref());
    let Some(predictors) = learned.as_ref().map(|l| &l.predictors).or(old) else {
        return Ok(Predicted::default());
    };
    let fit = TextFit {
        predictors,
        learned: learned.as_ref(),
        transform,
        options,
        previous,
    };
    Ok(Predicted {
        text: fit.run(samples)?,
        predictors: Some(predictors.clone()),
        report: learned.as_ref().map(|l| l.report),
        kept: learned.is_none(),
    })
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

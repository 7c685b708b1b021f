//! What a table holds.

use coterie_locality::{Geometry, fit::FitReport, predictor::Predictors, table::Baselines, transform::TransformKind};
use serde::Serialize;

use super::lines;
use crate::input::TableFile;

/// What a table holds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TableSummary {
    kind: &'static str,
    digest: String,
    bytes: usize,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    geometry: Geometry,
    transform: TransformKind,
    kept_layers: Vec<u16>,
    clusters: usize,
    tau: f32,
    baselines: Baselines,
    report: FitReport,
    /// Memory that the predictors take; 0 without any.
    predictor_bytes: usize,
    /// Width of the band of source Text; absent without that source.
    #[serde(skip_serializing_if = "Option::is_none")]
    text_tau: Option<f32>,
    /// Seconds that the fit took; only where it was fitted just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    fit_seconds: Option<f64>,
}

impl TableSummary {
    /// Describes a table; `fit_seconds` where it was fitted just now.
    pub fn of(file: &TableFile, fit_seconds: Option<f64>) -> Self {
        let table = &file.table;
        Self {
            kind: "table",
            digest: file.digest.clone(),
            bytes: file.bytes,
            model: table.fingerprint.model.clone(),
            revision: table.fingerprint.revision.clone(),
            geometry: table.fingerprint.geometry,
            transform: table.transform.kind(),
            kept_layers: table.transform.kept_layers().to_vec(),
            clusters: table.clusters(),
            tau: table.tau,
            baselines: table.baselines.clone(),
            report: table.report.clone(),
            predictor_bytes: table.predictors.as_ref().map_or(0, Predictors::bytes),
            text_tau: table.text.as_ref().map(|text| text.tau),
            fit_seconds: fit_seconds.map(|seconds| (seconds * 1e3).round() / 1e3),
        }
    }

    /// Lines for a person.
    pub fn text(&self) -> String {
        let (report, base) = (&self.report, &self.baselines);
        let interval = |[low, high]: [f64; 2]| format!(" ({low:.3} to {high:.3})");
        let rho = report
            .rho
            .map(|rho| format!("{rho:.3}{}", report.rho_interval.map(interval).unwrap_or_default()));
        let simulated = report.distinct_experts.map(|d| {
            format!(
                "{:.2} with the table, {:.2} least loaded, {:.2} random (batches of {})",
                d.table, d.least_loaded, d.random, d.batch
            )
        });
        lines([
            ("digest", Some(self.digest.clone())),
            ("bytes", Some(self.bytes.to_string())),
            ("model", Some(self.model.clone())),
            ("revision", self.revision.clone()),
            ("geometry", Some(self.geometry.to_string())),
            (
                "transform",
                Some(format!(
                    "{:?}, {} of {} layers",
                    self.transform,
                    self.kept_layers.len(),
                    self.geometry.layers
                )),
            ),
            ("clusters", Some(self.clusters.to_string())),
            ("tau", Some(format!("{:.4}", self.tau))),
            ("samples", Some(report.samples.to_string())),
            ("with decode counts", Some(report.decode_samples.to_string())),
            ("rho", rho),
            ("distinct experts", simulated),
            (
                "predicted gain",
                report.predicted_gain.map(|gain| format!("{:.1} %", gain * 100.0)),
            ),
            (
                "balance",
                (report.samples > 0).then(|| format!("{:.2}", report.balance)),
            ),
            (
                "baseline fit",
                (base.requests > 0).then(|| {
                    format!(
                        "{:.4} +- {:.4} over {} requests",
                        base.fit_mean, base.fit_se, base.requests
                    )
                }),
            ),
            (
                "baseline skew",
                (base.requests > 0).then(|| format!("{:.2}", base.skew)),
            ),
            ("predictors", self.predictors()),
            (
                "source Text",
                self.text_tau.map(|tau| {
                    let rho = report.text.as_ref().and_then(|text| text.rho);
                    format!(
                        "tau {tau:.4}, rho {}",
                        rho.map_or_else(|| "unknown".to_owned(), |rho| format!("{rho:.3}"))
                    )
                }),
            ),
            ("fit seconds", self.fit_seconds.map(|seconds| format!("{seconds:.2}"))),
        ])
    }

    /// Errors on samples that the maps did not see.
    fn predictors(&self) -> Option<String> {
        let Some(report) = self.report.predictors.as_ref() else {
            let kept = self.report.predictors_kept;
            return kept.then(|| {
                let size = self.predictor_bytes / 1024;
                format!("kept from the table before, too few samples with decode counts to learn anew; {size} KiB")
            });
        };
        let ways = [
            ("mean", Some(report.mean_error)),
            ("own prefill", report.own_error),
            ("map of prefill", report.prefill_error),
            ("map of text", report.text_error),
            ("mix", report.mixed_error),
        ];
        let told: Vec<String> = ways
            .into_iter()
            .filter_map(|(name, error)| Some(format!("{name} {:.1}", error? * 1e4)))
            .collect();
        let kept = if self.report.predictors_kept {
            ", kept from the table before"
        } else {
            ""
        };
        Some(format!(
            "error x 10^4: {}; {} KiB{kept}",
            told.join(", "),
            self.predictor_bytes / 1024
        ))
    }
}

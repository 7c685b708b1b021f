//! `collect`, `fit` and `inspect`: the same work on files.

use std::{fs, path::Path, time::Duration};

use coterie_locality::{
    CentroidTable, Sample,
    table::{self, Precision},
};
use serde_json::{Value, json};

use super::fit_table;
use crate::{
    args::{CollectArgs, FitArgs, InspectArgs},
    collect::{file, probe::Probe, prompts},
    error::Error,
    report,
};

/// Largest table file.
const MAX_TABLE_BYTES: u64 = 64 * 1024 * 1024;

/// Generates and replays prompts; writes the samples. Returns a line for the person.
///
/// # Errors
/// See [`Error`].
pub async fn collect(args: &CollectArgs) -> Result<String, Error> {
    let fingerprint = args.model.fingerprint()?;
    let prompts = prompts::read(&args.prompts, args.samples)?;
    let samples = Probe::resolve(&args.probe)
        .await?
        .collect(&fingerprint, &prompts)
        .await?;
    file::write(&args.out, &samples)?;
    Ok(format!("{} samples in {}", samples.len(), args.out.display()))
}

/// Fits a table to a file of samples. Returns the report.
///
/// # Errors
/// See [`Error`].
pub fn fit(args: &FitArgs) -> Result<String, Error> {
    let samples = file::read(&args.samples)?;
    let (table, fitting) = fit_table(samples, args.clusters, args.seed)?;
    let payload = table
        .encode(Precision::F16)
        .map_err(|error| Error::infrastructure("EncodeFailed", error.to_string()))?;
    fs::write(&args.out, &payload)
        .map_err(|error| Error::infrastructure("WriteFailed", format!("write {}: {error}", args.out.display())))?;
    let summary = table_summary(&table, &payload, fitting);
    Ok(if args.json {
        summary.to_string()
    } else {
        lines(&summary)
    })
}

/// Describes a table file or a sample file.
///
/// # Errors
/// When it is neither.
pub fn inspect(args: &InspectArgs) -> Result<String, Error> {
    let summary = match read_table(&args.file) {
        Ok((table, payload)) => table_summary(&table, &payload, Duration::ZERO),
        Err(not_a_table) => match file::read(&args.file) {
            Ok(samples) => sample_summary(&samples),
            Err(not_samples) => {
                let message = format!("neither a table ({not_a_table}) nor samples ({not_samples})");
                return Err(Error::input("Unreadable", message));
            }
        },
    };
    Ok(if args.json {
        summary.to_string()
    } else {
        lines(&summary)
    })
}

fn read_table(path: &Path) -> Result<(CentroidTable, Vec<u8>), String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_TABLE_BYTES {
        return Err(format!("{size} bytes, more than a table can have"));
    }
    let payload = fs::read(path).map_err(|error| error.to_string())?;
    let table = CentroidTable::decode(&payload).map_err(|error| error.to_string())?;
    Ok((table, payload))
}

fn table_summary(table: &CentroidTable, payload: &[u8], fitting: Duration) -> Value {
    let geometry = &table.fingerprint.geometry;
    let run = report::run_report(table, Duration::ZERO, fitting);
    let base = &table.baselines;
    json!({
        "digest": table::digest(payload),
        "bytes": payload.len(),
        "model": table.fingerprint.model,
        "geometry": format!("{} layers, {} experts, top {}", geometry.layers, geometry.experts, geometry.top_k),
        "transform": report::transform(table),
        "clusters": table.clusters(),
        "tau": format!("{:.4}", table.tau),
        "samples": run.samples,
        "replayed": run.replayed,
        "rho": run.rho,
        "predicted gain": run.predicted_gain,
        "balance": run.balance,
        "baseline fit": format!("{:.4} +- {:.4}", base.fit_mean, base.fit_se),
        "baseline skew": format!("{:.2}", base.skew),
        "fit seconds": run.fit_seconds.filter(|_| !fitting.is_zero()),
    })
}

fn sample_summary(samples: &[Sample]) -> Value {
    json!({
        "samples": samples.len(),
        "model": samples.first().map(|sample| sample.fingerprint.model.clone()),
        "with prefill counts": samples.iter().filter(|sample| sample.prefill_counts.is_some()).count(),
        "with decode counts": samples.iter().filter(|sample| sample.decode_counts.is_some()).count(),
        "prompt tokens": samples.iter().map(|sample| sample.prompt_tokens).sum::<u64>(),
        "generated tokens": samples.iter().map(|sample| sample.generated_tokens).sum::<u64>(),
    })
}

fn lines(summary: &Value) -> String {
    let fields = summary
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null());
    fields
        .map(|(name, value)| {
            format!(
                "{name:<20} {}",
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            )
        })
        .collect::<Vec<_>>()
        .join("\n")
}

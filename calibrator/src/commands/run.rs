//! `run`: what a calibration Job does.

use std::time::{Duration, Instant};

use coterie_crds::v1alpha1::RunReport;
use coterie_locality::{FitOptions, Sample, table::Precision};
use kube::Client;

use super::fit::fit_samples;
use crate::{
    args::{RunArgs, Source},
    collect::{live::Routers, probe::Probe, prompts},
    error::Error,
    publish::{self, Owner, Published},
    report,
};

/// Collects, fits and publishes; returns the table's name and the report.
///
/// # Errors
/// See [`Error`].
pub async fn run(args: &RunArgs) -> Result<(String, RunReport), Error> {
    let begun = Instant::now();
    let samples = collect(args).await?;
    let collected = begun.elapsed();
    if samples.len() < args.min_samples {
        let message = format!(
            "{} samples where at least {} are needed (spec.calibration.minSamples): give more prompts or wait for traffic",
            samples.len(),
            args.min_samples
        );
        return Err(Error::input("TooFewSamples", message));
    }
    tracing::info!(
        samples = samples.len(),
        seconds = collected.as_secs_f64(),
        "samples collected"
    );
    let options = FitOptions {
        clusters: args.clusters,
        seed: args.seed,
        ..FitOptions::default()
    };
    let begun = Instant::now();
    let fitted = tokio::task::spawn_blocking(move || fit_samples(&samples, &options, None));
    let table = fitted
        .await
        .map_err(|error| Error::infrastructure("FitCrashed", error.to_string()))??;
    publish_table(args, &table, collected, begun.elapsed()).await
}

async fn collect(args: &RunArgs) -> Result<Vec<Sample>, Error> {
    let fingerprint = args.model.fingerprint()?;
    let needs = |flag: &str| Error::input("BadFlags", format!("--source {:?} needs {flag}", args.source));
    match args.source {
        Source::Prompts => {
            let file = args.prompts_file.as_deref().ok_or_else(|| needs("--prompts-file"))?;
            let probe = args.probe.clone().ok_or_else(|| needs("--probe"))?;
            let prompts = prompts::read(file, args.samples)?;
            Probe::resolve(&[probe]).await?.collect(&fingerprint, &prompts).await
        }
        Source::Live => {
            let routers = Routers {
                admin: args.router_admin.clone().ok_or_else(|| needs("--router-admin"))?,
                token_file: args
                    .admin_token_file
                    .clone()
                    .ok_or_else(|| needs("--admin-token-file"))?,
            };
            routers
                .collect(&fingerprint, args.since_ms, args.samples, args.seed)
                .await
        }
    }
}

async fn publish_table(
    args: &RunArgs,
    table: &coterie_locality::CentroidTable,
    collected: Duration,
    fitting: Duration,
) -> Result<(String, RunReport), Error> {
    let report = report::run_report(table, collected, fitting);
    let payload = table
        .encode(Precision::F16)
        .map_err(|error| Error::infrastructure("EncodeFailed", error.to_string()))?;
    let client = Client::try_default().await.map_err(|error| {
        Error::infrastructure(
            "NoApiServer",
            format!("{error}; outside a cluster, use `collect` and `fit`"),
        )
    })?;
    let owner = Owner {
        namespace: args.namespace.clone(),
        deployment: args.deployment.clone(),
        uid: args.owner_uid.clone(),
        run: args.run.clone(),
    };
    let published = Published {
        table,
        payload: &payload,
        report: report.clone(),
    };
    let name = publish::publish(client, &owner, &published).await?;
    tracing::info!(table = name, bytes = payload.len(), "table published");
    Ok((name, report))
}

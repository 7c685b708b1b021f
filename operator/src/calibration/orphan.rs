//! Runs for a MoEDeployment that does not exist: they are told so, and go on when it appears.

use coterie_crds::v1alpha1::{CalibrationRun, CalibrationRunStatus, MoEDeployment, RunPhase};
use kube::{Api, ResourceExt, api::ListParams};

use super::{MANAGER, queue};
use crate::{context::Context, error::Error, kube_io, metrics::Controller};

/// Tells the runs of a MoEDeployment that the watch does not know.
pub async fn tell(ctx: &Context, namespace: &str, deployment: &str) -> Result<(), Error> {
    // The watch may be behind.
    let deployments: Api<MoEDeployment> = Api::namespaced(ctx.client.clone(), namespace);
    let there = deployments
        .get_metadata_opt(deployment)
        .await
        .map_err(Error::read("MoEDeployment"))?;
    if there.is_some() {
        return Ok(());
    }
    let runs: Api<CalibrationRun> = Api::namespaced(ctx.client.clone(), namespace);
    let of_deployment = ListParams::default().fields(&format!("spec.deployment={deployment}"));
    for run in runs.list(&of_deployment).await.map_err(Error::read("runs"))? {
        let Some(status) = status(&run) else { continue };
        let name = run.name_any();
        kube_io::status::apply(&runs, &name, MANAGER, &status).await?;
        ctx.count_write(Controller::Calibration);
        tracing::info!(
            namespace,
            run = name,
            deployment,
            "calibration run names no MoEDeployment"
        );
    }
    Ok(())
}

/// The status of a run whose MoEDeployment does not exist, if it should change. Runs that have an owner go with it.
pub fn status(run: &CalibrationRun) -> Option<CalibrationRunStatus> {
    let leaving = run.metadata.deletion_timestamp.is_some() || !run.owner_references().is_empty();
    if leaving || queue::phase(run) != RunPhase::Pending {
        return None;
    }
    let deployment = &run.spec.deployment;
    let status = CalibrationRunStatus {
        phase: RunPhase::Pending,
        reason: Some("DeploymentNotFound".into()),
        message: Some(format!(
            "no MoEDeployment {deployment} in this namespace; the run starts when it exists and serves: kubectl get moe"
        )),
        ..run.status.clone().unwrap_or_default()
    };
    (run.status.as_ref() != Some(&status)).then_some(status)
}

//! Writes of the calibration controller.

use coterie_crds::v1alpha1::{
    CalibrationRun, CalibrationRunSpec, CalibrationRunStatus, CalibrationSource, CentroidTable, CentroidTableStatus,
    RunReason, TablePhase,
};
use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::Time};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::MANAGER;
use crate::{
    context::Context,
    error::Error,
    kube_io::status,
    metrics::{Controller, RunLabels, RunReasonLabel},
    owner::Fleet,
};

/// A run to create.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: RunReason,
    /// Source other than the MoEDeployment's.
    pub source: Option<CalibrationSource>,
    /// Only samples from this time on.
    pub samples_since: Option<Time>,
}

/// Creates a run; one that is there already is left alone. Returns whether it was created.
pub async fn create_run(
    ctx: &Context,
    fleet: &Fleet,
    controller: Controller,
    manager: &str,
    new: NewRun,
) -> Result<bool, Error> {
    let mut run = CalibrationRun::new(
        &new.name,
        CalibrationRunSpec {
            deployment: fleet.name.clone(),
            reason: new.reason,
            source: new.source,
            samples_since: new.samples_since,
        },
    );
    run.metadata = fleet.child(new.name.clone(), fleet.labels());
    let params = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    let api: Api<CalibrationRun> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    match api.create(&params, &run).await {
        Ok(_) => {
            let reason = match new.reason {
                RunReason::Initial => RunReasonLabel::Initial,
                RunReason::Manual => RunReasonLabel::Manual,
                RunReason::Drift => RunReasonLabel::Drift,
            };
            ctx.metrics.runs.get_or_create(&RunLabels { reason }).inc();
            ctx.count_write(controller);
            tracing::info!(%fleet, run = new.name, reason = ?new.reason, "calibration run created");
            Ok(true)
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
        Err(error) => Err(Error::write(format!("CalibrationRun {}", new.name))(error)),
    }
}

/// Makes the MoEDeployment the owner of a run that a person made, so that it goes with it.
pub async fn adopt_run(ctx: &Context, fleet: &Fleet, run: &CalibrationRun) -> Result<(), Error> {
    if run.owner_references().iter().any(|o| o.uid == fleet.uid) {
        return Ok(());
    }
    let name = run.name_any();
    let body = json!({
        "apiVersion": CalibrationRun::api_version(&()),
        "kind": CalibrationRun::kind(&()),
        "metadata": { "name": name, "uid": run.uid(), "ownerReferences": [fleet.owner_reference()] },
    });
    let api: Api<CalibrationRun> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&body))
        .await
        .map_err(Error::write(format!("owner of CalibrationRun {name}")))?;
    ctx.count_write(Controller::Calibration);
    Ok(())
}

/// Writes a run's status if it changed.
pub async fn run_status(
    ctx: &Context,
    fleet: &Fleet,
    run: &CalibrationRun,
    status: &CalibrationRunStatus,
) -> Result<(), Error> {
    if run.status.as_ref() == Some(status) {
        return Ok(());
    }
    let api: Api<CalibrationRun> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    status::apply(&api, &run.name_any(), MANAGER, status).await?;
    ctx.count_write(Controller::Calibration);
    tracing::info!(%fleet, run = run.name_any(), phase = ?status.phase,
        reason = status.reason.as_deref().unwrap_or_default(), "calibration run moved");
    Ok(())
}

/// Writes a table's phase.
pub async fn table_phase(
    ctx: &Context,
    fleet: &Fleet,
    table: &CentroidTable,
    phase: TablePhase,
    message: Option<String>,
    now: &Time,
) -> Result<(), Error> {
    let before = table.status.clone().unwrap_or_default();
    let status = CentroidTableStatus {
        phase: Some(phase),
        message,
        activated_time: if phase == TablePhase::Active {
            Some(now.clone())
        } else {
            before.activated_time.clone()
        },
    };
    let api: Api<CentroidTable> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    status::apply(&api, &table.name_any(), MANAGER, &status).await?;
    ctx.count_write(Controller::Calibration);
    tracing::info!(%fleet, table = table.name_any(), ?phase, "table changed phase");
    Ok(())
}

/// Creates a Job; one that is there already is left alone.
pub async fn create_job(ctx: &Context, fleet: &Fleet, job: &Job) -> Result<(), Error> {
    let api: Api<Job> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    match api.create(&PostParams::default(), job).await {
        Ok(_) => {
            ctx.count_write(Controller::Calibration);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(Error::write(format!("Job {}", job.name_any()))(error)),
    }
}

/// Deletes an object of ours.
pub async fn delete<K>(ctx: &Context, fleet: &Fleet, name: &str) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    match api.delete(name, &DeleteParams::background()).await {
        Ok(_) => {
            ctx.count_write(Controller::Calibration);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(Error::write(format!("{} {name}", K::kind(&())))(error)),
    }
}

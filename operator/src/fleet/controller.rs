//! One reconcile of a fleet: observe, plan, write the children, ask the routers, write the status.

use std::{sync::Arc, time::Duration};

use coterie_crds::v1alpha1::{MoEDeployment, MoEDeploymentStatus};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{Api, runtime::controller::Action};

use super::{
    MANAGER,
    acknowledgement::{self, Acknowledgement},
    document, observe, plan, resolve, rollout, secret,
    status::{self, FleetStatus},
    workers,
};
use crate::{
    context::Context,
    error::Error,
    kube_io::{self, children::Applied},
    metrics::Controller,
    owner::Fleet,
};

/// Safety net behind the watches.
const RESYNC: Duration = Duration::from_secs(300);
/// How often routers are asked while a document is not acknowledged by all.
const ACKNOWLEDGE: Duration = Duration::from_millis(300);

/// Brings one fleet closer to its spec.
pub async fn reconcile(deployment: Arc<MoEDeployment>, ctx: Arc<Context>) -> Result<Action, Error> {
    let fleet = Fleet::of(&deployment)?;
    if deployment.metadata.deletion_timestamp.is_some() {
        // Owner references remove the children; writing them now would bring them back.
        return Ok(Action::await_change());
    }
    let current = deployment.status.clone().unwrap_or_default();
    let resolved = match resolve::resolve(&deployment, &ctx.settings) {
        Ok(resolved) => resolved,
        Err(error) => {
            let derived = status::refused(&current, deployment.metadata.generation, &error.chain(), &now());
            publish(&ctx, &fleet, &deployment, &current, derived).await?;
            return Err(error);
        }
    };
    let written = write(&ctx, &resolved, &deployment, &current).await;
    let failure = match &written {
        Ok(seen) => seen.refused.as_ref(),
        Err(error) => Some(error),
    };
    let failure = failure.map(Error::chain);
    let acknowledgement = match &written {
        Ok(seen) => acknowledge(&ctx, seen, &current).await,
        Err(_) => None,
    };
    let pods = workers::pods_of(&ctx.pods, &fleet);
    let workloads = observe::workloads(&ctx, &fleet).await?;
    let document = written.as_ref().ok().map(|s| &s.document);
    let derived = status::derive(
        &status::Facts {
            resolved: &resolved,
            pods: &pods,
            workloads: &workloads,
            document,
            acknowledgement: acknowledgement.as_ref(),
            failure: failure.as_deref(),
        },
        &current,
        &now(),
    );
    publish(&ctx, &fleet, &deployment, &current, derived).await?;
    match written {
        Err(error)
        | Ok(Seen {
            refused: Some(error), ..
        }) => Err(error),
        Ok(seen) if pending(&seen, acknowledgement.as_ref(), &current, &pods) => Ok(Action::requeue(ACKNOWLEDGE)),
        Ok(_) => Ok(Action::requeue(RESYNC)),
    }
}

/// What was written and whom to ask about it.
struct Seen {
    /// Why some child could not be written; the others were.
    refused: Option<Error>,
    document: coterie_crds::routing::RoutingDocument,
    token: String,
    routers: Vec<workers::RouterPod>,
}

async fn write(
    ctx: &Context,
    resolved: &resolve::Resolved,
    deployment: &MoEDeployment,
    current: &MoEDeploymentStatus,
) -> Result<Seen, Error> {
    let fleet = &resolved.fleet;
    let token = secret::ensure(&ctx.client, fleet).await?;
    let observed = observe::observe(ctx, fleet, deployment).await?;
    let routers = workers::ready_routers(&observed.pods);
    let mut highest = current
        .router
        .as_ref()
        .and_then(|r| r.generation)
        .unwrap_or(0)
        .unsigned_abs();
    if observed.document.is_none() && !routers.is_empty() {
        // Somebody deleted the document: routers may have seen a generation that the status does not know.
        highest = highest.max(acknowledgement::ask(ctx, &token, &routers, 0).await.highest);
    }
    let decision = document::decide(
        resolved,
        &observed.pods,
        observed.table.as_ref(),
        observed.document.as_ref(),
        highest,
    );
    // Routers that have not seen the new document yet may still be reading the table of the old one.
    let old_chunks = observed
        .document
        .as_ref()
        .and_then(|d| d.table.as_ref())
        .map(|t| t.chunks.clone())
        .unwrap_or_default();
    let acknowledged = current
        .router
        .as_ref()
        .and_then(|r| r.acknowledged_generation)
        .map(i64::unsigned_abs);
    let partitions = rollout::partitions(resolved, &observed.pods, &decision.document, acknowledged);
    let children = plan::plan(resolved, &decision.document, &old_chunks, partitions)?;
    let mut first_error = None;
    for child in &children {
        match ctx.children.apply(&ctx.client, fleet, child).await {
            Ok(Applied::Written) => ctx.count_write(Controller::Fleet),
            Ok(Applied::Unchanged) => {}
            // One refused object must not keep the others from being repaired.
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    if first_error.is_none() {
        ctx.children.delete_others(&ctx.client, fleet, &children).await?;
    }
    if decision.changed {
        tracing::info!(%fleet, generation = decision.document.generation, revisions = ?decision.document.revisions,
            table = decision.document.table.as_ref().map(|t| t.name.as_str()), "routing document written");
    }
    Ok(Seen {
        refused: first_error,
        document: decision.document,
        token,
        routers,
    })
}

async fn acknowledge(ctx: &Context, seen: &Seen, current: &MoEDeploymentStatus) -> Option<Acknowledgement> {
    let acknowledged = current.router.as_ref().and_then(|r| r.acknowledged_generation);
    if seen.routers.is_empty() || acknowledged == Some(seen.document.generation as i64) {
        return None;
    }
    Some(acknowledgement::ask(ctx, &seen.token, &seen.routers, seen.document.generation).await)
}

fn pending(
    seen: &Seen,
    acknowledgement: Option<&Acknowledgement>,
    current: &MoEDeploymentStatus,
    pods: &[workers::PodView],
) -> bool {
    let wanted = seen.document.generation;
    let known = current
        .router
        .as_ref()
        .and_then(|r| r.acknowledged_generation)
        .map(i64::unsigned_abs);
    let latest = acknowledgement.and_then(|a| a.generation).or(known);
    // Without a ready router there is nobody to ask: the next change of a pod brings us back.
    latest != Some(wanted) && !workers::ready_routers(pods).is_empty()
}

async fn publish(
    ctx: &Context,
    fleet: &Fleet,
    deployment: &MoEDeployment,
    current: &MoEDeploymentStatus,
    (status, transitions): status::Derived,
) -> Result<(), Error> {
    if status == FleetStatus::current(current) {
        return Ok(());
    }
    let api: Api<MoEDeployment> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    kube_io::status::apply(&api, &fleet.name, MANAGER, &status).await?;
    ctx.count_write(Controller::Fleet);
    kube_io::events::transitions(&ctx.recorder, deployment, &transitions, None).await;
    Ok(())
}

fn now() -> Time {
    Time(Timestamp::now())
}

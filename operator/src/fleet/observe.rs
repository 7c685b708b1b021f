//! What the fleet controller reads before it plans.

use std::collections::BTreeMap;

use coterie_crds::{
    names,
    routing::RoutingDocument,
    v1alpha1::{CentroidTable, MoEDeployment},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Event},
};
use kube::{Api, ResourceExt, api::ListParams};

use super::workers::{self, PodView};
use crate::{context::Context, error::Error, owner::Fleet};

/// The live state of a fleet.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Pods.
    pub pods: Vec<PodView>,
    /// The routing document, if there is one that can be read.
    pub document: Option<RoutingDocument>,
    /// The active table named in the status, if it exists.
    pub table: Option<CentroidTable>,
}

/// Controllers' view of the children, read after they were written.
#[derive(Clone, Debug, Default)]
pub struct Workloads {
    /// Prefill StatefulSet.
    pub prefill: Option<StatefulSet>,
    /// Decode StatefulSet.
    pub decode: Option<StatefulSet>,
    /// Router Deployment.
    pub router: Option<Deployment>,
    /// Why pods of a StatefulSet cannot be created, by its name.
    pub refusals: BTreeMap<String, String>,
}

/// Reads pods, document and active table.
pub async fn observe(ctx: &Context, fleet: &Fleet, deployment: &MoEDeployment) -> Result<Observed, Error> {
    let active = deployment.status.as_ref().and_then(|s| s.table.as_ref());
    let table = match active {
        Some(active) => Api::<CentroidTable>::namespaced(ctx.client.clone(), &fleet.namespace)
            .get_opt(&active.name)
            .await
            .map_err(Error::read("active CentroidTable"))?
            .filter(|t| t.spec.digest == active.digest),
        None => None,
    };
    Ok(Observed {
        pods: workers::pods_of(&ctx.pods, fleet),
        document: document(ctx, fleet).await?,
        table,
    })
}

/// The routing document that is there. One that cannot be read counts as none: it is written anew.
pub async fn document(ctx: &Context, fleet: &Fleet) -> Result<Option<RoutingDocument>, Error> {
    let name = names::routing_document(&fleet.name);
    let map = Api::<ConfigMap>::namespaced(ctx.client.clone(), &fleet.namespace)
        .get_opt(&name)
        .await
        .map_err(Error::read("routing document"))?;
    let Some(text) = map
        .as_ref()
        .and_then(|m| m.data.as_ref())
        .and_then(|d| d.get(names::ROUTING_DOCUMENT_KEY))
    else {
        return Ok(None);
    };
    Ok(serde_json::from_str(text)
        .inspect_err(|error| tracing::warn!(%error, %fleet, "routing document is not readable: it is written anew"))
        .ok())
}

/// Reads the workloads.
pub async fn workloads(ctx: &Context, fleet: &Fleet) -> Result<Workloads, Error> {
    let sets: Api<StatefulSet> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    let deployments: Api<Deployment> = Api::namespaced(ctx.client.clone(), &fleet.namespace);
    let (prefill, decode, router) = (
        names::prefill_pool(&fleet.name),
        names::decode_pool(&fleet.name),
        names::router(&fleet.name),
    );
    let (prefill, decode, router) = futures::try_join!(
        sets.get_opt(&prefill),
        sets.get_opt(&decode),
        deployments.get_opt(&router)
    )
    .map_err(Error::read("workloads"))?;
    let mut refusals = BTreeMap::new();
    for set in prefill.iter().chain(&decode) {
        let wanted = set.spec.as_ref().and_then(|s| s.replicas).unwrap_or(0);
        if set.status.as_ref().map_or(0, |s| s.replicas) < wanted
            && let Some(why) = refusal(ctx, fleet, &set.name_any()).await?
        {
            refusals.insert(set.name_any(), why);
        }
    }
    Ok(Workloads {
        prefill,
        decode,
        router,
        refusals,
    })
}

/// A StatefulSet tells in Events only that a quota or an admission policy refuses its pods.
async fn refusal(ctx: &Context, fleet: &Fleet, set: &str) -> Result<Option<String>, Error> {
    let failed = ListParams::default()
        .fields(&format!(
            "involvedObject.kind=StatefulSet,involvedObject.name={set},reason=FailedCreate"
        ))
        .limit(50);
    let events = Api::<Event>::namespaced(ctx.client.clone(), &fleet.namespace)
        .list(&failed)
        .await
        .map_err(Error::read("events of a StatefulSet"))?;
    let newest = events
        .items
        .into_iter()
        .max_by_key(|e| e.last_timestamp.as_ref().map(|t| t.0));
    Ok(newest.and_then(|e| e.message).map(|m| cause(&m).to_owned()))
}

/// "create Pod x in StatefulSet y failed error: CAUSE" names the pod of that moment, which changes: the cause is enough.
fn cause(message: &str) -> &str {
    message.split_once("failed error: ").map_or(message, |(_, cause)| cause)
}

//! What the fleet controller reads before it plans.

use coterie_crds::{
    names,
    routing::RoutingDocument,
    v1alpha1::{CentroidTable, MoEDeployment},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::ConfigMap,
};
use kube::Api;

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
    Ok(Workloads {
        prefill,
        decode,
        router,
    })
}

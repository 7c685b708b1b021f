//! All watches: what is selected, what is kept of it, and which MoEDeployment a change belongs to.

use coterie_crds::{
    names,
    v1alpha1::{CalibrationRun, CentroidTable, MoEDeployment},
};
use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        batch::v1::Job,
        core::v1::{ConfigMap, Pod, Service, ServiceAccount},
        networking::v1::NetworkPolicy,
        policy::v1::PodDisruptionBudget,
        rbac::v1::{Role, RoleBinding},
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        controller::Controller,
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};

use crate::{fleet::workers, kube_io::children::Children};

/// A MoEDeployment, or why it is not understood.
pub type Guarded = DeserializeGuard<MoEDeployment>;
/// A controller of MoEDeployments.
pub type GuardedController = Controller<Guarded>;

type Changes<K> = BoxStream<'static, Result<PartialObjectMeta<K>, watcher::Error>>;

/// Pods of all fleets: a store, and their changes. The store lives as long as the changes are read.
pub fn pods(
    client: &Client,
    scope: Option<&str>,
) -> (
    Store<Pod>,
    impl Stream<Item = Result<Pod, watcher::Error>> + Send + use<>,
) {
    let (store, writer) = reflector::store::<Pod>();
    let selected = watcher::Config::default().labels(names::LABEL_DEPLOYMENT);
    let changes = watcher(api::<Pod>(client, scope), selected)
        .default_backoff()
        .modify(workers::prune)
        .reflect(writer)
        .touched_objects();
    (store, changes)
}

/// Changes of runs, tables and Jobs reach the MoEDeployment that they are for.
pub fn runs_tables_and_jobs(controller: GuardedController, client: &Client, scope: Option<&str>) -> GuardedController {
    let all = watcher::Config::default;
    controller
        .watches(api::<CalibrationRun>(client, scope), all(), |run| {
            reference(run.namespace(), Some(run.spec.deployment.clone()))
        })
        .watches(api::<CentroidTable>(client, scope), all(), |table| {
            reference(table.namespace(), Some(table.spec.deployment.clone()))
        })
        .watches(
            api::<PartialObjectMeta<Job>>(client, scope),
            all().labels(names::LABEL_RUN),
            |job| deployment_of(&job),
        )
}

/// Changes of all kinds of children.
pub struct Owned {
    sets: Changes<StatefulSet>,
    deployments: Changes<Deployment>,
    services: Changes<Service>,
    maps: Changes<ConfigMap>,
    accounts: Changes<ServiceAccount>,
    roles: Changes<Role>,
    bindings: Changes<RoleBinding>,
    budgets: Changes<PodDisruptionBudget>,
    policies: Changes<NetworkPolicy>,
}

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owned").finish_non_exhaustive()
    }
}

impl Owned {
    /// Begins to watch all kinds.
    pub fn watch(children: &mut Children, client: &Client, scope: Option<&str>) -> Self {
        Self {
            sets: children.watch(client, scope).boxed(),
            deployments: children.watch(client, scope).boxed(),
            services: children.watch(client, scope).boxed(),
            maps: children.watch(client, scope).boxed(),
            accounts: children.watch(client, scope).boxed(),
            roles: children.watch(client, scope).boxed(),
            bindings: children.watch(client, scope).boxed(),
            budgets: children.watch(client, scope).boxed(),
            policies: children.watch(client, scope).boxed(),
        }
    }

    /// Lets a change of any child reach its owner.
    pub fn attach(self, controller: GuardedController) -> GuardedController {
        // Without `..`: a kind that is watched and not attached would never be repaired.
        let Self {
            sets,
            deployments,
            services,
            maps,
            accounts,
            roles,
            bindings,
            budgets,
            policies,
        } = self;
        controller
            .owns_stream(sets)
            .owns_stream(deployments)
            .owns_stream(services)
            .owns_stream(maps)
            .owns_stream(accounts)
            .owns_stream(roles)
            .owns_stream(bindings)
            .owns_stream(budgets)
            .owns_stream(policies)
    }
}

/// All objects of a kind, or those of one namespace.
pub fn api<K>(client: &Client, scope: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match scope {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// The MoEDeployment that an object's label names.
pub fn deployment_of(object: &impl ResourceExt) -> Option<ObjectRef<Guarded>> {
    reference(
        object.namespace(),
        object.labels().get(names::LABEL_DEPLOYMENT).cloned(),
    )
}

fn reference(namespace: Option<String>, name: Option<String>) -> Option<ObjectRef<Guarded>> {
    Some(ObjectRef::new(&name?).within(&namespace?))
}

//! Child objects of a fleet: what is known of the live ones, and how a planned one is written.
//!
//! A child is written when its plan changed, or when the live object moved since it was last written. Server-side apply of what is already
//! there does not move it, so a settled fleet causes no write.

use std::{
    collections::HashMap,
    fmt::Debug,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use coterie_crds::names;
use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::foreign;
use crate::{error::Error, owner::Fleet};

/// A planned child object.
#[derive(Clone, Debug)]
pub struct Child {
    /// Its kind.
    pub resource: ApiResource,
    /// Its name.
    pub name: String,
    /// The whole intent.
    pub body: Value,
}

impl Child {
    /// A child from a typed object.
    pub fn of<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Result<Self, Error> {
        Ok(Self {
            resource: ApiResource::erase::<K>(&()),
            name: object.name_any(),
            body: serde_json::to_value(object).map_err(|source| Error::Render { what: "child", source })?,
        })
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.body.to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn label(&self) -> String {
        format!("{} {}", self.resource.kind, self.name)
    }
}

/// What is known of a live object.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// Uid of its controller.
    pub controller: Option<OwnerReference>,
    /// Whether somebody else owns fields that the operator declares.
    pub foreign_fields: bool,
}

impl Live {
    fn of(object: &impl ResourceExt, manager: &str) -> Option<Self> {
        let meta = object.meta();
        Some(Self {
            uid: meta.uid.clone()?,
            version: meta.resource_version.clone()?,
            controller: meta
                .owner_references
                .iter()
                .flatten()
                .find(|o| o.controller == Some(true))
                .cloned(),
            foreign_fields: meta.annotations.as_ref().is_some_and(|a| a.contains_key(FOREIGN_MARK))
                || foreign::has_foreign_fields(meta.managed_fields.as_deref().unwrap_or_default(), manager),
        })
    }
}

/// Stands for the managed fields in the store, which are large.
const FOREIGN_MARK: &str = "coterie.dev/foreign-fields";

type Lookup = Box<dyn Fn(&str, &str) -> Option<Live> + Send + Sync>;
type Listing = Box<dyn Fn(&str, &str) -> Vec<(String, String)> + Send + Sync>;

struct Kind {
    resource: ApiResource,
    get: Lookup,
    owned_by: Listing,
}

/// What was last written of a child: hash of the intent, and the live object it became.
type Written = HashMap<(String, String, String), (u64, String, String)>;

/// All live children, by metadata.
pub struct Children {
    manager: &'static str,
    kinds: HashMap<String, Kind>,
    written: Mutex<Written>,
}

impl Debug for Children {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Children")
            .field("kinds", &self.kinds.keys())
            .finish_non_exhaustive()
    }
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was sent to the API server.
    Written,
    /// Nothing had changed.
    Unchanged,
}

impl Children {
    /// No kinds yet; `manager` is the field manager of all writes.
    pub fn new(manager: &'static str) -> Self {
        Self {
            manager,
            kinds: HashMap::new(),
            written: Mutex::default(),
        }
    }

    /// Begins to know the children of a kind. The stream must be polled; its items are children that changed.
    pub fn watch<K>(
        &mut self,
        client: &Client,
        namespace: Option<&str>,
    ) -> impl Stream<Item = Result<PartialObjectMeta<K>, watcher::Error>> + Send + use<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        let api: Api<PartialObjectMeta<K>> = match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        let selector = format!(
            "{}={},{}",
            names::LABEL_MANAGED_BY,
            names::MANAGED_BY,
            names::LABEL_DEPLOYMENT
        );
        let (store, writer) = reflector::store::<PartialObjectMeta<K>>();
        let manager = self.manager;
        self.add_kind::<K>(store);
        watcher(api, watcher::Config::default().labels(&selector))
            .default_backoff()
            .modify(move |object| prune(object, manager))
            .reflect(writer)
            .touched_objects()
            .boxed()
    }

    fn add_kind<K>(&mut self, store: Store<PartialObjectMeta<K>>)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + Sync
            + 'static,
    {
        let resource = ApiResource::erase::<K>(&());
        let manager = self.manager;
        let listed = store.clone();
        let kind = Kind {
            resource: resource.clone(),
            get: Box::new(move |namespace, name| {
                let object = store.get(&ObjectRef::new(name).within(namespace))?;
                Live::of(object.as_ref(), manager)
            }),
            owned_by: Box::new(move |namespace, uid| {
                listed
                    .state_filter(|o| {
                        o.metadata.namespace.as_deref() == Some(namespace)
                            && o.metadata.deletion_timestamp.is_none()
                            && o.metadata
                                .owner_references
                                .iter()
                                .flatten()
                                .any(|r| r.controller == Some(true) && r.uid == uid)
                    })
                    .iter()
                    .map(|o| (o.name_any(), o.uid().unwrap_or_default()))
                    .collect()
            }),
        };
        self.kinds.insert(resource.kind, kind);
    }

    /// Writes a planned child if needed.
    pub async fn apply(&self, client: &Client, fleet: &Fleet, child: &Child) -> Result<Applied, Error> {
        let hash = child.hash();
        let known = self
            .kinds
            .get(&child.resource.kind)
            .and_then(|k| (k.get)(&fleet.namespace, &child.name));
        if let Some(live) = known.as_ref().filter(|live| owned(live, fleet) && !live.foreign_fields) {
            let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            if written.get(&key(fleet, child)) == Some(&(hash, live.uid.clone(), live.version.clone())) {
                return Ok(Applied::Unchanged);
            }
        }
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &fleet.namespace, &child.resource);
        let known = known.filter(|live| owned(live, fleet) && !live.foreign_fields);
        let current = match known {
            Some(live) => Some(live),
            None => self.inspect(&api, fleet, child).await?,
        };
        let mut params = PatchParams::apply(self.manager);
        // An object that is not there yet is created without force: should somebody else create it at this moment, the fields conflict.
        params.force = current.is_some();
        let stored = api
            .patch(&child.name, &params, &Patch::Apply(&child.body))
            .await
            .map_err(Error::write(child.label()))?;
        let state = (
            hash,
            stored.uid().unwrap_or_default(),
            stored.resource_version().unwrap_or_default(),
        );
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key(fleet, child), state);
        Ok(Applied::Written)
    }

    /// Reads the live object; refuses another owner's, and takes over fields that were added by hand.
    async fn inspect(&self, api: &Api<DynamicObject>, fleet: &Fleet, child: &Child) -> Result<Option<Live>, Error> {
        let Some(object) = api
            .get_metadata_opt(&child.name)
            .await
            .map_err(Error::read("child object"))?
        else {
            return Ok(None);
        };
        let live = Live::of(&object, self.manager).ok_or(Error::Incomplete("uid"))?;
        if !owned(&live, fleet) {
            let owner = live
                .controller
                .as_ref()
                .map_or_else(|| "nobody".to_owned(), |o| format!("{} {}", o.kind, o.name));
            return Err(Error::Foreign(format!(
                "{} exists and belongs to {owner}: delete or rename it, or choose another name for this MoEDeployment",
                child.label()
            )));
        }
        if object.metadata.deletion_timestamp.is_some() {
            return Err(Error::Foreign(format!(
                "{} is being deleted; it is made again when it is gone",
                child.label()
            )));
        }
        if live.foreign_fields {
            let entries = foreign::taken_over(
                object.metadata.managed_fields.as_deref().unwrap_or_default(),
                self.manager,
            );
            // The test on resourceVersion keeps an edit that arrives meanwhile from being mixed up.
            let patch = json!({"metadata": {"managedFields": entries, "resourceVersion": live.version}});
            api.patch(&child.name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .map_err(Error::write(child.label()))?;
            tracing::info!(
                kind = child.resource.kind,
                name = child.name,
                namespace = fleet.namespace,
                "child was edited by hand: repairing"
            );
        }
        Ok(Some(live))
    }

    /// Deletes children of the fleet that the plan does not name. Returns how many.
    pub async fn delete_others(&self, client: &Client, fleet: &Fleet, planned: &[Child]) -> Result<usize, Error> {
        let mut deleted = 0;
        for kind in self.kinds.values() {
            for (name, uid) in (kind.owned_by)(&fleet.namespace, &fleet.uid) {
                let wanted = planned
                    .iter()
                    .any(|c| c.resource.kind == kind.resource.kind && c.name == name);
                if wanted {
                    continue;
                }
                let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &fleet.namespace, &kind.resource);
                let params = DeleteParams {
                    preconditions: Some(Preconditions {
                        uid: Some(uid),
                        resource_version: None,
                    }),
                    ..DeleteParams::background()
                };
                match api.delete(&name, &params).await {
                    Ok(_) => deleted += 1,
                    Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
                    Err(error) => return Err(Error::write(format!("{} {name}", kind.resource.kind))(error)),
                }
                tracing::info!(
                    kind = kind.resource.kind,
                    name,
                    namespace = fleet.namespace,
                    "child is no longer planned: deleted"
                );
            }
        }
        Ok(deleted)
    }

    /// Forgets what was written for a fleet that is gone.
    pub fn forget(&self, namespace: &str, deployment: &str) {
        let prefix = format!("{deployment}-");
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(ns, _, name), _| ns != namespace || !name.starts_with(&prefix));
    }
}

/// Shared by the fleet controller's reconciles.
pub type SharedChildren = Arc<Children>;

fn key(fleet: &Fleet, child: &Child) -> (String, String, String) {
    (fleet.namespace.clone(), child.resource.kind.clone(), child.name.clone())
}

fn owned(live: &Live, fleet: &Fleet) -> bool {
    live.controller.as_ref().is_some_and(|o| o.uid == fleet.uid)
}

fn prune<K>(object: &mut PartialObjectMeta<K>, manager: &str)
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let meta = &mut object.metadata;
    let foreign = foreign::has_foreign_fields(meta.managed_fields.as_deref().unwrap_or_default(), manager);
    meta.managed_fields = None;
    meta.annotations = foreign.then(|| [(FOREIGN_MARK.to_owned(), String::new())].into());
}

//! One MoEDeployment in a namespace of its own.

use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use anyhow::{Context, Result};
use coterie_crds::{
    conditions, names,
    v1alpha1::{CalibrationRun, CentroidTable, MoEDeployment, MoEDeploymentSpec, MoEDeploymentStatus},
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Namespace, Pod, Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    client::OpenAi,
    prompts::{RecordedPrompt, json_lines},
    spec::{MODEL, NAME, PROMPTS},
    suite::Suite,
    wait::{Look, until},
};

/// Longest wait for a fleet to settle, on a machine of two busy cores.
pub const SETTLE: Duration = Duration::from_secs(180);

/// A fleet under test.
#[derive(Clone)]
pub struct Fleet {
    /// The test's own client.
    pub client: Client,
    /// The fleet's namespace.
    pub namespace: String,
}

impl Fleet {
    /// Makes the namespace (anew, if a broken run left one), the calibration prompts and the MoEDeployment.
    ///
    /// # Errors
    /// When the API server refuses any of them.
    pub async fn create(
        suite: &Suite,
        namespace: &str,
        spec: MoEDeploymentSpec,
        prompts: &[RecordedPrompt],
    ) -> Result<Self> {
        let fleet = Self::namespace(suite, namespace).await?;
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(PROMPTS.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(
                "prompts.jsonl".to_owned(),
                json_lines(prompts, MODEL, 32),
            )])),
            ..ConfigMap::default()
        };
        fleet
            .api::<ConfigMap>()
            .create(&PostParams::default(), &map)
            .await
            .context("create the prompts")?;
        fleet
            .api()
            .create(&PostParams::default(), &MoEDeployment::new(NAME, spec))
            .await
            .context("create the fleet")?;
        Ok(fleet)
    }

    /// Makes an empty namespace.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn namespace(suite: &Suite, name: &str) -> Result<Self> {
        let client = suite.client().await?;
        let fleet = Self {
            client: client.clone(),
            namespace: name.to_owned(),
        };
        fleet.delete_namespace().await?;
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        Api::<Namespace>::all(client)
            .create(&PostParams::default(), &namespace)
            .await
            .context("create the namespace")?;
        Ok(fleet)
    }

    /// Deletes the namespace and waits until it is gone: the next test needs its GPUs.
    ///
    /// # Errors
    /// When it does not go.
    pub async fn delete_namespace(&self) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        if namespaces.get_opt(&self.namespace).await?.is_none() {
            return Ok(());
        }
        namespaces.delete(&self.namespace, &DeleteParams::default()).await?;
        until("the namespace to go", SETTLE, || async {
            let left = namespaces.get_opt(&self.namespace).await?;
            Ok(left.map_or(Look::Done(()), |left| Look::NotYet(format!("{:?}", left.status))))
        })
        .await
    }

    /// An API of the fleet's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Every object of a kind that belongs to the fleet.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn children<K>(&self) -> Result<Vec<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let selector = format!("{}={NAME}", names::LABEL_DEPLOYMENT);
        Ok(self
            .api::<K>()
            .list(&ListParams::default().labels(&selector))
            .await?
            .items)
    }

    /// The MoEDeployment.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn get(&self) -> Result<MoEDeployment> {
        Ok(self.api().get(NAME).await?)
    }

    /// Its status.
    ///
    /// # Errors
    /// When it is gone.
    pub async fn status(&self) -> Result<MoEDeploymentStatus> {
        Ok(self.get().await?.status.unwrap_or_default())
    }

    /// Merges a patch into the spec.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn patch(&self, spec: Value) -> Result<MoEDeployment> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        Ok(self.api().patch(NAME, &PatchParams::default(), &patch).await?)
    }

    /// Waits until a condition of the current generation has the given status.
    ///
    /// # Errors
    /// When it does not come to it: with the whole status.
    pub async fn condition(&self, kind: &str, wanted: &str) -> Result<()> {
        until(&format!("{kind}={wanted} in {}", self.namespace), SETTLE, || async {
            let fleet = self.get().await?;
            let status = fleet.status.clone().unwrap_or_default();
            let condition = status.conditions.iter().find(|condition| condition.type_ == kind);
            let holds = condition.is_some_and(|condition| {
                condition.status == wanted && condition.observed_generation == fleet.metadata.generation
            });
            Ok(if holds {
                Look::Done(())
            } else {
                Look::NotYet(serde_json::to_string(&status)?)
            })
        })
        .await
    }

    /// Waits until the fleet is Ready, Calibrated, and all routers have the table.
    ///
    /// # Errors
    /// When it does not come to it.
    pub async fn settle(&self) -> Result<MoEDeploymentStatus> {
        for kind in [conditions::READY, conditions::CALIBRATED, conditions::TABLE_PROPAGATED] {
            self.condition(kind, "True").await?;
        }
        self.status().await
    }

    /// A client of the fleet's router Service, by its cluster address.
    ///
    /// # Errors
    /// When there is no Service.
    pub async fn router(&self) -> Result<OpenAi> {
        let service: Service = self.api().get(&names::router(NAME)).await?;
        let spec = service.spec.context("the router Service has no spec")?;
        let address = spec.cluster_ip.context("the router Service has no address")?;
        let port = spec
            .ports
            .unwrap_or_default()
            .first()
            .context("the router Service has no port")?
            .port;
        OpenAi::new(&format!("{address}:{port}"))
    }

    /// Pods of a role that are not being deleted, by name.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn pods(&self, role: &str) -> Result<Vec<Pod>> {
        let selector = format!("{}={NAME},{}={role}", names::LABEL_DEPLOYMENT, names::LABEL_ROLE);
        let mut pods = self
            .api::<Pod>()
            .list(&ListParams::default().labels(&selector))
            .await?
            .items;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        pods.sort_by_key(ResourceExt::name_any);
        Ok(pods)
    }

    /// Clients of the pods of a role, by pod name, on the given port.
    ///
    /// # Errors
    /// When a pod has no address.
    pub async fn pod_clients(&self, role: &str, port: u16) -> Result<Vec<(String, OpenAi)>> {
        let pods = self.pods(role).await?;
        pods.iter()
            .map(|pod| {
                let ip = pod
                    .status
                    .as_ref()
                    .and_then(|status| status.pod_ip.as_deref())
                    .context("pod has no address")?;
                Ok((pod.name_any(), OpenAi::new(&format!("{ip}:{port}"))?))
            })
            .collect()
    }

    /// Uids of all pods of both pools, by name.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn worker_uids(&self) -> Result<BTreeMap<String, String>> {
        let mut uids = BTreeMap::new();
        for role in [names::ROLE_PREFILL, names::ROLE_DECODE] {
            uids.extend(
                self.pods(role)
                    .await?
                    .iter()
                    .map(|pod| (pod.name_any(), pod.uid().unwrap_or_default())),
            );
        }
        Ok(uids)
    }

    /// The fleet's calibration runs.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn runs(&self) -> Result<Vec<CalibrationRun>> {
        let mut runs = self.api::<CalibrationRun>().list(&ListParams::default()).await?.items;
        runs.retain(|run| run.spec.deployment == NAME);
        Ok(runs)
    }

    /// The fleet's tables.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn tables(&self) -> Result<Vec<CentroidTable>> {
        Ok(self.api::<CentroidTable>().list(&ListParams::default()).await?.items)
    }
}

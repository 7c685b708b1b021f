//! The MoEDeployment that a reconcile works on, as its children know it.

use std::{collections::BTreeMap, fmt};

use coterie_crds::{names, v1alpha1::MoEDeployment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use crate::error::Error;

/// Identity of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fleet {
    /// Namespace.
    pub namespace: String,
    /// Name of the MoEDeployment.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl Fleet {
    /// Identity of an object read from the API server.
    pub fn of(deployment: &MoEDeployment) -> Result<Self, Error> {
        let meta = &deployment.metadata;
        let take = |value: &Option<String>, what| value.clone().ok_or(Error::Incomplete(what));
        Ok(Self {
            namespace: take(&meta.namespace, "namespace")?,
            name: take(&meta.name, "name")?,
            uid: take(&meta.uid, "uid")?,
        })
    }

    /// Owner reference of every child.
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: MoEDeployment::api_version(&()).into_owned(),
            kind: MoEDeployment::kind(&()).into_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// Labels of every child.
    pub fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (names::LABEL_MANAGED_BY.into(), names::MANAGED_BY.into()),
            (names::LABEL_DEPLOYMENT.into(), self.name.clone()),
        ])
    }

    /// Labels of a child with a role, on pods too.
    pub fn role_labels(&self, role: &str) -> BTreeMap<String, String> {
        let mut labels = self.labels();
        labels.insert(names::LABEL_APP.into(), app_name(role).into());
        labels.insert(names::LABEL_ROLE.into(), role.into());
        labels
    }

    /// What selects the pods of a role.
    pub fn selector(&self, role: &str) -> BTreeMap<String, String> {
        BTreeMap::from([
            (names::LABEL_DEPLOYMENT.into(), self.name.clone()),
            (names::LABEL_ROLE.into(), role.into()),
        ])
    }

    /// Metadata of a child.
    pub fn child(&self, name: impl Into<String>, labels: BTreeMap<String, String>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some(self.namespace.clone()),
            labels: Some(labels),
            owner_references: Some(vec![self.owner_reference()]),
            ..ObjectMeta::default()
        }
    }
}

impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn app_name(role: &str) -> &'static str {
    match role {
        names::ROLE_ROUTER => "coterie-router",
        names::ROLE_CALIBRATOR => "coterie-calibrator",
        _ => "coterie-engine",
    }
}

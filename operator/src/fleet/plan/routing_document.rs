//! The ConfigMap of the routing document.

use std::collections::BTreeMap;

use coterie_crds::{names, routing::RoutingDocument};
use k8s_openapi::api::core::v1::ConfigMap;

use super::super::resolve::Resolved;
use crate::{error::Error, kube_io::children::Child};

pub(super) fn config_map(resolved: &Resolved, document: &RoutingDocument) -> Result<Child, Error> {
    let fleet = &resolved.fleet;
    let text = serde_json::to_string_pretty(document).map_err(|source| Error::Render {
        what: "routing document",
        source,
    })?;
    Child::of(&ConfigMap {
        metadata: fleet.child(names::routing_document(&fleet.name), fleet.labels()),
        data: Some(BTreeMap::from([(names::ROUTING_DOCUMENT_KEY.into(), text)])),
        ..ConfigMap::default()
    })
}

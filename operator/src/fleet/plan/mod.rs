//! What a fleet's child objects should be: pure functions from a resolved spec and a routing document.

mod disruption;
mod engine;
mod network;
mod pool;
mod rbac;
mod router;
mod routing_document;
mod security;

pub use security::{own_container, own_pod};

use coterie_crds::{names, routing::RoutingDocument};

use super::{resolve::Resolved, rollout::Partitions};
use crate::{error::Error, kube_io::children::Child};

/// All children but the admin Secret, in the order in which they are written: what something else needs comes first, so that a router never
/// starts without its rights and its document, nor a worker without a router.
pub fn plan(
    resolved: &Resolved,
    document: &RoutingDocument,
    more_chunks: &[String],
    partitions: Partitions,
) -> Result<Vec<Child>, Error> {
    let mut children = rbac::service_accounts(resolved)?;
    children.extend(rbac::bindings(resolved, document, more_chunks)?);
    children.push(routing_document::config_map(resolved, document)?);
    children.extend(router::children(resolved)?);
    children.push(network::admin_policy(resolved)?);
    if let Some(prefill) = &resolved.spec.prefill {
        children.extend(pool::children(
            resolved,
            prefill,
            names::ROLE_PREFILL,
            partitions.prefill,
        )?);
    }
    let decode = &resolved.spec.decode;
    children.extend(pool::children(resolved, decode, names::ROLE_DECODE, partitions.decode)?);
    Ok(children)
}

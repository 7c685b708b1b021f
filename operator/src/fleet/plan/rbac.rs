//! Identities of routers and calibration Jobs, and what they may do. The operator holds every right that it grants here.

use coterie_crds::{names, routing::RoutingDocument};
use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
};

use super::super::resolve::Resolved;
use crate::{error::Error, kube_io::children::Child};

pub(super) fn service_accounts(resolved: &Resolved) -> Result<Vec<Child>, Error> {
    let fleet = &resolved.fleet;
    [
        (names::router(&fleet.name), names::ROLE_ROUTER),
        (names::calibrator(&fleet.name), names::ROLE_CALIBRATOR),
    ]
    .into_iter()
    .map(|(name, role)| {
        Child::of(&ServiceAccount {
            metadata: fleet.child(name, fleet.role_labels(role)),
            // Pods ask for their token themselves, so a namespace that switches it off changes nothing.
            automount_service_account_token: Some(false),
            ..ServiceAccount::default()
        })
    })
    .collect()
}

/// `more_chunks`: of a table that routers may still be reading.
pub(super) fn bindings(
    resolved: &Resolved,
    document: &RoutingDocument,
    more_chunks: &[String],
) -> Result<Vec<Child>, Error> {
    let fleet = &resolved.fleet;
    let router = names::router(&fleet.name);
    let calibrator = names::calibrator(&fleet.name);
    let mut readable = vec![names::routing_document(&fleet.name)];
    readable.extend(document.table.iter().flat_map(|t| t.chunks.iter().cloned()));
    readable.extend(more_chunks.iter().cloned());
    readable.sort();
    readable.dedup();
    let role = Role {
        metadata: fleet.child(router.clone(), fleet.role_labels(names::ROLE_ROUTER)),
        rules: Some(vec![PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["configmaps".into()]),
            resource_names: Some(readable),
            verbs: ["get", "list", "watch"].map(Into::into).into(),
            ..PolicyRule::default()
        }]),
    };
    Ok(vec![
        Child::of(&role)?,
        Child::of(&binding(
            resolved,
            router.clone(),
            names::ROLE_ROUTER,
            "Role",
            &router,
            &router,
        ))?,
        Child::of(&binding(
            resolved,
            format!("{router}-pods"),
            names::ROLE_ROUTER,
            "ClusterRole",
            names::CLUSTER_ROLE_ROUTER,
            &router,
        ))?,
        Child::of(&binding(
            resolved,
            calibrator.clone(),
            names::ROLE_CALIBRATOR,
            "ClusterRole",
            names::CLUSTER_ROLE_CALIBRATOR,
            &calibrator,
        ))?,
    ])
}

fn binding(resolved: &Resolved, name: String, role: &str, kind: &str, target: &str, account: &str) -> RoleBinding {
    let fleet = &resolved.fleet;
    RoleBinding {
        metadata: fleet.child(name, fleet.role_labels(role)),
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".into(),
            kind: kind.into(),
            name: target.into(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".into(),
            name: account.into(),
            namespace: Some(fleet.namespace.clone()),
            ..Subject::default()
        }]),
    }
}

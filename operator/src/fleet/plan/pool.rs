//! A pool of workers: StatefulSet, governing Service, PodDisruptionBudget.

use coterie_crds::{names, v1alpha1::Pool};
use k8s_openapi::{
    api::{
        apps::v1::{RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy},
        core::v1::{PodTemplateSpec, Service, ServiceSpec},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use super::{super::resolve::Resolved, disruption, engine, router::service_port};
use crate::{error::Error, kube_io::children::Child};

pub(super) fn children(
    resolved: &Resolved,
    pool: &Pool,
    role: &'static str,
    partition: i32,
) -> Result<Vec<Child>, Error> {
    let name = name(resolved, role);
    Ok(vec![
        Child::of(&governing_service(resolved, &name, role))?,
        Child::of(&stateful_set(resolved, pool, role, partition))?,
        disruption::budget(resolved, &name, role, pool.update.max_unavailable)?,
    ])
}

fn name(resolved: &Resolved, role: &str) -> String {
    if role == names::ROLE_PREFILL {
        names::prefill_pool(&resolved.fleet.name)
    } else {
        names::decode_pool(&resolved.fleet.name)
    }
}

fn stateful_set(resolved: &Resolved, pool: &Pool, role: &str, partition: i32) -> StatefulSet {
    let name = name(resolved, role);
    let fleet = &resolved.fleet;
    let mut labels = fleet.role_labels(role);
    labels.insert(names::LABEL_REVISION.into(), resolved.revision.clone());
    StatefulSet {
        metadata: fleet.child(name.clone(), fleet.role_labels(role)),
        spec: Some(StatefulSetSpec {
            replicas: Some(pool.replicas),
            service_name: Some(name.clone()),
            selector: LabelSelector {
                match_labels: Some(fleet.selector(role)),
                match_expressions: None,
            },
            pod_management_policy: Some("Parallel".into()),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".into()),
                // API servers that do not know maxUnavailable here replace one worker after the other.
                rolling_update: Some(RollingUpdateStatefulSetStrategy {
                    max_unavailable: Some(IntOrString::Int(pool.update.max_unavailable)),
                    partition: Some(partition),
                }),
            }),
            revision_history_limit: Some(3),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(engine::pod(resolved, pool, role)),
            },
            ..StatefulSetSpec::default()
        }),
        status: None,
    }
}

fn governing_service(resolved: &Resolved, name: &str, role: &str) -> Service {
    let fleet = &resolved.fleet;
    Service {
        metadata: fleet.child(name, fleet.role_labels(role)),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".into()),
            selector: Some(fleet.selector(role)),
            ports: Some(vec![service_port("http", i32::from(names::ENGINE_PORT), "http")]),
            publish_not_ready_addresses: Some(false),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

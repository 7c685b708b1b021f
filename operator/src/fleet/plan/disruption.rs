//! PodDisruptionBudgets: node drains take no more pods at once than the spec allows to be missing.

use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use super::super::resolve::Resolved;
use crate::{error::Error, kube_io::children::Child};

pub(super) fn budget(resolved: &Resolved, name: &str, role: &str, max_unavailable: i32) -> Result<Child, Error> {
    let fleet = &resolved.fleet;
    Child::of(&PodDisruptionBudget {
        metadata: fleet.child(name, fleet.role_labels(role)),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(max_unavailable)),
            selector: Some(LabelSelector {
                match_labels: Some(fleet.selector(role)),
                match_expressions: None,
            }),
            // A pod that is not ready serves nobody: it must not hold up a drain.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".into()),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}

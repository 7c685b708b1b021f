//! Who may reach the routers' admin port: the operator, calibration Jobs, other routers. All other ports stay open.

use coterie_crds::names;
use k8s_openapi::{
    api::networking::v1::{
        NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use super::super::resolve::Resolved;
use crate::{error::Error, kube_io::children::Child};

/// Value of the label `app.kubernetes.io/name` on the operator's pods, in any namespace.
const OPERATOR_APP: &str = "coterie-operator";

pub(super) fn admin_policy(resolved: &Resolved) -> Result<Child, Error> {
    let fleet = &resolved.fleet;
    let pods = |labels: std::collections::BTreeMap<String, String>| {
        Some(LabelSelector {
            match_labels: Some(labels),
            match_expressions: None,
        })
    };
    let peers = [names::ROLE_ROUTER, names::ROLE_CALIBRATOR]
        .map(|role| NetworkPolicyPeer {
            pod_selector: pods(fleet.selector(role)),
            ..NetworkPolicyPeer::default()
        })
        .into_iter()
        .chain([NetworkPolicyPeer {
            namespace_selector: Some(LabelSelector::default()),
            pod_selector: pods([(names::LABEL_APP.to_owned(), OPERATOR_APP.to_owned())].into()),
            ip_block: None,
        }])
        .collect();
    let rule = |ports: &[u16], from: Option<Vec<NetworkPolicyPeer>>| NetworkPolicyIngressRule {
        from,
        ports: Some(
            ports
                .iter()
                .map(|port| NetworkPolicyPort {
                    port: Some(IntOrString::Int(i32::from(*port))),
                    protocol: Some("TCP".into()),
                    end_port: None,
                })
                .collect(),
        ),
    };
    Child::of(&NetworkPolicy {
        metadata: fleet.child(names::router(&fleet.name), fleet.role_labels(names::ROLE_ROUTER)),
        spec: Some(NetworkPolicySpec {
            pod_selector: pods(fleet.selector(names::ROLE_ROUTER)),
            policy_types: Some(vec!["Ingress".into()]),
            ingress: Some(vec![
                rule(&[names::ROUTER_HTTP_PORT, names::METRICS_PORT], None),
                rule(&[names::ROUTER_ADMIN_PORT], Some(peers)),
            ]),
            egress: None,
        }),
    })
}

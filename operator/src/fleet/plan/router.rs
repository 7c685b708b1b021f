//! The routers: Deployment, client Service, headless admin Service, PodDisruptionBudget.

use coterie_crds::names;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{
            Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, KeyToPath, ObjectFieldSelector, PodSpec,
            PodTemplateSpec, Probe, ResourceRequirements, SecretVolumeSource, Service, ServicePort, ServiceSpec,
            TopologySpreadConstraint, Volume, VolumeMount,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};

use super::{super::resolve::Resolved, disruption, security};
use crate::{error::Error, kube_io::children::Child};

/// Where the admin key is mounted.
const ADMIN_FOLDER: &str = "/etc/coterie/admin";
/// Seconds from the end signal until a router takes no more connections: load balancers have noticed by then.
const DRAIN_DELAY_SECONDS: i64 = 5;
/// Seconds that running streams have from then on.
const DRAIN_SECONDS: i64 = 60;
/// Port of the client Service.
const SERVICE_PORT: i32 = 80;

pub(super) fn children(resolved: &Resolved) -> Result<Vec<Child>, Error> {
    Ok(vec![
        Child::of(&deployment(resolved))?,
        Child::of(&service(resolved))?,
        Child::of(&admin_service(resolved))?,
        disruption::budget(resolved, &names::router(&resolved.fleet.name), names::ROLE_ROUTER, 1)?,
    ])
}

fn deployment(resolved: &Resolved) -> Deployment {
    let fleet = &resolved.fleet;
    let selector = fleet.selector(names::ROLE_ROUTER);
    Deployment {
        metadata: fleet.child(names::router(&fleet.name), fleet.role_labels(names::ROLE_ROUTER)),
        spec: Some(DeploymentSpec {
            replicas: Some(resolved.spec.routing.router.replicas),
            selector: LabelSelector {
                match_labels: Some(selector),
                match_expressions: None,
            },
            // A new router is ready before an old one leaves.
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".into()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_unavailable: Some(IntOrString::Int(0)),
                    max_surge: Some(IntOrString::Int(1)),
                }),
            }),
            revision_history_limit: Some(3),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(fleet.role_labels(names::ROLE_ROUTER)),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(resolved)),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn pod(resolved: &Resolved) -> PodSpec {
    let fleet = &resolved.fleet;
    PodSpec {
        service_account_name: Some(names::router(&fleet.name)),
        automount_service_account_token: Some(true),
        enable_service_links: Some(false),
        security_context: Some(security::own_pod()),
        termination_grace_period_seconds: Some(DRAIN_DELAY_SECONDS + DRAIN_SECONDS + 5),
        topology_spread_constraints: Some(vec![TopologySpreadConstraint {
            max_skew: 1,
            topology_key: "kubernetes.io/hostname".into(),
            when_unsatisfiable: "ScheduleAnyway".into(),
            label_selector: Some(LabelSelector {
                match_labels: Some(fleet.selector(names::ROLE_ROUTER)),
                match_expressions: None,
            }),
            ..TopologySpreadConstraint::default()
        }]),
        volumes: Some(vec![Volume {
            name: "admin".into(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(names::admin_secret(&fleet.name)),
                items: Some(vec![KeyToPath {
                    key: names::ADMIN_TOKEN_KEY.into(),
                    path: names::ADMIN_TOKEN_KEY.into(),
                    mode: None,
                }]),
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        }]),
        containers: vec![container(resolved)],
        ..PodSpec::default()
    }
}

fn container(resolved: &Resolved) -> Container {
    let fleet = &resolved.fleet;
    let quantity = |text: &str| Quantity(text.into());
    Container {
        name: "router".into(),
        image: Some(resolved.router_image.clone()),
        args: Some(
            [
                "--deployment",
                &fleet.name,
                "--namespace",
                &fleet.namespace,
                "--admin-token-file",
                &format!("{ADMIN_FOLDER}/{}", names::ADMIN_TOKEN_KEY),
                "--drain-delay",
                &format!("{DRAIN_DELAY_SECONDS}s"),
                "--drain-timeout",
                &format!("{DRAIN_SECONDS}s"),
            ]
            .map(Into::into)
            .into(),
        ),
        env: Some(vec![
            field_env("POD_NAME", "metadata.name"),
            field_env("POD_NAMESPACE", "metadata.namespace"),
        ]),
        ports: Some(vec![
            port("http", names::ROUTER_HTTP_PORT),
            port("metrics", names::METRICS_PORT),
            port("admin", names::ROUTER_ADMIN_PORT),
        ]),
        readiness_probe: Some(probe("/readyz", 2, 2)),
        liveness_probe: Some(probe("/livez", 10, 3)),
        resources: Some(ResourceRequirements {
            requests: Some([("cpu".into(), quantity("100m")), ("memory".into(), quantity("128Mi"))].into()),
            limits: Some([("memory".into(), quantity("1Gi"))].into()),
            claims: None,
        }),
        security_context: Some(security::own_container()),
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        volume_mounts: Some(vec![VolumeMount {
            name: "admin".into(),
            mount_path: ADMIN_FOLDER.into(),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

fn service(resolved: &Resolved) -> Service {
    let fleet = &resolved.fleet;
    Service {
        metadata: fleet.child(names::router(&fleet.name), fleet.role_labels(names::ROLE_ROUTER)),
        spec: Some(ServiceSpec {
            selector: Some(fleet.selector(names::ROLE_ROUTER)),
            ports: Some(vec![service_port("http", SERVICE_PORT, "http")]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn admin_service(resolved: &Resolved) -> Service {
    let fleet = &resolved.fleet;
    Service {
        metadata: fleet.child(names::router_admin(&fleet.name), fleet.role_labels(names::ROLE_ROUTER)),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".into()),
            selector: Some(fleet.selector(names::ROLE_ROUTER)),
            ports: Some(vec![service_port(
                "admin",
                i32::from(names::ROUTER_ADMIN_PORT),
                "admin",
            )]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

pub(super) fn field_env(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.into(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: Some("v1".into()),
                field_path: path.into(),
            }),
            ..EnvVarSource::default()
        }),
    }
}

pub(super) fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.into()),
        container_port: i32::from(number),
        protocol: Some("TCP".into()),
        ..ContainerPort::default()
    }
}

pub(super) fn service_port(name: &str, number: i32, target: &str) -> ServicePort {
    ServicePort {
        name: Some(name.into()),
        port: number,
        target_port: Some(IntOrString::String(target.into())),
        protocol: Some("TCP".into()),
        ..ServicePort::default()
    }
}

fn probe(path: &str, period_seconds: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::String("metrics".into()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        failure_threshold: Some(failures),
        timeout_seconds: Some(2),
        ..Probe::default()
    }
}

//! The Job of a run.

use coterie_crds::{
    names,
    v1alpha1::{CalibrationRun, CalibrationSource, MoEDeployment, MoEDeploymentSpec, Prompts},
};
use k8s_openapi::{
    api::{
        batch::v1::{
            Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
            PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
        },
        core::v1::{
            ConfigMapVolumeSource, Container, KeyToPath, PodSpec, PodTemplateSpec, ResourceRequirements,
            SecretVolumeSource, Volume, VolumeMount,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, OwnerReference},
    },
};
use kube::{Resource, ResourceExt};

use crate::{
    error::Error,
    fleet::plan::{own_container, own_pod},
    owner::Fleet,
};

/// Name of the calibrator's container.
pub const CONTAINER: &str = "calibrator";
/// Exit codes that a retry does not mend: bad flags, bad input.
const HOPELESS: [i32; 2] = [64, 65];
const RETRIES: i32 = 2;
const DEADLINE_SECONDS: i64 = 3600;
/// A finished Job stays for a day, for its logs.
const KEEP_SECONDS: i32 = 86_400;
const PROMPTS_FOLDER: &str = "/prompts";
const ADMIN_FOLDER: &str = "/admin";

/// Where a run takes its samples from, as the calibrator is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Prompts of a ConfigMap, through the prefill workers.
    Prompts(Prompts),
    /// The routers' reservoirs, from this Unix time in milliseconds on.
    Live {
        /// Unix time in milliseconds.
        since_ms: u64,
    },
}

/// Resolves the source of a run.
pub fn source(run: &CalibrationRun, spec: &MoEDeploymentSpec) -> Result<Source, Error> {
    let since_ms = run
        .spec
        .samples_since
        .as_ref()
        .map_or(0, |t| t.0.as_millisecond().max(0).unsigned_abs());
    let prompts = spec.calibration.prompts.clone();
    let asked = run.spec.source.unwrap_or(spec.calibration.source);
    match (asked, prompts) {
        (CalibrationSource::Prompts, None) => Err(Error::InvalidSpec(
            "source Prompts needs spec.calibration.prompts in the MoEDeployment".into(),
        )),
        (CalibrationSource::Prompts | CalibrationSource::Auto, Some(prompts)) => {
            if spec.prefill.is_none() {
                return Err(Error::InvalidSpec(
                    "source Prompts needs a prefill pool: its workers return the routed experts".into(),
                ));
            }
            Ok(Source::Prompts(prompts))
        }
        (CalibrationSource::Live, _) | (CalibrationSource::Auto, None) => Ok(Source::Live { since_ms }),
    }
}

/// Clusters to fit: one for each decode worker.
pub fn clusters(spec: &MoEDeploymentSpec) -> i32 {
    spec.decode.replicas.max(1)
}

/// The Job of a run, named as the run.
pub fn job(fleet: &Fleet, deployment: &MoEDeployment, run: &CalibrationRun, source: &Source, image: &str) -> Job {
    let name = run.name_any();
    let mut labels = fleet.role_labels(names::ROLE_CALIBRATOR);
    labels.insert(names::LABEL_RUN.into(), name.clone());
    Job {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(fleet.namespace.clone()),
            labels: Some(labels.clone()),
            owner_references: run_owner(run).map(|o| vec![o]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            backoff_limit: Some(RETRIES),
            active_deadline_seconds: Some(DEADLINE_SECONDS),
            ttl_seconds_after_finished: Some(KEEP_SECONDS),
            pod_failure_policy: Some(failure_policy()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod(fleet, deployment, run, source, image)),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

/// Owner reference to a run.
fn run_owner(run: &CalibrationRun) -> Option<OwnerReference> {
    run.controller_owner_ref(&())
}

fn failure_policy() -> PodFailurePolicy {
    PodFailurePolicy {
        rules: vec![
            PodFailurePolicyRule {
                action: "FailJob".into(),
                on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
                    container_name: Some(CONTAINER.into()),
                    operator: "In".into(),
                    values: HOPELESS.into(),
                }),
                on_pod_conditions: None,
            },
            // A drained node is nobody's failure.
            PodFailurePolicyRule {
                action: "Ignore".into(),
                on_exit_codes: None,
                on_pod_conditions: Some(vec![PodFailurePolicyOnPodConditionsPattern {
                    type_: "DisruptionTarget".into(),
                    status: Some("True".into()),
                }]),
            },
        ],
    }
}

fn pod(fleet: &Fleet, deployment: &MoEDeployment, run: &CalibrationRun, source: &Source, image: &str) -> PodSpec {
    let (volume, mount) = input(fleet, source);
    let quantity = |text: &str| Quantity(text.into());
    PodSpec {
        service_account_name: Some(names::calibrator(&fleet.name)),
        automount_service_account_token: Some(true),
        enable_service_links: Some(false),
        restart_policy: Some("Never".into()),
        security_context: Some(own_pod()),
        volumes: Some(vec![volume]),
        containers: vec![Container {
            name: CONTAINER.into(),
            image: Some(image.to_owned()),
            args: Some(arguments(fleet, &deployment.spec, run, source)),
            resources: Some(ResourceRequirements {
                requests: Some([("cpu".into(), quantity("100m")), ("memory".into(), quantity("256Mi"))].into()),
                limits: Some([("memory".into(), quantity("4Gi"))].into()),
                claims: None,
            }),
            security_context: Some(own_container()),
            volume_mounts: Some(vec![mount]),
            ..Container::default()
        }],
        ..PodSpec::default()
    }
}

fn input(fleet: &Fleet, source: &Source) -> (Volume, VolumeMount) {
    let item = |key: &str| {
        Some(vec![KeyToPath {
            key: key.into(),
            path: key.into(),
            mode: None,
        }])
    };
    let (folder, mut volume) = match source {
        Source::Prompts(prompts) => (
            PROMPTS_FOLDER,
            Volume {
                config_map: Some(ConfigMapVolumeSource {
                    name: prompts.config_map.name.clone(),
                    items: item(&prompts.config_map.key),
                    ..ConfigMapVolumeSource::default()
                }),
                ..Volume::default()
            },
        ),
        Source::Live { .. } => (
            ADMIN_FOLDER,
            Volume {
                secret: Some(SecretVolumeSource {
                    secret_name: Some(names::admin_secret(&fleet.name)),
                    items: item(names::ADMIN_TOKEN_KEY),
                    ..SecretVolumeSource::default()
                }),
                ..Volume::default()
            },
        ),
    };
    volume.name = "input".into();
    let mount = VolumeMount {
        name: "input".into(),
        mount_path: folder.into(),
        read_only: Some(true),
        ..VolumeMount::default()
    };
    (volume, mount)
}

fn arguments(fleet: &Fleet, spec: &MoEDeploymentSpec, run: &CalibrationRun, source: &Source) -> Vec<String> {
    let geometry = &spec.model.geometry;
    let mut args: Vec<String> = vec!["run".into()];
    let mut flag = |name: &str, value: String| {
        args.push(format!("--{name}"));
        args.push(value);
    };
    flag("namespace", fleet.namespace.clone());
    flag("deployment", fleet.name.clone());
    flag("owner-uid", fleet.uid.clone());
    flag("run", run.name_any());
    flag("model", spec.model.name.clone());
    flag("layers", geometry.layers.to_string());
    flag("experts", geometry.experts.to_string());
    flag("top-k", geometry.top_k.to_string());
    flag("clusters", clusters(spec).to_string());
    flag("samples", spec.calibration.samples.to_string());
    flag("min-samples", spec.calibration.min_samples.to_string());
    match source {
        Source::Prompts(prompts) => {
            flag("source", "Prompts".into());
            flag("prompts-file", format!("{PROMPTS_FOLDER}/{}", prompts.config_map.key));
            let pool = names::prefill_pool(&fleet.name);
            flag(
                "probe",
                format!("{pool}.{}.svc:{}", fleet.namespace, names::ENGINE_PORT),
            );
        }
        Source::Live { since_ms } => {
            flag("source", "Live".into());
            let service = names::router_admin(&fleet.name);
            flag(
                "router-admin",
                format!("{service}.{}.svc:{}", fleet.namespace, names::ROUTER_ADMIN_PORT),
            );
            flag("admin-token-file", format!("{ADMIN_FOLDER}/{}", names::ADMIN_TOKEN_KEY));
            flag("since-ms", since_ms.to_string());
        }
    }
    args
}

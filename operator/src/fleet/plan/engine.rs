//! The engine pod of a worker: vLLM's command line, probes, GPUs.

use std::{collections::BTreeMap, time::Duration};

use coterie_crds::{
    names,
    v1alpha1::{Connector, Pool},
};
use k8s_openapi::{
    api::core::v1::{
        Container, EmptyDirVolumeSource, EnvVar, HTTPGetAction, Lifecycle, LifecycleHandler,
        PersistentVolumeClaimVolumeSource, PodSpec, Probe, ResourceRequirements, SleepAction, Toleration, Volume,
        VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};
use serde_json::json;

use super::{
    super::resolve::Resolved,
    router::{field_env, port},
    security,
};

/// Node label of AMD's device plugin.
const PRODUCT_LABEL: &str = "amd.com/gpu.product-name";
const MODEL_FOLDER: &str = "/models";
/// A worker leaves routing at once when it is asked to stop; this covers routers whose watch is late.
const PRE_STOP_SECONDS: i64 = 5;
/// Loading a large model from a network volume may take this long.
const STARTUP_SECONDS: i32 = 30 * 60;
const STARTUP_PERIOD_SECONDS: i32 = 2;

pub(super) fn pod(resolved: &Resolved, pool: &Pool, role: &str) -> PodSpec {
    let drain = if role == names::ROLE_PREFILL {
        resolved.prefill_drain
    } else {
        resolved.decode_drain
    };
    let product = pool.gpus.as_ref().and_then(|g| g.product.clone());
    PodSpec {
        containers: vec![container(resolved, pool, role)],
        // Engines have no business with the API server.
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(security::pod()),
        termination_grace_period_seconds: Some(seconds(drain) + PRE_STOP_SECONDS),
        node_selector: product.map(|product| BTreeMap::from([(PRODUCT_LABEL.into(), product)])),
        tolerations: pool.gpus.as_ref().map(|gpus| {
            vec![Toleration {
                key: Some(gpus.resource.clone()),
                operator: Some("Exists".into()),
                effect: Some("NoSchedule".into()),
                ..Toleration::default()
            }]
        }),
        volumes: Some(volumes(resolved)),
        ..PodSpec::default()
    }
}

fn container(resolved: &Resolved, pool: &Pool, role: &str) -> Container {
    let engine = &resolved.spec.engine;
    Container {
        name: "engine".into(),
        image: Some(engine.image.clone()),
        command: Some(engine.command.clone().unwrap_or_else(|| vec!["vllm".into()])),
        args: Some(arguments(resolved, pool, role)),
        env: Some(environment(resolved, pool)),
        ports: Some(vec![port("http", names::ENGINE_PORT), port("kv", names::KV_PORT)]),
        startup_probe: Some(probe(
            STARTUP_PERIOD_SECONDS,
            STARTUP_SECONDS / STARTUP_PERIOD_SECONDS,
            2,
        )),
        readiness_probe: Some(probe(5, 3, 5)),
        // Only a worker that stays silent for a minute is restarted: under load an engine may answer late.
        liveness_probe: Some(probe(10, 6, 10)),
        lifecycle: Some(Lifecycle {
            pre_stop: Some(LifecycleHandler {
                sleep: Some(SleepAction {
                    seconds: PRE_STOP_SECONDS,
                }),
                ..LifecycleHandler::default()
            }),
            ..Lifecycle::default()
        }),
        resources: pool.gpus.as_ref().map(|gpus| ResourceRequirements {
            limits: Some([(gpus.resource.clone(), Quantity(gpus.per_worker.to_string()))].into()),
            requests: None,
            claims: None,
        }),
        security_context: Some(security::container()),
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        volume_mounts: Some(volume_mounts(resolved)),
        ..Container::default()
    }
}

fn arguments(resolved: &Resolved, pool: &Pool, role: &str) -> Vec<String> {
    let spec = &resolved.spec;
    let mut args: Vec<String> = [
        "serve",
        &model_path(resolved),
        "--served-model-name",
        &spec.model.name,
        "--host",
        "0.0.0.0",
        "--port",
        &names::ENGINE_PORT.to_string(),
    ]
    .map(Into::into)
    .into();
    let prefill = role == names::ROLE_PREFILL;
    if spec.engine.transfer.connector == Connector::Nixl {
        let kv_role = if prefill { "kv_producer" } else { "kv_consumer" };
        args.push("--kv-transfer-config".into());
        args.push(json!({"kv_connector": "NixlConnector", "kv_role": kv_role}).to_string());
    }
    if prefill {
        args.push("--enable-return-routed-experts".into());
    }
    args.extend(spec.engine.args.iter().cloned());
    args.extend(pool.args.iter().cloned());
    args
}

/// The operator's own variables, then the engine's, then the pool's; a later one of the same name wins in the place of the earlier.
fn environment(resolved: &Resolved, pool: &Pool) -> Vec<EnvVar> {
    let mut env = vec![
        field_env("POD_NAME", "metadata.name"),
        field_env("POD_IP", "status.podIP"),
    ];
    let fixed = |name: &str, value: &str| EnvVar {
        name: name.into(),
        value: Some(value.into()),
        value_from: None,
    };
    if resolved.spec.engine.transfer.connector == Connector::Nixl {
        env.push(fixed("VLLM_NIXL_SIDE_CHANNEL_HOST", "$(POD_IP)"));
        env.push(fixed("VLLM_NIXL_SIDE_CHANNEL_PORT", &names::KV_PORT.to_string()));
    }
    for variable in resolved.spec.engine.env.iter().chain(&pool.env) {
        let new = fixed(&variable.name, &variable.value);
        match env.iter_mut().find(|old| old.name == new.name) {
            Some(old) => *old = new,
            None => env.push(new),
        }
    }
    env
}

fn model_path(resolved: &Resolved) -> String {
    let source = &resolved.spec.model.source;
    if let Some(path) = &source.path {
        return path.clone();
    }
    let folder = source
        .volume
        .as_ref()
        .and_then(|v| v.path.as_deref())
        .unwrap_or_default();
    format!("{MODEL_FOLDER}/{}", folder.trim_matches('/'))
        .trim_end_matches('/')
        .to_owned()
}

fn volumes(resolved: &Resolved) -> Vec<Volume> {
    let mut volumes = vec![Volume {
        name: "shared-memory".into(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: Some("Memory".into()),
            size_limit: None,
        }),
        ..Volume::default()
    }];
    if let Some(volume) = &resolved.spec.model.source.volume {
        volumes.push(Volume {
            name: "model".into(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: volume.claim_name.clone(),
                read_only: Some(true),
            }),
            ..Volume::default()
        });
    }
    volumes
}

fn volume_mounts(resolved: &Resolved) -> Vec<VolumeMount> {
    let mount = |name: &str, path: &str, read_only: Option<bool>| VolumeMount {
        name: name.into(),
        mount_path: path.into(),
        read_only,
        ..VolumeMount::default()
    };
    let mut mounts = vec![mount("shared-memory", "/dev/shm", None)];
    if resolved.spec.model.source.volume.is_some() {
        mounts.push(mount("model", MODEL_FOLDER, Some(true)));
    }
    mounts
}

fn probe(period_seconds: i32, failures: i32, timeout_seconds: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some("/health".into()),
            port: IntOrString::String("http".into()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        failure_threshold: Some(failures),
        timeout_seconds: Some(timeout_seconds),
        ..Probe::default()
    }
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs_f64().ceil() as u64).unwrap_or(i64::MAX)
}

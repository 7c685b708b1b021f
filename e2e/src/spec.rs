//! The MoEDeployment that tests start from: small, quick, with short windows.

use coterie_crds::v1alpha1::{
    Calibration, ConfigMapKey, Connector, Drift, Engine, EngineKind, EnvVar, Geometry, Gpus, MoEDeploymentSpec, Model,
    ModelSource, Pool, Prompts, Router, Routing, Transfer, Update,
};

/// Name of every test fleet; each has a namespace of its own.
pub const NAME: &str = "tiny-moe";
/// Served model name.
pub const MODEL: &str = "tiny-moe";
/// ConfigMap of the calibration prompts.
pub const PROMPTS: &str = "calibration-prompts";

/// A fleet of 1 prefill worker, 2 decode workers and 1 router whose engines run twenty times as fast as a GPU would.
pub fn small(engine_image: &str) -> MoEDeploymentSpec {
    MoEDeploymentSpec {
        model: Model {
            name: MODEL.to_owned(),
            source: ModelSource {
                volume: None,
                path: Some("/models/tiny-moe".to_owned()),
            },
            geometry: Geometry {
                layers: 6,
                experts: 64,
                top_k: 4,
            },
        },
        engine: Engine {
            kind: EngineKind::Vllm,
            image: engine_image.to_owned(),
            command: Some(vec!["/coterie-engine-sim".to_owned()]),
            transfer: Transfer {
                connector: Connector::Nixl,
            },
            args: Vec::new(),
            env: vec![env("SIM_TIME_SCALE", "0.05")],
        },
        prefill: Some(pool(1)),
        decode: pool(2),
        routing: Routing {
            router: Router {
                replicas: 1,
                image: None,
            },
            ..Routing::default()
        },
        calibration: Calibration {
            prompts: Some(Prompts {
                config_map: ConfigMapKey {
                    name: PROMPTS.to_owned(),
                    key: "prompts.jsonl".to_owned(),
                },
            }),
            samples: 240,
            min_samples: 100,
            ..Calibration::default()
        },
        drift: Drift {
            window: "8s".to_owned(),
            cooldown: "1h".to_owned(),
            ..Drift::default()
        },
    }
}

/// An environment variable.
pub fn env(name: &str, value: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn pool(replicas: i32) -> Pool {
    Pool {
        replicas,
        gpus: Some(Gpus {
            resource: "amd.com/gpu".to_owned(),
            per_worker: 1,
            product: Some("AMD_Instinct_MI300X_OAM".to_owned()),
        }),
        args: Vec::new(),
        env: Vec::new(),
        update: Update { max_unavailable: 1 },
        drain: "30s".to_owned(),
    }
}

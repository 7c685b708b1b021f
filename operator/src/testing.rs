//! Fixtures of the tests: the example fleet, pods, tables and runs, each with modifiers.

use coterie_crds::{
    names,
    v1alpha1::{
        Baselines, CalibrationRun, CalibrationRunSpec, CalibrationRunStatus, CentroidTable, CentroidTableSpec,
        CentroidTableStatus, Fingerprint, MoEDeployment, RunPhase, RunReason, RunReport, TablePhase,
    },
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use crate::{
    context::Settings,
    fleet::{
        resolve::{Resolved, resolve},
        workers::PodView,
    },
};

/// A time in seconds.
pub(crate) fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

/// A committed example, as if read from an API server.
pub(crate) fn example(name: &str) -> MoEDeployment {
    let path = format!("{}/../examples/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut deployment: MoEDeployment = serde_yaml_ng::from_str(&text).unwrap();
    deployment.metadata.namespace = Some("team-a".into());
    deployment.metadata.uid = Some("uid-1".into());
    deployment.metadata.generation = Some(3);
    deployment
}

/// The operator's settings.
pub(crate) fn settings() -> Settings {
    Settings {
        router_image: "registry.example/router:1".into(),
        calibrator_image: "registry.example/calibrator:1".into(),
    }
}

/// An example, resolved.
pub(crate) fn resolved(name: &str) -> Resolved {
    resolve(&example(name), &settings()).unwrap()
}

/// The tiny example, resolved.
pub(crate) fn tiny() -> Resolved {
    resolved("tiny-moe")
}

/// A ready pod of the tiny example.
pub(crate) fn pod(role: &str, ordinal: i32, revision: &str) -> PodView {
    PodView {
        name: format!("tiny-moe-{role}-{ordinal}"),
        role: role.into(),
        revision: revision.into(),
        template: "newest".into(),
        ip: Some(format!("10.0.0.{ordinal}")),
        ready: true,
        terminating: false,
        trouble: None,
    }
}

/// All pods of the tiny example, ready.
pub(crate) fn pods(resolved: &Resolved) -> Vec<PodView> {
    let prefill = resolved.spec.prefill.as_ref().map_or(0, |p| p.replicas);
    let workers = |role, count| (0..count).map(move |ordinal| (role, ordinal));
    workers(names::ROLE_DECODE, resolved.spec.decode.replicas)
        .chain(workers(names::ROLE_PREFILL, prefill))
        .map(|(role, ordinal)| pod(role, ordinal, &resolved.revision))
        .chain((0..resolved.spec.routing.router.replicas).map(|n| pod(names::ROLE_ROUTER, n, "")))
        .collect()
}

/// A table of the tiny example.
pub(crate) fn table(name: &str, created: i64, phase: Option<TablePhase>) -> CentroidTable {
    let model = example("tiny-moe").spec.model;
    let mut table = CentroidTable::new(
        name,
        CentroidTableSpec {
            deployment: "tiny-moe".into(),
            run: name.into(),
            fingerprint: Fingerprint {
                model: model.name,
                geometry: model.geometry,
            },
            transform: "CountIdf, 6 of 6 layers".into(),
            clusters: 4,
            digest: format!("sha256:{created:064}"),
            payload_bytes: 1000,
            chunks: vec![format!("{name}-0")],
            report: RunReport {
                samples: 300,
                rho: Some("0.6234".into()),
                ..RunReport::default()
            },
            baselines: Baselines {
                fit: "0.8".into(),
                fit_error: "0.002".into(),
                skew: "1.2".into(),
                samples: 300,
                cluster_shares: ["0.3", "0.3", "0.2", "0.2"].map(Into::into).into(),
            },
        },
    );
    table.metadata.creation_timestamp = Some(at(created));
    table.status = phase.map(|phase| CentroidTableStatus {
        phase: Some(phase),
        ..CentroidTableStatus::default()
    });
    table
}

/// A run of the tiny example.
pub(crate) fn run(name: &str, created: i64, reason: RunReason, phase: RunPhase) -> CalibrationRun {
    let mut run = CalibrationRun::new(
        name,
        CalibrationRunSpec {
            deployment: "tiny-moe".into(),
            reason,
            source: None,
            samples_since: None,
        },
    );
    run.metadata.uid = Some(format!("uid-{name}"));
    run.metadata.creation_timestamp = Some(at(created));
    run.status = Some(CalibrationRunStatus {
        phase,
        ..CalibrationRunStatus::default()
    });
    run
}

/// Compares rendered YAML with a committed file; `UPDATE=1` writes it.
pub(crate) fn golden(name: &str, rendered: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, rendered).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == rendered,
        "{path} is not what the code renders. A changed pod template replaces every worker at an operator upgrade: be sure, then UPDATE=1"
    );
}

//! From apply to Ready and Calibrated, repair, deletion, operator restarts.

use std::time::Duration;

use anyhow::{Result, ensure};
use coterie_crds::{
    names,
    v1alpha1::{CentroidTable, MoEDeployment},
};
use coterie_e2e::{
    fleet::{Fleet, SETTLE},
    prompts, spec,
    suite::{OPERATOR_NAMESPACE, RELEASE, Suite, kubectl},
    wait::{Look, until},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    batch::v1::Job,
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount},
    policy::v1::PodDisruptionBudget,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

const DOMAINS: [&str; 4] = ["python", "legal", "zh", "ru"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applied_fleet_becomes_ready_and_calibrated() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-apply", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    let status = fleet.settle().await?;

    let table = status.table.expect("a calibrated fleet has a table");
    ensure!(
        table.clusters == 2,
        "K is the number of decode workers, not {}",
        table.clusters
    );
    let rho: f64 = table.rho.as_deref().unwrap_or_default().parse()?;
    ensure!(rho > 0.3, "the recording's rho is about 0.6, the fit says {rho}");
    let decode = status.decode.expect("the decode pool is observed");
    ensure!((decode.ready, decode.desired) == (2, 2), "{decode:?}");
    ensure!(fleet.runs().await?.len() == 1, "one run for the first table");

    let line = kubectl(&["-n", &fleet.namespace, "get", "moe", spec::NAME]).await?;
    for column in [
        "MODEL",
        "PREFILL",
        "DECODE",
        "TABLE",
        "DRIFT",
        "READY",
        "1/1",
        "2/2",
        &table.name,
        "True",
    ] {
        ensure!(line.contains(column), "kubectl get moe lacks {column}:\n{line}");
    }
    let explained = kubectl(&["explain", "moe.spec.routing.localityBand.tau"]).await?;
    ensure!(
        explained.contains("cosine"),
        "kubectl explain must teach the field:\n{explained}"
    );
    fleet.delete_namespace().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_edited_by_hand_is_repaired() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-repair", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    fleet.settle().await?;

    let patch = PatchParams::default();
    let router = names::router(spec::NAME);
    let scaled = Patch::Merge(json!({"spec": {"replicas": 3}}));
    fleet.api::<Deployment>().patch(&router, &patch, &scaled).await?;
    let ports = Patch::Merge(json!({"spec": {"selector": {names::LABEL_ROLE: "nobody"}}}));
    fleet.api::<Service>().patch(&router, &patch, &ports).await?;
    let document = Patch::Merge(json!({"data": {names::ROUTING_DOCUMENT_KEY: "{}"}}));
    fleet
        .api::<ConfigMap>()
        .patch(&names::routing_document(spec::NAME), &patch, &document)
        .await?;

    until("the children to be repaired", SETTLE, || async {
        let replicas = fleet
            .api::<Deployment>()
            .get(&router)
            .await?
            .spec
            .and_then(|spec| spec.replicas);
        let selector = fleet
            .api::<Service>()
            .get(&router)
            .await?
            .spec
            .and_then(|spec| spec.selector)
            .unwrap_or_default();
        let document = fleet
            .api::<ConfigMap>()
            .get(&names::routing_document(spec::NAME))
            .await?
            .data
            .unwrap_or_default();
        let role = selector.get(names::LABEL_ROLE).cloned();
        let whole = document
            .get(names::ROUTING_DOCUMENT_KEY)
            .is_some_and(|text| text.contains("generation"));
        let repaired = replicas == Some(1) && role.as_deref() == Some(names::ROLE_ROUTER) && whole;
        Ok(if repaired {
            Look::Done(())
        } else {
            Look::NotYet(format!("{replicas:?} {role:?} {whole}"))
        })
    })
    .await?;
    fleet.delete_namespace().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_deleted_while_the_operator_is_down_is_recreated() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-recreate", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    fleet.settle().await?;

    scale_operator(0).await?;
    let router = names::router(spec::NAME);
    fleet.api::<Service>().delete(&router, &DeleteParams::default()).await?;
    fleet
        .api::<ConfigMap>()
        .delete(&names::routing_document(spec::NAME), &DeleteParams::default())
        .await?;
    scale_operator(1).await?;

    until("the children to be recreated", SETTLE, || async {
        let service = fleet.api::<Service>().get_opt(&router).await?.is_some();
        let document = fleet
            .api::<ConfigMap>()
            .get_opt(&names::routing_document(spec::NAME))
            .await?
            .is_some();
        Ok(if service && document {
            Look::Done(())
        } else {
            Look::NotYet(format!("{service} {document}"))
        })
    })
    .await?;
    fleet.settle().await?;
    fleet.delete_namespace().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_fleet_leaves_nothing() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-delete", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    fleet.settle().await?;

    fleet
        .api::<MoEDeployment>()
        .delete(spec::NAME, &DeleteParams::default())
        .await?;
    until("every child to go", SETTLE, || async {
        let mut left = Vec::new();
        macro_rules! look {
            ($($kind:ty),*) => { $( left.extend(fleet.children::<$kind>().await?.iter().map(|child| format!("{} {}", stringify!($kind), child.name_any()))); )* };
        }
        look!(StatefulSet, Deployment, Pod, Service, ConfigMap, Secret, ServiceAccount, Role, RoleBinding, PodDisruptionBudget, Job);
        look!(PersistentVolumeClaim, CentroidTable);
        left.extend(fleet.runs().await?.iter().map(|run| format!("CalibrationRun {}", run.name_any())));
        Ok(if left.is_empty() { Look::Done(()) } else { Look::NotYet(left.join(", ")) })
    })
    .await?;
    fleet.delete_namespace().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_restarted_while_pools_come_up_changes_no_pod() -> Result<()> {
    let suite = Suite::start().await?;
    let spec = spec::small(suite.image("engine-sim")?);
    let fleet = Fleet::create(&suite, "e2e-restart", spec, &prompts::recorded(&DOMAINS, 240)?).await?;
    let before = until("the pools' pods to exist", SETTLE, || async {
        let uids = fleet.worker_uids().await?;
        Ok(if uids.len() == 3 {
            Look::Done(uids)
        } else {
            Look::NotYet(format!("{uids:?}"))
        })
    })
    .await?;
    let operators = [
        "-n",
        OPERATOR_NAMESPACE,
        "delete",
        "pod",
        "-l",
        "app.kubernetes.io/name=coterie-operator",
    ];
    kubectl(&[&operators[..], &["--grace-period=0", "--force", "--wait=false"]].concat()).await?;
    fleet.settle().await?;

    let after = fleet.worker_uids().await?;
    ensure!(before == after, "the restart moved pods: {before:?} became {after:?}");
    ensure!(
        fleet.runs().await?.len() == 1,
        "the restart must not start a second run"
    );
    fleet.delete_namespace().await
}

async fn scale_operator(replicas: u32) -> Result<()> {
    let deployment = format!("deployment/{RELEASE}-operator");
    kubectl(&[
        "-n",
        OPERATOR_NAMESPACE,
        "scale",
        &deployment,
        &format!("--replicas={replicas}"),
    ])
    .await?;
    if replicas > 0 {
        let wait = [
            "-n",
            OPERATOR_NAMESPACE,
            "rollout",
            "status",
            &deployment,
            "--timeout=120s",
        ];
        return kubectl(&wait).await.map(drop);
    }
    until("the operator to stop", Duration::from_secs(60), || async {
        let pods = [
            "-n",
            OPERATOR_NAMESPACE,
            "get",
            "pods",
            "-l",
            "app.kubernetes.io/name=coterie-operator",
            "-o",
            "name",
        ];
        let left = kubectl(&pods).await?;
        Ok(if left.contains("pod/") {
            Look::NotYet(left)
        } else {
            Look::Done(())
        })
    })
    .await
}

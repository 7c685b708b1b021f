use coterie_crds::{
    conditions, names,
    v1alpha1::{MoEDeploymentStatus, PoolStatus},
};
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentStatus, StatefulSet, StatefulSetStatus},
    apimachinery::pkg::apis::meta::v1::Condition,
};

use crate::{
    fleet::{
        document::decide,
        observe::Workloads,
        resolve::Resolved,
        status::{Facts, derive},
        workers::PodView,
    },
    testing::{at, pods, tiny},
};

fn set(generation: i64, observed: i64) -> StatefulSet {
    let mut set = StatefulSet::default();
    set.metadata.generation = Some(generation);
    set.status = Some(StatefulSetStatus {
        observed_generation: Some(observed),
        update_revision: Some("newest".into()),
        ..StatefulSetStatus::default()
    });
    set
}

fn workloads() -> Workloads {
    let mut router = Deployment::default();
    router.metadata.generation = Some(1);
    router.status = Some(DeploymentStatus {
        observed_generation: Some(1),
        replicas: Some(2),
        updated_replicas: Some(2),
        ..DeploymentStatus::default()
    });
    Workloads {
        prefill: Some(set(1, 1)),
        decode: Some(set(1, 1)),
        router: Some(router),
        refusals: std::collections::BTreeMap::new(),
    }
}

fn conditions_of(
    resolved: &Resolved,
    pods: &[PodView],
    workloads: &Workloads,
    failure: Option<&str>,
) -> Vec<Condition> {
    let document = decide(resolved, pods, None, None, 0).document;
    let facts = Facts {
        resolved,
        pods,
        workloads,
        document: Some(&document),
        acknowledgement: None,
        failure,
    };
    let (status, _) = derive(&facts, &MoEDeploymentStatus::default(), &at(1));
    serde_json::from_value(serde_json::to_value(status).unwrap()["conditions"].clone()).unwrap()
}

fn get<'a>(conditions: &'a [Condition], kind: &str) -> &'a Condition {
    conditions.iter().find(|c| c.type_ == kind).unwrap()
}

#[test]
fn a_whole_fleet_is_ready() {
    let resolved = tiny();
    let conditions = conditions_of(&resolved, &pods(&resolved), &workloads(), None);
    for kind in ["Available", "PrefillAvailable", "DecodeAvailable", "Ready"] {
        assert_eq!(get(&conditions, kind).status, "True", "{kind}");
    }
    assert_eq!(get(&conditions, conditions::PROGRESSING).status, "False");
    assert!(conditions.iter().all(|c| c.observed_generation == Some(3)));
}

#[test]
fn two_of_three_is_not_ready_and_names_the_pod() {
    let resolved = tiny();
    let mut pods = pods(&resolved);
    let stuck = pods.iter_mut().find(|p| p.name == "tiny-moe-decode-2").unwrap();
    stuck.ready = false;
    stuck.trouble = Some("Unschedulable: 0/1 nodes are available: 1 Insufficient amd.com/gpu".into());
    let conditions = conditions_of(&resolved, &pods, &workloads(), None);
    let ready = get(&conditions, conditions::READY);
    assert_eq!(ready.status, "False");
    assert_eq!(
        ready.message,
        "3 of 4 decode workers are ready; pod tiny-moe-decode-2: Unschedulable: 0/1 nodes are available: 1 Insufficient amd.com/gpu"
    );
    assert_eq!(
        get(&conditions, conditions::DECODE_AVAILABLE).status,
        "True",
        "one may be missing"
    );
    assert_eq!(
        get(&conditions, conditions::AVAILABLE).status,
        "True",
        "it serves all the same"
    );
}

#[test]
fn pods_that_a_quota_keeps_from_existing_are_missed() {
    let resolved = tiny();
    let mut pods = pods(&resolved);
    pods.retain(|p| p.name != "tiny-moe-decode-3");
    let conditions = conditions_of(&resolved, &pods, &workloads(), None);
    let ready = get(&conditions, conditions::READY);
    assert_eq!(
        ready.message,
        "3 of 4 decode workers are ready; StatefulSet tiny-moe-decode: 3 of 4 pods exist"
    );
    let mut refused = workloads();
    refused.refusals.insert(
        "tiny-moe-decode".into(),
        "pods \"x\" is forbidden: exceeded quota: gpus".into(),
    );
    let conditions = conditions_of(&resolved, &pods, &refused, None);
    let message = &get(&conditions, conditions::READY).message;
    assert!(
        message.ends_with("cannot create pods: pods \"x\" is forbidden: exceeded quota: gpus"),
        "{message}"
    );
}

#[test]
fn old_pods_do_not_satisfy_a_new_spec() {
    let mut resolved = tiny();
    let pods = pods(&resolved);
    resolved.revision = "another".into();
    let conditions = conditions_of(&resolved, &pods, &workloads(), None);
    assert_eq!(get(&conditions, conditions::READY).status, "False");
    assert_eq!(get(&conditions, conditions::PROGRESSING).status, "True");
    assert_eq!(
        get(&conditions, conditions::AVAILABLE).status,
        "True",
        "the old revision serves"
    );
}

#[test]
fn a_workload_that_its_controller_has_not_seen_is_not_settled() {
    let resolved = tiny();
    let stale = Workloads {
        decode: Some(set(3, 2)),
        ..workloads()
    };
    let conditions = conditions_of(&resolved, &pods(&resolved), &stale, None);
    assert_eq!(get(&conditions, conditions::READY).status, "False");
}

#[test]
fn an_object_that_cannot_be_written_is_named() {
    let resolved = tiny();
    let why = "Service tiny-moe-router exists and belongs to nobody";
    let conditions = conditions_of(&resolved, &pods(&resolved), &workloads(), Some(why));
    let ready = get(&conditions, conditions::READY);
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str(), ready.message.as_str()),
        ("False", "ApplyFailed", why)
    );
}

#[test]
fn without_a_router_the_fleet_does_not_serve() {
    let resolved = tiny();
    let mut pods = pods(&resolved);
    for router in pods.iter_mut().filter(|p| p.role == names::ROLE_ROUTER) {
        router.ready = false;
        router.trouble = Some("ImagePullBackOff (image r:1)".into());
    }
    let conditions = conditions_of(&resolved, &pods, &workloads(), None);
    let available = get(&conditions, conditions::AVAILABLE);
    assert_eq!(available.reason, "NoRouterReady");
    assert!(
        available.message.contains("pod tiny-moe-router-0: ImagePullBackOff"),
        "{}",
        available.message
    );
}

#[test]
fn without_a_prefill_worker_the_fleet_serves_and_says_how() {
    let resolved = tiny();
    let mut pods = pods(&resolved);
    for worker in pods.iter_mut().filter(|p| p.role == names::ROLE_PREFILL) {
        worker.ready = false;
        worker.trouble = Some("CrashLoopBackOff".into());
    }
    let told = conditions_of(&resolved, &pods, &workloads(), None);
    assert_eq!(get(&told, conditions::AVAILABLE).status, "True");
    for kind in [conditions::PREFILL_AVAILABLE, conditions::READY] {
        let condition = get(&told, kind);
        assert_eq!(condition.status, "False", "{kind}");
        assert!(
            condition.message.contains("0 of 2 prefill workers are ready")
                && condition.message.ends_with("decode workers compute prompts themselves"),
            "{kind}: {}",
            condition.message
        );
    }
    for worker in pods.iter_mut().filter(|p| p.role == names::ROLE_DECODE) {
        worker.ready = false;
    }
    let told = conditions_of(&resolved, &pods, &workloads(), None);
    let available = get(&told, conditions::AVAILABLE);
    assert_eq!(
        (available.status.as_str(), available.reason.as_str()),
        ("False", "NoRoutableRevision")
    );
    assert!(!get(&told, conditions::READY).message.contains("themselves"));
}

#[test]
fn the_same_facts_give_the_same_status() {
    let resolved = tiny();
    let pods = pods(&resolved);
    let workloads = workloads();
    let document = decide(&resolved, &pods, None, None, 0).document;
    let facts = Facts {
        resolved: &resolved,
        pods: &pods,
        workloads: &workloads,
        document: Some(&document),
        acknowledgement: None,
        failure: None,
    };
    let (first, transitions) = derive(&facts, &MoEDeploymentStatus::default(), &at(1));
    assert!(!transitions.is_empty());
    let current: MoEDeploymentStatus = serde_json::from_value(serde_json::to_value(&first).unwrap()).unwrap();
    let (second, transitions) = derive(&facts, &current, &at(2));
    assert_eq!(first, second, "a later moment alone changes nothing");
    assert!(transitions.is_empty());
    let decode: PoolStatus = current.decode.unwrap();
    assert_eq!((decode.ready, decode.updated, decode.summary.as_str()), (4, 4, "4/4"));
}

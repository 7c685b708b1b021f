use coterie_crds::{names, routing::RoutingDocument};
use serde_json::Value;

use crate::{
    fleet::{document, plan::plan, resolve::Resolved, revision::revision, rollout::Partitions},
    kube_io::children::Child,
    testing::{example, golden, pods, resolved, table, tiny},
};

fn document(resolved: &Resolved) -> RoutingDocument {
    let active = table("tiny-moe-initial", 1, None);
    document::decide(resolved, &pods(resolved), Some(&active), None, 6).document
}

fn children(resolved: &Resolved) -> Vec<Child> {
    plan(resolved, &document(resolved), &[], Partitions::default()).unwrap()
}

fn render(children: &[Child]) -> String {
    let bodies = children
        .iter()
        .map(|child| serde_yaml_ng::to_string(&child.body).unwrap());
    format!("---\n{}", bodies.collect::<Vec<_>>().join("---\n"))
}

fn find<'a>(children: &'a [Child], kind: &str, name: &str) -> &'a Value {
    let found = children.iter().find(|c| c.resource.kind == kind && c.name == name);
    &found.unwrap_or_else(|| panic!("no {kind} {name}")).body
}

#[test]
fn the_examples_render_as_committed() {
    for name in ["tiny-moe", "qwen3-30b-a3b-mi300x"] {
        golden(&format!("{name}.yaml"), &render(&children(&resolved(name))));
    }
}

#[test]
fn the_same_spec_plans_the_same() {
    assert_eq!(render(&children(&tiny())), render(&children(&tiny())));
}

#[test]
fn rights_and_document_come_before_routers_and_routers_before_workers() {
    let children = children(&tiny());
    let position = |kind: &str| children.iter().position(|c| c.resource.kind == kind).unwrap();
    let order = [
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Deployment",
        "StatefulSet",
    ]
    .map(position);
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn every_child_belongs_to_the_fleet() {
    for child in children(&tiny()) {
        let meta = &child.body["metadata"];
        assert_eq!(meta["ownerReferences"][0]["uid"], "uid-1", "{}", child.name);
        assert_eq!(meta["labels"][names::LABEL_DEPLOYMENT], "tiny-moe", "{}", child.name);
        assert_eq!(meta["labels"][names::LABEL_MANAGED_BY], "coterie", "{}", child.name);
        assert_eq!(meta["namespace"], "team-a", "{}", child.name);
    }
}

#[test]
fn a_router_reads_only_its_own_document_and_chunks() {
    let resolved = tiny();
    let children = plan(
        &resolved,
        &document(&resolved),
        &["older-0".into()],
        Partitions::default(),
    )
    .unwrap();
    let rules = &find(&children, "Role", "tiny-moe-router")["rules"];
    assert_eq!(
        rules[0]["resourceNames"],
        serde_json::json!(["older-0", "tiny-moe-initial-0", "tiny-moe-routing"])
    );
    assert_eq!(rules.as_array().unwrap().len(), 1);
}

#[test]
fn only_prefill_workers_return_experts() {
    let children = children(&tiny());
    let args = |pool: &str| {
        find(&children, "StatefulSet", pool)["spec"]["template"]["spec"]["containers"][0]["args"].to_string()
    };
    let (prefill, decode) = (args("tiny-moe-prefill"), args("tiny-moe-decode"));
    assert!(
        prefill.contains("--enable-return-routed-experts") && prefill.contains("kv_producer"),
        "{prefill}"
    );
    assert!(
        !decode.contains("--enable-return-routed-experts") && decode.contains("kv_consumer"),
        "{decode}"
    );
}

#[test]
fn a_pool_s_variable_wins_over_the_engine_s() {
    let mut deployment = example("tiny-moe");
    let variable = |value: &str| coterie_crds::v1alpha1::EnvVar {
        name: "VLLM_NIXL_SIDE_CHANNEL_PORT".into(),
        value: value.into(),
    };
    deployment.spec.engine.env = vec![variable("1")];
    deployment.spec.decode.env = vec![variable("2")];
    let resolved = crate::fleet::resolve::resolve(&deployment, &crate::testing::settings()).unwrap();
    let children = children(&resolved);
    let set = find(&children, "StatefulSet", "tiny-moe-decode");
    let env = set["spec"]["template"]["spec"]["containers"][0]["env"]
        .as_array()
        .unwrap();
    let values: Vec<_> = env
        .iter()
        .filter(|v| v["name"] == "VLLM_NIXL_SIDE_CHANNEL_PORT")
        .map(|v| &v["value"])
        .collect();
    assert_eq!(values, ["2"], "one variable, the pool's");
}

#[test]
fn without_a_prefill_pool_there_is_none_of_it() {
    let mut deployment = example("tiny-moe");
    deployment.spec.prefill = None;
    deployment.spec.engine.transfer.connector = coterie_crds::v1alpha1::Connector::None;
    let resolved = crate::fleet::resolve::resolve(&deployment, &crate::testing::settings()).unwrap();
    let children = children(&resolved);
    assert!(children.iter().all(|c| !c.name.contains("prefill")));
    let set = find(&children, "StatefulSet", "tiny-moe-decode").to_string();
    assert!(!set.contains("kv-transfer-config"), "{set}");
}

#[test]
fn sizes_drains_and_orders_of_variables_are_not_part_of_the_revision() {
    let spec = example("tiny-moe").spec;
    let before = revision(&spec).unwrap();
    let mut same = spec.clone();
    same.decode.replicas = 9;
    same.decode.drain = "5m".into();
    same.decode.update.max_unavailable = 3;
    same.routing.policy = coterie_crds::v1alpha1::Policy::LeastLoaded;
    assert_eq!(revision(&same).unwrap(), before);
    let variable = |name: &str| coterie_crds::v1alpha1::EnvVar {
        name: name.into(),
        value: "1".into(),
    };
    let with_env = |names: [&str; 2]| {
        let mut spec = spec.clone();
        spec.engine.env = names.map(variable).into();
        revision(&spec).unwrap()
    };
    assert_eq!(with_env(["A", "B"]), with_env(["B", "A"]));
    assert_ne!(with_env(["A", "B"]), before);
    let mut image = spec.clone();
    image.engine.image = "other".into();
    assert_ne!(revision(&image).unwrap(), before);
}

/// An operator upgrade must not replace workers: this value changes only with the meaning of the hash.
#[test]
fn the_revision_of_the_example_is_pinned() {
    assert_eq!(tiny().revision, "1b7ed9ed6e");
}

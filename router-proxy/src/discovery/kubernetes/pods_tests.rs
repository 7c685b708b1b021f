//! Pods as workers.

use serde_json::{Value, json};

use super::*;

fn pod(name: &str, change: impl Fn(&mut Value)) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "uid": "u1", "labels": {
            "coterie.dev/deployment": "d", "coterie.dev/role": "decode", "coterie.dev/revision": "r1"}},
        "status": {"phase": "Running", "podIP": "10.0.0.9", "conditions": [
            {"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}]}
    });
    change(&mut pod);
    serde_json::from_value(pod).unwrap()
}

#[test]
fn a_ready_pod_is_a_worker() {
    let spec = worker(&pod("d-0", |_| {})).unwrap();
    assert_eq!((spec.address.as_str(), spec.revision.as_str()), ("10.0.0.9:8000", "r1"));
    assert_eq!(
        (spec.role, spec.unready, spec.incarnation.as_str()),
        (Role::Decode, None, "u1")
    );
    let v6 = worker(&pod("d-0", |p| p["status"]["podIP"] = json!("fd00::9"))).unwrap();
    assert_eq!(v6.address, "[fd00::9]:8000");
}

#[test]
fn pods_that_may_not_be_routed_to_say_why() {
    let reason = |change: fn(&mut Value)| worker(&pod("d-0", change)).unwrap().unready;
    assert_eq!(
        reason(|p| p["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:00:00Z")),
        Some("Terminating")
    );
    assert_eq!(
        reason(|p| p["status"]["conditions"][1]["status"] = json!("False")),
        Some("NotReady")
    );
    assert_eq!(reason(|p| p["status"]["phase"] = json!("Failed")), Some("Ended"));
    assert_eq!(reason(|p| p["status"] = json!({})), Some("NotReady"));
    assert!(worker(&pod("r-0", |p| p["metadata"]["labels"]["coterie.dev/role"] = json!("router"))).is_none());
}

#[test]
fn a_relist_replaces_the_pods_only_when_it_is_whole() {
    let mut known = Known::default();
    let (a, b) = (pod("a", |_| {}), pod("b", |_| {}));
    assert!(!known.take(Event::Init));
    assert!(!known.take(Event::InitApply(a.clone())));
    assert!(known.pods.is_empty());
    assert!(known.take(Event::InitDone));
    assert!(known.take(Event::Apply(b.clone())));
    assert!(
        !known.take(Event::Apply(b.clone())),
        "nothing changed that routing needs"
    );
    // The watch breaks and lists anew, without b.
    assert!(!known.take(Event::Init));
    assert!(!known.take(Event::InitApply(a.clone())));
    assert_eq!(known.pods.len(), 2, "the old pods serve until the list is whole");
    assert!(known.take(Event::InitDone));
    assert_eq!(known.pods.keys().collect::<Vec<_>>(), ["a"]);
    assert!(known.take(Event::Delete(a)));
    assert!(known.pods.is_empty());
}

use coterie_crds::{
    names::{ROLE_DECODE, ROLE_PREFILL},
    routing::SignatureSource,
};

use crate::{
    fleet::{
        document::{Decision, decide},
        resolve::Resolved,
        workers::PodView,
    },
    testing::{pod, pods, table, tiny},
};

fn first(resolved: &Resolved) -> Decision {
    decide(resolved, &[], None, None, 0)
}

#[test]
fn the_first_document_has_neither_revision_nor_table() {
    let decision = first(&tiny());
    assert!(decision.changed);
    assert_eq!(decision.document.generation, 1);
    assert!(decision.document.revisions.is_empty() && decision.document.table.is_none());
}

#[test]
fn nothing_new_changes_nothing() {
    let resolved = tiny();
    let active = table("t", 1, None);
    let once = decide(
        &resolved,
        &pods(&resolved),
        Some(&active),
        Some(&first(&resolved).document),
        1,
    );
    assert_eq!((once.changed, once.document.generation), (true, 2));
    let again = decide(&resolved, &pods(&resolved), Some(&active), Some(&once.document), 2);
    assert_eq!((again.changed, &again.document), (false, &once.document));
    // Through JSON, as it is read back.
    let text = serde_json::to_string(&once.document).unwrap();
    let read = serde_json::from_str(&text).unwrap();
    assert!(!decide(&resolved, &pods(&resolved), Some(&active), Some(&read), 2).changed);
}

#[test]
fn a_recreated_document_is_newer_than_all_that_were_seen() {
    let resolved = tiny();
    assert_eq!(decide(&resolved, &[], None, None, 41).document.generation, 42);
}

#[test]
fn a_revision_is_listed_when_a_worker_can_answer() {
    let resolved = tiny();
    let wanted = resolved.revision.as_str();
    let listed = |pods: &[PodView]| decide(&resolved, pods, None, None, 0).document.revisions;
    assert!(listed(&[pod(ROLE_PREFILL, 0, wanted)]).is_empty(), "no decode worker");
    assert_eq!(
        listed(&[pod(ROLE_DECODE, 0, wanted), pod(ROLE_PREFILL, 0, wanted)]),
        [wanted]
    );
    let mut late = pod(ROLE_PREFILL, 0, wanted);
    late.ready = false;
    assert_eq!(
        listed(&[pod(ROLE_DECODE, 0, wanted), late]),
        [wanted],
        "decode workers answer without prefill workers"
    );
    let mut late = pod(ROLE_DECODE, 0, wanted);
    late.ready = false;
    assert!(
        listed(&[late, pod(ROLE_PREFILL, 0, wanted)]).is_empty(),
        "a worker that is not ready does not count"
    );
}

#[test]
fn without_a_ready_prefill_worker_the_revision_that_serves_goes_on() {
    let resolved = tiny();
    let wanted = resolved.revision.as_str();
    let mut before = first(&resolved).document;
    before.revisions = vec!["old".into()];
    let listed = |pods: &[PodView]| decide(&resolved, pods, None, Some(&before), 1).document.revisions;
    let mixed = [pod(ROLE_DECODE, 0, wanted), pod(ROLE_DECODE, 1, "old")];
    assert_eq!(listed(&mixed), ["old"], "what is listed stays");
    // The new prefill worker is there, and no decode worker of its revision.
    assert_eq!(
        listed(&[pod(ROLE_PREFILL, 0, wanted), pod(ROLE_DECODE, 1, "old")]),
        ["old"]
    );
    assert_eq!(
        listed(&mixed[..1]),
        [wanted],
        "another one, when that has no decode worker"
    );
    assert!(listed(&[]).is_empty());
}

#[test]
fn a_prefill_pool_of_no_workers_keeps_no_revision_out() {
    let mut resolved = tiny();
    resolved.spec.prefill.as_mut().unwrap().replicas = 0;
    let mut before = first(&resolved).document;
    before.revisions = vec!["old".into()];
    let wanted = resolved.revision.as_str();
    let mixed = [pod(ROLE_DECODE, 0, wanted), pod(ROLE_DECODE, 1, "old")];
    let listed = |pods: &[PodView]| decide(&resolved, pods, None, Some(&before), 1).document.revisions;
    assert_eq!(listed(&mixed), [wanted, "old"], "both answer as declared");
    assert_eq!(listed(&pods(&resolved)), [wanted]);
}

#[test]
fn the_old_revision_stays_until_the_wanted_one_is_rolled_out() {
    let resolved = tiny();
    let wanted = resolved.revision.as_str();
    let mut mixed = pods(&resolved);
    for old in mixed.iter_mut().filter(|p| p.name.ends_with("-0")) {
        "old".clone_into(&mut old.revision);
    }
    let listed = |pods: &[PodView]| decide(&resolved, pods, None, None, 0).document.revisions;
    assert_eq!(listed(&mixed), [wanted, "old"]);
    let mut done = pods(&resolved);
    done.push(pod(ROLE_DECODE, 9, "old"));
    done.push(pod(ROLE_PREFILL, 9, "old"));
    assert_eq!(listed(&done), [wanted]);
}

#[test]
fn a_wanted_revision_that_lost_its_workers_for_a_moment_stays_listed() {
    let resolved = tiny();
    let before = decide(&resolved, &pods(&resolved), None, None, 0).document;
    let empty = decide(&resolved, &[], None, Some(&before), 1);
    assert!(!empty.changed, "{:?}", empty.document.revisions);
}

#[test]
fn every_decode_worker_has_a_cluster_and_a_change_of_size_moves_little() {
    let mut resolved = tiny();
    let active = table("t", 1, None);
    let four = decide(&resolved, &pods(&resolved), Some(&active), None, 0).document;
    let mut clusters: Vec<u32> = four.assignment.values().copied().collect();
    clusters.sort_unstable();
    assert_eq!(clusters, [0, 1, 2, 3], "as many workers as clusters: one each");
    resolved.spec.decode.replicas = 6;
    let six = decide(&resolved, &pods(&resolved), Some(&active), Some(&four), 1).document;
    assert_eq!(six.assignment.len(), 6);
    assert!(
        four.assignment
            .iter()
            .all(|(worker, cluster)| six.assignment[worker] == *cluster)
    );
    resolved.spec.decode.replicas = 3;
    let three = decide(&resolved, &pods(&resolved), Some(&active), Some(&six), 2).document;
    assert!(
        three
            .assignment
            .iter()
            .all(|(worker, cluster)| four.assignment[worker] == *cluster)
    );
    let again = decide(&resolved, &pods(&resolved), Some(&active), Some(&three), 3);
    assert!(!again.changed, "the decision is a fixed point");
}

#[test]
fn the_source_of_signatures_reaches_the_routers() {
    let mut resolved = tiny();
    assert_eq!(first(&resolved).document.signature.source, SignatureSource::Auto);
    resolved.spec.routing.signature.source = coterie_crds::v1alpha1::SignatureSource::Text;
    let before = first(&tiny()).document;
    let changed = decide(&resolved, &[], None, Some(&before), 1);
    assert_eq!(
        (changed.changed, changed.document.signature.source),
        (true, SignatureSource::Text)
    );
}

use coterie_crds::names::{ROLE_DECODE, ROLE_PREFILL};

use crate::{
    fleet::{
        document::{decide, decoding_revisions, routable_revisions},
        resolve::Resolved,
        rollout::{Partitions, partitions},
        workers::PodView,
    },
    testing::{pods, tiny},
};

/// Pods of the example, all of an older revision.
fn all_old(resolved: &Resolved) -> Vec<PodView> {
    let mut pods = pods(resolved);
    for pod in pods.iter_mut().filter(|p| !p.revision.is_empty()) {
        "old".clone_into(&mut pod.revision);
    }
    pods
}

fn paced(resolved: &Resolved, pods: &[PodView], acknowledged: bool) -> Partitions {
    let document = decide(resolved, pods, None, None, 0).document;
    partitions(resolved, pods, &document, acknowledged.then_some(document.generation))
}

#[test]
fn nothing_is_held_back_at_rest_or_at_the_start() {
    let resolved = tiny();
    assert_eq!(paced(&resolved, &pods(&resolved), true), Partitions::default());
    assert_eq!(paced(&resolved, &[], false), Partitions::default());
}

#[test]
fn a_revision_that_never_served_is_replaced_at_once() {
    let resolved = tiny();
    let mut pods = all_old(&resolved);
    for pod in &mut pods {
        pod.ready = false;
    }
    assert_eq!(paced(&resolved, &pods, true), Partitions::default());
}

#[test]
fn the_last_old_prefill_worker_waits_until_decode_is_done() {
    let resolved = tiny();
    let pods = all_old(&resolved);
    assert_eq!(paced(&resolved, &pods, true), Partitions { prefill: 1, decode: 3 });
}

#[test]
fn a_rollout_goes_no_further_before_routers_know_the_new_revision() {
    let mut resolved = tiny();
    resolved.spec.decode.replicas = 2;
    let mut pods = all_old(&resolved);
    for pod in pods
        .iter_mut()
        .filter(|p| p.name.ends_with("-1") && !p.revision.is_empty())
    {
        pod.revision.clone_from(&resolved.revision);
    }
    assert_eq!(paced(&resolved, &pods, false), Partitions { prefill: 1, decode: 1 });
    assert_eq!(paced(&resolved, &pods, true).decode, 0);
}

#[test]
fn the_only_prefill_worker_goes_first_and_decode_when_it_is_back() {
    let mut resolved = tiny();
    resolved.spec.prefill.as_mut().unwrap().replicas = 1;
    let mut pods = all_old(&resolved);
    let prefill = pods.iter().position(|p| p.role == ROLE_PREFILL).unwrap();
    assert_eq!(paced(&resolved, &pods, true), Partitions { prefill: 0, decode: 4 });
    pods[prefill].revision.clone_from(&resolved.revision);
    pods[prefill].ready = false;
    assert_eq!(paced(&resolved, &pods, true), Partitions { prefill: 0, decode: 4 });
    pods[prefill].ready = true;
    assert_eq!(paced(&resolved, &pods, true), Partitions { prefill: 0, decode: 3 });
    // A decode worker that is of the new revision already stays so while the prefill worker is away.
    let decode = pods.iter().position(|p| p.name.ends_with("decode-3")).unwrap();
    pods[decode].revision.clone_from(&resolved.revision);
    pods[prefill].ready = false;
    assert_eq!(paced(&resolved, &pods, true), Partitions { prefill: 0, decode: 3 });
}

#[test]
fn the_last_old_worker_of_a_fleet_without_prefill_waits_for_the_routers() {
    for declared in [false, true] {
        let mut resolved = tiny();
        resolved.spec.prefill.as_mut().unwrap().replicas = 0;
        if !declared {
            resolved.spec.prefill = None;
        }
        resolved.spec.decode.replicas = 2;
        let mut pods = all_old(&resolved);
        assert_eq!(paced(&resolved, &pods, true).decode, 1);
        let newer = pods.iter_mut().find(|p| p.name.ends_with("decode-1")).unwrap();
        newer.revision.clone_from(&resolved.revision);
        assert_eq!(paced(&resolved, &pods, false).decode, 1, "not acknowledged");
        assert_eq!(paced(&resolved, &pods, true).decode, 0);
    }
}

/// A change made while the one before it is not through must not take the workers that are left.
#[test]
fn a_second_change_waits_for_workers_that_are_away_but_not_for_stuck_ones() {
    for prefill in [0, 2] {
        let mut resolved = tiny();
        resolved.spec.prefill.as_mut().unwrap().replicas = prefill;
        resolved.spec.decode.replicas = 2;
        let mut pods = all_old(&resolved);
        let last = pods.iter().position(|p| p.name.ends_with("decode-0")).unwrap();
        pods[last].ready = false;
        assert_eq!(paced(&resolved, &pods, true).decode, 2, "decode-0 is starting");
        let leaving = pods.remove(last);
        assert_eq!(paced(&resolved, &pods, true).decode, 2, "decode-0 is not there");
        pods.push(PodView {
            trouble: Some("ImagePullBackOff".to_owned()),
            ..leaving
        });
        assert_eq!(paced(&resolved, &pods, true).decode, 1, "fix-forward");
    }
}

#[test]
fn a_stuck_worker_at_the_front_is_replaced_at_no_cost_to_the_others() {
    let mut resolved = tiny();
    resolved.spec.decode.replicas = 3;
    let mut pods = all_old(&resolved);
    for pod in pods.iter_mut().filter(|p| p.name.ends_with("decode-2")) {
        pod.ready = false;
    }
    assert_eq!(paced(&resolved, &pods, true).decode, 2);
}

/// Plays StatefulSet: takes down what the partition allows, brings it back new and ready, one step at a time.
#[test]
fn some_listed_revision_answers_at_every_step_of_a_rollout() {
    for (prefill, decode, unavailable) in [
        (2, 4, 1),
        (4, 2, 1),
        (3, 12, 3),
        (2, 2, 1),
        (8, 3, 2),
        (1, 4, 1),
        (1, 2, 1),
        (1, 6, 3),
        (0, 3, 1),
    ] {
        let mut resolved = tiny();
        resolved.spec.decode.replicas = decode;
        resolved.spec.decode.update.max_unavailable = unavailable;
        resolved.spec.prefill.as_mut().unwrap().replicas = prefill;
        let mut pods = all_old(&resolved);
        let mut document = decide(&resolved, &pods, None, None, 0).document;
        let mut steps = 0;
        while pods.iter().any(|p| p.revision == "old") {
            document = decide(&resolved, &pods, None, Some(&document), 0).document;
            let allowed = partitions(&resolved, &pods, &document, Some(document.generation));
            for (role, partition) in [(ROLE_PREFILL, allowed.prefill), (ROLE_DECODE, allowed.decode)] {
                let ordinal = |p: &PodView| p.name.rsplit('-').next().unwrap().parse::<i32>().unwrap();
                let next = pods
                    .iter_mut()
                    .filter(|p| p.role == role && p.revision == "old" && ordinal(p) >= partition)
                    .max_by_key(|p| ordinal(p));
                if let Some(pod) = next {
                    pod.revision.clone_from(&resolved.revision);
                    pod.ready = false;
                }
            }
            let what = format!("{prefill}/{decode}, step {steps}");
            if prefill != 1 {
                assert!(
                    !routable_revisions(&pods, prefill > 0).is_empty(),
                    "{what}: nothing is routable"
                );
            }
            // What routers know while the pods are away, and what they are told then.
            for known in [&document, &decide(&resolved, &pods, None, Some(&document), 0).document] {
                let answers = decoding_revisions(&pods);
                assert!(known.revisions.iter().any(|r| answers.contains(r)), "{what}: 503");
            }
            for pod in &mut pods {
                pod.ready = true;
            }
            steps += 1;
            assert!(steps < 100, "{what}: the rollout stands still");
        }
    }
}

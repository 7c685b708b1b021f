//! What keeps a pool from being as declared: the object to look at first, and why.

use super::workers::PodView;

/// Whether a pod of a role says why it is not ready.
pub fn has_trouble(pods: &[PodView], role: &str) -> bool {
    pods.iter()
        .any(|p| p.role == role && !p.terminating && p.trouble.is_some())
}

/// Names the pod of a role that blocks, with its reason; `expected` pods should exist.
pub fn blocking(pods: &[PodView], role: &str, workload: &str, expected: i32, revision: Option<&str>) -> Option<String> {
    let of_role: Vec<&PodView> = pods.iter().filter(|p| p.role == role && !p.terminating).collect();
    let troubled = of_role.iter().find(|p| !p.ready && p.trouble.is_some());
    if let Some(pod) = troubled {
        return Some(format!(
            "pod {}: {}",
            pod.name,
            pod.trouble.as_deref().unwrap_or_default()
        ));
    }
    let waiting = of_role.iter().find(|p| !p.ready);
    if let Some(pod) = waiting {
        return Some(format!("pod {} is starting", pod.name));
    }
    let leaving = pods.iter().find(|p| p.role == role && p.terminating);
    if let Some(pod) = leaving.filter(|_| is_short(&of_role, expected)) {
        return Some(format!("pod {} is stopping", pod.name));
    }
    if is_short(&of_role, expected) {
        return Some(format!("{workload}: {} of {expected} pods exist", of_role.len()));
    }
    let old = of_role
        .iter()
        .find(|p| revision.is_some_and(|wanted| !p.revision.is_empty() && p.revision != wanted))?;
    Some(format!("pod {} still runs revision {}", old.name, old.revision))
}

fn is_short(of_role: &[&PodView], expected: i32) -> bool {
    i32::try_from(of_role.len()).unwrap_or(i32::MAX) < expected
}

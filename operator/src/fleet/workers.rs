//! A fleet's pods, reduced to what decisions need.

use coterie_crds::names;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::{ResourceExt, runtime::reflector::Store};

use crate::owner::Fleet;

/// A pod of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodView {
    /// Its name.
    pub name: String,
    /// `prefill`, `decode`, `router` or `calibrator`.
    pub role: String,
    /// Fleet revision, on workers.
    pub revision: String,
    /// Hash of the template that it was made from, as its StatefulSet or ReplicaSet labels it.
    pub template: String,
    /// Its address.
    pub ip: Option<String>,
    /// Whether it is Ready and not terminating.
    pub ready: bool,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Why it is not ready, if it says so.
    pub trouble: Option<String>,
}

/// A router that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterPod {
    /// Pod name.
    pub name: String,
    /// Pod IP.
    pub ip: String,
}

/// The fleet's pods, by name.
pub fn pods_of(store: &Store<Pod>, fleet: &Fleet) -> Vec<PodView> {
    let mut pods: Vec<PodView> = store
        .state_filter(|pod| {
            pod.metadata.namespace.as_deref() == Some(fleet.namespace.as_str())
                && pod.labels().get(names::LABEL_DEPLOYMENT) == Some(&fleet.name)
        })
        .iter()
        .map(|pod| view(pod))
        .collect();
    pods.sort_by(|a, b| a.name.cmp(&b.name));
    pods
}

/// Ready, not terminating routers.
pub fn ready_routers(pods: &[PodView]) -> Vec<RouterPod> {
    pods.iter()
        .filter(|p| p.role == names::ROLE_ROUTER && p.ready)
        .filter_map(|p| {
            Some(RouterPod {
                name: p.name.clone(),
                ip: p.ip.clone()?,
            })
        })
        .collect()
}

/// Reduces a pod.
pub fn view(pod: &Pod) -> PodView {
    let label = |key: &str| pod.labels().get(key).cloned().unwrap_or_default();
    let status = pod.status.as_ref();
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let ready = status
        .and_then(|s| s.conditions.as_ref())
        .is_some_and(|c| c.iter().any(|c| c.type_ == "Ready" && c.status == "True"));
    PodView {
        name: pod.name_any(),
        role: label(names::LABEL_ROLE),
        revision: label(names::LABEL_REVISION),
        template: ["controller-revision-hash", "pod-template-hash"]
            .iter()
            .map(|key| label(key))
            .find(|hash| !hash.is_empty())
            .unwrap_or_default(),
        ip: status.and_then(|s| s.pod_ip.clone()),
        ready: ready && !terminating,
        terminating,
        trouble: if ready { None } else { trouble(pod) },
    }
}

/// Keeps of a pod what [`view`] and the calibration controller read.
pub fn prune(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    pod.metadata.annotations = None;
    pod.metadata.owner_references = None;
    pod.spec = None;
}

fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let unschedulable = status
        .conditions
        .iter()
        .flatten()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False")
        .map(|c| {
            let reason = c.reason.as_deref().unwrap_or("Unschedulable");
            format!("{reason}: {}", c.message.as_deref().unwrap_or("no node fits"))
        });
    let mut containers = status
        .init_container_statuses
        .iter()
        .flatten()
        .chain(status.container_statuses.iter().flatten());
    unschedulable
        .or_else(|| containers.find_map(container_trouble))
        .or_else(|| {
            let reason = status.reason.as_deref()?;
            Some(format!("{reason}: {}", status.message.as_deref().unwrap_or_default()))
        })
}

fn container_trouble(container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref()?;
        if ["ContainerCreating", "PodInitializing"].contains(&reason) {
            return None;
        }
        // The kubelet counts the back-off down in this message: kept out, or the status would change all the time.
        let message = match reason {
            "CrashLoopBackOff" | "ImagePullBackOff" => last_exit(container).unwrap_or_default(),
            _ => waiting.message.clone().unwrap_or_default(),
        };
        let image = if reason.contains("Image") {
            format!(" (image {})", container.image)
        } else {
            String::new()
        };
        return Some(format!(
            "{reason}{image}{}{message}",
            if message.is_empty() { "" } else { ": " }
        ));
    }
    if state.terminated.as_ref().is_some_and(|t| t.exit_code != 0) {
        let ended = state.terminated.as_ref()?;
        return Some(format!(
            "container {} exited with code {}",
            container.name, ended.exit_code
        ));
    }
    None
}

fn last_exit(container: &ContainerStatus) -> Option<String> {
    let ended = container.last_state.as_ref()?.terminated.as_ref()?;
    let reason = ended.reason.as_deref().unwrap_or("ended");
    let said = ended.message.as_deref().and_then(last_line);
    Some(format!(
        "container {} {reason}, exit code {}{}",
        container.name,
        ended.exit_code,
        said.map(|line| format!(": {line}")).unwrap_or_default()
    ))
}

/// The last line of a termination message that says anything, cut to what a condition can show.
fn last_line(message: &str) -> Option<String> {
    let line = message.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crashing_container_says_its_last_line() {
        let container: ContainerStatus = serde_json::from_value(serde_json::json!({
            "name": "engine", "image": "e:1", "imageID": "", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "loading\nerror: no such model\n\n"}},
        }))
        .unwrap();
        assert_eq!(
            container_trouble(&container).unwrap(),
            "CrashLoopBackOff: container engine Error, exit code 1: error: no such model"
        );
        assert_eq!(last_line(" \n"), None);
        assert_eq!(last_line(&"é".repeat(500)).unwrap().chars().count(), 200);
    }
}

//! Follows the workers' pods. Of each pod only what routing needs is kept.

use std::{collections::BTreeMap, sync::Arc};

use coterie_crds::names::{ENGINE_PORT, LABEL_DEPLOYMENT, LABEL_REVISION, LABEL_ROLE, ROLE_DECODE, ROLE_PREFILL};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};

use crate::{
    core::Core,
    worker::{Role, WorkerSpec},
};

/// Keeps the routing state's workers up to date.
pub(super) async fn follow(client: Client, deployment: String, namespace: String, core: Arc<Core>) {
    let api: Api<Pod> = Api::namespaced(client, &namespace);
    let selector = format!("{LABEL_DEPLOYMENT}={deployment},{LABEL_ROLE} in ({ROLE_PREFILL},{ROLE_DECODE})");
    let events = watcher(api, watcher::Config::default().labels(&selector)).default_backoff();
    pin_mut!(events);
    let mut known = Known::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if known.take(event) {
                    core.routing.set_workers(known.pods.values().cloned().collect());
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the workers' pods cannot be watched; the last ones stay in use");
            }
        }
    }
}

#[derive(Default)]
struct Known {
    pods: BTreeMap<String, WorkerSpec>,
    /// A list that is being read: it replaces the pods when it is whole.
    listing: BTreeMap<String, WorkerSpec>,
}

impl Known {
    /// Whether the pods may have changed.
    fn take(&mut self, event: Event<Pod>) -> bool {
        match event {
            Event::Init => {
                self.listing.clear();
                false
            }
            Event::InitApply(pod) => {
                if let Some(spec) = worker(&pod) {
                    self.listing.insert(spec.name.clone(), spec);
                }
                false
            }
            Event::InitDone => {
                self.pods = std::mem::take(&mut self.listing);
                true
            }
            Event::Apply(pod) => match worker(&pod) {
                Some(spec) => {
                    let old = self.pods.insert(spec.name.clone(), spec.clone());
                    old.as_ref() != Some(&spec)
                }
                None => self.pods.remove(&pod.name_any()).is_some(),
            },
            Event::Delete(pod) => self.pods.remove(&pod.name_any()).is_some(),
        }
    }
}

fn worker(pod: &Pod) -> Option<WorkerSpec> {
    let labels = pod.labels();
    let role = match labels.get(LABEL_ROLE)?.as_str() {
        ROLE_PREFILL => Role::Prefill,
        ROLE_DECODE => Role::Decode,
        _ => return None,
    };
    let ip = pod
        .status
        .as_ref()
        .and_then(|s| s.pod_ip.as_deref())
        .unwrap_or_default();
    let address = match ip {
        "" => String::new(),
        ip if ip.contains(':') => format!("[{ip}]:{ENGINE_PORT}"),
        ip => format!("{ip}:{ENGINE_PORT}"),
    };
    Some(WorkerSpec {
        name: pod.name_any(),
        role,
        incarnation: pod.uid().unwrap_or_default(),
        address,
        revision: labels.get(LABEL_REVISION).cloned().unwrap_or_default(),
        unready: unready(pod),
    })
}

fn unready(pod: &Pod) -> Option<&'static str> {
    if pod.metadata.deletion_timestamp.is_some() {
        return Some("Terminating");
    }
    let status = pod.status.as_ref();
    if status
        .and_then(|s| s.phase.as_deref())
        .is_some_and(|p| matches!(p, "Failed" | "Succeeded"))
    {
        return Some("Ended");
    }
    let conditions = status.and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True");
    (!ready).then_some("NotReady")
}

#[cfg(test)]
#[path = "pods_tests.rs"]
mod tests;

//! Kubernetes Events. They tell what changed; failing to publish one never fails a reconcile.

use coterie_crds::v1alpha1::MoEDeployment;
use kube::{
    Resource,
    runtime::events::{Event, EventType, Recorder},
};

use super::conditions::Transition;

/// Longest note that the API server takes, in bytes.
const MAX_NOTE: usize = 1024;

/// Publishes one event about an object.
pub async fn publish<K: Resource<DynamicType = ()>>(
    recorder: &Recorder,
    object: &K,
    warning: bool,
    reason: &str,
    note: &str,
) {
    let event = Event {
        type_: if warning { EventType::Warning } else { EventType::Normal },
        reason: reason.to_owned(),
        note: Some(shorten(note)),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    if let Err(error) = recorder.publish(&event, &object.object_ref(&())).await {
        tracing::debug!(%error, reason, "event not published");
    }
}

/// Publishes the transitions of a MoEDeployment's conditions. Those to a good state are Normal, others Warnings.
pub async fn transitions(recorder: &Recorder, deployment: &MoEDeployment, transitions: &[Transition]) {
    for transition in transitions {
        // These two are good news when False.
        let inverted = ["Drifted", "Progressing"].contains(&transition.kind.as_str());
        let warning = transition.status == if inverted { "True" } else { "False" } && transition.kind != "Progressing";
        let note = format!("{} is {}: {}", transition.kind, transition.status, transition.message);
        publish(recorder, deployment, warning, &transition.reason, &note).await;
    }
}

fn shorten(note: &str) -> String {
    let mut end = note.len().min(MAX_NOTE);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    note[..end].to_owned()
}

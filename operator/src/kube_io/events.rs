//! Kubernetes Events. They tell what changed; failing to publish one never fails a reconcile.

use coterie_crds::v1alpha1::MoEDeployment;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Resource,
    runtime::events::{Event, EventType, Recorder},
};

use super::conditions::Transition;
use crate::owner::Fleet;

/// Longest note that the API server takes, in bytes.
const MAX_NOTE: usize = 1024;

/// What an event says.
#[derive(Clone, Copy, Debug)]
pub struct News<'a> {
    /// Whether somebody should look.
    pub warning: bool,
    /// Reason.
    pub reason: &'a str,
    /// What was done, or which condition moved.
    pub action: &'a str,
    /// The run or table that it is about. Repeats about the same one are counted, not listed again, and keep the first note.
    pub about: Option<&'a ObjectReference>,
    /// A sentence.
    pub note: &'a str,
}

/// Publishes one event about a MoEDeployment.
pub async fn publish(recorder: &Recorder, deployment: &MoEDeployment, news: News<'_>) {
    let event = Event {
        type_: if news.warning {
            EventType::Warning
        } else {
            EventType::Normal
        },
        reason: news.reason.to_owned(),
        note: Some(shorten(news.note)),
        action: news.action.to_owned(),
        secondary: news.about.cloned(),
    };
    if let Err(error) = recorder.publish(&event, &deployment.object_ref(&())).await {
        tracing::debug!(%error, reason = news.reason, "event not published");
    }
}

/// Publishes the transitions of a MoEDeployment's conditions.
pub async fn transitions(
    recorder: &Recorder,
    deployment: &MoEDeployment,
    transitions: &[Transition],
    about: Option<&ObjectReference>,
) {
    for transition in transitions {
        let note = format!("{} is {}: {}", transition.kind, transition.status, transition.message);
        let news = News {
            warning: is_warning(transition),
            reason: &transition.reason,
            action: &transition.kind,
            about,
            note: &note,
        };
        publish(recorder, deployment, news).await;
    }
}

/// A reference to an object of a fleet's namespace.
pub fn reference<K: Resource<DynamicType = ()>>(fleet: &Fleet, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: Some(fleet.namespace.clone()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

/// Whether somebody should look: drift and failures are worth it, a start or a calibration under way is not.
fn is_warning(transition: &Transition) -> bool {
    match transition.kind.as_str() {
        "Drifted" => transition.status == "True",
        "Progressing" | "TablePropagated" => false,
        "Calibrated" => transition.reason == "CalibrationFailed",
        _ => transition.status == "False",
    }
}

fn shorten(note: &str) -> String {
    let mut end = note.len().min(MAX_NOTE);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    note[..end].to_owned()
}

//! Follows the routing document.

use std::time::Duration;

use coterie_crds::names;
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::time::{Instant, sleep_until};

use super::chunks::Chunks;
use crate::{
    discovery::Applier,
    routing::{BadDocument, parse_document},
};

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(15);

/// Applies every version of the ConfigMap. One that is refused for now, because a chunk of its table is not there or cannot be read yet,
/// is tried again until it works or a newer one comes.
pub(super) async fn follow(client: Client, deployment: String, namespace: String, applier: Applier<Chunks>) {
    let name = names::routing_document(&deployment);
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    // Only this name: the router's Role allows no other.
    let selector = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(api, selector).default_backoff();
    pin_mut!(events);
    let mut pending: Option<Retry> = None;
    loop {
        let retry = pending.as_ref().map_or_else(far_away, |r| r.at);
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Apply(map) | Event::InitApply(map))) => {
                    pending = Retry::of(&applier, map, FIRST_RETRY).await;
                }
                Some(Ok(Event::Delete(_))) => {
                    tracing::warn!(config_map = name, "the routing document was deleted; the last one stays in use");
                    pending = None;
                }
                Some(Ok(Event::Init | Event::InitDone)) => {}
                Some(Err(error)) => {
                    tracing::warn!(config_map = name, %error, "the routing document cannot be watched; the last one stays in use");
                }
                None => return,
            },
            () = sleep_until(retry), if pending.is_some() => {
                if let Some(retry) = pending.take() {
                    pending = retry.again(&applier).await;
                }
            }
        }
    }
}

/// A document that was refused, to be tried again.
struct Retry {
    map: ConfigMap,
    at: Instant,
    pause: Duration,
}

impl Retry {
    async fn of(applier: &Applier<Chunks>, map: ConfigMap, pause: Duration) -> Option<Self> {
        let document = match map.data.as_ref().and_then(|d| d.get(names::ROUTING_DOCUMENT_KEY)) {
            Some(json) => parse_document(json.as_bytes()),
            None => Err(BadDocument::Document(format!(
                "the ConfigMap has no {}",
                names::ROUTING_DOCUMENT_KEY
            ))),
        };
        // What the document itself lacks, no retry mends.
        let hopeless = document.is_err();
        if applier.apply(document).await || hopeless {
            return None;
        }
        Some(Self {
            map,
            at: Instant::now() + pause,
            pause,
        })
    }

    async fn again(self, applier: &Applier<Chunks>) -> Option<Self> {
        Self::of(applier, self.map, (self.pause * 2).min(LONGEST_RETRY)).await
    }
}

fn far_away() -> Instant {
    Instant::now() + LONGEST_RETRY
}

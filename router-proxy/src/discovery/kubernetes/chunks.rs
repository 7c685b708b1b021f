//! A table's payload, cut over ConfigMaps that are fetched by name.

use std::time::Duration;

use coterie_crds::{names::CHUNK_KEY, routing::TableRef};
use coterie_locality::table;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use tokio::time::timeout;

use crate::discovery::TableSource;

/// No table has more: the codec's limit in pieces of 900 KiB, doubled.
const MAX_CHUNKS: usize = 160;

/// A request that hangs must not hold up newer documents.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Chunks(Api<ConfigMap>);

impl Chunks {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self(Api::namespaced(client, namespace))
    }
}

impl TableSource for Chunks {
    async fn fetch(&self, wanted: &TableRef) -> Result<Vec<u8>, String> {
        if wanted.chunks.is_empty() || wanted.chunks.len() > MAX_CHUNKS {
            return Err(format!("{} chunks, must be 1 to {MAX_CHUNKS}", wanted.chunks.len()));
        }
        let mut chunks = Vec::with_capacity(wanted.chunks.len());
        for name in &wanted.chunks {
            let map = timeout(FETCH_TIMEOUT, self.0.get(name)).await;
            let map = map
                .map_err(|_| format!("get ConfigMap {name}: no answer from the API server"))?
                .map_err(|e| format!("get ConfigMap {name}: {}", sentence(&e)))?;
            let chunk = map.binary_data.and_then(|mut data| data.remove(CHUNK_KEY));
            chunks.push(
                chunk
                    .ok_or_else(|| format!("ConfigMap {name} has no binaryData.{CHUNK_KEY}"))?
                    .0,
            );
        }
        table::join(&chunks, &wanted.digest).map_err(|e| e.to_string())
    }
}

/// What the API server says, without the rest of its answer.
fn sentence(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

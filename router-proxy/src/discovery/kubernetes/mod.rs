//! On Kubernetes: the routing document's ConfigMap and the workers' pods, both watched through the API. While the API server is away the
//! last good state stays in use.

mod chunks;
mod document;
mod pods;

use std::sync::Arc;

use anyhow::{Context, Result};
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::Applier;
use crate::core::Core;
use chunks::Chunks;

/// Starts both watches; they end with `stop`.
pub(crate) async fn follow(core: Arc<Core>, deployment: &str, namespace: &str, stop: CancellationToken) -> Result<()> {
    let client = Client::try_default()
        .await
        .context("find the Kubernetes API; outside a cluster set KUBECONFIG, without Kubernetes use --decode")?;
    let chunks = Chunks::new(client.clone(), namespace);
    let applier = Applier::new(Arc::clone(&core), chunks);
    let documents = document::follow(client.clone(), deployment.to_owned(), namespace.to_owned(), applier);
    let pods = pods::follow(client, deployment.to_owned(), namespace.to_owned(), core);
    tokio::spawn(stop.clone().run_until_cancelled_owned(documents));
    tokio::spawn(stop.run_until_cancelled_owned(pods));
    Ok(())
}

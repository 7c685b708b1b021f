//! /livez, /readyz and /metrics.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    Readiness,
    metrics::{self, Metrics},
};

/// A bound server that does not answer yet.
#[derive(Debug)]
pub struct HealthServer {
    listener: TcpListener,
    metrics: Metrics,
    readiness: Readiness,
}

/// Binds the address.
///
/// # Errors
/// When the address is taken.
pub async fn bind(address: SocketAddr, metrics: Metrics, readiness: Readiness) -> Result<HealthServer> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("bind {address} (--metrics-address); is another process using it?"))?;
    Ok(HealthServer {
        listener,
        metrics,
        readiness,
    })
}

impl HealthServer {
    /// The bound address.
    ///
    /// # Errors
    /// When the socket is gone.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Answers until `stop` is cancelled; /readyz is 503 from then on for connections that are still open.
    ///
    /// # Errors
    /// When accepting fails for good.
    pub async fn run(self, stop: CancellationToken) -> Result<()> {
        let draining = stop.clone();
        let readiness = self.readiness;
        let metrics = self.metrics;
        let app = Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(move || async move { ready(&readiness, &draining) }))
            .route(
                "/metrics",
                get(move || async move { ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics.encode()) }),
            );
        axum::serve(self.listener, app)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await?;
        Ok(())
    }
}

fn ready(readiness: &Readiness, draining: &CancellationToken) -> impl IntoResponse + use<> {
    if draining.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned());
    }
    match readiness.closed().as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        closed => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("waiting for: {}\n", closed.join(", ")),
        ),
    }
}

//! The router as a process: listeners, discovery, scrapes, drain.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anyhow::{Context, Result};
use coterie_service::{Gate, Readiness, health_server, metrics::Metrics};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    admin,
    args::Args,
    args_check,
    clock::Clock,
    core::Core,
    discovery::{files, kubernetes},
    door::http::{self, Door},
    routing::RoutingState,
    telemetry::{Described, LiveMetrics, RouterMetrics},
    worker::scrape,
};

/// A running router.
#[derive(Debug)]
pub struct Router {
    address: SocketAddr,
    admin_address: SocketAddr,
    metrics_address: SocketAddr,
    done: JoinHandle<bool>,
}

impl Router {
    /// Binds every port and starts to serve; `drain` asks it to end as SIGTERM does.
    ///
    /// # Errors
    /// Flags that cannot work, addresses that are taken, no Kubernetes API.
    pub async fn start(args: Args, drain: CancellationToken) -> Result<Self> {
        args_check::check(&args)?;
        let (metrics, readiness) = (Metrics::default(), Readiness::default());
        let routing = Arc::new(RoutingState::new(&readiness));
        let accepting = readiness.gate("drain");
        accepting.open();
        let (router_metrics, _) = RouterMetrics::register(&metrics);
        let seed = args.seed.unwrap_or_else(rand::random);
        let core = Core::new(
            Arc::new(router_metrics),
            routing,
            args.limits.clone(),
            Clock::start(),
            seed,
        );
        let _ = LiveMetrics::register(&metrics, &core);

        let door = bind(args.listen, "--listen").await?;
        let admin = bind(admin_address(&args), "--admin-listen").await?;
        let health = health_server::bind(args.service.metrics_address, metrics, readiness).await?;
        let (address, admin_address, metrics_address) = (door.local_addr()?, admin.local_addr()?, health.address()?);

        let ended = CancellationToken::new();
        match (&args.deployment, &args.namespace) {
            (Some(deployment), Some(namespace)) => {
                kubernetes::follow(Arc::clone(&core), deployment, namespace, ended.clone()).await?;
            }
            _ => files::follow(Arc::clone(&core), &args, ended.clone()).await?,
        }
        tokio::spawn(scrape::run(
            Arc::clone(&core),
            args.limits.scrape_interval,
            ended.clone(),
        ));
        let token = admin::Token::new(args.admin_token_file.clone());
        let admin = tokio::spawn(admin::serve(admin, Arc::clone(&core), token, ended.clone()));
        let health = tokio::spawn(health.run(ended.clone()));
        tracing::info!(%address, admin = %admin_address, metrics = %metrics_address, "listening");
        let done = tokio::spawn(async move {
            tokio::spawn(close_when_draining(drain.clone(), accepting));
            let whole = http::serve(door, Door::new(core, drain)).await;
            ended.cancel();
            for (name, task) in [("admin", admin), ("metrics", health)] {
                if let Ok(Err(error)) = task.await {
                    tracing::error!(server = name, error = format!("{error:#}"), "server failed");
                }
            }
            whole
        });
        Ok(Self {
            address,
            admin_address,
            metrics_address,
            done,
        })
    }

    /// Address of the HTTP door.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of the admin port.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Address of /livez, /readyz and /metrics.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics_address
    }

    /// Waits for the end of the drain; whether every stream finished within the drain time-out.
    ///
    /// # Errors
    /// When the server's task was aborted.
    pub async fn drained(self) -> Result<bool> {
        self.done.await.context("the router's server ended early")
    }
}

/// Descriptions of all metrics of the router, sorted by name.
pub fn described_metrics() -> Vec<Described> {
    let (_, mut all) = RouterMetrics::register(&Metrics::default());
    all.extend(LiveMetrics::described());
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

async fn close_when_draining(drain: CancellationToken, gate: Gate) {
    drain.cancelled().await;
    gate.close();
}

/// Without a key nobody but this machine may ask.
fn admin_address(args: &Args) -> SocketAddr {
    let wanted = args.admin_listen;
    if args.admin_token_file.is_some() || wanted.ip().is_loopback() {
        return wanted;
    }
    let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), wanted.port());
    tracing::warn!(address = %loopback, "no --admin-token-file: the admin port listens on loopback only");
    loopback
}

async fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("bind {address} ({flag}); is another process using it?"))
}

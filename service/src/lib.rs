//! What every Coterie binary shares: its log, its metrics registry, its health and metrics server, its signals.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use coterie_service::{Readiness, ServiceArgs, Shutdown, health_server, metrics::Metrics};
//! let args = ServiceArgs::default();
//! coterie_service::start("coterie-example", &args)?;
//! let shutdown = Shutdown::on_signals()?;
//! let (metrics, readiness) = (Metrics::default(), Readiness::default());
//! let configured = readiness.gate("configuration");
//! let server = health_server::bind(args.metrics_address, metrics.clone(), readiness.clone()).await?;
//! let serving = tokio::spawn(server.run(shutdown.token()));
//! configured.open();
//! shutdown.token().cancelled().await;
//! serving.await??;
//! # Ok(()) }
//! ```

mod args;
pub mod health_server;
pub mod metrics;
mod readiness;
mod shutdown;
mod telemetry;

pub use args::{LogFormat, ServiceArgs};
pub use readiness::{Gate, Readiness};
pub use shutdown::Shutdown;
pub use telemetry::start;

/// Exit code for a configuration that cannot work (`EX_USAGE`): nothing was started.
pub const EXIT_BAD_CONFIGURATION: u8 = 64;

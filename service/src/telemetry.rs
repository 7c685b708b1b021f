use anyhow::{Context, Result};
use tracing_subscriber::{EnvFilter, fmt};

use crate::{LogFormat, ServiceArgs};

/// Starts the log and chooses the TLS provider. Call it first in `main`; a second call keeps the first log.
///
/// # Errors
/// When `--log` is not a filter.
pub fn start(binary: &'static str, args: &ServiceArgs) -> Result<()> {
    let filter = EnvFilter::try_new(&args.log)
        .with_context(|| format!("--log {:?} is not a log filter; try `info` or `debug`", args.log))?;
    let log = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(true);
    let started = match args.log_format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    // Both fail only when something was installed before, which is then in force.
    if started.is_err() {
        tracing::debug!("log was already started");
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    tracing::info!(binary, version = env!("CARGO_PKG_VERSION"), "starting");
    Ok(())
}

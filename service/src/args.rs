use std::net::SocketAddr;

use clap::{Args, ValueEnum};

/// Flags that every binary has.
#[derive(Args, Clone, Debug)]
pub struct ServiceArgs {
    /// Address of /livez, /readyz and /metrics.
    #[arg(long, env = "COTERIE_METRICS_ADDRESS", default_value = "0.0.0.0:9090")]
    pub metrics_address: SocketAddr,
    /// Form of the log on standard error.
    #[arg(long, env = "COTERIE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is logged, e.g. `info` or `coterie_router=debug,info`.
    #[arg(long, env = "COTERIE_LOG", default_value = "info")]
    pub log: String,
}

impl Default for ServiceArgs {
    fn default() -> Self {
        Self {
            metrics_address: SocketAddr::from(([0, 0, 0, 0], 9090)),
            log_format: LogFormat::Text,
            log: "info".to_owned(),
        }
    }
}

/// Forms of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

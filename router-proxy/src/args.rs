//! Command line.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Parser, ValueEnum};
use coterie_crds::quantity;
use coterie_service::ServiceArgs;

/// Routes each request of an MoE fleet to the decode worker whose batch already loads its experts.
///
/// On Kubernetes give --deployment; anywhere else give --decode (and --prefill for prefill-decode disaggregation).
#[derive(Parser, Clone, Debug)]
#[command(name = "coterie-router", version)]
pub struct Args {
    /// Address of the OpenAI-compatible HTTP door.
    #[arg(long, env = "COTERIE_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// Address of the admin port. Without --admin-token-file only its port counts: it then listens on loopback.
    #[arg(long, env = "COTERIE_ADMIN_LISTEN", default_value = "0.0.0.0:9091")]
    pub admin_listen: SocketAddr,
    /// File with the admin port's bearer key; read again for every request.
    #[arg(long, env = "COTERIE_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// Kubernetes: name of the MoEDeployment to serve.
    #[arg(long, env = "COTERIE_DEPLOYMENT", conflicts_with_all = ["prefill", "decode", "document", "table"], requires = "namespace")]
    pub deployment: Option<String>,
    /// Kubernetes: namespace of the MoEDeployment.
    #[arg(long, env = "POD_NAMESPACE")]
    pub namespace: Option<String>,
    /// Prefill workers: `host:port` or `name=host:port`, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub prefill: Vec<String>,
    /// Decode workers: `name=host:port` or `host:port`, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub decode: Vec<String>,
    /// Centroid table; read again when it changes.
    #[arg(long)]
    pub table: Option<PathBuf>,
    /// Routing document (JSON), read again when it changes; default: made from the flags below.
    #[arg(long)]
    pub document: Option<PathBuf>,
    /// The routing document when there is no --document.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Limits and time-outs.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Seed of random choices; default: another one at each start.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Flags that every binary has.
    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Flags that make a routing document.
#[derive(ClapArgs, Clone, Debug)]
pub struct FleetArgs {
    /// Served model name.
    #[arg(long, default_value = "tiny-moe")]
    pub model: String,
    /// MoE layers of the model.
    #[arg(long, default_value_t = 6)]
    pub layers: u32,
    /// Experts of each layer.
    #[arg(long, default_value_t = 64)]
    pub experts: u32,
    /// Experts chosen per token and layer.
    #[arg(long, default_value_t = 4)]
    pub top_k: u32,
    /// How decode workers are chosen.
    #[arg(long, value_enum, default_value_t = PolicyArg::LocalityBand)]
    pub policy: PolicyArg,
    /// What signatures are made from. Text needs a table that knows text.
    #[arg(long, value_enum, default_value_t = SignatureSourceArg::Auto)]
    pub signature_source: SignatureSourceArg,
    /// Width of the locality band, a cosine; default: the table's own.
    #[arg(long)]
    pub tau: Option<f32>,
    /// Fewest workers in the band.
    #[arg(long, default_value_t = 1)]
    pub min_candidates: u32,
    /// Load guard of the band: load + 1 <= ceil(ratio x (mean load + 1)).
    #[arg(long, default_value_t = 1.5)]
    pub max_load_ratio: f32,
    /// How prefill workers are chosen.
    #[arg(long, value_enum, default_value_t = PrefillPolicyArg::PrefixHash)]
    pub prefill_policy: PrefillPolicyArg,
    /// Bytes of the prompt that the prefix hash takes.
    #[arg(long, default_value_t = 1024)]
    pub prefix_bytes: u32,
    /// Load guard of the prefix hash.
    #[arg(long, default_value_t = 1.25)]
    pub load_factor: f32,
    /// Sliding window of the statistics; it slides by a quarter.
    #[arg(long, value_parser = quantity::duration, default_value = "10m")]
    pub window: Duration,
    /// Most samples kept for calibration.
    #[arg(long, default_value_t = 2000)]
    pub max_samples: u32,
}

/// Values of --policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum PolicyArg {
    /// Least-loaded worker within tau of the best similarity, under a load guard.
    LocalityBand,
    /// Where the fleet's total cost rises least, by the experts that each batch is expected to use.
    MarginalCost,
    /// Least-loaded worker.
    LeastLoaded,
    /// One after the other.
    RoundRobin,
    /// The less loaded of two drawn workers.
    PowerOfTwoChoices,
}

/// Values of --signature-source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum SignatureSourceArg {
    /// For each request its prefill counts where they come, else its text.
    Auto,
    /// Prefill counts only.
    Prefill,
    /// Text only.
    Text,
}

/// Values of --prefill-policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum PrefillPolicyArg {
    /// Consistent hash over the prompt's first bytes, with a load guard.
    PrefixHash,
    /// Least-loaded worker.
    LeastLoaded,
}

/// Limits and time-outs.
#[derive(ClapArgs, Clone, Debug)]
pub struct LimitArgs {
    /// Largest request body, in bytes; more answers 413.
    #[arg(long, default_value_t = 32 << 20)]
    pub max_body_bytes: usize,
    /// Largest answer of a prefill worker, and largest answer that is not streamed, in bytes.
    #[arg(long, default_value_t = 256 << 20)]
    pub max_answer_bytes: usize,
    /// Requests served at the same time; more answer 429.
    #[arg(long, default_value_t = 4096)]
    pub max_requests: usize,
    /// Connections open at the same time; more wait to be accepted.
    #[arg(long, default_value_t = 16_384)]
    pub max_connections: usize,
    /// Tries of one request, the first included.
    #[arg(long, default_value_t = 3)]
    pub max_attempts: u32,
    /// No further try begins this long after the request came.
    #[arg(long, value_parser = quantity::duration, default_value = "60s")]
    pub retry_deadline: Duration,
    /// Longest wait for a client's request head.
    #[arg(long, value_parser = quantity::duration, default_value = "10s")]
    pub header_timeout: Duration,
    /// Longest pause while a client sends its body.
    #[arg(long, value_parser = quantity::duration, default_value = "30s")]
    pub body_timeout: Duration,
    /// Longest wait for a connection to a worker.
    #[arg(long, value_parser = quantity::duration, default_value = "2s")]
    pub connect_timeout: Duration,
    /// Longest wait for a prefill worker's answer.
    #[arg(long, value_parser = quantity::duration, default_value = "120s")]
    pub prefill_timeout: Duration,
    /// Longest wait for the first byte of a streamed answer.
    #[arg(long, value_parser = quantity::duration, default_value = "120s")]
    pub first_byte_timeout: Duration,
    /// Longest wait for an answer that is not streamed.
    #[arg(long, value_parser = quantity::duration, default_value = "600s")]
    pub answer_timeout: Duration,
    /// Longest pause inside an answer.
    #[arg(long, value_parser = quantity::duration, default_value = "120s")]
    pub idle_timeout: Duration,
    /// Time between consecutive scrapes of the decode workers' load.
    #[arg(long, value_parser = quantity::duration, default_value = "1s")]
    pub scrape_interval: Duration,
    /// After SIGTERM: how long new connections are still taken, for load balancers to notice.
    #[arg(long, value_parser = quantity::duration, default_value = "5s")]
    pub drain_delay: Duration,
    /// After the drain delay: how long streams may take to finish.
    #[arg(long, value_parser = quantity::duration, default_value = "60s")]
    pub drain_timeout: Duration,
}

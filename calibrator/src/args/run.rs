//! Arguments of `run` and `collect`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ModelArgs;

/// Where a run takes its samples from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Source {
    /// Prompts, generated and replayed on the probe.
    Prompts,
    /// The routers' reservoirs.
    Live,
}

/// Arguments of `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Namespace of the fleet.
    #[arg(long)]
    pub namespace: String,
    /// Name of the MoEDeployment.
    #[arg(long)]
    pub deployment: String,
    /// Uid of the MoEDeployment, which will own the table.
    #[arg(long)]
    pub owner_uid: String,
    /// Name of the CalibrationRun.
    #[arg(long)]
    pub run: String,
    /// Clusters to fit: expert domains of the decode pool.
    #[arg(long)]
    pub clusters: usize,
    /// Where samples come from.
    #[arg(long, value_enum)]
    pub source: Source,
    /// Most samples to take.
    #[arg(long, default_value_t = 1000)]
    pub samples: usize,
    /// Fewest samples to be content with.
    #[arg(long, default_value_t = 200)]
    pub min_samples: usize,
    /// JSON lines of OpenAI request bodies (source Prompts).
    #[arg(long)]
    pub prompts_file: Option<PathBuf>,
    /// `host:port` of engines that return routed experts; every address of the name is used (source Prompts).
    #[arg(long)]
    pub probe: Option<String>,
    /// `host:port` of the routers' admin ports; every address of the name is asked (source Live).
    #[arg(long)]
    pub router_admin: Option<String>,
    /// File with the admin port's bearer key (source Live).
    #[arg(long)]
    pub admin_token_file: Option<PathBuf>,
    /// Only samples taken at or after this Unix time in milliseconds (source Live).
    #[arg(long, default_value_t = 0)]
    pub since_ms: u64,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where the outcome is written for the operator.
    #[arg(long, default_value = "/dev/termination-log")]
    pub termination_log: PathBuf,
}

/// Arguments of `collect`.
#[derive(Args, Clone, Debug)]
pub struct CollectArgs {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// JSON lines of OpenAI request bodies.
    #[arg(long)]
    pub prompts: PathBuf,
    /// `host:port` of engines that return routed experts, comma-separated.
    #[arg(long, value_delimiter = ',', required = true)]
    pub probe: Vec<String>,
    /// Most samples to take.
    #[arg(long, default_value_t = 1000)]
    pub samples: usize,
    /// File to write.
    #[arg(long)]
    pub out: PathBuf,
}

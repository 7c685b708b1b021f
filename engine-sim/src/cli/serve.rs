//! `coterie-engine-sim serve`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use coterie_service::{LogFormat, ServiceArgs};
use serde::Deserialize;

/// A small engine that speaks vLLM's HTTP: a real forward pass of a tiny mixture-of-experts model, or recorded requests,
/// paced by a GPU's step-time law.
#[derive(Debug, Parser)]
#[command(name = "coterie-engine-sim", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a model. Takes vLLM's arguments; those that mean nothing here are accepted and logged.
    Serve(Box<ServeArgs>),
}

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Folder with config.json, model.safetensors, tokenizer.json of a Qwen3-MoE model.
    #[arg(default_value = "/models/tiny-moe")]
    pub model: PathBuf,
    /// Names the model answers to; the first one is in answers. Default: MODEL as given.
    #[arg(long, num_args = 1..)]
    pub served_model_name: Vec<String>,
    /// Address to listen on.
    #[arg(long, default_value = "0.0.0.0")]
    pub host: String,
    /// Port to listen on; 0 takes a free one and logs it.
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// Most sequences in work at once.
    #[arg(long, default_value_t = 256)]
    pub max_num_seqs: usize,
    /// Most prompt tokens in one prefill step; longer prompts take several.
    #[arg(long, default_value_t = 2048)]
    pub max_num_batched_tokens: usize,
    /// Longest prompt and answer together, in tokens. Default: the model's.
    #[arg(long)]
    pub max_model_len: Option<usize>,
    /// Tokens per KV block.
    #[arg(long, default_value_t = 16)]
    pub block_size: usize,
    /// KV connector, as JSON. NixlConnector switches on hand-offs: {"kv_connector":"NixlConnector","kv_role":"kv_both"}.
    /// kv_connector_extra_config.kv_lease_duration (seconds) overrides --sim-lease-seconds.
    #[arg(long)]
    pub kv_transfer_config: Option<String>,
    /// Answer with the experts chosen at every token (`routed_experts`).
    #[arg(long)]
    pub enable_return_routed_experts: bool,
    /// After SIGTERM: seconds to let running requests finish; 0 aborts them at once, as vLLM does by default.
    /// Default: until the last one has finished.
    #[arg(long)]
    pub shutdown_timeout: Option<f64>,
    /// KV blocks. Default: room for 65536 tokens.
    #[arg(long, env = "SIM_KV_BLOCKS", alias = "num-gpu-blocks-override")]
    pub sim_kv_blocks: Option<usize>,
    /// Recorded requests (.npz) to answer from. Default: /models/recording.npz if it is there; an empty value: none.
    #[arg(long, env = "SIM_RECORDING")]
    pub sim_recording: Option<String>,
    /// Answer every prompt with generated gates instead: a model's shape (tiny-moe, qwen3-a3b, gpt-oss-120b, deepseek-v3) or LAYERSxEXPERTSxTOPK.
    /// The word domain-N in a prompt sets its domain, two of them blend; without one a hash of the prompt does.
    #[arg(long, env = "SIM_SYNTHETIC")]
    pub sim_synthetic: Option<String>,
    /// Domains that prompts without a domain's name are shared among.
    #[arg(long, env = "SIM_SYNTHETIC_DOMAINS", default_value_t = 8)]
    pub sim_synthetic_domains: usize,
    /// Seed of the generated gates: workers with the same one answer alike.
    #[arg(long, env = "SIM_SYNTHETIC_SEED", default_value_t = 0)]
    pub sim_synthetic_seed: u64,
    /// Decode step: part that every step takes, in milliseconds.
    #[arg(long, env = "SIM_STEP_BASE_MS", default_value_t = 4.0)]
    pub sim_step_base_ms: f64,
    /// Decode step: per distinct expert of the batch, summed over layers, in milliseconds.
    #[arg(long, env = "SIM_STEP_PER_EXPERT_MS", default_value_t = 0.08)]
    pub sim_step_per_expert_ms: f64,
    /// Decode step: per request in the batch, in milliseconds.
    #[arg(long, env = "SIM_STEP_PER_REQUEST_MS", default_value_t = 0.05)]
    pub sim_step_per_request_ms: f64,
    /// Prefill step: part that every step takes, in milliseconds.
    #[arg(long, env = "SIM_PREFILL_BASE_MS", default_value_t = 4.0)]
    pub sim_prefill_base_ms: f64,
    /// Prefill step: per prompt token, in microseconds.
    #[arg(long, env = "SIM_PREFILL_PER_TOKEN_US", default_value_t = 20.0)]
    pub sim_prefill_per_token_us: f64,
    /// Multiplies all step times; 0 runs as fast as the machine can, and counts no overrun steps.
    #[arg(long, env = "SIM_TIME_SCALE", default_value_t = 1.0)]
    pub sim_time_scale: f64,
    /// Seconds that a finished prefill's KV waits for its decode worker (not scaled).
    #[arg(long, env = "SIM_LEASE_SECONDS", default_value_t = 480.0)]
    pub sim_lease_seconds: f64,
    /// Seconds that a KV pull may take (not scaled).
    #[arg(long, env = "SIM_PULL_TIMEOUT_SECONDS", default_value_t = 30.0)]
    pub sim_pull_timeout_seconds: f64,
    /// Seconds that loading the model seems to take; /health answers 503 meanwhile (not scaled).
    #[arg(long, env = "SIM_LOAD_SECONDS", default_value_t = 0.0)]
    pub sim_load_seconds: f64,
    /// Refuse new requests with 503 after SIGTERM. Otherwise they are served as long as the process lives.
    #[arg(long, env = "SIM_REJECT_ON_DRAIN", default_value_t = false, value_parser = clap::builder::BoolishValueParser::new(), num_args = 0..=1, default_missing_value = "true")]
    pub sim_reject_on_drain: bool,
    /// Host under which decode workers reach this worker's side channel. Default: POD_IP, or this machine's address.
    #[arg(long, env = "VLLM_NIXL_SIDE_CHANNEL_HOST")]
    pub sim_side_channel_host: Option<String>,
    /// Port of the side channel; 0 takes a free one.
    #[arg(long, env = "VLLM_NIXL_SIDE_CHANNEL_PORT", default_value_t = 5600)]
    pub sim_side_channel_port: u16,
    /// Form of the log on standard error.
    #[arg(long, env = "COTERIE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is logged, e.g. `info` or `coterie_engine_sim=debug,info`.
    #[arg(long, env = "COTERIE_LOG", default_value = "info")]
    pub log: String,
}

/// The part of `--kv-transfer-config` that matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct KvTransferConfig {
    pub(crate) kv_connector: Option<String>,
    #[serde(default)]
    pub(crate) kv_connector_extra_config: Option<KvExtraConfig>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct KvExtraConfig {
    pub(crate) kv_lease_duration: Option<f64>,
}

impl ServeArgs {
    /// The arguments that all binaries share.
    pub fn service(&self) -> ServiceArgs {
        ServiceArgs {
            log_format: self.log_format,
            log: self.log.clone(),
            ..ServiceArgs::default()
        }
    }
}

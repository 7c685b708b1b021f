//! Arguments turned into checked settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use coterie_locality::Geometry;

use crate::cli::ServeArgs;
use crate::engine::{PrefillLaw, StepLaw};
use crate::fleet::gates::generate::{Parameters, Shape, preset};
use crate::recording::MAX_DOMAINS;

const DEFAULT_RECORDING: &str = "/models/recording.npz";
const DEFAULT_KV_TOKENS: usize = 65536;

/// Everything a worker needs to start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Model folder.
    pub model: PathBuf,
    /// Names the model answers to, at least one.
    pub model_names: Vec<String>,
    /// Listen address as host and port.
    pub listen: (String, u16),
    /// Whether answers carry expert choices.
    pub capture: bool,
    /// Most sequences at once.
    pub max_num_seqs: usize,
    /// Most prompt tokens in one prefill step.
    pub max_num_batched_tokens: usize,
    /// Longest prompt and answer together; None: the model's.
    pub max_model_len: Option<usize>,
    /// Tokens per block.
    pub block_size: usize,
    /// Blocks.
    pub kv_blocks: usize,
    /// Recording to answer from.
    pub recording: Option<PathBuf>,
    /// Gates to make up instead, for every prompt.
    pub synthetic: Option<SyntheticGates>,
    /// Time of a decode step.
    pub step_law: StepLaw,
    /// Time of a prefill step.
    pub prefill_law: PrefillLaw,
    /// How long a hand-off's blocks stay pinned.
    pub lease: Duration,
    /// How long a pull may take.
    pub pull_timeout: Duration,
    /// How long loading seems to take.
    pub load_time: Duration,
    /// Host (None: find out) and port of the side channel, if there is a KV connector.
    pub side_channel: Option<(Option<String>, u16)>,
    /// Whether new requests are refused while draining.
    pub reject_on_drain: bool,
    /// How long a drain may take; None: as long as it needs.
    pub shutdown_timeout: Option<Duration>,
}

impl Settings {
    /// Checks the arguments.
    pub fn from_args(args: &ServeArgs) -> Result<Self> {
        let at_least_one = [
            ("--max-num-seqs", args.max_num_seqs),
            ("--max-num-batched-tokens", args.max_num_batched_tokens),
            ("--block-size", args.block_size),
            ("--max-model-len", args.max_model_len.unwrap_or(1)),
        ];
        for (name, value) in at_least_one {
            ensure!(
                (1..=1 << 20).contains(&value),
                "{name} must be 1 to {}, got {value}",
                1 << 20
            );
        }
        for (name, value) in [
            ("--sim-step-base-ms", args.sim_step_base_ms),
            ("--sim-step-per-expert-ms", args.sim_step_per_expert_ms),
            ("--sim-step-per-request-ms", args.sim_step_per_request_ms),
            ("--sim-prefill-base-ms", args.sim_prefill_base_ms),
            ("--sim-prefill-per-token-us", args.sim_prefill_per_token_us),
            ("--sim-time-scale", args.sim_time_scale),
        ] {
            ensure!((0.0..=1e6).contains(&value), "{name} must be 0 to 1000000, got {value}");
        }
        let connector = args.kv_transfer_config.as_deref().map(connector).transpose()?.flatten();
        let lease = connector
            .as_ref()
            .and_then(|c| c.lease)
            .unwrap_or(args.sim_lease_seconds);
        let time_scale = args.sim_time_scale;
        let names = &args.served_model_name;
        let kv_blocks = args
            .sim_kv_blocks
            .unwrap_or(DEFAULT_KV_TOKENS.div_ceil(args.block_size));
        ensure!(
            (1..=1 << 22).contains(&kv_blocks),
            "--sim-kv-blocks must be 1 to {}, got {kv_blocks}",
            1 << 22
        );
        Ok(Self {
            model: args.model.clone(),
            model_names: if names.is_empty() {
                vec![args.model.display().to_string()]
            } else {
                names.clone()
            },
            listen: (args.host.clone(), args.port),
            capture: args.enable_return_routed_experts,
            max_num_seqs: args.max_num_seqs,
            max_num_batched_tokens: args.max_num_batched_tokens,
            max_model_len: args.max_model_len,
            block_size: args.block_size,
            kv_blocks,
            recording: recording(args.sim_recording.as_deref()),
            synthetic: synthetic(args)?,
            step_law: StepLaw {
                base_ms: args.sim_step_base_ms,
                per_expert_ms: args.sim_step_per_expert_ms,
                per_request_ms: args.sim_step_per_request_ms,
                time_scale,
            },
            prefill_law: PrefillLaw {
                base_ms: args.sim_prefill_base_ms,
                per_token_us: args.sim_prefill_per_token_us,
                time_scale,
            },
            lease: seconds("the KV lease", lease)?,
            pull_timeout: seconds("--sim-pull-timeout-seconds", args.sim_pull_timeout_seconds)?,
            load_time: seconds("--sim-load-seconds", args.sim_load_seconds)?,
            side_channel: connector.map(|_| (args.sim_side_channel_host.clone(), args.sim_side_channel_port)),
            reject_on_drain: args.sim_reject_on_drain,
            shutdown_timeout: args
                .shutdown_timeout
                .map(|s| seconds("--shutdown-timeout", s))
                .transpose()?,
        })
    }
}

/// Generated gates to answer from.
#[derive(Clone, Debug)]
pub struct SyntheticGates {
    /// Shape of the model to imitate.
    pub geometry: Geometry,
    /// Statistics of its gates.
    pub parameters: Parameters,
    /// Domains that prompts without a domain's name are shared among.
    pub domains: usize,
    /// Workers with the same seed answer alike.
    pub seed: u64,
}

fn synthetic(args: &ServeArgs) -> Result<Option<SyntheticGates>> {
    let Some(shape) = args.sim_synthetic.as_deref().filter(|s| !s.is_empty()) else {
        return Ok(None);
    };
    let (geometry, near) = Shape::parse(shape)
        .map_err(anyhow::Error::msg)
        .context("--sim-synthetic")?;
    ensure!(
        geometry.experts <= 256,
        "--sim-synthetic serves at most 256 experts a layer, got {}",
        geometry.experts
    );
    ensure!(
        (1..=MAX_DOMAINS).contains(&args.sim_synthetic_domains),
        "--sim-synthetic-domains must be 1 to {MAX_DOMAINS}, got {}",
        args.sim_synthetic_domains
    );
    Ok(Some(SyntheticGates {
        geometry,
        parameters: preset(near),
        domains: args.sim_synthetic_domains,
        seed: args.sim_synthetic_seed,
    }))
}

struct Connector {
    lease: Option<f64>,
}

fn connector(json: &str) -> Result<Option<Connector>> {
    let config: crate::cli::KvTransferConfig =
        serde_json::from_str(json).context("--kv-transfer-config is no JSON object as vLLM takes it")?;
    match config.kv_connector.as_deref() {
        None => Ok(None),
        Some("NixlConnector" | "NixlPullConnector") => Ok(Some(Connector {
            lease: config.kv_connector_extra_config.and_then(|e| e.kv_lease_duration),
        })),
        Some(other) => bail!("kv_connector {other:?} is not supported: engine-sim speaks NixlConnector (pull)"),
    }
}

fn recording(given: Option<&str>) -> Option<PathBuf> {
    match given {
        Some("") => None,
        Some(path) => Some(PathBuf::from(path)),
        None => Some(PathBuf::from(DEFAULT_RECORDING)).filter(|path| Path::exists(path)),
    }
}

fn seconds(name: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value).with_context(|| format!("{name} must be a number of seconds, got {value}"))
}

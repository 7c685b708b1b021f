//! Arguments of `generate`.

use std::path::PathBuf;

use clap::Args;

use super::parse::{distinct, pairs, range, share};

/// Arguments of `generate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  coterie-sim generate --like tiny-moe.npz --out like.npz
  coterie-sim generate --geometry 48x128x8 --rho 0.7 --distinct 16=65 --out gates.npz
  coterie-sim generate --geometry gpt-oss-120b --parameters domain=1.5,own=0.2 --out gates.npz --json")]
pub struct GenerateArgs {
    /// Gates to imitate: their shape, statistics and lengths.
    #[arg(long, value_name = "FILE", required_unless_present = "geometry", conflicts_with_all = ["geometry", "parameters"])]
    pub like: Option<PathBuf>,
    /// LAYERSxEXPERTSxTOPK, e.g. 48x128x8, or tiny-moe, qwen3-a3b, gpt-oss-120b, deepseek-v3.
    #[arg(long, value_name = "SHAPE")]
    pub geometry: Option<String>,
    /// File to write (.npz), which --gates reads.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Requests.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub requests: u32,
    /// Domains, in equal shares. Default: as many as --like has, else 8.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub domains: Option<u32>,
    /// Share of the prompts that blend two domains.
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    pub blended: f64,
    /// Shortest and longest prompt. Default: those of --like, else 64-512.
    #[arg(long, value_name = "TOKENS-TOKENS", value_parser = range)]
    pub prompt_tokens: Option<(u32, u32)>,
    /// Generated tokens of each request. Default: as many as --like has, else 128.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub output_tokens: Option<u32>,
    /// Seed.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Gates that are tried at most to come near the statistics asked for.
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub trials: u32,
    /// Parameters of the gates instead of a search: base, domain, request, phase, own, persistence, follow; others stay as the shape has them.
    #[arg(long, value_name = "NAME=NUMBER,...", value_parser = parameters)]
    pub parameters: Option<ParameterValues>,
    /// Statistics to reach.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Values by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterValues(pub Vec<(String, f64)>);

fn parameters(text: &str) -> Result<ParameterValues, String> {
    pairs(text).map(ParameterValues)
}

/// Statistics to reach, beside those of `--like`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Statistics to reach (those of --like unless given)")]
#[group(id = "targets", multiple = true, conflicts_with = "parameters")]
pub struct TargetArgs {
    /// Correlation of experts' mean prefill and decode frequencies.
    #[arg(long, value_parser = share)]
    pub correlation: Option<f64>,
    /// Spearman correlation of prefill distance and decode distance over pairs of requests.
    #[arg(long, value_parser = share)]
    pub rho: Option<f64>,
    /// Mean distinct experts of a layer in a batch, e.g. 16=65; may be repeated.
    #[arg(long, value_name = "BATCH=EXPERTS", value_parser = distinct)]
    pub distinct: Vec<(u32, f64)>,
    /// By how much fewer a batch of 16 of one domain has.
    #[arg(long, value_parser = share)]
    pub domain_saving: Option<f64>,
    /// Mean cosine of the decode counts of two requests of one domain.
    #[arg(long, value_parser = share)]
    pub overlap_within: Option<f64>,
    /// The same of two domains.
    #[arg(long, value_parser = share)]
    pub overlap_between: Option<f64>,
    /// Share of a token's experts that the token before it had.
    #[arg(long, value_parser = share)]
    pub kept: Option<f64>,
}

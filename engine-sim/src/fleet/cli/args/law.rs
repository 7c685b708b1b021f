//! How long steps take, and how a worker's ranks share the experts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::parse::not_negative;

/// Step law and ranks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Step law of a decode worker")]
pub struct LawArgs {
    /// Milliseconds that every decode step takes.
    #[arg(long, default_value_t = 4.0, value_parser = not_negative, conflicts_with = "model")]
    pub step_base_ms: f64,
    /// Milliseconds per distinct expert of the batch, summed over layers.
    #[arg(long, default_value_t = 0.08, value_parser = not_negative, conflicts_with = "model")]
    pub step_per_expert_ms: f64,
    /// Milliseconds per request of the batch.
    #[arg(long, default_value_t = 0.05, value_parser = not_negative, conflicts_with = "model")]
    pub step_per_request_ms: f64,
    /// Law, KV capacity, prefill and hand-off from public figures instead: Qwen3-30B-A3B, Qwen3-235B-A22B, GPT-OSS-120B or DeepSeek-V3.
    #[arg(long, value_name = "NAME", requires = "gpu")]
    pub model: Option<String>,
    /// GPU of the model: MI300X, MI325X or MI355X.
    #[arg(long, value_name = "NAME", requires = "model")]
    pub gpu: Option<String>,
    /// GPUs of each worker, by tensor parallelism. Default: the fewest that hold the model.
    #[arg(long, requires = "model", conflicts_with = "ranks", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub gpus: Option<u32>,
    /// Expert-parallel ranks of each worker: a layer waits for the one with most distinct experts. --batch then makes the load of one rank.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub ranks: u32,
    /// Which rank holds which expert; learned from the gates' first half.
    #[arg(long, value_enum, default_value_t = PlacementKind::Linear, requires = "ranks")]
    pub placement: PlacementKind,
    /// Placement from a file as SGLang's --init-expert-location takes it; tokens of an expert with copies go to one of them.
    #[arg(long, value_name = "FILE", requires = "ranks", conflicts_with = "placement")]
    pub placement_file: Option<PathBuf>,
    /// Copies of experts in each layer that eplb and metro may give. Default: one per rank.
    #[arg(long, value_name = "COPIES", requires = "ranks", value_parser = clap::value_parser!(u32).range(0..=65536))]
    pub redundant: Option<u32>,
}

/// Ways to place experts on ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlacementKind {
    /// Experts in their order, no copies.
    Linear,
    /// Equal tokens per rank; tokens of an expert are spread over its copies.
    Eplb,
    /// Equal activated experts per rank; one copy is read.
    Metro,
}

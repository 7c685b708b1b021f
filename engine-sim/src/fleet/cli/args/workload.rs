//! When requests come, which they are, and how long their answers get.

use std::path::PathBuf;

use clap::Args;

use super::parse::{mix, not_negative, output, positive, process};
use crate::fleet::workload::{MixPoint, OutputLengths, Process};

/// The workload.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArgs {
    /// Requests measured; warm-up and end come on top.
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub requests: u32,
    /// Tokens that every request generates; 0 or recorded: as many as are recorded; lognormal:MEDIAN:SIGMA:MAX: a heavy tail.
    #[arg(long, value_name = "LENGTHS", default_value = "recorded", value_parser = output)]
    pub output: OutputLengths,
    /// When requests come: poisson, gamma:SHAPE (bursty below 1), bursts:FACTOR:BURST_S:CALM_S, day-night:PERIOD_S:SWING.
    #[arg(long, value_name = "PROCESS", default_value = "poisson", value_parser = process)]
    pub arrivals: Process,
    /// Domains and their weights, e.g. code=2,math=1; blended=0.2 is the share of prompts that blend two. With several, each begins with its
    /// second (0:code=1 60:math=1), straight lines in between. Default: all requests alike.
    #[arg(long, value_name = "[SECONDS:]DOMAIN=WEIGHT,...", value_parser = mix)]
    pub mix: Vec<MixPoint>,
    /// Mean turns of a conversation; each turn's prompt begins with all before it.
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub turns: f64,
    /// Mean seconds between an answer and the next turn.
    #[arg(long, default_value_t = 10.0, value_parser = not_negative, requires = "turns")]
    pub think_seconds: f64,
    /// Arrivals of a trace instead: CSV with a column time_s and, if known, prompt_tokens, output_tokens, domain, session,
    /// shared_prefix_tokens. All are measured.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["arrivals", "mix", "turns", "output", "requests", "batch"])]
    pub replay: Option<PathBuf>,
    /// How many times faster than in the trace.
    #[arg(long, default_value_t = 1.0, value_parser = positive, requires = "replay")]
    pub replay_speed: f64,
}

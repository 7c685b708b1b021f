//! Arguments of `study`.

use std::path::PathBuf;

use clap::Args;

use super::SampleArgs;

/// Arguments of `study`.
#[derive(Args, Clone, Debug)]
pub struct StudyArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub input: SampleArgs,
    /// Decode workers, and clusters of each fitted table.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: u16,
    /// Requests per worker, comma-separated.
    #[arg(long, value_delimiter = ',', default_values_t = [3, 8, 16, 32, 64], value_name = "N", value_parser = clap::value_parser!(u16).range(2..=4096))]
    pub batch: Vec<u16>,
    /// Splits into halves, each with its own fit and arrivals; errors are over them.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=100))]
    pub repeats: u16,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Calibrated requests that predictors are learned from, comma-separated; all that there are comes last.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 250, 500, 1000, 1500], value_name = "N", value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub calibrated: Vec<u32>,
    /// Write the result as Markdown.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

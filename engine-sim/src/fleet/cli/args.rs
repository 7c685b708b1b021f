//! Arguments.

mod generate;
mod law;
mod parse;
mod pool;
mod workload;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::fleet::evaluate::Section;
use crate::fleet::steering::{Contender, Predictor, Rule};

pub(super) use generate::{GenerateArgs, TargetArgs};
pub(super) use law::{LawArgs, PlacementKind};
use parse::{not_negative, positive};
pub(super) use pool::{ChooseAt, FirstBy, PoolArgs, RouterArgs};
pub(super) use workload::WorkloadArgs;

const EXAMPLES: &str = "Examples:
  coterie-sim compare --gates tiny-moe.npz --workers 8 --batch 27 --plot bars.svg
  coterie-sim run --gates tiny-moe.npz --policy MarginalCost --prefill-workers 4 --fault 30:stop:2 --fault 60:start:1
  coterie-sim run --gates tiny-moe.npz --arrivals bursts:5:2:10 --output lognormal:100:1:2000 --every 5
  coterie-sim compare --gates tiny-moe.npz --routers 4 --exchange-every 0.1
  coterie-sim compare --gates generate:48x128x8 --model qwen3-30b-a3b --gpu mi300x --batch 27";

/// Simulates a fleet over recorded gates: what a routing policy does to latency, before it is tried on GPUs.
///
/// Example: coterie-sim compare --gates tiny-moe.npz --workers 8 --batch 27
#[derive(Debug, Parser)]
#[command(name = "coterie-sim", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Jobs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one policy once and print all figures as JSON.
    Run(RunArgs),
    /// Run policies side by side over the same arrivals and several seeds; print tables or JSON.
    Compare(CompareArgs),
    /// Compare policies over a range of loads; print one line per load and policy, and draw it.
    Sweep(SweepArgs),
    /// Make every table and figure of the evaluation.
    Evaluate(EvaluateArgs),
    /// Make up gates of any shape, fitted to a recording or to statistics set by hand; print how near they come.
    Generate(GenerateArgs),
}

/// Arguments of `sweep`.
#[derive(Clone, Debug, Args)]
pub struct SweepArgs {
    /// Requests, workers and load.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Requests per worker that the loads are made for.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32,64")]
    pub batch: Vec<f64>,
    /// Policies, or policy/predictor.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "LeastLoaded,EldrStatic,LocalityBand,MarginalCost"
    )]
    pub policies: Vec<Contender>,
    /// Seeds, from 1 on.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Draw the change of TPOT p50 against LeastLoaded into this SVG file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// Arguments of `evaluate`.
#[derive(Clone, Debug, Args)]
pub struct EvaluateArgs {
    /// Recorded gates: the first half calibrates, the rest is judged.
    #[arg(long, value_name = "FILE")]
    pub gates: PathBuf,
    /// Folder of the recorded model's tokenizer, for predictions from text.
    #[arg(long, value_name = "DIR")]
    pub tokenizer: Option<PathBuf>,
    /// Folder of the figures; tables go into the Markdown file of the same name beside it.
    #[arg(long, value_name = "DIR", default_value = "docs/evaluation")]
    pub out: PathBuf,
    /// These sections only; the others' tables and figures stay as they are.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Section::ALL)]
    pub only: Vec<Section>,
    /// Fewer seeds and requests: a look, not the evaluation.
    #[arg(long)]
    pub quick: bool,
}

/// Requests, workers and load.
#[derive(Clone, Debug, Args)]
pub struct FleetArgs {
    /// Recorded gates: .npz with prefill, decode, domain, prompt_tokens, or a sample container with replayed samples. generate:SHAPE makes up 1000
    /// requests of a shape as `generate` names it. The first half calibrates, the rest is judged.
    #[arg(long, value_name = "FILE")]
    pub gates: PathBuf,
    /// Folder of the recorded model's tokenizer, for predictions from text.
    #[arg(long, value_name = "DIR")]
    pub tokenizer: Option<PathBuf>,
    /// Decode workers.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub workers: u32,
    /// The workload.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Step law and ranks.
    #[command(flatten)]
    pub law: LawArgs,
    /// Pools and events.
    #[command(flatten)]
    pub pool: PoolArgs,
    /// Router replicas.
    #[command(flatten)]
    pub router: RouterArgs,
}

/// Arguments of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Requests, workers and load.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Requests per worker that the load is made for.
    #[arg(long, default_value_t = 27.0, conflicts_with = "rate")]
    pub batch: f64,
    /// Arrivals a second.
    #[arg(long, value_parser = positive, conflicts_with = "replay")]
    pub rate: Option<f64>,
    /// Policy, or policy/predictor.
    #[arg(long, default_value = "LeastLoaded")]
    pub policy: Contender,
    /// Seed of arrivals and chance.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seconds of each point of the TPOT series; 0: none.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    pub every: f64,
}

/// Arguments of `compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// Requests, workers and load.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Requests per worker that the loads are made for, one comparison each.
    #[arg(long, value_delimiter = ',', default_value = "3,27,70", conflicts_with = "rate")]
    pub batch: Vec<f64>,
    /// Arrivals a second, one comparison each.
    #[arg(long, value_delimiter = ',', value_parser = positive, conflicts_with = "replay")]
    pub rate: Vec<f64>,
    /// Policies; load balancers are always among them.
    #[arg(long, value_delimiter = ',', default_values_t = Rule::ALL)]
    pub policies: Vec<Rule>,
    /// Predictors of policies that go by one.
    #[arg(long, value_delimiter = ',', default_values_t = [Predictor::Prefill, Predictor::PrefillMap, Predictor::Truth])]
    pub predictors: Vec<Predictor>,
    /// Seeds, from 1 on.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Print JSON, with every run, instead of tables.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown tables.
    #[arg(long)]
    pub markdown: bool,
    /// Draw the change of TPOT against LeastLoaded into this SVG file, a group of bars for each load.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// What is drawn.
    #[arg(long, value_enum, default_value_t = PlotMetric::P50, requires = "plot")]
    pub plot_metric: PlotMetric,
}

/// Figures that bars show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlotMetric {
    /// Median TPOT.
    P50,
    /// 99th percentile of TPOT.
    P99,
}

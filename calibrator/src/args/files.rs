//! Arguments of the commands that work on files.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use coterie_locality::{
    FitOptions,
    fit::{LayerChoice, Tau},
    kmeans::Balance,
    table::Precision,
    transform::TransformKind,
};

use crate::error::Error;

/// Samples to read, and how many of them.
#[derive(Args, Clone, Debug)]
pub struct SampleArgs {
    /// Samples: a container as `collect` or `convert` writes it, ELDR's calibration `.npz`, a recording of gates (`.npz`), or `-` for standard input.
    #[arg(value_name = "SAMPLES")]
    pub samples: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub reading: ReadingArgs,
}

/// How samples are read.
#[derive(Args, Clone, Debug)]
pub struct ReadingArgs {
    /// Most samples kept in memory; of a longer input a seeded uniform choice is kept.
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_samples: u32,
    /// Model name of an `.npz`, which may not have it.
    #[arg(long)]
    pub model: Option<String>,
    /// Experts per token of an `.npz`, where it does not say.
    #[arg(long, value_name = "N")]
    pub top_k: Option<usize>,
    /// One domain label a line, in the order of the samples.
    #[arg(long, value_name = "FILE")]
    pub domains: Option<PathBuf>,
    /// The model's tokenizer.json: turns a recording's prompt tokens into text, of which hashed n-grams are kept.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
}

/// Which layers a signature keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layers {
    /// All of them.
    All,
    /// Those that raise rho, chosen one by one.
    Greedy,
}

/// Bounds on cluster sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BalanceChoice {
    /// At most ceil(N / K) samples each.
    Upper,
    /// floor(N / K) or ceil(N / K) samples each.
    Even,
    /// No bound.
    None,
}

/// How counts become signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TransformChoice {
    /// Counts as they are.
    Count,
    /// Counts times inverse document frequency.
    CountIdf,
    /// Square roots of counts.
    Sqrt,
    /// 1 where an expert was used.
    Binary,
}

/// How numbers of a table are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionChoice {
    /// Exact.
    F32,
    /// Half the size; similarities change by less than 0.001.
    F16,
}

impl From<PrecisionChoice> for Precision {
    fn from(choice: PrecisionChoice) -> Self {
        match choice {
            PrecisionChoice::F32 => Self::F32,
            PrecisionChoice::F16 => Self::F16,
        }
    }
}

/// How a table is fitted.
#[derive(Args, Clone, Debug)]
pub struct FittingArgs {
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Layers of a signature.
    #[arg(long, value_enum, default_value_t = Layers::Greedy)]
    pub layers: Layers,
    /// Bounds on cluster sizes.
    #[arg(long, value_enum, default_value_t = BalanceChoice::Upper)]
    pub balance: BalanceChoice,
    /// How counts become signatures.
    #[arg(long, value_enum, default_value_t = TransformChoice::CountIdf)]
    pub transform: TransformChoice,
    /// First centroids tried by K-means; the best run is kept.
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub restarts: u16,
    /// Share of the samples held out for tau, baselines, rho and evaluation.
    #[arg(long, default_value_t = 0.25, value_name = "SHARE")]
    pub held_out: f64,
    /// Width of the locality band as a cosine; without it, a quantile of held-out score gaps.
    #[arg(long, value_name = "COSINE", conflicts_with = "tau_quantile")]
    pub tau: Option<f32>,
    /// Which quantile (0 to 1) of the gaps between a held-out request's two best scores tau is.
    #[arg(long, value_name = "SHARE", default_value_t = 0.25)]
    pub tau_quantile: f64,
    /// Learn no predictors: quicker, and without source Text.
    #[arg(long)]
    pub no_predictors: bool,
}

impl FittingArgs {
    /// The fit's options, checked as far as flags go.
    ///
    /// # Errors
    /// When a flag is out of range.
    pub fn options(&self, clusters: usize) -> Result<FitOptions, Error> {
        let bad = |text: String| Err(Error::usage("BadFlags", text));
        if clusters == 0 {
            return bad("--clusters is 0: give the number of expert domains of the decode pool".into());
        }
        if !(0.05..=0.5).contains(&self.held_out) {
            return bad(format!(
                "--held-out is {}: give a share from 0.05 to 0.5",
                self.held_out
            ));
        }
        if self.tau.is_some_and(|tau| !(0.0..=2.0).contains(&tau)) || !(0.0..=1.0).contains(&self.tau_quantile) {
            return bad("--tau is a cosine from 0 to 2, --tau-quantile a share from 0 to 1".into());
        }
        Ok(FitOptions {
            clusters,
            seed: self.seed,
            transform: match self.transform {
                TransformChoice::Count => TransformKind::Count,
                TransformChoice::CountIdf => TransformKind::CountIdf,
                TransformChoice::Sqrt => TransformKind::Sqrt,
                TransformChoice::Binary => TransformKind::Binary,
            },
            layer_selection: match self.layers {
                Layers::All => LayerChoice::All,
                Layers::Greedy => LayerChoice::Greedy,
            },
            balance: match self.balance {
                BalanceChoice::Upper => Balance::Upper,
                BalanceChoice::Even => Balance::Even,
                BalanceChoice::None => Balance::None,
            },
            restarts: usize::from(self.restarts),
            held_out: self.held_out,
            tau: self.tau.map_or(Tau::Quantile(self.tau_quantile), Tau::Fixed),
            predictors: FitOptions::default().predictors.filter(|_| !self.no_predictors),
            ..FitOptions::default()
        })
    }
}

/// Arguments of `fit`.
#[derive(Args, Clone, Debug)]
pub struct FitArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub input: SampleArgs,
    /// Clusters: expert domains of the decode pool.
    #[arg(long, value_name = "N")]
    pub clusters: usize,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub fitting: FittingArgs,
    /// Table in use: the new one keeps its cluster numbers as far as it can, so that workers keep their traffic.
    #[arg(long, value_name = "TABLE")]
    pub previous: Option<PathBuf>,
    /// Table file to write.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// How numbers are stored.
    #[arg(long, value_enum, default_value_t = PrecisionChoice::F16)]
    pub precision: PrecisionChoice,
    /// Print the table's summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inspect`.
#[derive(Args, Clone, Debug)]
pub struct InspectArgs {
    /// A table, a container of samples or an `.npz` of either kind; `-` for standard input.
    pub file: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub reading: ReadingArgs,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `diff`.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    /// The table in use.
    pub old: PathBuf,
    /// The other table.
    pub new: PathBuf,
    /// Samples of which to count how many change their cluster.
    #[arg(long, value_name = "SAMPLES")]
    pub samples: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub reading: ReadingArgs,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `evaluate`.
#[derive(Args, Clone, Debug)]
pub struct EvaluateArgs {
    /// The table.
    pub table: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub input: SampleArgs,
    /// A table to compare with, on the same simulated traffic.
    #[arg(long, value_name = "TABLE")]
    pub against: Option<PathBuf>,
    /// Requests per worker, comma-separated.
    #[arg(long, value_delimiter = ',', default_values_t = [4, 8, 16, 32], value_name = "N", value_parser = clap::value_parser!(u16).range(2..=4096))]
    pub batch: Vec<u16>,
    /// Decode workers; as many as the table has clusters if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub workers: Option<u16>,
    /// Orders of arrival simulated; means and standard errors are over them.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub repeats: u16,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// Centroid file of the ELDR artifact (JSON).
    pub file: PathBuf,
    /// Table file to write.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Experts per token, which the file does not say.
    #[arg(long, value_name = "N")]
    pub top_k: usize,
    /// Served model name; the file's own without it.
    #[arg(long)]
    pub model: Option<String>,
    /// Width of the locality band, which the file does not say.
    #[arg(long, value_name = "COSINE", default_value_t = 0.1)]
    pub tau: f32,
    /// How numbers are stored.
    #[arg(long, value_enum, default_value_t = PrecisionChoice::F32)]
    pub precision: PrecisionChoice,
    /// Print the table's summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// The table.
    pub table: PathBuf,
    /// File to write; standard output without it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print a summary as JSON. Needs --out.
    #[arg(long, requires = "out")]
    pub json: bool,
}

/// Arguments of `convert`.
#[derive(Args, Clone, Debug)]
pub struct ConvertArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub input: SampleArgs,
    /// Container of samples to write.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Where to write the domain labels, one a line; a container has no place for them.
    #[arg(long, value_name = "FILE")]
    pub domains_out: Option<PathBuf>,
    /// Seed of the choice where --max-samples leaves samples out.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print a summary as JSON.
    #[arg(long)]
    pub json: bool,
}

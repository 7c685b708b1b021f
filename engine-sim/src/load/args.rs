//! The command line of `coterie-load`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use coterie_service::LogFormat;

/// Sends recorded prompts to a router or engine and measures what comes back. `send` may be left out.
///
/// Example: coterie-load --target http://router:8080 --model tiny-moe --recording tiny-moe.npz --domains python=2,zh=1 --rate 20 --duration 30s --verify
#[derive(Debug, Parser)]
#[command(name = "coterie-load", version)]
pub struct LoadCli {
    /// What to do.
    #[command(subcommand)]
    pub command: LoadCommand,
}

/// Jobs.
#[derive(Debug, Subcommand)]
pub enum LoadCommand {
    /// Send load. The last line of standard output is the result, one JSON object; progress goes to standard error.
    Send(Box<LoadArgs>),
    /// Write recorded prompts as OpenAI completion bodies, one JSON object a line.
    Prompts(PromptsArgs),
}

impl LoadCli {
    /// Parses arguments (the first is the program's name); flags without a command mean `send`.
    pub fn parse_lenient(args: impl IntoIterator<Item = String>) -> Self {
        let mut args: Vec<String> = args.into_iter().collect();
        let is_flag =
            |arg: &String| arg.starts_with('-') && !matches!(arg.as_str(), "-h" | "--help" | "-V" | "--version");
        if args.get(1).is_some_and(is_flag) {
            args.insert(1, "send".to_owned());
        }
        Self::parse_from(args)
    }
}

/// How load is sent.
#[derive(Args, Debug)]
pub struct LoadArgs {
    /// Base URL of the router or engine, e.g. http://router:8080.
    #[arg(long)]
    pub target: String,
    /// Model name in requests.
    #[arg(long)]
    pub model: String,
    /// What prompts to send.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Requests per second on average, at random moments (Poisson): open loop, a slow target does not slow it down.
    #[arg(long, conflicts_with = "concurrency", required_unless_present = "concurrency")]
    pub rate: Option<f64>,
    /// Requests at once: closed loop, the next one starts when one has ended.
    #[arg(long)]
    pub concurrency: Option<usize>,
    /// Measured requests to send. Default: as many as fit into --duration.
    #[arg(long, required_unless_present = "duration")]
    pub requests: Option<usize>,
    /// Time over which measured requests are started, e.g. 30s or 2m.
    #[arg(long, value_parser = parse_duration)]
    pub duration: Option<std::time::Duration>,
    /// Requests sent before measuring starts, in the same way.
    #[arg(long, default_value_t = 0)]
    pub warmup_requests: usize,
    /// Seed of prompts, moments and sampling seeds.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Most tokens to generate per request. A recording holds 128.
    #[arg(long, default_value_t = 128)]
    pub max_tokens: usize,
    /// Ask for streams, which is needed for TTFT and TPOT.
    #[arg(long, default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    pub stream: bool,
    /// Compare every answer with the recording; a difference counts as a failure.
    #[arg(long)]
    pub verify: bool,
    /// Decode workers, comma-separated base URLs: their figures are reset after the warm-up and are part of the result.
    #[arg(long, value_delimiter = ',')]
    pub workers: Vec<String>,
    /// Header to send with every request, as name:value; may be repeated.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    pub headers: Vec<String>,
    /// Seconds after which a request without an end has failed.
    #[arg(long, default_value_t = 120.0)]
    pub timeout_seconds: f64,
    /// Form of the log on standard error.
    #[arg(long, env = "COTERIE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is logged.
    #[arg(long, env = "COTERIE_LOG", default_value = "info")]
    pub log: String,
}

/// Which prompts, and in what form.
#[derive(Args, Debug)]
pub struct SourceArgs {
    /// Recording (.npz) that holds the prompts.
    #[arg(long, env = "SIM_RECORDING", default_value = "/models/recording.npz")]
    pub recording: PathBuf,
    /// Model folder, for its tokenizer: needed for prompts as text.
    #[arg(long, default_value = "/models/tiny-moe")]
    pub model_dir: PathBuf,
    /// Domains to draw from, with weights if they differ: python,zh or python=2,zh=1. Blends are named a+b. Default: all pure domains alike.
    #[arg(long, value_delimiter = ',')]
    pub domains: Vec<String>,
    /// Which of each domain's recorded requests: a calibration on `even` and a load of `odd` share none.
    #[arg(long, value_enum, default_value_t = Part::All)]
    pub part: Part,
    /// Prompts as text or as token ids.
    #[arg(long, value_enum, default_value_t = PromptForm::Text)]
    pub prompt_form: PromptForm,
}

/// Which of each domain's recorded requests are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// All of them.
    All,
    /// Every second one, from the first.
    Even,
    /// Every second one, from the second.
    Odd,
}

impl Part {
    /// Keeps what belongs to the part.
    pub(super) fn of(self, requests: &[usize]) -> Vec<usize> {
        let from = |first: usize| requests.iter().copied().skip(first).step_by(2).collect();
        match self {
            Self::All => requests.to_vec(),
            Self::Even => from(0),
            Self::Odd => from(1),
        }
    }
}

/// How a prompt is written in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PromptForm {
    /// As a string.
    Text,
    /// As a list of token ids.
    Ids,
}

/// Arguments of `prompts`.
#[derive(Args, Debug)]
pub struct PromptsArgs {
    /// What prompts to write.
    #[command(flatten)]
    pub source: SourceArgs,
    /// How many; each recorded prompt at most once.
    #[arg(long)]
    pub count: usize,
    /// Model name in the bodies. Default: none.
    #[arg(long)]
    pub model: Option<String>,
    /// Most tokens to generate.
    #[arg(long, default_value_t = 128)]
    pub max_tokens: usize,
    /// Temperature in the bodies.
    #[arg(long, default_value_t = 0.8)]
    pub temperature: f64,
    /// Seed of the choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("unknown unit {other:?}: write 500ms, 30s, 2m or 1h")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{text:?} is no duration: write 500ms, 30s, 2m or 1h"))?;
    std::time::Duration::try_from_secs_f64(number * unit).map_err(|e| e.to_string())
}

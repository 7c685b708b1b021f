//! What workers may hold, the prefill pool before them, and what happens to them.

use clap::{Args, ValueEnum};

use super::parse::{fault, not_negative, positive};
use crate::fleet::simulate::ScriptLine;

/// Pools and events.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pools and events")]
pub struct PoolArgs {
    /// Prefill workers. Without them workers are plain: a request goes straight into a batch, its prefill takes no time.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub prefill_workers: Option<u32>,
    /// Milliseconds that every prefill step takes.
    #[arg(long, default_value_t = 4.0, value_parser = not_negative, requires = "prefill_workers", conflicts_with = "model")]
    pub prefill_base_ms: f64,
    /// Microseconds per prompt token.
    #[arg(long, default_value_t = 20.0, value_parser = not_negative, requires = "prefill_workers", conflicts_with = "model")]
    pub prefill_per_token_us: f64,
    /// Prompt tokens of one prefill step at most; 0: one prompt at a time.
    #[arg(long, default_value_t = 8192, requires = "prefill_workers")]
    pub prefill_batch_tokens: u64,
    /// Milliseconds of every KV hand-off, before its bytes.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative, requires = "prefill_workers")]
    pub hand_off_ms: f64,
    /// Gigabits a second that a hand-off's KV travels at. KV has a size with --model only.
    #[arg(long, default_value_t = 400.0, value_parser = positive, requires = "model")]
    pub network_gbps: f64,
    /// When the decode worker is chosen.
    #[arg(long, value_enum, default_value_t = ChooseAt::Prefill, requires = "prefill_workers")]
    pub choose: ChooseAt,
    /// Who sends the first token. From prefill, the hand-off counts as time per output token.
    #[arg(long, value_enum, default_value_t = FirstBy::Decode, requires = "prefill_workers")]
    pub first_token: FirstBy,
    /// Most requests of a decode batch; others wait.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub max_batch: u32,
    /// Tokens of KV that a decode worker holds; the newest requests are pre-empted when it is full. Default: the model's with --model, else
    /// without end.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub kv_tokens: Option<u64>,
    /// Microseconds by which each token of a pre-empted request delays the step that takes it back.
    #[arg(long, default_value_t = 20.0, value_parser = not_negative)]
    pub recompute_us: f64,
    /// Something that happens to decode workers, at a time from the first arrival on; may be repeated. 30:stop:2 kills worker 2 (the first is 0),
    /// 30:drain:2 takes it out of routing, 40:start:1 starts one more, 60:scale:4 drains the newest or starts more.
    #[arg(long, value_name = "SECONDS:WHAT:NUMBER", value_parser = fault)]
    pub fault: Vec<ScriptLine>,
    /// Seconds until a started worker takes requests.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    pub load_seconds: f64,
    /// Attempts that a request gets in all when workers die before it has answered.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub attempts: u32,
}

/// When the decode worker is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChooseAt {
    /// After the prefill, as a router does that goes by prefill counts.
    Prefill,
    /// When the request comes in, as a router does that goes by its text.
    Arrival,
}

/// Who sends the first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FirstBy {
    /// The decode worker, after its first step.
    Decode,
    /// The prefill worker.
    Prefill,
}

/// Router replicas.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Routers")]
pub struct RouterArgs {
    /// Router replicas, each knowing its own requests.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub routers: u32,
    /// Seconds between scrapes of the engines' own load reports. Default: none.
    #[arg(long, value_name = "SECONDS", value_parser = positive, conflicts_with = "exchange_every")]
    pub reports_every: Option<f64>,
    /// Seconds from an engine's count to a router's use of it.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.05, value_parser = not_negative, requires = "reports_every")]
    pub report_delay: f64,
    /// Seconds after which a report is ignored.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = positive, requires = "reports_every")]
    pub report_max_age: f64,
    /// Seconds between messages in which routers tell each other their requests. Default: none.
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub exchange_every: Option<f64>,
    /// Seconds that such a message takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.005, value_parser = not_negative, requires = "exchange_every")]
    pub exchange_delay: f64,
}

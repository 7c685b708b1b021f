//! The load generator: recorded prompts sent at a rate or by a number of clients, answers timed and checked.

mod args;
mod client;
mod measure;
mod plan;
mod prompts;
mod report;
mod run;
#[cfg(test)]
mod tests;

pub use args::{LoadArgs, LoadCli, LoadCommand, Part, PromptForm, PromptsArgs};
pub use client::{ClientError, HttpClient};
pub use plan::{Mix, Planner};
pub use prompts::write_prompts;
pub use report::{Quantiles, Report, WorkerReport};
pub use run::run;

//! vLLM's HTTP dialect, field for field as the recorded answers in `tests/fixtures`, and the simulator's own endpoints under `/sim/v1`.

mod admission;
mod answer;
mod app;
mod body;
mod chat;
mod completions;
mod errors;
mod faults;
mod generate;
mod metrics;
mod models;
mod state;
mod stream;
mod tokens;

pub use app::{App, AppSettings, Drain, Ready, router};

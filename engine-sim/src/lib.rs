//! A small engine that speaks vLLM's HTTP: a real forward pass of a tiny MoE, or recorded requests, paced by a GPU's step-time law.

pub mod cli;
pub mod engine;
pub mod faults;
pub mod fleet;
pub mod http;
pub mod kv;
pub mod load;
pub mod model;
pub mod recording;
mod server;
mod settings;
pub mod tokenizer;

pub use server::Server;
pub use settings::{Settings, SyntheticGates};

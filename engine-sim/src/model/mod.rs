//! The model: a Qwen3-MoE in f32, read from a Hugging Face folder (`config.json`, `model.safetensors`).

mod config;
mod forward;
mod math;
mod sample;
mod weights;

pub use config::ModelConfig;
pub use forward::{KvRows, Model, Scratch};
pub use sample::{Sampling, TokenLogprobs, choose, logprobs};
pub use weights::ModelError;

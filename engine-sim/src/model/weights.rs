//! Weights from `model.safetensors` (bf16 or f32), widened to f32.

use std::path::PathBuf;

use safetensors::{Dtype, SafeTensors};

use super::ModelConfig;

/// Why a model folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file is missing or unreadable.
    #[error("cannot read {path}: {source}. MODEL must be a folder with config.json, model.safetensors, tokenizer.json")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// `config.json` is not one of a supported model.
    #[error("config.json: {0}")]
    Config(String),
    /// The weights do not fit the configuration.
    #[error("model.safetensors: {0}")]
    Weights(String),
    /// The tokenizer or chat template cannot be used.
    #[error("tokenizer.json: {0}")]
    Tokenizer(String),
}

/// One expert: gate and up are `[width, hidden]`, down is `[hidden, width]`.
pub(super) struct Expert {
    pub(super) gate: Vec<f32>,
    pub(super) up: Vec<f32>,
    pub(super) down: Vec<f32>,
}

pub(super) struct Layer {
    pub(super) input_norm: Vec<f32>,
    pub(super) q: Vec<f32>,
    pub(super) k: Vec<f32>,
    pub(super) v: Vec<f32>,
    pub(super) o: Vec<f32>,
    pub(super) q_norm: Vec<f32>,
    pub(super) k_norm: Vec<f32>,
    pub(super) post_norm: Vec<f32>,
    pub(super) router: Vec<f32>,
    pub(super) experts: Vec<Expert>,
}

pub(super) struct Weights {
    pub(super) embed: Vec<f32>,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: Vec<f32>,
    /// None: tied to `embed`.
    pub(super) lm_head: Option<Vec<f32>>,
}

impl Weights {
    pub(super) fn parse(bytes: &[u8], config: &ModelConfig) -> Result<Self, ModelError> {
        let file = SafeTensors::deserialize(bytes).map_err(|e| ModelError::Weights(e.to_string()))?;
        let hidden = config.hidden_size;
        let layers = (0..config.num_hidden_layers)
            .map(|l| layer(&file, config, l))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            embed: tensor(&file, "model.embed_tokens.weight", &[config.vocab_size, hidden])?,
            layers,
            norm: tensor(&file, "model.norm.weight", &[hidden])?,
            lm_head: if config.tie_word_embeddings {
                None
            } else {
                Some(tensor(&file, "lm_head.weight", &[config.vocab_size, hidden])?)
            },
        })
    }
}

fn layer(file: &SafeTensors<'_>, config: &ModelConfig, index: usize) -> Result<Layer, ModelError> {
    let (hidden, head, width) = (config.hidden_size, config.head_dim, config.moe_intermediate_size);
    let (q, kv) = (config.num_attention_heads * head, config.kv_width());
    let get = |name: &str, shape: &[usize]| tensor(file, &format!("model.layers.{index}.{name}.weight"), shape);
    let experts = (0..config.num_experts)
        .map(|e| {
            Ok(Expert {
                gate: get(&format!("mlp.experts.{e}.gate_proj"), &[width, hidden])?,
                up: get(&format!("mlp.experts.{e}.up_proj"), &[width, hidden])?,
                down: get(&format!("mlp.experts.{e}.down_proj"), &[hidden, width])?,
            })
        })
        .collect::<Result<_, ModelError>>()?;
    Ok(Layer {
        input_norm: get("input_layernorm", &[hidden])?,
        q: get("self_attn.q_proj", &[q, hidden])?,
        k: get("self_attn.k_proj", &[kv, hidden])?,
        v: get("self_attn.v_proj", &[kv, hidden])?,
        o: get("self_attn.o_proj", &[hidden, q])?,
        q_norm: get("self_attn.q_norm", &[head])?,
        k_norm: get("self_attn.k_norm", &[head])?,
        post_norm: get("post_attention_layernorm", &[hidden])?,
        router: get("mlp.gate", &[config.num_experts, hidden])?,
        experts,
    })
}

fn tensor(file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
    let view = file
        .tensor(name)
        .map_err(|e| ModelError::Weights(format!("{name}: {e}")))?;
    if view.shape() != shape {
        return Err(ModelError::Weights(format!(
            "{name} has shape {:?}, config.json says {shape:?}",
            view.shape()
        )));
    }
    match view.dtype() {
        Dtype::BF16 => Ok(view
            .data()
            .as_chunks::<2>()
            .0
            .iter()
            .map(|b| half::bf16::from_le_bytes(*b).to_f32())
            .collect()),
        Dtype::F32 => Ok(view
            .data()
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect()),
        other => Err(ModelError::Weights(format!(
            "{name} is {other:?}; supported are BF16 and F32"
        ))),
    }
}

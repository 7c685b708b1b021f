//! `config.json` of a Qwen3-MoE model, checked.

use serde::Deserialize;

use super::ModelError;

/// Geometry and constants of the model.
#[derive(Clone, Debug, Deserialize)]
pub struct ModelConfig {
    /// Must be `qwen3_moe`.
    pub model_type: String,
    /// Tokens in the vocabulary.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Transformer layers; every one is a MoE layer here.
    pub num_hidden_layers: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key and value heads.
    pub num_key_value_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Routed experts per layer, at most 256 (their ids travel as bytes).
    pub num_experts: usize,
    /// Experts chosen per token and layer.
    pub num_experts_per_tok: usize,
    /// Width of an expert.
    pub moe_intermediate_size: usize,
    /// Whether the chosen experts' weights are scaled to sum to one.
    pub norm_topk_prob: bool,
    /// Epsilon of the RMS norms.
    pub rms_norm_eps: f32,
    /// Base of the rotary embedding.
    pub rope_theta: f32,
    /// Longest context in tokens.
    pub max_position_embeddings: usize,
    /// Whether the output matrix is the embedding.
    pub tie_word_embeddings: bool,
    /// Token that ends a text.
    pub eos_token_id: u32,
    /// Layers without experts: not supported, must be empty.
    #[serde(default)]
    pub mlp_only_layers: Vec<usize>,
}

impl ModelConfig {
    /// Parses and checks `config.json`.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let config: Self = serde_json::from_str(text).map_err(|e| ModelError::Config(e.to_string()))?;
        config.check().map_err(ModelError::Config)?;
        Ok(config)
    }

    /// Floats that one token's keys and values take over all layers: `[layers, 2, kv heads x head width]`.
    pub fn kv_token_width(&self) -> usize {
        self.num_hidden_layers * 2 * self.kv_width()
    }

    /// Width of one layer's keys (or values) of a token.
    pub fn kv_width(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }

    /// Bytes of one token's expert choices: layers x experts per token.
    pub fn row_width(&self) -> usize {
        self.num_hidden_layers * self.num_experts_per_tok
    }

    fn check(&self) -> Result<(), String> {
        let sizes = [
            ("vocab_size", self.vocab_size, 1 << 20),
            ("hidden_size", self.hidden_size, 1 << 14),
            ("num_hidden_layers", self.num_hidden_layers, 256),
            ("num_attention_heads", self.num_attention_heads, 256),
            ("num_key_value_heads", self.num_key_value_heads, 256),
            ("head_dim", self.head_dim, 1024),
            ("num_experts", self.num_experts, 256),
            ("num_experts_per_tok", self.num_experts_per_tok, 32),
            ("moe_intermediate_size", self.moe_intermediate_size, 1 << 14),
            ("max_position_embeddings", self.max_position_embeddings, 1 << 20),
        ];
        for (name, value, most) in sizes {
            if value == 0 || value > most {
                return Err(format!("{name} is {value}; supported are 1 to {most}"));
            }
        }
        if self.model_type != "qwen3_moe" {
            return Err(format!(
                "model_type is {:?}; only \"qwen3_moe\" is supported",
                self.model_type
            ));
        }
        if !self.mlp_only_layers.is_empty() {
            return Err("mlp_only_layers is not empty; dense layers are not supported".to_owned());
        }
        if !self.num_attention_heads.is_multiple_of(self.num_key_value_heads) {
            return Err("num_attention_heads is not a multiple of num_key_value_heads".to_owned());
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err("head_dim is odd; the rotary embedding needs pairs".to_owned());
        }
        if self.num_experts_per_tok > self.num_experts {
            return Err("num_experts_per_tok is larger than num_experts".to_owned());
        }
        Ok(())
    }
}

//! Public figures of models and GPUs, and what follows from them.

use serde::Deserialize;

/// The contents of `figures.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Figures {
    /// GPUs.
    pub gpus: Vec<Gpu>,
    /// Models.
    pub models: Vec<Model>,
    /// Factors between peak and what is reached.
    pub efficiency: Efficiency,
}

impl Figures {
    /// The figures that come with the program.
    pub fn built_in() -> Result<Self, serde_json::Error> {
        serde_json::from_str(include_str!("figures.json"))
    }
}

/// One GPU's peaks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Gpu {
    /// Name as presets give it.
    pub name: String,
    /// Memory, 1e9 bytes.
    pub memory_gb: f64,
    /// Memory bandwidth, 1e12 bytes a second.
    pub hbm_tb_s: f64,
    /// Dense matrix peak in bf16, 1e12 operations a second.
    pub bf16_tflops: f64,
    /// The same in fp8.
    pub fp8_tflops: f64,
    /// Whether its matrix units take 4-bit numbers.
    pub fp4_units: bool,
    /// Links to the other GPUs of the node together, 1e9 bytes a second each way.
    pub link_gb_s: f64,
    /// Where the figures are from.
    pub source: String,
}

/// One model's shape.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Model {
    /// Name as presets give it.
    pub name: String,
    /// All layers.
    pub layers: u32,
    /// Layers without routed experts, the first ones.
    pub dense_layers: u32,
    /// Routed experts of a layer.
    pub experts: u32,
    /// Experts that every token takes.
    pub shared_experts: u32,
    /// Routed experts of a token.
    pub top_k: u32,
    /// Width of the residual stream.
    pub hidden: f64,
    /// Inner width of an expert.
    pub expert_width: f64,
    /// Inner width of a dense layer.
    pub dense_width: f64,
    /// Tokens of the vocabulary.
    pub vocabulary: f64,
    /// Attention.
    pub attention: Attention,
    /// Bits of an expert's weight, scales included.
    pub expert_bits: f64,
    /// Bits of any other weight.
    pub other_bits: f64,
    /// Bits of a number of KV.
    pub kv_bits: f64,
    /// Parameters as published, 1e9.
    pub published_total_b: f64,
    /// Parameters active per token as published, 1e9.
    pub published_active_b: f64,
    /// Whether the published active number has the input embedding in it.
    pub embedding_counts_as_active: bool,
    /// Where the figures are from.
    pub source: String,
}

/// Attention and its KV.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Attention {
    /// Groups of heads share a key and a value.
    Grouped {
        /// Query heads.
        heads: f64,
        /// Key and value heads.
        kv_heads: f64,
        /// Numbers of a head.
        head_size: f64,
        /// Tokens that a windowed layer attends to.
        window: f64,
        /// Share of the layers that are windowed, 0..1.
        windowed_share: f64,
    },
    /// Keys and values come from one low-rank vector per token.
    Latent {
        /// Heads.
        heads: f64,
        /// Rank of the queries.
        query_rank: f64,
        /// Rank of keys and values, which is what KV holds.
        kv_rank: f64,
        /// Rotary numbers, held beside.
        rope_size: f64,
        /// Numbers of a head.
        head_size: f64,
    },
}

/// Factors between peak and what is reached, and fixed times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Efficiency {
    /// Of HBM bandwidth, for weights of routed experts.
    pub expert_weights: f64,
    /// The same for 4-bit weights on a GPU without 4-bit matrix units.
    pub fp4_without_units: f64,
    /// Of HBM bandwidth, for other weights.
    pub dense_weights: f64,
    /// Of HBM bandwidth, for KV.
    pub attention: f64,
    /// Of the matrix peak.
    pub compute: f64,
    /// Of the links between GPUs.
    pub link: f64,
    /// Microseconds of a step per layer that no bandwidth explains.
    pub fixed_us_per_layer: f64,
    /// Microseconds per layer for dispatch and return between ranks.
    pub exchange_us_per_layer: f64,
    /// Share of memory that weights and KV may take.
    pub memory_for_use: f64,
    /// Where the factors are from.
    pub source: String,
}

impl Model {
    /// Layers with routed experts.
    pub fn moe_layers(&self) -> f64 {
        f64::from(self.layers - self.dense_layers.min(self.layers))
    }

    /// Parameters of one expert: gate, up and down.
    pub fn expert_parameters(&self) -> f64 {
        3.0 * self.hidden * self.expert_width
    }

    /// Parameters of the routed experts of all layers.
    pub fn routed_parameters(&self) -> f64 {
        self.moe_layers() * f64::from(self.experts) * self.expert_parameters()
    }

    /// Parameters of one layer's attention.
    pub fn attention_parameters(&self) -> f64 {
        match self.attention {
            Attention::Grouped {
                heads,
                kv_heads,
                head_size,
                ..
            } => self.hidden * head_size * (2.0 * heads + 2.0 * kv_heads),
            Attention::Latent {
                heads,
                query_rank,
                kv_rank,
                rope_size,
                head_size,
            } => {
                let query = self.hidden * query_rank + query_rank * heads * (head_size + rope_size);
                let key_value = self.hidden * (kv_rank + rope_size) + kv_rank * heads * 2.0 * head_size;
                query + key_value + heads * head_size * self.hidden
            }
        }
    }

    /// Parameters that every token's step reads: attention, shared experts, dense layers, gates and the output's matrix.
    pub fn dense_parameters(&self) -> f64 {
        let per_moe_layer =
            f64::from(self.shared_experts) * self.expert_parameters() + self.hidden * f64::from(self.experts);
        f64::from(self.layers) * self.attention_parameters()
            + self.moe_layers() * per_moe_layer
            + f64::from(self.dense_layers) * 3.0 * self.hidden * self.dense_width
            + self.vocabulary * self.hidden
    }

    /// All parameters: those, the routed experts and the input embedding.
    pub fn total_parameters(&self) -> f64 {
        self.dense_parameters() + self.routed_parameters() + self.vocabulary * self.hidden
    }

    /// Parameters active for one token, by the published way of counting.
    pub fn active_parameters(&self) -> f64 {
        let embedding = if self.embedding_counts_as_active {
            self.vocabulary * self.hidden
        } else {
            0.0
        };
        let routed = self.moe_layers() * f64::from(self.top_k) * self.expert_parameters();
        self.dense_parameters() + routed + embedding
    }

    /// Bytes of all weights.
    pub fn weight_bytes(&self) -> f64 {
        let routed = self.routed_parameters();
        (routed * self.expert_bits + (self.total_parameters() - routed) * self.other_bits) / 8.0
    }

    /// Bytes of KV that one token keeps in memory.
    pub fn kv_bytes_per_token(&self) -> f64 {
        let numbers = match self.attention {
            Attention::Grouped {
                kv_heads, head_size, ..
            } => 2.0 * kv_heads * head_size,
            Attention::Latent { kv_rank, rope_size, .. } => kv_rank + rope_size,
        };
        f64::from(self.layers) * numbers * self.kv_bits / 8.0
    }

    /// Share of KV that a step reads of a sequence of `tokens` tokens; below 1 where layers attend to a window only.
    pub fn kv_read_share(&self, tokens: f64) -> f64 {
        match self.attention {
            Attention::Grouped {
                window, windowed_share, ..
            } if window > 0.0 && tokens > window => 1.0 - windowed_share * (1.0 - window / tokens),
            _ => 1.0,
        }
    }
}

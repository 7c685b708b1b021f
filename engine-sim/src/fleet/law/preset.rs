//! A model on a number of GPUs: laws from figures.

use coterie_locality::Geometry;

use super::{DecodeLaw, Efficiency, ExchangeLaw, Figures, Gpu, Model, PrefillLaw, TransferLaw};

/// Length of a sequence at which windowed attention is averaged, in tokens.
const TYPICAL_TOKENS: f64 = 1024.0;

/// How the GPUs of one worker share the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// Every matrix is cut over all GPUs, each expert too: the distinct experts of the whole batch count.
    Tensor,
    /// Whole experts lie on one GPU each; every GPU has all other weights and a share of the requests. A layer waits for the GPU with the most
    /// distinct experts.
    Expert,
}

/// A model on GPUs.
#[derive(Clone, Debug)]
pub struct Preset {
    model: Model,
    gpu: Gpu,
    gpus: u32,
    parallelism: Parallelism,
    efficiency: Efficiency,
}

/// A preset that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// No such name.
    #[error("no {kind} {name:?}: choose one of {known}")]
    Unknown {
        /// Model or GPU.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Weights exceed memory.
    #[error(
        "{model} needs {needed_gb:.0} GB of weights on each of {gpus} {gpu}, which leaves no room for KV in {memory_gb:.0} GB: use more GPUs"
    )]
    Memory {
        /// The model.
        model: String,
        /// The GPU.
        gpu: String,
        /// How many.
        gpus: u32,
        /// Weights on each.
        needed_gb: f64,
        /// Memory of each.
        memory_gb: f64,
    },
    /// The built-in figures are damaged.
    #[error("figures of models and GPUs: {0}")]
    Figures(#[from] serde_json::Error),
}

impl Preset {
    /// A built-in model on built-in GPUs. Names are compared without regard to case.
    pub fn new(model: &str, gpu: &str, gpus: u32, parallelism: Parallelism) -> Result<Self, PresetError> {
        let figures = Figures::built_in()?;
        let unknown = |kind, name: &str, known: Vec<&str>| PresetError::Unknown {
            kind,
            name: name.to_owned(),
            known: known.join(", "),
        };
        let found_model = figures.models.iter().find(|m| m.name.eq_ignore_ascii_case(model));
        let found_gpu = figures.gpus.iter().find(|g| g.name.eq_ignore_ascii_case(gpu));
        let names = || figures.models.iter().map(|m| m.name.as_str()).collect();
        let gpu_names = || figures.gpus.iter().map(|g| g.name.as_str()).collect();
        let preset = Self {
            model: found_model.cloned().ok_or_else(|| unknown("model", model, names()))?,
            gpu: found_gpu.cloned().ok_or_else(|| unknown("GPU", gpu, gpu_names()))?,
            gpus: gpus.max(1),
            parallelism,
            efficiency: figures.efficiency.clone(),
        };
        if preset.kv_capacity_tokens() < 1 {
            return Err(PresetError::Memory {
                model: preset.model.name.clone(),
                gpu: preset.gpu.name.clone(),
                gpus: preset.gpus,
                needed_gb: preset.weight_bytes_per_gpu() / 1e9,
                memory_gb: preset.gpu.memory_gb,
            });
        }
        Ok(preset)
    }

    /// The fewest GPUs (1, 2, 4, 8, 16, 32) of a kind that hold a model with room for KV.
    pub fn smallest(model: &str, gpu: &str, parallelism: Parallelism) -> Result<Self, PresetError> {
        let mut last = Self::new(model, gpu, 1, parallelism);
        for gpus in [2, 4, 8, 16, 32] {
            if !matches!(last, Err(PresetError::Memory { .. })) {
                break;
            }
            last = Self::new(model, gpu, gpus, parallelism);
        }
        last
    }

    /// The model's figures.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The GPU's figures.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// GPUs of one worker.
    pub fn gpus(&self) -> u32 {
        self.gpus
    }

    /// The model's MoE geometry.
    pub fn geometry(&self) -> Result<Geometry, coterie_locality::geometry::GeometryError> {
        let layers = self.model.layers - self.model.dense_layers.min(self.model.layers);
        Geometry::new(layers as usize, self.model.experts as usize, self.model.top_k as usize)
    }

    /// Tokens of KV that one worker holds, on all its GPUs together.
    pub fn kv_capacity_tokens(&self) -> u64 {
        let free = self.gpu.memory_gb * 1e9 * self.efficiency.memory_for_use - self.weight_bytes_per_gpu();
        (free.max(0.0) * f64::from(self.gpus) / self.model.kv_bytes_per_token()) as u64
    }

    /// Bytes of weights on each GPU.
    pub fn weight_bytes_per_gpu(&self) -> f64 {
        let routed = self.model.routed_parameters() * self.model.expert_bits / 8.0;
        let other = self.model.weight_bytes() - routed;
        let gpus = f64::from(self.gpus);
        match self.parallelism {
            Parallelism::Tensor => (routed + other) / gpus,
            Parallelism::Expert => routed / gpus + other,
        }
    }

    /// Time of a decode step. `StepWork::experts` is the distinct experts of the whole batch with [`Parallelism::Tensor`], of each layer's
    /// slowest rank with [`Parallelism::Expert`].
    pub fn decode(&self) -> DecodeLaw {
        let (model, e) = (&self.model, &self.efficiency);
        let (hbm, gpus) = (self.gpu.hbm_tb_s * 1e12, f64::from(self.gpus));
        let expert_bytes = model.expert_parameters() * model.expert_bits / 8.0;
        let (expert_share, dense_share) = match self.parallelism {
            Parallelism::Tensor => (gpus, gpus),
            Parallelism::Expert => (1.0, 1.0),
        };
        let routed_active = model.moe_layers() * f64::from(model.top_k) * model.expert_parameters();
        let dense = model.dense_parameters();
        let kv_read = model.kv_bytes_per_token() * model.kv_read_share(TYPICAL_TOKENS);
        DecodeLaw {
            fixed: f64::from(model.layers) * e.fixed_us_per_layer * 1e-6,
            per_expert: expert_bytes / expert_share / (hbm * self.expert_efficiency()),
            per_request_experts: 2.0 * routed_active / (gpus * self.flops(model.expert_bits)),
            dense: dense * model.other_bits / 8.0 / dense_share / (hbm * e.dense_weights),
            per_request_dense: 2.0 * dense / (gpus * self.flops(model.other_bits)),
            per_request: 0.0,
            per_kv_token: kv_read / gpus / (hbm * e.attention),
            exchange: self.exchange(),
        }
    }

    /// Time of a prefill on one worker of the same kind.
    pub fn prefill(&self) -> PrefillLaw {
        let (model, e) = (&self.model, &self.efficiency);
        let gpus = f64::from(self.gpus);
        let routed_active = model.moe_layers() * f64::from(model.top_k) * model.expert_parameters();
        // Attention: two products of head size per pair of tokens, head and layer, always in 16 bits.
        let (heads, size) = match model.attention {
            super::Attention::Grouped { heads, head_size, .. } => (heads, head_size),
            super::Attention::Latent {
                heads,
                head_size,
                rope_size,
                ..
            } => (heads, head_size + rope_size / 2.0),
        };
        let pair = 4.0 * heads * size * f64::from(model.layers) * model.kv_read_share(TYPICAL_TOKENS);
        let per_token = 2.0 * routed_active / self.flops(model.expert_bits)
            + 2.0 * model.dense_parameters() / self.flops(model.other_bits);
        PrefillLaw {
            fixed: f64::from(model.layers) * e.fixed_us_per_layer * 1e-6,
            per_token: per_token / gpus + self.exchange().per_request,
            per_token_squared: pair / (gpus * self.flops(16.0)),
            weights: self.weight_bytes_per_gpu() / (self.gpu.hbm_tb_s * 1e12 * self.expert_efficiency()),
        }
    }

    /// Time of a KV hand-off over a network of this many gigabits a second per worker.
    pub fn transfer(&self, gigabits_per_second: f64) -> TransferLaw {
        TransferLaw {
            latency: 1e-3,
            bytes_per_token: self.model.kv_bytes_per_token(),
            bytes_per_second: gigabits_per_second.max(1e-3) * 1e9 / 8.0,
        }
    }

    fn expert_efficiency(&self) -> f64 {
        if self.model.expert_bits < 8.0 && !self.gpu.fp4_units {
            self.efficiency.fp4_without_units
        } else {
            self.efficiency.expert_weights
        }
    }

    /// Operations a second that are reached with weights of this many bits. Weights of 4 bits are computed in 16 without 4-bit units, and as fast
    /// as 8 bits with them.
    fn flops(&self, bits: f64) -> f64 {
        let slow = bits > 8.0 || (bits < 8.0 && !self.gpu.fp4_units);
        let peak = if slow {
            self.gpu.bf16_tflops
        } else {
            self.gpu.fp8_tflops
        };
        peak * 1e12 * self.efficiency.compute
    }

    /// Tensor parallelism adds two all-reduces a layer, expert parallelism a dispatch (8 bits a number) and a return (16 bits) to top-k ranks at most.
    fn exchange(&self) -> ExchangeLaw {
        let (model, e) = (&self.model, &self.efficiency);
        let gpus = f64::from(self.gpus);
        if self.gpus == 1 {
            return ExchangeLaw::default();
        }
        let away = (gpus - 1.0) / gpus;
        let link = self.gpu.link_gb_s * 1e9 * e.link;
        let (layers, bytes) = match self.parallelism {
            // Each GPU sends and receives 2 (g - 1) / g of the 16-bit numbers, twice a layer.
            Parallelism::Tensor => (f64::from(model.layers), 2.0 * 2.0 * away * model.hidden * 2.0),
            // The batch is spread over the GPUs, so each one's links carry its share of the requests.
            Parallelism::Expert => {
                let copies = f64::from(model.top_k).min(gpus);
                (model.moe_layers(), copies * away * model.hidden * 3.0 / gpus)
            }
        };
        ExchangeLaw {
            fixed: layers * e.exchange_us_per_layer * 1e-6,
            per_request: layers * bytes / link,
        }
    }
}

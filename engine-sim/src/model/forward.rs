//! The forward pass of one token.

use std::path::Path;

use super::math::{axpy, dot, matvec, rms_norm, rms_norm_in_place, silu, softmax};
use super::weights::{Layer, Weights};
use super::{ModelConfig, ModelError};

/// Where keys and values of earlier positions are kept: `[layer][position]` rows of [`ModelConfig::kv_width`] floats.
pub trait KvRows {
    /// Stores the keys and values of one position.
    fn put(&mut self, layer: usize, position: usize, keys: &[f32], values: &[f32]);
    /// Keys of one position.
    fn keys(&self, layer: usize, position: usize) -> &[f32];
    /// Values of one position.
    fn values(&self, layer: usize, position: usize) -> &[f32];
}

/// Buffers that a forward pass reuses; one per thread.
pub struct Scratch {
    hidden: Vec<f32>,
    normed: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    attended: Vec<f32>,
    projected: Vec<f32>,
    scores: Vec<f32>,
    router: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    logits: Vec<f32>,
}

/// A loaded model. Read-only, so it can be shared.
pub struct Model {
    config: ModelConfig,
    weights: Weights,
    /// `[position][pair]` of (cos, sin).
    rope: Vec<(f32, f32)>,
}

impl Model {
    /// Loads `config.json` and `model.safetensors` of a folder. Blocking.
    pub fn load(folder: &Path) -> Result<Self, ModelError> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|source| ModelError::Read { path, source })
        };
        let config = ModelConfig::parse(&String::from_utf8_lossy(&read("config.json")?))?;
        let weights = Weights::parse(&read("model.safetensors")?, &config)?;
        let half = config.head_dim / 2;
        let rope = (0..config.max_position_embeddings * half)
            .map(|i| {
                let (position, pair) = (i / half, i % half);
                let frequency = f64::from(config.rope_theta).powf(-2.0 * pair as f64 / config.head_dim as f64);
                let (sin, cos) = (position as f64 * frequency).sin_cos();
                (cos as f32, sin as f32)
            })
            .collect();
        Ok(Self { config, weights, rope })
    }

    /// Geometry and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Buffers of the right sizes.
    pub fn scratch(&self) -> Scratch {
        let c = &self.config;
        let zeros = |n: usize| vec![0.0; n];
        Scratch {
            hidden: zeros(c.hidden_size),
            normed: zeros(c.hidden_size),
            q: zeros(c.num_attention_heads * c.head_dim),
            k: zeros(c.kv_width()),
            v: zeros(c.kv_width()),
            attended: zeros(c.num_attention_heads * c.head_dim),
            projected: zeros(c.hidden_size),
            scores: Vec::new(),
            router: zeros(c.num_experts),
            gate: zeros(c.moe_intermediate_size),
            up: zeros(c.moe_intermediate_size),
            logits: zeros(c.vocab_size),
        }
    }

    /// Runs one token at `position` (below `max_position_embeddings`), with keys and values of all earlier positions in `kv`, and stores its own there.
    /// `experts` (layers x experts per token) receives the chosen experts, heaviest first. Token ids past the vocabulary count as token 0.
    pub fn step<K: KvRows>(&self, s: &mut Scratch, token: u32, position: usize, kv: &mut K, experts: &mut [u8]) {
        let c = &self.config;
        let row = if (token as usize) < c.vocab_size {
            token as usize
        } else {
            0
        };
        s.hidden
            .copy_from_slice(&self.weights.embed[row * c.hidden_size..(row + 1) * c.hidden_size]);
        for (index, (layer, chosen)) in self
            .weights
            .layers
            .iter()
            .zip(experts.chunks_exact_mut(c.num_experts_per_tok))
            .enumerate()
        {
            rms_norm(&s.hidden, &layer.input_norm, c.rms_norm_eps, &mut s.normed);
            self.attend(s, layer, index, position, kv);
            rms_norm(&s.hidden, &layer.post_norm, c.rms_norm_eps, &mut s.normed);
            self.mix_experts(s, layer, chosen);
        }
    }

    /// Logits after the token that was stepped last.
    pub fn logits<'s>(&self, s: &'s mut Scratch) -> &'s [f32] {
        rms_norm(&s.hidden, &self.weights.norm, self.config.rms_norm_eps, &mut s.normed);
        let matrix = self.weights.lm_head.as_deref().unwrap_or(&self.weights.embed);
        matvec(matrix, &s.normed, &mut s.logits);
        &s.logits
    }

    fn attend<K: KvRows>(&self, s: &mut Scratch, layer: &Layer, index: usize, position: usize, kv: &mut K) {
        let c = &self.config;
        matvec(&layer.q, &s.normed, &mut s.q);
        matvec(&layer.k, &s.normed, &mut s.k);
        matvec(&layer.v, &s.normed, &mut s.v);
        for head in s.q.chunks_exact_mut(c.head_dim) {
            rms_norm_in_place(head, &layer.q_norm, c.rms_norm_eps);
            self.rotate(head, position);
        }
        for head in s.k.chunks_exact_mut(c.head_dim) {
            rms_norm_in_place(head, &layer.k_norm, c.rms_norm_eps);
            self.rotate(head, position);
        }
        kv.put(index, position, &s.k, &s.v);
        let group = c.num_attention_heads / c.num_key_value_heads;
        let scale = 1.0 / (c.head_dim as f32).sqrt();
        s.attended.fill(0.0);
        for (head, (query, out)) in
            s.q.chunks_exact(c.head_dim)
                .zip(s.attended.chunks_exact_mut(c.head_dim))
                .enumerate()
        {
            let from = head / group * c.head_dim;
            let part = from..from + c.head_dim;
            s.scores.clear();
            s.scores
                .extend((0..=position).map(|p| scale * dot(query, &kv.keys(index, p)[part.clone()])));
            softmax(&mut s.scores);
            for (p, weight) in s.scores.iter().enumerate() {
                axpy(*weight, &kv.values(index, p)[part.clone()], out);
            }
        }
        matvec(&layer.o, &s.attended, &mut s.projected);
        axpy(1.0, &s.projected, &mut s.hidden);
    }

    fn mix_experts(&self, s: &mut Scratch, layer: &Layer, chosen: &mut [u8]) {
        matvec(&layer.router, &s.normed, &mut s.router);
        softmax(&mut s.router);
        let mut total = 0.0;
        for slot in 0..chosen.len() {
            let mut best = None;
            for (expert, weight) in s.router.iter().enumerate() {
                let free = !chosen[..slot].contains(&(expert as u8));
                if free && best.is_none_or(|(_, most)| *weight > most) {
                    best = Some((expert, *weight));
                }
            }
            let (expert, weight) = best.unwrap_or((0, 0.0));
            chosen[slot] = expert as u8;
            total += weight;
        }
        for expert in chosen.iter().map(|e| *e as usize) {
            let weights = &layer.experts[expert];
            matvec(&weights.gate, &s.normed, &mut s.gate);
            matvec(&weights.up, &s.normed, &mut s.up);
            for (g, u) in s.gate.iter_mut().zip(&s.up) {
                *g = silu(*g) * u;
            }
            matvec(&weights.down, &s.gate, &mut s.projected);
            let share = if self.config.norm_topk_prob {
                s.router[expert] / total
            } else {
                s.router[expert]
            };
            axpy(share, &s.projected, &mut s.hidden);
        }
    }

    fn rotate(&self, head: &mut [f32], position: usize) {
        let half = head.len() / 2;
        let (low, high) = head.split_at_mut(half);
        for ((a, b), (cos, sin)) in low
            .iter_mut()
            .zip(high)
            .zip(&self.rope[position * half..(position + 1) * half])
        {
            (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
        }
    }
}
